#!/usr/bin/env bash
# What `make install` puts down works on its own: the program runs, and a stranger's project finds,
# compiles against and runs with the library.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$LRNN_BUILD" --prefix "$prefix" >/dev/null
"$prefix/bin/lrnn" --version
"$prefix/bin/lrnn" show "$prefix/share/lrnn/configs/chomsky/parity_delta_net_2.yaml" --json >/dev/null

mkdir "$prefix/stranger"
cat >"$prefix/stranger/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(lrnn REQUIRED)
add_executable(stranger main.cpp)
target_link_libraries(stranger lrnn::lrnn)
C
cat >"$prefix/stranger/main.cpp" <<'C'
#include <ATen/ATen.h>

#include "ops/delta_product.h"

// Writing with beta = 2 and v = 0 reflects the state; twice is the identity.
int main() {
  auto k = at::tensor({0.6, 0.8}, at::kDouble).reshape({1, 1, 1, 1, 2}).expand({1, 2, 1, 1, 2});
  auto S = at::rand({1, 1, 2, 3}, at::kDouble);
  auto out = lrnn::ops::delta_product({.q = k.select(2, 0), .k = k,
                                       .v = at::zeros({1, 2, 1, 1, 3}, at::kDouble),
                                       .beta = at::full({1, 2, 1, 1}, 2.0, at::kDouble),
                                       .log_gate = {}, .state = S, .scale = {}, .cu_seqlens = {}});
  return at::allclose(out.state, S) ? 0 : 1;
}
C
cmake -S "$prefix/stranger" -B "$prefix/stranger/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
ninja -C "$prefix/stranger/build" >/dev/null
"$prefix/stranger/build/stranger"
echo "1 passed, 0 failed"
