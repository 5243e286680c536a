#!/usr/bin/env python3
"""State tracking as plain text: the tasks swap_program, coins and chess in words a language model reads.

  scripts/state_text.py questions -o state             # swaps-4.jsonl … for `lrnn eval RUN --task`
  scripts/state_text.py texts --megabytes 8 -o state   # train.jsonl, eval.jsonl for `lrnn prepare`

The examples are those of `lrnn tasks show`; here they only get other words. A question shows what happened and
asks once, at the end; its choices are all the answers there can be. The number in a file's name counts swaps,
trades or moves. A text answers; of coins and chess it asks after some of the steps, too. Texts have at most 16 steps.

  swaps   a list of five, as Python; 1 in 5 is guessing
  coins   two people who trade their coins, which is parity; 1 in 2 is guessing
  chess   any legal moves; which kind of piece stands on a square that is not empty: half of them are pawns
"""
import argparse
import concurrent.futures as futures
import json
import random
import subprocess
import sys
from pathlib import Path

LENGTHS = [4, 16, 64]
LONGEST_TEXT = 16
SHARE_ASKED = 0.3  # of the steps of a text but the last
PIECES = {"p": "pawn", "n": "knight", "b": "bishop", "r": "rook", "q": "queen", "k": "king"}


# A story is a list of steps: what is said, then the question it ends in and its answer, or None.
def swaps(words, answers):
    lines = [line.split() for line in " ".join(words).split(" ; ")]
    zero_based = {f"x[{i + 1}]": f"x[{i}]" for i in range(26)}
    values = [line[2] for line in lines if line[1] == "="]
    swapped = [" ".join(zero_based.get(word, word) for word in line).replace(" ,", ",") + "\n"
               for line in lines[len(values):-1]]
    ask = f"print({zero_based[lines[-1][1]]})  #"
    return [(f"x = {values}\n", None, None), *[(line, None, None) for line in swapped[:-1]],
            (swapped[-1], ask, f" {answers[0]}")]


def coins(words, answers):
    people = words.index("trades") // 3
    begin = " ".join(f"{words[3 * i]} has the {words[3 * i + 2]} coin." for i in range(people)) + "\n"
    story = [(begin, None, None)]
    trades = words[3 * people:]
    for i, answer in enumerate(answers):
        one, _, other, asked, _ = trades[5 * i:5 * i + 5]
        story.append((f"{one} trades with {other}.\n", f"Now {asked} holds the", f" {answer}"))
    return story


def chess(words, answers):
    """A move is two squares and perhaps what a pawn becomes; then comes the square that is asked for."""
    story, said, move, answers = [], "", [], iter(answers)
    for word in words:
        if word == "game":
            said += "A new game:\n"
        elif word != "?":
            move.append(word)
        else:
            asked, moved = move.pop(), "".join(move)
            answer = next(answers)
            on = answer != "."
            story.append((f"{said}{moved}\n", f"On {asked} stands a" if on else None, f" {PIECES[answer.lower()]}" if on else None))
            said, move = "", []
    return story


TOLD = {
    "swaps": (swaps, "swap_program", ["variables=5"], [f" {x}" for x in "abcde"]),
    "coins": (coins, "coins", ["people=2"], [" gold", " silver"]),
    "chess": (chess, "chess", [], [f" {name}" for name in PIECES.values()]),
}


def stories(a, name, length, count, split, seed):
    """Those that end in a question."""
    tell, task, keys, _ = TOLD[name]
    command = [a.lrnn, "tasks", "show", task, *keys, f"{split}.length={length}".replace(" ", ""), "--split", split,
               "--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"state_text: {' '.join(command)}: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        parts = [part.split(" -> ") for part in line.split(" | ")]  # what is read, and the answer to it
        story = tell(" ".join(words for words, _ in parts).split(), [answer for _, answer in parts])
        if story[-1][1]:
            yield story


def write_questions(a, name, length):
    choices, lines = TOLD[name][-1], []
    for story in stories(a, name, length, 4 * a.count, "eval", a.seed):  # chess asks for empty squares, too
        _, ask, answer = story[-1]
        context = "".join(said for said, _, _ in story) + ask
        lines.append(json.dumps({"context": context, "choices": choices, "gold": choices.index(answer)}))
    (a.out / f"{name}-{length}.jsonl").write_text("\n".join(lines[:a.count]) + "\n")


def questions(a):
    with futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(write_questions, a, name, length) for name in TOLD for length in LENGTHS]:
            done.result()


def text_of(story, chance):
    out = ""
    for said, ask, answer in story:
        out += said
        if ask and (chance.random() < SHARE_ASKED or said is story[-1][0]):
            out += f"{ask}{answer}\n" if ask.startswith("print") else f"{ask}{answer}.\n"
    return out


def texts_of(a, name, left, seed):
    """So many bytes."""
    chance, drawn, out = random.Random(f"{name} {seed}"), 0, []
    while left > 0:
        for story in stories(a, name, [1, LONGEST_TEXT], left // 100 + 1, "train", 1000 * seed + drawn):
            out.append(text_of(story, chance))
            left -= len(out[-1])
            if left <= 0:
                break
        drawn += 1
    return out


def texts(a):
    """As many bytes of each; what is held out comes of another seed."""
    with futures.ThreadPoolExecutor() as pool:
        for file, share, seed in (("train", 1, a.seed + 1), ("eval", 0.02, a.seed + 2)):
            size = int(a.megabytes * 1e6 * share / len(TOLD))
            parts = [pool.submit(texts_of, a, name, size, seed) for name in TOLD]
            documents = [text for part in parts for text in part.result()]
            random.Random(seed).shuffle(documents)
            (a.out / f"{file}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["questions", "texts"])
    parser.add_argument("-o", "--out", type=Path, default=Path("state"), help="folder (default: state)")
    parser.add_argument("--count", type=int, default=128, help="questions in a file (default: 128)")
    parser.add_argument("--megabytes", type=float, default=8, help="of texts (default: 8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lrnn", default="build/lrnn", help="the program (default: build/lrnn)")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    {"questions": questions, "texts": texts}[a.what](a)


if __name__ == "__main__":
    main()
