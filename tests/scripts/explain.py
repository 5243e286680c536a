#!/usr/bin/env python3
"""The page of `lrnn explain` in a real browser: it draws, steps and asks nobody for anything, and the
matrices it shows are what the model holds."""
import html
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
if browser is None:
    print("skipped: there is no Chromium here")
    sys.exit(77)

# Steps through the word with the buttons, and writes down all matrices after each letter.
WALK = """<script>
const record = { words: {} };
function look() {
  const cells = figure => Array.from(figure.querySelectorAll("i"), cell => Number(cell.title));
  return Array.from(document.querySelectorAll(".head"), head => ({
    figures: Array.from(head.querySelectorAll("figure"), f => [f.textContent.replace(/^[^A-Z]*/, ""), cells(f)]),
    changed: head.querySelectorAll(".changed").length,
    read: (head.querySelector(".read") || {textContent: ""}).textContent,
    answer: document.getElementById("answer").textContent,
  }));
}
function type(text) {
  word.value = text;
  word.dispatchEvent(new Event("input"));
}
for (const text of WORDS) {
  type(text);
  while (Number(slider.value) > 0) document.getElementById("back").click();
  const steps = [look()];
  for (let t = 0; t < Number(slider.max); ++t) {
    document.getElementById("on").click();
    steps.push(look());
  }
  record.words[text] = steps;
}
type(BAD);
record.problem = document.getElementById("problem").textContent;
document.body.append(Object.assign(document.createElement("pre"), {id: "record", textContent: JSON.stringify(record)}));
</script>"""


def dom_of(page, folder):
    profile = os.path.join(folder, "profile")
    return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
                           "--virtual-time-budget=2000", "--dump-dom", "file://" + page],
                          check=True, capture_output=True, text=True, timeout=300).stdout


def explain(folder, *source):
    page = os.path.join(folder, "page.html")
    subprocess.run([os.environ["LRNN"], "explain", *source, "-o", page], check=True, stdout=subprocess.DEVNULL)
    text = open(page, encoding="utf-8").read()
    outside = re.findall(r'(?:src|href)\s*=\s*"[^#"]*"|@import|url\((?!#)[^)]*\)', text)
    assert not outside, f"the page refers to something outside: {outside}"
    return page, text


def walk(folder, words, bad, *source):
    """What the page shows while these words are stepped through."""
    page, text = explain(folder, *source)
    walking = WALK.replace("WORDS", json.dumps(words)).replace("BAD", json.dumps(bad))
    with open(page, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", walking + "</body>"))
    dom = dom_of(page, folder)
    found = re.search(r'<pre id="record">(.*?)</pre>', dom, re.S)
    assert found, "the page's script did not survive the walk"
    return json.loads(html.unescape(found[1])), dom


def check_equations(steps):
    """H after t = A · (H after t - 1) + B, and (H after t - 1) is what was shown before."""
    for t, heads in enumerate(steps):
        for k, head in enumerate(heads):
            shown = dict(head["figures"])
            now = shown[f"H after {t}"]
            if t == 0:
                continue
            before = dict(steps[t - 1][k]["figures"])[f"H after {t - 1}"]
            a = next((m for name, m in head["figures"] if name.startswith("A for ")), None)
            if a is None:
                assert now == before and head["changed"] == 0
                continue
            b = next((m for name, m in head["figures"] if name.startswith("B for ")), [0] * len(now))
            assert shown[f"H after {t - 1}"] == before
            rows = round(len(a) ** 0.5)
            cols = len(now) // rows
            for r, c in itertools.product(range(rows), range(cols)):
                want = b[r * cols + c] + sum(a[r * rows + q] * before[q * cols + c] for q in range(rows))
                assert abs(now[r * cols + c] - want) < 1e-6, (t, k)
            assert head["changed"] == sum(abs(x - y) > 5e-4 for x, y in zip(now, before))


with tempfile.TemporaryDirectory() as folder:
    # --- a regex, as it is opened
    page, _ = explain(folder, "--regex", "(ab|ba)*", "--alphabet", "ab")
    dom = dom_of(page, folder)
    assert 'class="state here"' in dom, "no state is marked: the script did not run"
    assert "after 12 letters" in dom, "the word was not stepped through"
    assert dom.count('class="state') >= 4, "the automaton is not drawn"
    assert "eigenvalues" in dom and "<tbody" in dom
    assert dom.count('class="head size') == 3 and "H after 12" in dom, "no state matrices"

    # --- a group: H is a permutation matrix, twice over, one for each element
    s3 = {"e": (0, 1, 2), "(12)": (1, 0, 2), "(23)": (0, 2, 1), "(13)": (2, 1, 0), "(123)": (1, 2, 0),
          "(132)": (2, 0, 1)}
    spelt = {"(1 2)": "(12)", "1": "(23)", "( 3,1,2 )": "(123)", "(123)": "(123)", "(12)": "(12)", "5": "(13)",
             "(1 3 2)": "(132)", "()": "e"}
    record, _ = walk(folder, [" ".join(spelt)], "(12) (14)", "--group", "S3")
    steps = record["words"][" ".join(spelt)]
    check_equations(steps)
    product, held = s3["e"], {}
    for t, name in enumerate(["e", *spelt.values()]):
        product = tuple(product[i] for i in s3[name])  # the last factor acts first
        (head,) = steps[t]
        state = next(n for n, p in s3.items() if p == product)
        assert head["answer"].endswith(": state " + state), (head["answer"], state)
        h = dict(head["figures"])[f"H after {t}"]
        one_line = [h[3 * r:3 * r + 3].index(1) for r in range(3)]
        assert sorted(one_line) == [0, 1, 2] and sum(h) == 6 and h[:9] == h[9:], h
        assert held.setdefault(state, h) == h, "one element, two matrices"
        read = [sum((r + 1) * h[3 * r + c] for r in range(3)) for c in range(3)]
        assert "Hᵀq = (" + ", ".join(map(str, read)) + ")" in head["read"], head["read"]
    assert len({tuple(h) for h in held.values()}) == len(held) >= 4, "two elements, one matrix"
    assert steps[-1][0]["changed"] == 0, "the identity changes something"
    assert "'(14)' is not a symbol" in record["problem"], record["problem"]

    # --- accepting states of a file have double circles; a cascade shows every layer
    path = os.path.join(folder, "aab.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"alphabet": ["a", "b"], "states": ["none", "a", "b", "<both>"], "start": "none",
                   "accept": ["none", "<both>"],
                   "next": {"none": {"a": "a", "b": "b"}, "a": {"a": "a", "b": "<both>"},
                            "b": {"a": "<both>", "b": "b"}, "<both>": {"a": "<both>", "b": "none"}}}, file)
    record, dom = walk(folder, ["abbaab"], "abc", "--automaton", path)
    check_equations(record["words"]["abbaab"])
    assert len(record["words"]["abbaab"][0]) > 1, "one head for three levels"
    rings = [len(re.findall("<circle", g)) for g in re.findall(r'<g class="state.*?</g>', dom, re.S)]
    assert sorted(rings) == [1, 1, 2, 2], rings
    answers = [step[0]["answer"] for step in record["words"]["abbaab"]]
    assert answers[0].startswith("after 0 letters: state none, answer accept"), answers[0]
    assert answers[1].startswith("after 1 letter: state a, answer reject"), answers[1]
    assert answers[2].startswith("after 2 letters: state <both>, answer accept"), answers[2]
    assert "'c' is not a symbol" in record["problem"]
print("ok")
