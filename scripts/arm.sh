#!/usr/bin/env bash
# Builds lrnn for 64-bit ARM (aarch64 Linux) on an x86-64 Debian or Ubuntu, and runs tests of it under qemu:
#
#   scripts/arm.sh                    library, program and C++ tests; runs those of base, kernels and ops
#   scripts/arm.sh ops mixers         runs these (the folders of tests/)
#   scripts/arm.sh build              builds, runs nothing
#
# Not part of CI: it downloads half a gigabyte, and under qemu the tests take many minutes. It says nothing of
# speed, either. LibTorch and the libraries go into build-arm/; only the cross compiler and qemu are installed.
# JOBS=n is the number of processes. LRNN_TORCH=<dir> names an aarch64 torch folder to use as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
here=$PWD/build-arm
say() { echo "arm: $*" >&2; }
stop() { echo "arm: $1" >&2; echo "     $2" >&2; exit 2; }

# --------------------------------------------------------------------------------- what runs here
packages=()
command -v aarch64-linux-gnu-g++ >/dev/null || packages+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || packages+=(qemu-user)
command -v cmake >/dev/null || packages+=(cmake)
command -v ninja >/dev/null || packages+=(ninja-build)
if [ ${#packages[@]} -gt 0 ]; then
  command -v apt-get >/dev/null ||
    stop "These packages of Debian are missing: ${packages[*]}" "Install their equivalents, then run this again."
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null && sudo=sudo ||
      stop "These packages are missing, and installing them needs root: ${packages[*]}" \
        "Run: sudo apt-get install -y ${packages[*]}"
  fi
  say "installing ${packages[*]}"
  install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove "${packages[@]}")
  $sudo "${install[@]}" >/dev/null 2>&1 || { $sudo apt-get update -qq >/dev/null && $sudo "${install[@]}" >/dev/null; } ||
    stop "apt-get could not install: ${packages[*]}" "Run: ${sudo:+sudo }apt-get install -y ${packages[*]}   and read what it says."
fi

# ------------------------------------------------------------------------- libraries from Debian
# A package list and a cache of our own: the system's are not touched, and need not know of arm64.
unpack_libraries() {
  local apt=$here/apt codename file
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  rm -rf "$apt" "$here/sysroot"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$here/sysroot"
  : >"$apt/status"
  local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)"
    -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
  # Debian's mirrors have every architecture; Ubuntu keeps arm64 at an address of its own.
  if [ -n "${LRNN_ARM_MIRROR:-}" ]; then
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    echo "deb $LRNN_ARM_MIRROR $codename main $([ "$(. /etc/os-release && echo "$ID")" != ubuntu ] || echo universe)" >"$apt/sources.list"
    options+=(-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null)
  fi
  apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install -y --download-only --no-install-recommends libyaml-cpp-dev \
      libsentencepiece-dev libgtest-dev nlohmann-json3-dev libcli11-dev >/dev/null || return 1
  for file in "$apt"/cache/archives/*.deb; do
    case ${file##*/} in
      libc6_* | libc6-dev_* | libstdc++6_* | libgcc-s1_*) ;;  # those of the compiler serve
      *) dpkg-deb -x "$file" "$here/sysroot" || return 1 ;;
    esac
  done
  rm -rf "$apt" && touch "$here/sysroot/complete"
}
mkdir -p "$here"
[ -f "$here/sysroot/complete" ] || {
  say "unpacking yaml-cpp, SentencePiece, GoogleTest, JSON and CLI11 for arm64 into build-arm/sysroot"
  unpack_libraries ||
    stop "The libraries for arm64 could not be had; they come from the packages of Debian or Ubuntu." \
      "Check the network; LRNN_ARM_MIRROR=<address> names a mirror that has arm64, as Ubuntu's 'ports'."
}

# ---------------------------------------------------------------------------------------- LibTorch
if [ -z "${LRNN_TORCH:-}" ]; then
  LRNN_TORCH=$here/site/torch
  [ -f "$here/site/complete" ] || {
    free=$(df -Pk . | awk 'NR==2 {print int($4 / 1048576)}')
    [ "$free" -ge 5 ] || stop "Too little disk: $free GB free in $PWD, and LibTorch with the build needs 5 GB." "Free some space."
    # The versions are those of setup.sh; the wheels name different ages of Linux.
    versions=$(sed -n 's/^torch_pin=/torch==/p; s/^ *\(nvidia-cuda-runtime==[^ ]*\) \(nvidia-cuda-cupti==[^ ]*\).*/\1 \2/p' scripts/setup.sh)
    platforms=(--platform manylinux2014_aarch64)
    for age in $(seq 17 28); do platforms+=(--platform "manylinux_2_${age}_aarch64"); done
    say "downloading LibTorch for aarch64 into build-arm/site"
    rm -rf "$here/site"
    # shellcheck disable=SC2086  # several words
    python3 -m pip install -q --disable-pip-version-check --no-deps --no-compile --only-binary=:all: "${platforms[@]}" \
      --python-version 3.11 --target "$here/site" $versions ||
      stop "pip could not download LibTorch for aarch64 ($versions)." \
        "Check the network and that python3 has pip, or point LRNN_TORCH at an aarch64 torch folder."
    touch "$here/site/complete"
  }
fi

# --------------------------------------------------------------------------------- build and test
cmake -S . -B "$here" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DLRNN_TORCH="$LRNN_TORCH" -DLRNN_CUDA=OFF \
  -DLRNN_BENCH=OFF >"$here/configure.log" 2>&1 || { cat "$here/configure.log" >&2; exit 2; }
ninja -C "$here" -j "$jobs"
[ "${1:-}" != build ] || exit 0
[ $# -gt 0 ] || set -- base kernels ops
names=$(IFS='|'; echo "$*")
ctest --test-dir "$here" -R "^($names)\$" --output-on-failure --no-tests=error
