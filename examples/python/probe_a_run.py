#!/usr/bin/env python3
"""Look into a trained model: its eigenvalues, and its state after every token of a word.

    python examples/python/probe_a_run.py               # trains a small model on parity first, three seconds
    python examples/python/probe_a_run.py RUN           # a run folder of `lrnn train` or `lrnn compile`

What it looks for: on parity, which head flips at every 1? Its eigenvalue there is -1, and the side on which its state
lies is the answer.
"""

import sys
import tempfile

import torch

import lrnn


def trained():
    folder = tempfile.mkdtemp()
    result = lrnn.train("configs/demo/parity_11.yaml", out=folder, overwrite=True, progress=False)
    print(f"trained on words of up to 40 bits; on 40 to 256 bits accuracy is {result['evaluation']['accuracy']:.3f}")
    return folder


def flipping(heads):
    """The head of the first layer whose eigenvalue differs most between two tokens. (In later layers it also depends
    on what came before.)"""
    apart = lambda head: max(r for r, _ in head["by_token"].values()) - min(r for r, _ in head["by_token"].values())
    return max((head for head in heads if head["layer"] == 1 and head.get("by_token")), key=apart, default=None)


def main():
    run = sys.argv[1] if len(sys.argv) > 1 else trained()

    # The eigenvalues it used on words of its task, head by head.
    heads = lrnn.spectrum(run)["heads"]
    for head in heads:
        least, most = head["real"]["min"], head["real"]["max"]
        print(f"  layer {head['layer']} head {head['head']}: " + ("all are 1" if least is None else f"from {least:+.3f} to {most:+.3f}"))
    head = flipping(heads)
    if head is None:
        return print("no head of the first layer has one eigenvalue per token")
    values = ", ".join(f"{real:+.3f} at {token}" for token, (real, _) in head["by_token"].items())
    print(f"layer 1 head {head['head']} differs most between tokens: {values}")

    # The model is an nn.Module. A state is a list per block; its first tensor is [B,heads,K,V].
    model = lrnn.load(run)
    torch.manual_seed(0)
    tokens = torch.randint(model.vocabulary - 2, model.vocabulary, (1, 16))  # for parity: 1 is a zero, 2 is a one
    state, states = None, []
    with torch.no_grad():
        for token in tokens.unbind(1):
            logits, state = model(token[:, None], state)
            states.append(state[0][0][0, head["head"] - 1].flatten())

    # The direction in which these states differ most; along it each is one number.
    states = torch.stack(states)
    states = states - states.mean(0)
    along = states @ torch.linalg.svd(states, full_matrices=False).Vh[0]
    print("the state after each token, along the direction in which it moves most:")
    for token, x in zip(tokens[0].tolist(), along.tolist()):
        print(f"  token {token}  {x:+6.2f}  " + ("<" if x < 0 else " " * 20 + ">"))
    print(f"answer after the word: token {logits[0, -1].argmax().item()}")


if __name__ == "__main__":
    main()
