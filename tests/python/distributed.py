"""Two processes: a model of our layers in DDP and in FSDP2 learns what it learns in one process."""

import datetime
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
from harness import close, run  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as processes  # noqa: E402

import lrnn  # noqa: E402

WIDTH, STEPS = 32, 4


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.ModuleList(
            [
                lrnn.nn.GatedDeltaProduct(hidden_size=WIDTH, head_dim=8, num_heads=2),
                lrnn.nn.Mamba(hidden_size=WIDTH, allow_neg_eigval=True),
            ]
        )
        self.head = torch.nn.Linear(WIDTH, 3)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)[0]
        return self.head(x)


def trained(model, rows):
    """The loss after a few steps on these rows of every batch."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    draw = torch.Generator().manual_seed(2)
    for _ in range(STEPS):
        x, y = torch.randn(4, 20, WIDTH, generator=draw), torch.randint(3, (4, 20), generator=draw)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[rows]).flatten(0, 1), y[rows].flatten()).backward()
        optimiser.step()
    return model


def worker(rank, way, folder):
    torch.set_num_threads(1)
    soon = datetime.timedelta(seconds=300)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2, timeout=soon)
    model = Two()
    if way == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    trained(model, slice(2 * rank, 2 * rank + 2))
    weights = {
        name.removeprefix("module."): (p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone()
        for name, p in model.named_parameters()
    }
    if rank == 0:
        torch.save(weights, f"{folder}/weights.pt")
    dist.destroy_process_group()


def compare(way):
    folder = tempfile.mkdtemp()
    processes.spawn(worker, (way, folder), nprocs=2)
    alone = dict(trained(Two(), slice(0, 4)).named_parameters())
    weights = torch.load(f"{folder}/weights.pt")
    assert weights.keys() == alone.keys()
    for name, weight in weights.items():
        close(weight, alone[name].detach(), 2e-3, f"{way}: {name}")


def check_ddp():
    compare("ddp")


def check_fsdp2():
    compare("fsdp2")


if __name__ == "__main__":
    run(globals())
