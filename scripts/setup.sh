#!/usr/bin/env bash
# Finds what the build needs and installs only what is missing. With everything in place it touches
# no network and takes about a second.
#
#   scripts/setup.sh           what `make build` needs; writes build/torch.path
#   scripts/setup.sh python    also a Python that can `import torch` 2.11 (for the ops from Python)
#   scripts/setup.sh tests     also what only tests need, into .venv/tests; without a network the
#                              tests in question are skipped, and say so
#
# LRNN_TORCH=<dir> names a torch folder (with include/ and lib/) to use as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
want_python=$([ "${1:-}" = python ] && echo yes || echo no)
want_tests=$([ "${1:-}" = tests ] && echo yes || echo no)
torch_pin=2.11.0
build=${BUILD:-build}

say() { echo "setup: $*" >&2; }
stop() { echo "setup: $1" >&2; echo "       $2" >&2; exit 2; }

# ------------------------------------------------------------------------------- compiler, Python
cxx=${CXX:-c++}
command -v "$cxx" >/dev/null ||
  stop "No C++ compiler was found ('$cxx')." "Install one, for example: apt-get install g++"
echo 'int main() { return []<class T>(T x) { return x; }(0); }' |
  "$cxx" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null ||
  stop "The compiler '$cxx' does not know C++20." "Use g++ 11 or newer, or set CXX."
# A compiler may be set up to link libstdc++ into every library; beside LibTorch's, the second copy crashes or loses text in Python.
shares_libstdcxx() {
  command -v readelf >/dev/null || return 0
  local folder found
  folder=$(mktemp -d)
  echo '#include <string>
        std::string text(int n) { return std::to_string(n); }' |
    "$cxx" -shared -fPIC -x c++ - -o "$folder/probe.so" 2>/dev/null &&
    readelf -d "$folder/probe.so" | grep -q 'NEEDED.*libstdc++'
  found=$?
  rm -rf "$folder"
  return $found
}
[ -f "$build/build.ninja" ] || shares_libstdcxx ||
  say "warning: '$cxx' links a libstdc++ of its own into libraries: used from Python, liblrnn.so would crash or lose text. CXX names another compiler."
command -v python3 >/dev/null ||
  stop "No python3 was found." "Install it, for example: apt-get install python3 python3-venv"

# --------------------------------------------------------------------------------- Debian packages
packages=()
command -v ninja >/dev/null || packages+=(ninja-build)
if command -v cmake >/dev/null; then
  version=$(cmake --version | sed -n '1s/.* \([0-9]*\.[0-9]*\).*/\1/p')
  [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -1)" = 3.25 ] ||
    stop "CMake $version is too old; 3.25 is needed." "For example: pip install 'cmake>=3.25', in a virtual environment on the PATH."
else
  packages+=(cmake)
fi
if [ ! -f "$build/build.ninja" ]; then
  # Ask CMake itself, so that what set-up finds is what the build will find.
  missing() {
    rm -rf "$build/find" && mkdir -p "$build/find/source"
    {
      echo 'cmake_minimum_required(VERSION 3.25)'
      echo 'project(find LANGUAGES CXX)'
      for name in yaml-cpp nlohmann_json CLI11 GTest benchmark; do
        echo "find_package($name QUIET)"
        echo "if(NOT ${name}_FOUND)"
        echo "  message(NOTICE \"MISSING $name\")"
        echo 'endif()'
      done
    } >"$build/find/source/CMakeLists.txt"
    cmake -S "$build/find/source" -B "$build/find/build" -G Ninja 2>&1 |
      sed -n 's/^ *MISSING //p'
  }
  libraries="yaml-cpp nlohmann_json CLI11 GTest benchmark"
  [ ${#packages[@]} -gt 0 ] || libraries=$(missing)
  for name in $libraries; do
    case $name in
      yaml-cpp) packages+=(libyaml-cpp-dev) ;;
      nlohmann_json) packages+=(nlohmann-json3-dev) ;;
      CLI11) packages+=(libcli11-dev) ;;
      GTest) packages+=(libgtest-dev) ;;
      benchmark) packages+=(libbenchmark-dev) ;;
    esac
  done
fi

