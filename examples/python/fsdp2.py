#!/usr/bin/env python3
"""A language model of lrnn's layers, its parameters cut over all processes by PyTorch's FSDP2.

    torchrun --nproc-per-node 2 examples/python/fsdp2.py                    # two processes on a CPU
    torchrun --nproc-per-node 8 examples/python/fsdp2.py --width 2048 --layers 24 --batch 8

Every process has its part of each parameter, gradient and average of AdamW; a block's parameters are together only
while it computes. The layers are plain nn.Modules, so there is nothing here that lrnn has to know about: other models
need the same two calls of fully_shard.

The text it learns is this file, byte by byte.
"""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import lrnn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mlp_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.mixer = lrnn.nn.GatedDeltaProduct(hidden_size=width, head_dim=32, num_heads=max(1, width // 64), num_householder=2)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.mixer(self.norm(x))[0]
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    def __init__(self, width, layers, vocabulary=256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, standard in {"width": 64, "layers": 2, "batch": 4, "length": 128, "steps": 30}.items():
        arguments.add_argument(f"--{name}", type=int, default=standard)
    arguments.add_argument("--save", help="file for the whole model's weights, from process 0")
    options = arguments.parse_args()

    if "LOCAL_WORLD_SIZE" not in os.environ:
        arguments.error("torchrun starts it: torchrun --nproc-per-node 2 examples/python/fsdp2.py")
    # A GPU for every process of this machine, or none.
    gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = "cuda" if gpu else "cpu"
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh(device, (world,))

    torch.manual_seed(0)  # the same weights in every process, whatever their number
    model = Model(options.width, options.layers).to(device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if gpu else MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)  # after fully_shard: it sees the parts

    text = torch.tensor(list(pathlib.Path(__file__).read_bytes()), device=device)
    draw = torch.Generator().manual_seed(1)
    for step in range(options.steps):
        # One batch for all, of which every process takes its rows.
        starts = torch.randint(len(text) - options.length - 1, (options.batch * world,), generator=draw)
        rows = torch.stack([text[s : s + options.length + 1] for s in starts[rank * options.batch : (rank + 1) * options.batch].tolist()])
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1).float(), rows[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0 and (step % 10 == 0 or step + 1 == options.steps):
            print(f"step {step + 1}/{options.steps}  loss {total.item() / world:.3f}", flush=True)

    if options.save:
        weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if rank == 0:  # whole tensors, as a model in one process has them
            torch.save(weights, options.save)
    # Gloo's threads hold the last tensors a moment longer than those who waited for them, and need the interpreter to let
    # go: a process that ends in that moment is aborted.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
