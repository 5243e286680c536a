#!/usr/bin/env bash
# Training steps of lrnn against plain PyTorch, one right after the other on the same machine.
#   bench/compare.sh [BUILD] [THREADS]
# The numbers also go to BUILD/bench-cpu.jsonl, as the lines of results/bench/cpu.jsonl that scripts/tables.py reads.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build} threads=${2:-2}
python=
for candidate in ${LRNN_PYTHON:-} "$(sed -n "s/^LRNN_TORCH:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null)/../../../../bin/python3" python3; do
  if "$candidate" -c 'import torch; assert torch.__version__.startswith("2.11")' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "no Python that imports torch 2.11: \`make python\` sets one up, or name it in LRNN_PYTHON"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/train_bench" --benchmark_filter="step/" --benchmark_format=json >"$work/ours.json"
"$python" bench/pytorch_baseline.py --threads "$threads" >"$work/torch.json"
printf '{"commit":"%s","date":"%s","machine":"%s, %s threads","command":"bench/compare.sh build %s"}\n' \
  "$(git describe --always --dirty 2>/dev/null)" "$(date -u +%F)" \
  "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$threads" "$threads" >"$build/bench-cpu.jsonl"
"$python" - "$work/ours.json" "$work/torch.json" "$build/bench-cpu.jsonl" <<'PYTHON'
import json, sys
ours = {}
for run in json.load(open(sys.argv[1]))["benchmarks"]:
    scale = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[run["time_unit"]]
    ours[run["name"].split("/")[1]] = run["real_time"] * scale
theirs = json.load(open(sys.argv[2]))
print(f"{'one training step':20} {'lrnn':>10} {'PyTorch':>10} {'ratio':>7}")
for name, ms in theirs.items():
    model = name.split("/")[0]
    print(f"{name:20} {ours[model]:7.2f} ms {ms:7.2f} ms {ms / ours[model]:6.1f}x")
with open(sys.argv[3], "a") as out:
    for model in dict.fromkeys(name.split("/")[0] for name in theirs):
        loop, chunk = theirs[model + "/loop"], theirs[model + "/chunk"]
        print(json.dumps({"what": "step", "case": model, "lrnn_ms": ours[model], "loop_ms": loop, "chunk_ms": chunk,
                          "ratios": [round(loop / ours[model], 1), round(chunk / ours[model], 1)]}), file=out)
print(f"{'gemm bound (parity)':20} {ours['gemms']:7.2f} ms: the step takes "
      f"{ours['parity'] / ours['gemms']:.2f}x its matrix products")
PYTHON
