"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id), word = find("word"), slider = find("slider");
const number = new Map(data.symbols.map((name, i) => [name, i]));
// Plans that are one group, or several parts side by side, have no coordinates to show.
const coordinates = data.coordinates.some(x => x !== "");
find("coordinates").hidden = !coordinates;

function make(tag, text, name) {
  const out = document.createElement(tag);
  if (text !== undefined) out.textContent = text;
  if (name) out.className = name;
  return out;
}

// ------------------------------------------------------------------------------ reading a word
// Cycles as the program writes them: (3 1 2) is (123).
function cycles(text) {
  const commas = data.symbols.some(name => /\(\d+,/.test(name));
  const points = c => /[ ,]/.test(c) ? c.split(/[ ,]+/).filter(p => p) : Array.from(c);
  const turned = c => { const i = c.indexOf(Math.min(...c)); return c.slice(i).concat(c.slice(0, i)); };
  const all = Array.from(text.matchAll(/\(([^()]*)\)/g), m => points(m[1].trim()).map(Number));
  const moved = all.filter(c => c.length > 1).map(turned).sort((a, b) => a[0] - b[0]);
  return moved.map(c => "(" + c.join(commas ? "," : "") + ")").join("") || "e";
}
function symbol(text) {
  if (number.has(text)) return number.get(text);
  const by_id = id => data.ids.includes(id) ? data.ids.indexOf(id) : undefined;
  if (/^\d+$/.test(text)) return by_id(Number(text));
  if (text === "e" || text === "()") return by_id(0);
  return data.ids.length && /^(\([\d ,]*\))+$/.test(text) ? number.get(cycles(text)) : undefined;
}
function letters() {
  const text = word.value.trim();
  if (text === "") return [];
  if (data.characters) return Array.from(text.replace(/\s/g, ""));
  return text.match(data.ids.length ? /(\([^()]*\)|\[[^\]]*\]|[^\s()])+|\S/g : /\S+/g);
}

// --------------------------------------------------------------------- what the model holds
function times(a, h, b, rows, cols) {
  const out = b.length ? b.slice() : new Array(rows * cols).fill(0);
  for (let r = 0; r < rows; ++r)
    for (let q = 0; q < rows; ++q)
      if (a[r * rows + q] !== 0)
        for (let c = 0; c < cols; ++c) out[r * cols + c] += a[r * rows + q] * h[q * cols + c];
  return out;
}
function shown(v, long) {
  const r = Math.round(v * 1000) / 1000;
  if (r === 0) return "0";
  return (r < 0 ? "−" : "") + String(Math.abs(r)).replace(/^0/, long ? "0" : "");
}
function matrix(values, cols, caption, size, before) {
  const out = make("figure"), grid = make("div", undefined, "grid");
  grid.style.setProperty("--n", cols);
  values.forEach((v, i) => {
    const cell = make("i", size === 0 ? "" : shown(v, size === 4)), strength = Math.min(1, Math.abs(v));
    cell.title = String(v);
    if (Math.abs(v) < 5e-4) cell.className = "zero";
    else {
      cell.style.background = `rgba(${v > 0 ? "230,159,0" : "0,114,178"},${0.12 + 0.88 * strength})`;
      if (strength > 0.5) cell.style.color = v > 0 ? "#1a1a1a" : "#ffffff";
    }
    if (before && Math.abs(before[i] - v) > 5e-4) cell.classList.add("changed");
    grid.append(cell);
  });
  out.append(grid, make("figcaption", caption));
  return out;
}
function card(head, at, t, letter, before, act, now) {
  const most = Math.max(head.rows, head.cols), size = [4, 6, 12].find(n => most <= n) || 0;
  const out = make("section", undefined, "head size" + size + (head.rows > 2 || 3 * head.cols + head.rows > 7 ? " wide" : ""));
  out.id = "head-" + at;
  const title = make("h3", head.name), line = make("div", undefined, "equation");
  title.append(make("span", ": " + head.about));
  const stays = act && act.b.length === 0 && act.a.every((v, i) => v === (i % (head.rows + 1) ? 0 : 1));
  const held = matrix(now, head.cols, "H after " + t, size, stays ? undefined : before);
  held.className = "now";
  line.append(held);
  if (act && !stays) {
    line.append("=", matrix(act.a, head.rows, "A for " + letter, size), "·",
                matrix(before, head.cols, "H after " + (t - 1), size));
    if (act.b.length) line.append("+", matrix(act.b, head.cols, "B for " + letter, size));
  }
  out.append(title, line);
  if (stays) out.append(make("p", "stays as it is: A is the identity"));
  if (head.query.length && head.cols <= 12) {
    const q = head.query, read = new Array(head.cols).fill(0);
    now.forEach((v, i) => { read[i % head.cols] += q[Math.floor(i / head.cols)] * v; });
    const list = x => "(" + x.map(v => shown(v, true)).join(", ") + ")";
    out.append(make("p", "the answer is read from Hᵀq = " + list(read) + ", q = " + list(q.slice(0, head.cols)), "read"));
  }
  return out;
}
function hold(read, t) {
  if (data.heads.length === 0) return;
  let at = 0, now = data.heads.map(h => h.start), before = now, acts = now.map(() => undefined);
  for (let i = 0; i < t; ++i) {
    const x = symbol(read[i]), move = data.moves[data.move[at][x]];
    acts = data.heads.map((h, k) => h.actions[move[k]]);
    before = now;
    now = data.heads.map((h, k) => times(acts[k].a, before[k], acts[k].b, h.rows, h.cols));
    at = data.next[at][x];
  }
  find("heads").replaceChildren(
      ...data.heads.map((h, k) => card(h, k, t, read[t - 1], before[k], acts[k], now[k])));
}

