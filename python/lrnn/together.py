"""`torchrun --nproc-per-node N -m lrnn train CONFIG ...`: N processes train one model.

torchrun starts the processes, notices when one dies and starts them again (--max-restarts, with
`--resume` for us); torch.distributed makes the group they talk through: NCCL where each has a GPU of its own,
Gloo on CPUs and where several share a GPU. The trainer is the program's own, called in this process with the
group's name.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import Store

# A rank that waits for one that died is ended by torchrun; where there is none, by this.
PATIENCE = datetime.timedelta(minutes=10)


class Refusal(Exception):
    """A sentence, and what to do about it."""


def device_of(arguments: list[str]) -> str:
    for i, word in enumerate(arguments):
        if word == "--device" and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith("--device="):
            return word.removeprefix("--device=")
    return "cpu"


def choose_gpu() -> int:
    """The GPU of this process; those of one machine take them in turns."""
    import torch

    count = torch.cuda.device_count()
    if count == 0:
        raise Refusal("no CUDA device was found", "use --device cpu")
    return int(os.environ.get("LOCAL_RANK", "0")) % count


def gpus_are_shared(store: Store, mine: str, rank: int, ranks: int) -> bool:
    """Whether two of the processes have the same GPU, by its UUID. NCCL refuses that."""
    store.set(f"gpu {rank}", mine)
    return len({store.get(f"gpu {r}") for r in range(ranks)}) < ranks


def run(arguments: list[str]) -> int:
    """The program with these arguments, as one rank of the group. The result is its exit code."""
    try:
        return run_rank(arguments)
    except Refusal as refusal:
        # All processes of a machine are refused, and the first says why. When one ends, torchrun ends the others.
        if os.environ.get("LOCAL_RANK", "0") == "0":
            sentence, hint = refusal.args
            print(f"lrnn: {sentence}\n      {hint}", file=sys.stderr, flush=True)
        else:
            time.sleep(20)
        return 2


def run_rank(arguments: list[str]) -> int:
    device = device_of(arguments)
    if device not in ("cpu", "cuda"):
        raise Refusal(f"--device must be cpu or cuda, got '{device}'", "with cuda, process i of a machine takes its i-th GPU")

    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from . import library  # noqa: F401  (registers what is called below)

    gpu = choose_gpu() if device == "cuda" else None
    store, rank, ranks = next(iter(rendezvous("env://", timeout=PATIENCE)))
    # After a restart the store still has the addresses of the processes before.
    store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "gloo"
    if gpu is not None:
        torch.cuda.set_device(gpu)
        if not gpus_are_shared(store, str(torch.cuda.get_device_properties(gpu).uuid), rank, ranks):
            backend = "nccl"
        elif rank == 0:
            print("warning: processes share a GPU; their messages go through the host's memory", file=sys.stderr)
    if gpu is not None and ranks > 1 and rank == 0:  # until tests/python/gpu_ranks.py passes wherever it runs
        print("warning: several processes on GPUs are new; compare their first losses with one process and train.accumulate", file=sys.stderr)
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=PATIENCE)
    try:
        world = dist.group.WORLD
        assert world is not None  # init_process_group made it
        return int(torch.ops.lrnn.run_program([*arguments, "--group", world.group_name]))
    finally:
        dist.destroy_process_group()
