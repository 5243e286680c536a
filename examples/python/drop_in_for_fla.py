#!/usr/bin/env python3
"""flash-linear-attention's code on lrnn's kernels: another import, or one call before models are built.

    python examples/python/drop_in_for_fla.py           # on a CPU, or on a GPU where there is one

The first part needs lrnn alone. The second shows fla's own models, and needs
`pip install flash-linear-attention transformers`.
"""

import importlib.util

import torch

import lrnn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def functions():
    """fla.ops.gated_delta_rule.chunk_gated_delta_rule and its arguments, here from lrnn.fla."""
    from lrnn.fla import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

    B, T, H, D = 2, 300, 4, 64
    q, k, v = torch.randn(3, B, T, H, D, device=device)
    g, beta = -torch.rand(B, T, H, device=device), torch.randn(B, T, H, device=device)
    options = dict(use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True, output_final_state=True)
    o, state = chunk_gated_delta_rule(q, k, v, g, beta, **options)

    # Decoding: the same recurrence, a token at a time.
    step, s = [], None
    for t in range(T):
        now = slice(t, t + 1)
        y, s = fused_recurrent_gated_delta_rule(q[:, now], k[:, now], v[:, now], g[:, now], beta=beta[:, now], initial_state=s, **options)
        step.append(y)
    far = (torch.cat(step, 1) - o).abs().max().item()
    print(f"chunk_gated_delta_rule on {device}: {tuple(o.shape)}, a token at a time differs by {far:.1e}")
    assert far < 1e-4 and torch.allclose(s, state, atol=1e-4)

    # What lrnn has not is refused by name, never another result.
    try:
        chunk_gated_delta_rule(q, k, v, g, beta, cp_context=object())
    except lrnn.fla.Unsupported as error:
        print("refused:", error)


def models():
    """fla's own model. Its kernels need a GPU; after enable() it trains on a CPU, too."""
    lrnn.fla.enable()  # before models are built; disable() takes it back
    import fla

    config = fla.models.GatedDeltaNetConfig(hidden_size=64, num_hidden_layers=2, num_heads=2, head_dim=16, vocab_size=100)
    model = fla.models.GatedDeltaNetForCausalLM(config).to(device)
    ids = torch.randint(100, (2, 70), device=device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        loss = model(ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    print(f"fla's GatedDeltaNet on {device}: loss {losses[0]:.2f} -> {losses[-1]:.2f} in five steps")
    assert losses[-1] < losses[0]
    lrnn.fla.disable()


if __name__ == "__main__":
    functions()
    if importlib.util.find_spec("fla") and importlib.util.find_spec("transformers"):
        models()
    else:
        print("without flash-linear-attention and transformers there are no models of theirs to show")
