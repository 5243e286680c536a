#!/usr/bin/env bash
# What `make install` puts down works on its own, without the clone it came from: the program and its
# configs, and the library for a stranger's project (examples/cpp).
set -euo pipefail
clone=$(pwd -P)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$LRNN_BUILD" --prefix "$prefix" >/dev/null

# --- nothing that is loaded, and nothing a project is told to use, lies in the clone
for file in "$prefix/bin/lrnn" "$prefix"/lib*/liblrnn*.so; do
  if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -F "$clone"; then echo "FAIL: $file looks for libraries in the clone"; exit 1; fi
done
if ldd "$prefix/bin/lrnn" | grep -F "$clone"; then echo "FAIL: the program loads libraries from the clone"; exit 1; fi
if ldd "$prefix/bin/lrnn" | grep "not found"; then exit 1; fi
if grep -rF "$clone" "$prefix"/lib*/cmake; then echo "FAIL: the CMake package points into the clone"; exit 1; fi

# --- the program outside the clone, with the configs' names that the documents use
cd "$prefix"
bin/lrnn --version
bin/lrnn train configs/tiny.yaml train.steps=2 --out run --quiet
bin/lrnn show quick/parity_delta_net_2.yaml --json >/dev/null
bin/lrnn compile --regex '(ab|ba)*' --alphabet ab -o abba >/dev/null

# --- a project of somebody else's
cp -r "$clone/examples/cpp" example
cmake -S example -B example/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
ninja -C example/build >/dev/null
if ldd example/build/parity | grep -F "$clone"; then echo "FAIL: a stranger's program loads libraries from the clone"; exit 1; fi
example/build/parity
[ "$(example/build/run_model abba a b b a | tr '\n' ' ')" = "a reject b accept b reject a accept " ] ||
  { echo "FAIL: the example run_model says:"; example/build/run_model abba a b b a; exit 1; }
echo "1 passed, 0 failed"