// --------------------------------------------------------------------------------- one step
function step() {
  const read = letters(), unknown = read.find(x => symbol(x) === undefined);
  const some = data.symbols.slice(0, 12).join(" ") + (data.symbols.length > 12 ? " …" : "");
  find("problem").textContent =
      unknown === undefined ? "" : "'" + unknown + "' is not a symbol; symbols are " + some;
  if (unknown !== undefined) return;
  slider.max = read.length;
  const t = Number(slider.value);
  let at = 0;
  const rows = [];
  for (let i = 0; i < t; ++i) {
    const next = data.next[at][symbol(read[i])];
    rows.push([read[i], data.states[data.state[at]], data.states[data.state[next]], data.coordinates[next]]);
    at = next;
  }
  const line = find("letters");
  line.replaceChildren();
  read.forEach((x, i) => {
    line.append(make(i === t - 1 ? "b" : "span", x, i >= t ? "later" : ""), data.characters ? "" : " ");
  });
  document.querySelectorAll(".state.here").forEach(g => g.classList.remove("here"));
  const here = find("state-" + data.state[at]);
  if (here) here.classList.add("here");
  const state = data.states[data.state[at]], answer = data.answers[data.state[at]];
  find("answer").textContent =
      "after " + t + (t === 1 ? " letter" : " letters") + ": state " + state +
      (answer === state ? "" : ", answer " + answer) +
      (data.coordinates[at] ? ", coordinates " + data.coordinates[at] : "");
  hold(read, t);
  const body = find("steps");
  body.replaceChildren();
  rows.slice(-8).forEach(r => {
    const row = make("tr");
    r.slice(0, coordinates ? 4 : 3).forEach(x => row.append(make("td", x)));
    body.append(row);
  });
}
function move(by) { slider.value = Number(slider.value) + by; step(); }
word.addEventListener("input", () => { slider.max = letters().length; slider.value = slider.max; step(); });
slider.addEventListener("input", step);
find("back").addEventListener("click", () => move(-1));
find("on").addEventListener("click", () => move(1));
slider.max = letters().length;
slider.value = slider.max;
step();
