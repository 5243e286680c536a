#!/usr/bin/env bash
# Every test of a build folder, and why any of them was skipped: scripts/test.sh build [ctest's options]
set -u
build=$1
shift
# Tests run beside each other, each with threads of its own: who waits for a thread must not spin.
export OMP_WAIT_POLICY=passive
ctest --test-dir "$build" --output-on-failure "$@"
result=$?
log=$build/Testing/Temporary/LastTest.log
# A test that cannot run here says so in a line that begins with "skipped:".
reasons=$(awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 } /^skipped: / { sub(/^skipped: /, ""); print "  " name ": " $0 }' "$log" 2>/dev/null)
[ -z "$reasons" ] || printf 'Skipped on this machine:\n%s\n' "$reasons"
exit $result
