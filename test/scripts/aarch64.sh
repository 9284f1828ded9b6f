#!/usr/bin/env bash
# An Arm host under qemu: images of its simulator are those of a real H200, byte for byte, and so
# those of x86-64. Unit tests of the numerics compare with the same goldens as there, kernels of NEON
# with the definitions, and litmus tests find the same races. The tree is cross-compiled first.
# CONTRIBUTING.md says how the rest is run by hand.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
tree="$root/build-aarch64"
# skip REASON
skip() { echo "$1"; exit 77; }
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
  skip "programs of an Arm host need qemu-aarch64 (package qemu-user)"
mkdir -p "$tree"
code=0
"$root/utils/arm_sysroot.sh" || code=$?
[ $code != 77 ] || skip "apt has no packages of arm64 here (utils/arm_sysroot.sh)"
[ $code = 0 ] || exit 1
[ -f "$tree/build.ninja" ] || cmake --preset aarch64 -S "$root" >"$tree/configure.log" 2>&1 ||
  { cat "$tree/configure.log"; exit 1; }
ninja -C "$tree" -j2 --quiet FP4NumericsTests FP4SimAsyncTests FP4SimCheckTests fp4-cts
if grep '"command":' "$tree/compile_commands.json" | grep -v -- -ffp-contract=off; then
  echo "these files may fuse multiply-adds"
  exit 1
fi

# arm PROCESSOR TEST [FILTER]: runs unit tests of the tree. max has dot products of bytes, and a
# cortex-a72 has none.
arm() {
  "$qemu" -cpu "$1" -L "$tree/sysroot" "$tree/unittests/$2" --gtest_brief=1 --gtest_filter="${3:-*}"
}
arm max FP4NumericsTests
arm max FP4SimAsyncTests 'BlockScaledMma.*:Reduction.*:*Gemm*'
arm max FP4SimCheckTests '*Litmus*'
arm cortex-a72 FP4NumericsTests 'MmaStep.kernelsAgree'
arm cortex-a72 FP4SimAsyncTests 'BlockScaledMma.*'
cd "$root"
test/scripts/h200_images.sh "$tree" "$qemu" -L "$tree/sysroot"
