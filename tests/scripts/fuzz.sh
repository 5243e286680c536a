#!/usr/bin/env bash
# The readers of regular expressions, JSON and Graphviz text under libFuzzer and the address
# sanitizer: the same inputs every time, or FUZZ_SECONDS=600 of new ones. Needs clang; the tests of
# tests/automata run the same readers over mutated texts with any compiler.
set -u
clang=$(command -v "${CLANGXX:-clang++}") || { echo "skipped: there is no clang++"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$work/x.cpp"
flags="-std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Isrc -I."
$clang $flags "$work/x.cpp" -o "$work/x" 2>"$work/err" || { echo "skipped: $clang has no libFuzzer"; exit 77; }
[ -z "${NLOHMANN:-}" ] || flags="$flags -I$NLOHMANN"

sources="src/base/text.cpp"
for name in automaton minimal read/nfa read/regex read/regex_parse read/named_table read/json_format read/graph_format; do
  sources="$sources src/automata/$name.cpp"
done
objects=""
for source in $sources; do
  object="$work/$(basename "$source" .cpp).o"
  $clang $flags -c "$source" -o "$object" || exit 1
  objects="$objects $object"
done
status=0
for reader in regex json graph; do
  $clang $flags "tests/automata/fuzz_$reader.cpp" $objects -o "$work/$reader" || exit 1
  mkdir -p "$work/corpus"
  printf '!(a|b){2,}&[^0]?' >"$work/corpus/regex"
  printf '{"alphabet":["a"],"states":["s"],"start":"s","accept":[],"next":{"s":{"a":"s"}}}' >"$work/corpus/json"
  printf 'digraph { "" [shape=point]; "" -> s; s -> s [label="a"] }' >"$work/corpus/graph"
  limit="-seed=1 -runs=5000"
  [ -z "${FUZZ_SECONDS:-}" ] || limit="-max_total_time=$FUZZ_SECONDS"
  "$work/$reader" $limit -timeout=20 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$work/" "$work/corpus" >"$work/log" 2>&1
  if [ $? != 0 ]; then
    echo "FAIL: the $reader reader"; tail -40 "$work/log"; status=1
  else
    echo "$reader: $(grep number_of_executed_units "$work/log")"
  fi
done
exit $status
