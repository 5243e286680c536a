#pragma once

// The part of the page that moves: a word, a slider, and what the model holds after each letter.
namespace lrnn::cli {

constexpr const char* kExplainStyle = R"(<style>
#word { width: 100%; font: 1rem "DejaVu Sans Mono", monospace; box-sizing: border-box; }
#slider { width: 100%; } #letters { font: 1rem/1.8 "DejaVu Sans Mono", monospace; word-break: break-all; }
#letters b { background: #0072b2; color: #fff; padding: 0.1rem 0.25rem; border-radius: 3px; }
#letters .later { color: var(--soft); }
.state.here circle { fill: #e69f00; } .state.here text { fill: #000; font-weight: bold; }
.matrices { display: flex; flex-wrap: wrap; gap: 1rem; }
.matrices figure { margin: 0.4rem 0; } .matrices svg { display: block; }
.bad { color: #d55e00; } .arrow { fill: var(--axis); }
</style>
)";

constexpr const char* kExplainScript = R"(<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const word = document.getElementById("word"), slider = document.getElementById("slider");
const number = new Map(data.symbols.map((name, i) => [name, i]));
// Plans that are one group, or several parts side by side, have no coordinates to show.
const coordinates = data.coordinates.some(x => x !== "");
document.getElementById("coordinates").hidden = !coordinates;
function letters() {
  const text = word.value.trim();
  if (text === "") return [];
  return data.characters ? Array.from(text.replace(/\s/g, "")) : text.split(/\s+/);
}
function step() {
  const read = letters(), unknown = read.find(x => !number.has(x));
  document.getElementById("problem").textContent =
      unknown === undefined ? "" : "'" + unknown + "' is not a symbol";
  if (unknown !== undefined) return;
  slider.max = read.length;
  const t = Number(slider.value);
  let at = data.start;
  const rows = [];
  for (let i = 0; i < t; ++i) {
    const next = data.next[at][number.get(read[i])];
    rows.push([read[i], data.states[data.state[at]], data.states[data.state[next]], data.coordinates[next]]);
    at = next;
  }
  const line = document.getElementById("letters");
  line.replaceChildren();
  read.forEach((x, i) => {
    const part = document.createElement(i === t - 1 ? "b" : "span");
    if (i >= t) part.className = "later";
    part.textContent = x;
    line.append(part, data.characters ? "" : " ");
  });
  document.querySelectorAll(".state.here").forEach(g => g.classList.remove("here"));
  const here = document.getElementById("state-" + data.state[at]);
  if (here) here.classList.add("here");
  document.getElementById("answer").textContent =
      "after " + t + " letters: state " + data.states[data.state[at]] + ", answer " +
      data.answers[data.state[at]] + (data.coordinates[at] ? ", coordinates " + data.coordinates[at] : "");
  const body = document.getElementById("steps");
  body.replaceChildren();
  rows.slice(-8).forEach(r => {
    const row = document.createElement("tr");
    r.slice(0, coordinates ? 4 : 3).forEach(x => { const cell = document.createElement("td"); cell.textContent = x; row.append(cell); });
    body.append(row);
  });
}
word.addEventListener("input", () => { slider.max = letters().length; slider.value = slider.max; step(); });
slider.addEventListener("input", step);
slider.max = letters().length;
slider.value = slider.max;
step();
</script>
)";

}  // namespace lrnn::cli
