#!/usr/bin/env python3
"""Our GPU ops and those of other libraries on the same tensors in the same process: first agreement,
then times. One JSON line per problem, mode and pass.

  python3 bench/peers.py --install            fla-core, mlstm-kernels and liger-kernel, into .peers
  python3 bench/peers.py [--only delta] [--build build]

Agreement: on the first sequence's first tokens against the definition in float64 (`error`), output,
final state and every gradient; on the whole problem against our recurrence in float32
(`error_whole`). Both are relative, the largest is given with its name. If ours is off by more than
5 % nothing is timed and the exit code is 1. Times are medians of replayed CUDA graphs, of calls between
events where a peer cannot be recorded (`how`). `ratio` is theirs / ours. Peak memory is that of the
pass with its inputs and results.

torch and Triton are those of this Python. mamba-ssm is compared where it can be imported: it comes as
source alone. FlashQLA (with tilelang) is used by fla itself for the gated rule where it is installed.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Pure Python: no dependency of theirs may replace torch.
PURE = ["fla-core", "einops", "packaging", "mlstm-kernels", "liger-kernel"]
TOKENS = 256  # that the definition follows
LIMIT = 0.05


def stop(message, hint):
    print(f"peers.py: {message}\n  {hint}", file=sys.stderr)
    sys.exit(2)


def install(folder):
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--upgrade", "--target", str(folder)]
    sys.exit(subprocess.call(command + PURE))


def load(build):
    for name in ("liblrnn.so", "liblrnn_cuda.so"):
        if not (build / name).exists():
            stop(f"{build / name} does not exist", "`make build` where nvcc is installed, or name the folder with --build")
        torch.ops.load_library(str(build / name))


def peer_with_version(case):
    name, function = case.peer.split(" ")
    try:
        text = f"{name} {importlib.metadata.version(name)} {function}"
    except importlib.metadata.PackageNotFoundError:
        text = case.peer
    if function == "chunk_gated_delta_rule" and importlib.util.find_spec("flash_qla"):
        text += " (FlashQLA)"
    return text


# ------------------------------------------------------------------------------------- agreement


def with_gradients(call, x, d_o):
    """Output, final state and the gradients of all inputs, by name."""
    x = {name: t.detach().requires_grad_(t.is_floating_point()) for name, t in x.items()}
    o, state = call(x)
    asked = [name for name, t in x.items() if t.requires_grad]
    gradients = torch.autograd.grad(o, [x[name] for name in asked], d_o.to(o.dtype))
    return results_of(o, state) | {"d" + n: g for n, g in zip(asked, gradients)}


def results_of(o, state):
    return dict(o=o.detach()) | ({} if state is None else dict(S=state.detach()))


def in_type(x, dtype):
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in x.items()}


def largest_error(got, want, skip=()):
    errors = {}
    for name, y in want.items():
        if name[1:] not in skip and name in got:
            y = y.double()
            errors[name] = ((got[name].double() - y).norm() / (y.norm() + 1e-300)).item()
    name = max(errors, key=lambda n: math.inf if math.isnan(errors[n]) else errors[n])
    return dict(of=name, value=float(f"{errors[name]:.1e}"))


def too_wrong(error, limit):
    return not error["value"] <= limit  # also not a number


def first_tokens(case, x):
    return {n: t if n in case.whole else t[:1, :TOKENS].contiguous() for n, t in x.items()}


# ----------------------------------------------------------------------------------------- times


def replayed(f, repeats):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return between_events(graph.replay, repeats)


def between_events(f, repeats):
    times = []
    for i in range(repeats + 5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        f()
        end.record()
        end.synchronize()
        if i >= 5:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def milliseconds(f, repeats=25):
    try:
        return replayed(f, repeats), "graph"
    except RuntimeError:
        torch.cuda.synchronize()
        return between_events(f, repeats), "events"


def peak_mib(f, x):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    f()
    torch.cuda.synchronize()
    given = sum(t.nbytes for t in x.values())
    return round((torch.cuda.max_memory_allocated() - before + given) / 2**20)


class Side:
    """One library on one problem: what it returns, and how long and how much memory it takes."""

    def __init__(self, call, x, d_o):
        self.call, self.x, self.d_o = call, x, d_o

    def results(self):
        return with_gradients(self.call, self.x, self.d_o)

    def forward(self):
        with torch.no_grad():
            self.call(self.x)

    def measure(self, both):
        f = self.results if both else self.forward
        memory = peak_mib(f, self.x | dict(d_o=self.d_o) if both else self.x)
        ms, how = milliseconds(f)
        return dict(ms=round(ms, 4), how=how, mib=memory)


def attempt(f):
    """f's result, or one line that says why there is none."""
    try:
        return f(), None
    except Exception as error:  # whatever a peer raises is its answer
        return None, f"{type(error).__name__}: {error}".splitlines()[0][:200]


# ------------------------------------------------------------------------------------- one problem


