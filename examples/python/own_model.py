#!/usr/bin/env python3
"""A DeltaProduct layer inside a model of your own, trained with plain PyTorch: the shell game.

A ball lies under the first of three cups. Each token swaps two cups; after each, where is the ball? A swap is a
reflection, and so is a DeltaProduct step with beta = 2. Trained on games of 32 swaps the model is right at 128. With
negative=False its eigenvalues stay in [0, 1], and it guesses.

    python examples/python/own_model.py                 # 15 seconds on a CPU
    python examples/python/own_model.py --steps 50      # to see that it runs
"""

import argparse

import torch
from torch import nn

import lrnn

SWAPS = torch.tensor([[1, 0, 2], [2, 1, 0], [0, 2, 1]])  # which cup each swap puts where
START = 3  # the token before the first swap: the ball is put under cup 0


class ShellGame(nn.Module):
    """Any model that has [B,T,width] inside can have the layer: x [B,T,width], state -> y [B,T,width], state."""

    def __init__(self, width=32, negative=True):
        super().__init__()
        self.embed = nn.Embedding(4, width)
        self.norm = nn.LayerNorm(width)
        self.mixer = lrnn.nn.DeltaProduct(width, heads=4, key_dim=8, householders=1, negative=negative, conv=0)
        self.head = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, 3))

    def forward(self, tokens, state=None):
        x = self.embed(tokens)
        y, state = self.mixer(self.norm(x), state)
        return self.head(x + y), state


def games(count, swaps, draw):
    """Tokens [count, 1 + swaps] and where the ball is after each."""
    moves = torch.randint(3, (count, swaps), generator=draw)
    ball, seen = torch.zeros(count, dtype=torch.long), []
    for move in moves.unbind(1):
        ball = SWAPS[move, ball]
        seen.append(ball)
    first = torch.full((count, 1), START)
    return torch.cat([first, moves], 1), torch.cat([torch.zeros_like(first), torch.stack(seen, 1)], 1)


def train(negative, steps):
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    model = ShellGame(negative=negative)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, steps, pct_start=0.1)
    for _ in range(steps):
        tokens, ball = games(64, 32, draw)
        logits, _ = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ball.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model


@torch.no_grad()
def accuracy(model, swaps, piece=100):
    """At the last swap. Long games come in pieces: the state goes on, and memory does not grow."""
    tokens, ball = games(256, swaps, torch.Generator().manual_seed(2))
    state = None
    for part in tokens.split(piece, 1):
        logits, state = model(part, state)
    return (logits[:, -1].argmax(-1) == ball[:, -1]).float().mean().item()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=400)
    steps = arguments.parse_args().steps
    for negative in (False, True):
        model = train(negative, steps)
        score = {swaps: accuracy(model, swaps) for swaps in (8, 32, 128, 512)}
        print(f"eigenvalues in [{-1 if negative else 0}, 1]   " + "   ".join(f"{n} swaps {s:.2f}" for n, s in score.items()))


if __name__ == "__main__":
    main()
