# Toolchain of an Arm host (preset aarch64): clang, and libraries of Debian's arm64 packages, which
# utils/arm_sysroot.sh puts into a folder. qemu-user runs the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(FP4_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot CACHE PATH
  "Folder with Debian's arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FP4_SYSROOT)
if(NOT EXISTS ${FP4_SYSROOT}/usr/lib/aarch64-linux-gnu/libc.so)
  message(FATAL_ERROR "FP4_SYSROOT must have libc of arm64, but got '${FP4_SYSROOT}'\n"
    "note: utils/arm_sysroot.sh makes it")
endif()
get_filename_component(CMAKE_SYSROOT ${FP4_SYSROOT} REALPATH)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(FP4_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(FP4_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${FP4_QEMU} -L ${CMAKE_SYSROOT})
endif()
# Headers of Python, which find_package would look for where this host's Python has its own.
if(EXISTS ${CMAKE_SYSROOT}/usr/include/python3.11/Python.h)
  set(Python3_INCLUDE_DIR ${CMAKE_SYSROOT}/usr/include/python3.11 CACHE PATH "Headers of arm64")
endif()
