"""`torchrun --nproc-per-node N -m lrnn train CONFIG ...`: N processes train one model.

torchrun starts the processes, notices when one dies and starts them again (--max-restarts, with
`--resume` for us); torch.distributed makes the group they talk through, Gloo on CPUs and NCCL on GPUs.
The trainer is the program's own, called in this process with the group's name.
"""

from __future__ import annotations

import datetime
import os

# A rank that waits for one that died is ended by torchrun; where there is none, by this.
PATIENCE = datetime.timedelta(minutes=10)


def device_of(arguments: list[str]) -> str:
    for i, word in enumerate(arguments):
        if word == "--device" and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith("--device="):
            return word.removeprefix("--device=")
    return "cpu"


def run(arguments: list[str]) -> int:
    """The program with these arguments, as one rank of the group. The result is its exit code."""
    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from . import library  # noqa: F401  (registers what is called below)

    on_gpu = device_of(arguments).startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    store, rank, ranks = next(iter(rendezvous("env://", timeout=PATIENCE)))
    # After a restart the store still has the addresses of the processes before.
    store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=ranks, timeout=PATIENCE)
    try:
        world = dist.group.WORLD
        assert world is not None  # init_process_group made it
        return int(torch.ops.lrnn.run_program([*arguments, "--group", world.group_name]))
    finally:
        dist.destroy_process_group()
