#!/usr/bin/env bash
# Kernels that people wrote by hand, in `fp4-sim run` under the hazard checker: gau-nernst/learn-cuda (02e_matmul_sm100) and
# DeepGEMM (sm100_fp8_fp4_gemm_1d1d). Needs nvcc and checkouts of both and of CUTLASS outside this repository; no GPU.
#
#   run.sh BUILD LEARN_CUDA DEEPGEMM CUTLASS WORK
#
# Most are right and clean. Versions 1 to 3 of learn-cuda have a hazard: three warps wait on an mbarrier whose next phase does not
# wait for them. DeepGEMM with 192 columns reads scale factors of shared memory that nobody wrote, which the GEMM does not use.
# Both must be reported. CHECK, POLICY change how they run.
set -euo pipefail
[ $# = 5 ] || { sed -n '2,10p' "$0" | cut -c3- >&2; exit 2; }
build="$(cd "$1" && pwd)" learn="$(cd "$2/02e_matmul_sm100" && pwd)" deepgemm="$(cd "$3" && pwd)" cutlass="$(cd "$4" && pwd)"
mkdir -p "$5"
work="$(cd "$5" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
total=0 good=0

# learn-cuda's kernels use PyTorch for TORCH_CHECK alone.
mkdir -p "$work/include/torch"
cat > "$work/include/torch/library.h" << 'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <tuple>
#define TORCH_CHECK(condition, ...) ((condition) ? (void)0 : (std::puts(#__VA_ARGS__), std::exit(1)))
END

# run NAME EXPECTED NVCC-ARGUMENTS...: EXPECTED is pass or the rule of a report
run() {
  local found=pass code=0
  total=$((total + 1))
  if [ ! -x "$work/$1" ] && ! nice nvcc -std=c++20 -O2 -cudart=shared -gencode arch=compute_100a,code=compute_100a \
    --expt-relaxed-constexpr "${@:3}" -Xlinker "$build/lib/fp4-cuda/libcuda.so.1" -o "$work/$1" > "$work/$1.nvcc" 2>&1; then
    echo "$1: nvcc fails, see $work/$1.nvcc"
    return
  fi
  timeout 300 "$build/bin/fp4-sim" run --check "${CHECK:-default}" --policy "${POLICY:-eager}" -- "$work/$1" \
    > "$work/$1.txt" 2>&1 || code=$?
  if grep -q 'the warp was lapped\|\[lapped-wait\]' "$work/$1.txt"; then
    found=lapped-wait
  elif grep -q 'which was never written' "$work/$1.txt"; then
    found=unwritten
  elif [ "$code" != 0 ]; then
    found="failed ($code)"
  fi
  if [ "$found" = "$2" ]; then
    good=$((good + 1))
  else
    echo "$1: $found, but expected $2; see $work/$1.txt"
  fi
}

for version in 0 1a 1b 2a 2b 3 4 5 6 7a 7b 7c; do
  expected=pass
  case "$version" in [123]*) expected=lapped-wait ;; esac
  run "learn_v$version" "$expected" -I"$work/include" -I"$learn" -DFUNCTION="matmul_v$version" "$here/tcgen05.cu" \
    "$learn/matmul_v${version%[abc]}.cu"
done
for variant in 1:128: 1:192: 2:128: 1:128:-DFP4_B 2:128:-DFP4_B; do
  IFS=: read -r cluster width fp4 <<< "$variant"
  expected=pass
  [ "$width" = 128 ] || expected=unwritten
  # shellcheck disable=SC2086
  run "deepgemm_${cluster}_$width${fp4:+_fp4}" "$expected" -I"$deepgemm/deep_gemm/include" -I"$cutlass/include" -DCLUSTER_SIZE="$cluster" \
    -DTILE_N="$width" $fp4 "$here/deepgemm.cu"
done
echo "$good of $total as expected"
[ "$good" = "$total" ]
