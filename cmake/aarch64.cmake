# Builds for 64-bit ARM on another machine: Debian's cross compiler, the libraries that scripts/arm.sh unpacks
# under build-arm/, and qemu to run what comes out.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Libraries and headers come from there and never from this machine, programs (python3) from here.
get_filename_component(LRNN_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build-arm/sysroot" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${LRNN_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The C library is the cross compiler's. A Neoverse N1 has NEON and no SVE, like most machines; SVE would
# make LibTorch's part slower under qemu, and we compile nothing for it.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu neoverse-n1 -L /usr/aarch64-linux-gnu
    -E "LD_LIBRARY_PATH=${LRNN_SYSROOT}/usr/lib/aarch64-linux-gnu")
