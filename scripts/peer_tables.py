"""Tables of bench/peers.py's lines: ours beside other libraries, on the same tensors in one process."""
from measurements import digits, lines, source, table

NAMES = {"fla-core": "fla", "liger-kernel": "Liger", "mlstm_kernels": "NX-AI", "mamba-ssm": "mamba-ssm"}
PASSES = ("forward", "forward+backward")


def problems():
    """{(op, shape, mode): {pass: line}}"""
    out = {}
    for line in lines("peers_ops.jsonl")[1]:
        if "ours_ms" not in line:
            continue
        sizes = ",".join(str(line[x]) for x in "BTNHKDVW" if isinstance(line.get(x), int))
        gate = " gated per channel" if line.get("gate") == "channels" else " gated" if line.get("gate") else ""
        mode = "" if line["mode"] == "default" else f", {line['mode']}"
        out.setdefault((f"`{line['op']}`{mode}", sizes + gate), {})[line["pass"]] = line
    return out


def error(line, who):
    found = line["error"][who]
    return f"{found['value']:.1e}".replace("e-0", "e-") if isinstance(found, dict) else "–"


def peers_ops():
    rows = []
    for (op, sizes), of in problems().items():
        forward, both = (of.get(p) for p in PASSES)
        name, _, function = forward["peer"].partition(" ")
        ratios = " / ".join(f"{line['theirs_ms'] / line['ours_ms']:.2f}×" if line and line["theirs_ms"] else "–" for line in (forward, both))
        rows.append([op, sizes, f"{NAMES.get(name, name)} `{function.split(' ')[-1]}`",
                     *[f"{digits(line['ours_ms'])}, {digits(line['theirs_ms'])}" if line else "–" for line in (forward, both)],
                     ratios, f"{both['ours_mib']}, {both['theirs_mib'] or '–'}" if both else "–",
                     f"{error(both or forward, 'ours')}, {error(both or forward, 'theirs')}"])
    return table(["op", "shape", "peer", "forward: ours, theirs", "with backward: ours, theirs", "ratios", "MiB: ours, theirs",
                  "error: ours, theirs"], rows) + ["", source("peers_ops.jsonl")]


TABLES = [peers_ops]