install_packages() {
  [ $# -gt 0 ] || return 0
  local sudo=""
  if ! command -v apt-get >/dev/null; then
    stop "These packages are missing: $*" "Install their equivalents for your system, then run make again."
  elif [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null && sudo=sudo ||
      stop "These packages are missing, and installing them needs root: $*" "Run: sudo apt-get install -y $*"
  fi
  say "installing $*"
  # An installed package never needs the network; a fresh machine has no package lists yet.
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || {
    $sudo apt-get update -qq >/dev/null &&
      $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  } || stop "apt-get could not install: $*" "Run: ${sudo:+sudo }apt-get install -y $*   and read what it says."
}
install_packages "${packages[@]}"

# ---------------------------------------------------------------------------------------- LibTorch
# The torch folder of a Python, if its version fits; found without importing it, which is slow.
torch_of() {
  "$1" - "${torch_pin%.*}" 2>/dev/null <<'P' || true
import importlib.util, os, re, sys
spec = importlib.util.find_spec("torch")
if spec and spec.submodule_search_locations:
    folder = spec.submodule_search_locations[0]
    version = re.search(r"__version__ = '([^']*)'", open(os.path.join(folder, "version.py")).read())[1]
    if version.startswith(sys.argv[1] + ".") and os.path.exists(folder + "/lib/libtorch_cpu.so"):
        print(folder)
P
}
imports_torch() { [ -x "$1" ] && "$1" -c 'import torch' >/dev/null 2>&1; }
has_gpu() { [ -e /dev/nvidia0 ] || nvidia-smi -L >/dev/null 2>&1; }

need_disk() {  # need_disk GIGABYTES
  local free
  free=$(df -Pk . | awk 'NR==2 {print int($4 / 1048576)}')
  [ "$free" -ge "$1" ] ||
    stop "Too little disk: $free GB free in $(pwd), and LibTorch with the build needs $1 GB." \
      "Free some space, or point LRNN_TORCH at a torch $torch_pin that is already installed."
}

install_torch() {  # install_torch slim|full
  need_disk $([ "$1" = full ] && echo 9 || echo 4)
  if [ ! -x .venv/bin/python3 ]; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
    python3 -m venv .venv
  fi
  say "installing LibTorch $torch_pin ($1 set) into .venv"
  if [ "$1" = slim ]; then
    # All that libtorch_cpu.so links to: no cuDNN, no cuBLAS, no Triton.
    .venv/bin/python3 -m pip install -q --disable-pip-version-check --no-deps "torch==$torch_pin" \
      nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
  else
    .venv/bin/python3 -m pip install -q --disable-pip-version-check "torch==$torch_pin" numpy
  fi || stop "pip could not install torch $torch_pin." \
    "Check the network, or point LRNN_TORCH at an existing torch $torch_pin folder."
}

if [ -n "${LRNN_TORCH:-}" ]; then
  [ -f "$LRNN_TORCH/lib/libtorch_cpu.so" ] ||
    stop "LRNN_TORCH=$LRNN_TORCH has no lib/libtorch_cpu.so." "It must name the torch folder, the one with include/ and lib/."
  torch=$LRNN_TORCH
else
  torch=$([ -x .venv/bin/python3 ] && torch_of .venv/bin/python3 || true)
  [ -n "$torch" ] || torch=$(torch_of python3)
  if [ -z "$torch" ]; then
    other=$(python3 -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || true)
    [ -z "$other" ] || say "python3 has torch $other, but $torch_pin is needed; leaving it alone"
    install_torch "$({ [ $want_python = yes ] || has_gpu; } && echo full || echo slim)"
    torch=$(torch_of .venv/bin/python3)
  fi
  [ -n "$torch" ] || stop "LibTorch $torch_pin is not in .venv after installing it." "Remove .venv and run make again."
fi

if [ "$want_python" = yes ]; then
  python=$torch/../../../../bin/python3
  if ! imports_torch "$python" && ! imports_torch "$(command -v python3)"; then
    install_torch full
    [ -n "${LRNN_TORCH:-}" ] || torch=$(torch_of .venv/bin/python3)
  fi
fi

# ------------------------------------------------------------------------------------- for tests
# automata-lib, the oracle of tests/scripts/oracle.py, and what it imports: Python only, no network
# once it is there, and no second try on the same day when it cannot be had.
test_packages="automata-lib==9.2.0 cached-method==0.1.0 frozendict==2.4.6 networkx==3.4.2 typing-extensions==4.12.2"
install_test_packages() {
  local to=.venv/tests python=.venv/bin/python3
  [ "$(cat $to/installed 2>/dev/null)" != "$test_packages" ] || return 0
  [ -z "$(find $to/failed -mtime -1 2>/dev/null)" ] || return 0
  [ -x $python ] || { python3 -c 'import ensurepip, venv' 2>/dev/null && python3 -m venv .venv; } || python=python3
  mkdir -p $to
  say "installing automata-lib, for a test, into $to"
  # shellcheck disable=SC2086
  if timeout 120 $python -m pip install -q --disable-pip-version-check --retries 0 --timeout 10 --no-deps \
    --upgrade --target $to $test_packages >$to/failed 2>&1; then
    rm -f $to/failed
    echo "$test_packages" >$to/installed
  else
    say "it could not be installed (see $to/failed); the test against automata-lib will be skipped"
  fi
}
[ $want_tests = no ] || install_test_packages

mkdir -p "$build"
[ "$(cat "$build/torch.path" 2>/dev/null)" = "$torch" ] || echo "$torch" >"$build/torch.path"
