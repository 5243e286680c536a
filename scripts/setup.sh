#!/usr/bin/env bash
# Finds what the build needs and installs only what is missing. With everything in place it touches
# no network and takes about a second.
#
#   scripts/setup.sh           what `make build` needs; writes build/torch.path
#   scripts/setup.sh python    also a Python that can `import torch` 2.11 (for the ops from Python)
#   scripts/setup.sh tests     also what only tests need: that Python, tests/requirements.txt in
#                              .venv/tests, docs/requirements.txt in .venv/docs, a browser, clang; what
#                              cannot be had here (no network, no root) is named, and the tests in
#                              question are skipped
#   scripts/setup.sh docs      only what `make docs` needs: docs/requirements.txt in .venv/docs
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

# ------------------------------------------------------------------------------- the site of docs/
install_docs() {
  local to=.venv/docs
  cmp -s docs/requirements.txt $to/installed && return 0
  rm -rf $to && python3 -m venv $to &&
    $to/bin/python3 -m pip install -q --disable-pip-version-check --no-deps --no-compile --retries 1 --timeout 20 \
      -r docs/requirements.txt && cp docs/requirements.txt $to/installed
}
if [ "${1:-}" = docs ]; then
  install_docs || stop "What builds the site could not be installed into .venv/docs." "Check the network, and that python3 has venv (apt-get install python3-venv)."
  exit 0
fi

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
      echo 'find_library(sentencepiece sentencepiece_train)'  # it has no CMake package
      echo 'if(NOT sentencepiece)'
      echo '  message(NOTICE "MISSING sentencepiece")'
      echo 'endif()'
    } >"$build/find/source/CMakeLists.txt"
    cmake -S "$build/find/source" -B "$build/find/build" -G Ninja 2>&1 |
      sed -n 's/^ *MISSING //p'
  }
  libraries="yaml-cpp nlohmann_json CLI11 GTest benchmark sentencepiece"
  [ ${#packages[@]} -gt 0 ] || libraries=$(missing)
  for name in $libraries; do
    case $name in
      yaml-cpp) packages+=(libyaml-cpp-dev) ;;
      nlohmann_json) packages+=(nlohmann-json3-dev) ;;
      CLI11) packages+=(libcli11-dev) ;;
      GTest) packages+=(libgtest-dev) ;;
      benchmark) packages+=(libbenchmark-dev) ;;
      sentencepiece) packages+=(libsentencepiece-dev) ;;
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
    .venv/bin/python3 -m pip install -q --disable-pip-version-check --no-compile --no-deps "torch==$torch_pin" \
      nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
  else
    .venv/bin/python3 -m pip install -q --disable-pip-version-check --no-compile "torch==$torch_pin" numpy
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

# A Python that can import torch: PyPI has LibTorch and its CUDA libraries in one set, for CPUs, too.
install_python() {
  local python=$torch/../../../../bin/python3
  if ! imports_torch "$python" && ! imports_torch "$(command -v python3)"; then
    install_torch full
    [ -n "${LRNN_TORCH:-}" ] || torch=$(torch_of .venv/bin/python3)
  fi
}
[ $want_python = no ] || install_python

# ------------------------------------------------------------------------------------- for tests
# What is missing costs tests, not the set-up. What failed is not tried again on the same day: without a
# network every try takes its time.
try_for_tests() {  # try_for_tests NAME WHAT-IT-IS-FOR COMMAND...
  local name=$1 for=$2 failed=.venv/tests/$1.failed
  shift 2
  mkdir -p .venv/tests
  if [ -n "$(find "$failed" -mtime -1 2>/dev/null)" ]; then
    say "$name is missing ($for will be skipped); $failed has the reason; remove it to try again"
  elif ("$@") >"$failed.new" 2>&1; then
    rm -f "$failed" "$failed.new"
  else
    mv "$failed.new" "$failed"
    say "$name could not be installed, so $for will be skipped: $(tail -n 1 "$failed")"
  fi
}
install_test_packages() {
  local to=.venv/tests python=$torch/../../../../bin/python3
  cmp -s tests/requirements.txt $to/installed && return 0
  [ -x "$python" ] || python=python3
  "$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --upgrade --retries 1 --timeout 20 \
    --target $to -r tests/requirements.txt && cp tests/requirements.txt $to/installed
}
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
if [ $want_tests = yes ]; then
  try_for_tests torch "tests of the ops from Python" install_python
  [ -n "${LRNN_TORCH:-}" ] || torch=$(torch_of .venv/bin/python3)
  [ -n "$torch" ] || torch=$(torch_of python3)
  try_for_tests packages "tests against other people's packages" install_test_packages
  try_for_tests docs "the test of the documentation's site" install_docs
  has_browser || try_for_tests chromium "the test of a page in a browser" install_packages chromium
  command -v clang++ >/dev/null || try_for_tests clang "fuzzing" install_packages clang
fi

mkdir -p "$build"
[ "$(cat "$build/torch.path" 2>/dev/null)" = "$torch" ] || echo "$torch" >"$build/torch.path"
