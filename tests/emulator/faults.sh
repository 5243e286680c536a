#!/usr/bin/env bash
# Runs each case of tests/emulator/cases in the emulator. One that has an error must end with it, the others must end well.
# Races are looked for in those whose names begin with race_.
#   tests/emulator/faults.sh build/emulator/libcudart.so.13 build/emulator/faults [NAME..]
set -u
library=$1 program=$2
shift 2
[ -e "$library" ] || { printf 'faults: %s does not exist\n' "$library" >&2; exit 2; }
ulimit -c 0  # mistakes end by abort
count=0 wrong=0
while IFS=$'\t' read -r name error; do
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  count=$((count + 1))
  races=0
  [[ $name == race_* ]] && races=1
  said=$(LRNN_EMULATOR_RACES=$races LD_PRELOAD=$library timeout 60 "$program" "$name" 2>&1)
  status=$?
  if [ -z "$error" ]; then
    [ $status -eq 0 ] && continue
    wanted='it ends well'
  else
    # shellcheck disable=SC2053  # a pattern
    [ $status -eq 134 ] && [[ $said == "emulator: "*$error* ]] && continue
    wanted="it ends with: $error"
  fi
  wrong=$((wrong + 1))
  printf '%s: status %d\n  wanted: %s\n  said:   %s\n' "$name" "$status" "$wanted" "${said//$'\n'/$'\n          '}"
done < <(LD_PRELOAD=$library "$program" --list)
printf '%d of %d cases are wrong\n' "$wrong" "$count"
[ "$count" -gt 0 ] && [ "$wrong" -eq 0 ]
