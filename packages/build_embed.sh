#!/usr/bin/env bash
# Builds and runs examples/embed against an install of a build tree, as a user of find_package(FP4)
# would, and runs an installed tool. A tree for another host has its emulator run them.
# Usage: build_embed.sh [BUILD_TREE] [SCRATCH_DIRECTORY]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="$(realpath "${1:-$root/build}")"
scratch="$(realpath -m "${2:-$build/embed}")"
# cached NAME: a value of the tree's CMakeCache.txt, or nothing.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
toolchain=() run=()
if [ -n "$(cached CMAKE_TOOLCHAIN_FILE)" ]; then
  toolchain=("-DCMAKE_TOOLCHAIN_FILE=$(cached CMAKE_TOOLCHAIN_FILE)"
    "-DCMAKE_FIND_ROOT_PATH=$scratch/install" "-DFP4_SYSROOT=$(cached FP4_SYSROOT)")
  sysroot=$(realpath "$(cached FP4_SYSROOT)")
  run=("$(cached FP4_QEMU)" -L "$sysroot" -E "LD_LIBRARY_PATH=$sysroot/usr/lib/llvm-22/lib")
fi
rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/install" >"$scratch/install.log"
cmake -S "$root/examples/embed" -B "$scratch/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$scratch/install" "${toolchain[@]}" \
  -DCMAKE_CXX_COMPILER="${CXX:-clang++-22}" -DCMAKE_C_COMPILER="${CC:-clang-22}" \
  >"$scratch/configure.log" 2>&1 || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/build" >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; exit 1; }
"${run[@]}" "$scratch/build/embed"
"${run[@]}" "$scratch/build/host" "$root/examples/embed/mixed.mlir"
"${run[@]}" "$scratch/install/bin/fp4-runner" "$root/examples/embed/amax.mlir" --emit=so -o "$scratch/amax.so"
"${run[@]}" "$scratch/build/load" "$scratch/amax.so"
"${run[@]}" "$scratch/build/dialects" >"$scratch/dialects.mlir"
"${run[@]}" "$scratch/install/bin/fp4-runner" "$scratch/dialects.mlir" --shape 3
"${run[@]}" "$scratch/install/bin/fp4-runner" layout --scales nvfp4 --row 37 --k 5 >"$scratch/layout.log"
