"""scripts/state_text.py: what the texts tell has the answers they give, found by other means."""
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = tempfile.mkdtemp(prefix="lrnn-state-")


def write(*words):
    done = subprocess.run([sys.executable, "scripts/state_text.py", *words, "--lrnn", os.environ["LRNN"], "-o", HERE])
    assert done.returncode == 0, words


def lines(name):
    with open(f"{HERE}/{name}.jsonl") as f:
        return [json.loads(line) for line in f]


def run_python(text):
    """The program itself knows what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, {})  # assignments, swaps and print
    return out.getvalue().strip()


def holder(text):
    """Two people: an even number of trades changes nothing."""
    coins = re.findall(r"(\w+) has the (\w+) coin", text)
    asked = re.findall(r"Now (\w+) holds the", text)[-1]
    even = text[:text.rindex("Now")].count(" trades ") % 2 == 0
    return next(coin for who, coin in coins if (who == asked) == even)


FIRST = ["rook", "knight", "bishop", "queen", "king", "bishop", "knight", "rook"]


def piece(text):
    """Follows the moves of games without castling, en passant or promotion; None of others."""
    board = {}
    for i, file in enumerate("abcdefgh"):
        board.update({f"{file}1": FIRST[i], f"{file}2": "pawn", f"{file}7": "pawn", f"{file}8": FIRST[i]})
    for move in re.findall(r"^([a-h][1-8])([a-h][1-8])(=?)", text[text.rindex("A new game"):], re.M):
        start, end, promoted = move
        moved = board.pop(start)
        odd = moved == "king" and abs(ord(start[0]) - ord(end[0])) > 1 or moved == "pawn" and start[0] != end[0] and end not in board
        if promoted or odd:
            return None
        board[end] = moved
    return board[re.findall(r"On (\w\w) stands", text)[-1]]


write("questions", "--count", "20")
for name, solve in (("swaps", run_python), ("coins", holder), ("chess", piece)):
    seen = 0
    for length in (4, 16, 64):
        asked = lines(f"{name}-{length}")
        assert len(asked) == 20
        for one in asked:
            answer = solve(one["context"])
            seen += answer is not None
            assert answer is None or one["choices"][one["gold"]] == " " + answer, one
            steps = {"swaps": r"^x\[\d\], ", "coins": " trades ", "chess": r"^[a-h][1-8][a-h][1-8]"}[name]
            assert len(re.findall(steps, one["context"], re.M)) == length, one
    assert seen > 30, (name, seen)

write("texts", "--megabytes", "0.02")
texts = [line["text"] for line in lines("train")]
for text in texts:
    if text.startswith("x = "):
        assert run_python(text) == text.split("#")[1].strip(), text
    else:
        answers = [m.end() for m in re.finditer(r"(holds the|stands a) \w+", text)]
        assert text[answers[-1]:] == ".\n", text  # it ends in an answer
        for end in answers:
            before, answer = text[:end].rsplit(" ", 1)
            said = (holder if "coin" in text else piece)(before)
            assert said in (None, answer), (text, before, said)
kinds = [sum(word in text for text in texts) for word in ("x = ", "coin", "game")]
assert min(kinds) > 5 and {line["text"] for line in lines("eval")}.isdisjoint(texts), kinds
print("state_text: all is well")
