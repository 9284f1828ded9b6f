#!/usr/bin/env bash
# CMake refuses hosts whose bytes are not those of a GPU, which are big-endian ones and those of 32
# bits, and systems other than Linux. An Arm host of 64 bits passes the same checks. Nothing is linked,
# so that no library of these hosts is needed.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# configure TARGET [SYSTEM]: writes what CMake says to $scratch/log, and passes where CMake fails.
configure() {
  rm -rf "$scratch/tree"
  cmake -S "$root" -B "$scratch/tree" -G Ninja -DCMAKE_SYSTEM_NAME="${2:-Linux}" \
    -DCMAKE_SYSTEM_PROCESSOR="${1%%-*}" -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_C_COMPILER_TARGET="$1" -DCMAKE_CXX_COMPILER_TARGET="$1" \
    -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DFP4_ENABLE_COMPILER=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON >"$scratch/log" 2>&1 || true
  tr -s ' \n' ' ' <"$scratch/log" >"$scratch/words"
}
# expect WORDS
expect() { grep -q "$1" "$scratch/words" || { cat "$scratch/log"; exit 1; }; }
configure aarch64_be-linux-gnu
expect "must have a little-endian host of 64 bits.* but got aarch64_be: 64 bits, BIG_ENDIAN"
configure armv7-linux-gnueabihf
expect "must have a little-endian host of 64 bits.* but got armv7: 32 bits, LITTLE_ENDIAN"
configure x86_64-unknown-freebsd FreeBSD
expect "must have a Linux host, but got FreeBSD note: on FreeBSD it runs in a container"
configure aarch64-linux-gnu
if grep -q "must have a" "$scratch/words"; then
  cat "$scratch/log"
  exit 1
fi
expect "CMAKE_DISABLE_FIND_PACKAGE_fmt" # the first error behind the check
