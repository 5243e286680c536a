#!/usr/bin/env bash
# What is compiled for an instruction set may run only after it was chosen: its objects share no function
# with others, of which the linker would keep any one, and have nothing to run while the library is loaded.
set -euo pipefail
build=${LRNN_BUILD:-build}
command -v nm >/dev/null && command -v readelf >/dev/null || { echo "binutils are missing"; exit 77; }
if grep -q '^LRNN_SANITIZE:BOOL=ON' "$build/CMakeCache.txt"; then
  echo "sanitizers add functions of their own"
  exit 77
fi
fail=0 seen=0
for folder in "$build"/CMakeFiles/lrnn_kernels_*.dir; do
  isa=${folder##*lrnn_kernels_} isa=${isa%.dir}
  while read -r object; do
    seen=$((seen + 1))
    # DW.ref.* is a pointer, the same in all.
    shared=$(nm -C --defined-only --extern-only "$object" |
      awk -v own="::${isa}::" 'NF > 2 && $3 !~ /^DW\.ref\./ && index($0, own) == 0')
    if [ -n "$shared" ]; then
      printf '%s defines what other objects may define:\n%s\n' "$object" "$shared"
      fail=1
    fi
    if readelf -SW "$object" | grep -q '\.init_array'; then
      echo "$object runs something while the library is loaded"
      fail=1
    fi
  done < <(find "$folder" -name '*.o')
done
[ "$seen" -gt 0 ] || { echo "no kernels found under $build"; exit 1; }
exit $fail
