"""One training step in plain PyTorch, as a researcher would write it first: sequences padded to 39
tokens, every position through every layer, the recurrence as a loop over tokens ("loop") or as one
chunk of the WY form ("chunk"). Prints one JSON object: milliseconds per step by name.

  python3 bench/pytorch_baseline.py [--threads 2] [--steps 10]
"""
import argparse, json, time
import torch
import torch.nn as nn
import torch.nn.functional as F

LONGEST = 39


def delta_loop(q, k, v, beta):  # [B,T,H,K] ..., beta [B,T,H]
    B, T, H, K = q.shape
    S = q.new_zeros(B, H, K, v.shape[-1])
    out = []
    for t in range(T):
        write = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhkv,bhk->bhv", S, k[:, t]))
        S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], write)
        out.append(torch.einsum("bhkv,bhk->bhv", S, q[:, t]))
    return torch.stack(out, 1) * K**-0.5


def delta_chunk(q, k, v, beta):
    q, k, v, beta = (x.transpose(1, 2) for x in (q, k, v, beta.unsqueeze(-1)))
    L = (beta * k @ k.transpose(-1, -2)).tril(-1)
    L = L + torch.eye(L.shape[-1])
    u = torch.linalg.solve_triangular(L, beta * v, upper=False, unitriangular=True)
    o = (q @ k.transpose(-1, -2)).tril() @ u
    return o.transpose(1, 2) * q.shape[-1] ** -0.5


class Mixer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        inner = c["heads"] * c["dim"]
        self.q, self.k, self.v = (nn.Linear(c["width"], inner, bias=False) for _ in range(3))
        self.b = nn.Linear(c["width"], c["heads"], bias=False)
        self.o = nn.Linear(inner, c["width"], bias=False)
        self.norm = nn.RMSNorm(c["dim"], eps=1e-6)
        if c["conv"]:
            self.conv = nn.ModuleList(
                nn.Conv1d(inner, inner, 4, groups=inner, padding=3, bias=False) for _ in range(3))

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.c["conv"]:
            q, k, v = (F.silu(conv(y.transpose(1, 2))[..., :T].transpose(1, 2))
                       for conv, y in zip(self.conv, (q, k, v)))
        else:
            v = F.silu(v)
        q, k, v = (y.view(B, T, self.c["heads"], self.c["dim"]) for y in (q, k, v))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        o = self.c["delta"](q, k, v, 2 * self.b(x).sigmoid())
        return self.o(self.norm(o).flatten(2))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate, self.up = (nn.Linear(c["width"], c["hidden"], bias=False) for _ in range(2))
        self.down = nn.Linear(c["hidden"], c["width"], bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(3, c["width"])
        self.mix = nn.ModuleList(Mixer(c) for _ in range(2))
        self.mlp = nn.ModuleList(Mlp(c) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(c["width"], eps=1e-6) for _ in range(5))
        self.head = nn.Linear(c["width"], 3, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for i in range(2):
            x = x + self.mix[i](self.norms[2 * i](x))
            x = x + self.mlp[i](self.norms[2 * i + 1](x))
        return self.head(self.norms[4](x))


def parity(batch, generator):
    length = torch.randint(2, LONGEST + 1, (batch, 1), generator=generator)
    bits = torch.randint(0, 2, (batch, LONGEST), generator=generator)
    inside = torch.arange(LONGEST) < length
    tokens = torch.where(inside, bits + 1, 0)
    answer = 1 + (bits * inside).sum(1) % 2
    target = torch.full((batch, LONGEST), -1).scatter(1, length - 1, answer[:, None])
    return tokens, target


def milliseconds(c, steps):
    torch.manual_seed(0)
    model = Model(c)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c["lr"], weight_decay=0.0)
    generator = torch.Generator().manual_seed(0)
    times = []
    for step in range(steps + 3):
        begin = time.perf_counter()
        tokens, target = parity(c["batch"], generator)
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        if c["clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), c["clip"])
        optimizer.step()
        loss.item()
        if step >= 3:
            times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times)[len(times) // 2]


PARITY = dict(width=128, heads=4, dim=32, hidden=512, conv=True, batch=256, lr=1e-3, clip=0)
DEMO = dict(width=32, heads=4, dim=16, hidden=32, conv=False, batch=32, lr=1e-2, clip=5.0)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    # Both forms are the same function.
    q, k, v = (torch.randn(2, 9, 3, 4, dtype=torch.float64) for _ in range(3))
    k, beta = F.normalize(k, dim=-1), torch.rand(2, 9, 3, dtype=torch.float64)
    assert torch.allclose(delta_loop(q, k, v, beta), delta_chunk(q, k, v, beta))

    out = {}
    for name, c, steps in (("parity", PARITY, options.steps), ("demo", DEMO, 5 * options.steps)):
        for form, delta in (("loop", delta_loop), ("chunk", delta_chunk)):
            out[f"{name}/{form}"] = milliseconds(dict(c, delta=delta), steps)
    # The small model may be faster on one thread; it is given the choice.
    torch.set_num_threads(1)
    for form, delta in (("loop", delta_loop), ("chunk", delta_chunk)):
        one = milliseconds(dict(DEMO, delta=delta), 5 * options.steps)
        out[f"demo/{form}"] = min(one, out[f"demo/{form}"])
    print(json.dumps(out))