def first_calls(case):
    """The peer's first calls alone, which compile its kernels."""
    torch.manual_seed(1)
    x = case.inputs()
    d_o = torch.randn_like(case.ours(x, case.modes[0])[0])
    peer = Side(case.theirs, (case.prepare or (lambda y: y))(x), d_o)
    begin = time.perf_counter()
    _, why = attempt(peer.results)
    torch.cuda.synchronize()
    line = dict(op=case.op) | case.shape | dict(peer=peer_with_version(case), first_calls_s=round(time.perf_counter() - begin, 1))
    print(json.dumps(line | (dict(why=why) if why else {})), flush=True)


def compare(case):
    torch.manual_seed(1)
    x = case.inputs()
    prepare = case.prepare or (lambda y: y)
    wide = in_type(x, torch.float32)
    d_o = torch.randn_like(case.ours(x, case.modes[0])[0])
    peer = Side(case.theirs, prepare(x), d_o)
    base = dict(op=case.op) | case.shape | dict(peer=peer_with_version(case))

    # Its kernels tune themselves at their first call: that must be the problem that is timed.
    begin = time.perf_counter()
    _, no_forward = attempt(peer.forward)
    _, no_both = (None, no_forward) if no_forward else attempt(peer.results)
    torch.cuda.synchronize()
    base["peer_first_call_s"] = round(time.perf_counter() - begin, 1)

    small, d_small = first_tokens(case, x), d_o[:1, :TOKENS]
    definition = with_gradients(case.definition, in_type(small, torch.float64), d_small.double())
    exact = with_gradients(lambda y: case.ours(y, "exact"), in_type(small, torch.float32), d_small.float())
    recurrence = largest_error(exact, definition)
    if too_wrong(recurrence, 1e-4):
        print(json.dumps(base | dict(disagrees="float32 recurrence", error=recurrence)), flush=True)
        return False
    whole = with_gradients(lambda y: case.ours(y, "exact"), wide, d_o.float())
    del wide, exact

    def errors(call, prepared, skip):
        e = largest_error(with_gradients(call, prepared(small), d_small), definition, skip)
        return e, largest_error(with_gradients(call, prepared(x), d_o), whole, skip)

    def forward_errors():
        with torch.no_grad():
            e = largest_error(results_of(*case.theirs(prepare(small))), definition)
            return e, largest_error(results_of(*case.theirs(peer.x)), whole)

    theirs_errors = (None, None)
    if not no_forward:
        theirs_errors, why = attempt((lambda: errors(case.theirs, prepare, case.other)) if not no_both
                                     else forward_errors)
        theirs_errors = theirs_errors or (why, why)
    good = True
    peers = [attempt(lambda b=both: peer.measure(b)) if not why else (None, why)
             for both, why in ((False, no_forward), (True, no_both))]
    for mode in case.modes:
        ours = Side(lambda y: case.ours(y, mode), x, d_o)
        error, error_whole = errors(ours.call, lambda y: y, ())
        line = base | dict(mode=mode, error=dict(ours=error, theirs=theirs_errors[0]),
                           error_whole=dict(ours=error_whole, theirs=theirs_errors[1]))
        if too_wrong(error, LIMIT) or too_wrong(error_whole, LIMIT):
            print(json.dumps(line | dict(disagrees="ours")), flush=True)
            good = False
            continue
        for both, (theirs, why) in zip((False, True), peers):
            mine = ours.measure(both)
            line |= {"pass": "forward+backward" if both else "forward", "ours_ms": mine["ms"],
                     "theirs_ms": theirs and theirs["ms"],
                     "ratio": theirs and round(theirs["ms"] / mine["ms"], 2),
                     "how": [mine["how"], theirs and theirs["how"]],
                     "ours_mib": mine["mib"], "theirs_mib": theirs and theirs["mib"]}
            line.pop("why", None)
            if why:
                line["why"] = why
            print(json.dumps(line), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the peers with pip, then end")
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers", help="where they are (.peers)")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where our libraries are (build)")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT",
                        help="problems whose description holds every TEXT, e.g. delta_product N=2")
    parser.add_argument("--first-calls", action="store_true",
                        help="compile the peers' kernels and time nothing; processes for one problem each may do it side by side")
    options = parser.parse_args()
    if options.install:
        install(options.peers)
    sys.path.append(str(options.peers))
    global torch
    try:
        import torch
    except ImportError:
        stop("this Python has no torch", "`make python` sets one up; the ops need torch 2.11")
    if not torch.cuda.is_available():
        stop("no GPU was found", "both sides need one")
    load(options.build.resolve())
    from peer_cases import CASES

    def described(case):
        return " ".join([case.op, case.peer] + [f"{n}={v}" for n, v in case.shape.items()])

    chosen = [c for c in CASES if all(text in described(c) for text in options.only)]
    if not chosen:
        stop(f"no problem holds {options.only}", "the problems: " + "; ".join(map(described, CASES)))
    good = True
    for case in chosen:
        if options.first_calls:
            first_calls(case)
        else:
            good = compare(case) and good
        torch.cuda.empty_cache()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
