"""The games of the task `chess` are legal and its answers right, according to python-chess."""
import json
import os
import subprocess
import sys

try:
    import chess
except ImportError:
    print("skipped: the package `chess` (python-chess) is not installed")
    sys.exit(77)

lrnn = os.environ.get("LRNN", "build/lrnn")
words = [chess.square_name(s) for s in range(64)] + ["=N", "=B", "=R", "=Q", "game", "?", "."]
words += list("PNBRQKpnbrqk")
seen = {"castling": 0, "en passant": 0, "promotion": 0, "ended": 0, "moves": 0}

for keys, count in (["train.length=[1,60]", 1000], ["train.length=400", 40]):
    lines = subprocess.run(
        [lrnn, "tasks", "show", "chess", keys, "--count", str(count), "--seed", "5", "--json"],
        check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == count
    for line in lines:
        example = json.loads(line)
        tokens = [words[i] for i in example["input"]]
        answers = [words[i] if i >= 0 else None for i in example["target"]]
        board, at, moves = None, 0, 0
        while at < len(tokens):
            if tokens[at] == "game":
                if board is not None:
                    assert board.is_checkmate() or board.is_stalemate(), board.fen()
                    seen["ended"] += 1
                board, at = chess.Board(), at + 1
                continue
            text = tokens[at] + tokens[at + 1]
            at += 2
            if tokens[at].startswith("="):
                text += tokens[at][1].lower()
                at += 1
            move = chess.Move.from_uci(text)
            assert move in board.legal_moves, (text, board.fen())
            seen["castling"] += board.is_castling(move)
            seen["en passant"] += board.is_en_passant(move)
            seen["promotion"] += move.promotion is not None
            board.push(move)
            moves += 1
            square, question = tokens[at], tokens[at + 1]
            assert question == "?"
            piece = board.piece_at(chess.parse_square(square))
            assert answers[at + 1] == (piece.symbol() if piece else "."), (square, board.fen())
            at += 2
        assert moves == example["length"]
        seen["moves"] += moves

assert all(seen.values()), seen
print(seen)
