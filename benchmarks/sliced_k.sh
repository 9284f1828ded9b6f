#!/usr/bin/env bash
# sliced_k.sh pack BUILD FOLDER: compiles GEMMs of few rows of bf16 and prepacked weights for an H200 into
#   FOLDER: linears of NVFP4 and 32 experts of MXFP4, of which each row has another. A library for each shape
#   N x K, number of rows and split of K: the plan that is chosen, and others with and without sliced-K.
# sliced_k.sh run FOLDER: on a machine with a Hopper GPU, verifies and times each of them, in two turns.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
linears="1024x4096 4096x4096 6144x4096 8192x8192" experts="2944x2880 5760x2880" all_rows="1 8 16"

# write FILE N K ROWS SPLIT: a linear.
write() {
  local weights="tensor<$(($2 / 128))x$(($3 / 64))x4608xi8, #fp4.weight_layout<wgmma>>"
  cat >"$folder/$1.mlir" <<X
func.func @linear(%x: tensor<$4x$3xbf16>, %w: $weights) -> tensor<$4x$2xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = $5>}
      : (tensor<$4x$3xbf16>, $weights) -> tensor<$4x$2xbf16>
  return %y : tensor<$4x$2xbf16>
}
X
}

# write_experts FILE N K ROWS SPLIT: experts, of which the first ones have a row each.
write_experts() {
  local weights="tensor<$((32 * $2 / 128))x$(($3 / 64))x4352xi8, #fp4.weight_layout<wgmma>>" offsets
  offsets=$(awk -v rows="$4" 'BEGIN { for (i = 0; i <= 32; ++i) printf "%s%d", i ? ", " : "", i < rows ? i : rows }')
  cat >"$folder/$1.mlir" <<X
func.func @experts(%x: tensor<$4x$3xbf16>, %w: $weights) -> tensor<$4x$2xbf16> {
  %o = arith.constant dense<[$offsets]> : tensor<33xi64>
  %y = fp4.matmul %x, %w offsets %o {work = #fp4.work<split_k = $5, expected_rows = 1, unspecified_rows>}
      : (tensor<$4x$3xbf16>, $weights, tensor<33xi64>) -> tensor<$4x$2xbf16>
  return %y : tensor<$4x$2xbf16>
}
X
}

# pack WRITE SHAPE ROWS LABEL SPLIT [PLAN]
pack() {
  local file=$2_m$3_$4
  "$1" "$file" "${2%x*}" "${2#*x}" "$3" "$5"
  emit "$file" "$file" --plan-device h200 ${6:+--plan "tile_gemm, $6"}
}

if [ "$1" = pack ]; then
  begin_pack "$2" "$3"
  for rows in $all_rows; do
    for shape in $linears; do
      pack write "$shape" "$rows" chosen fastest || exit
      for split in 1 2 4 8; do
        pack write "$shape" "$rows" "s$split" $split "k_slices = 1" || exit
      done
      tile=$((rows > 8 ? 16 : 8))
      pack write "$shape" "$rows" s2_sliced 2 "tile = [$tile, 128, 256], k_slices = 2, sliced_k" || exit
      pack write "$shape" "$rows" s4_sliced 4 "tile = [$tile, 128, 256], cluster = [2, 1], k_slices = 2, sliced_k" || exit
    done
  done
  for shape in $experts; do
    for rows in 4 8 32; do
      pack write_experts "$shape" "$rows" chosen fastest || exit
      pack write_experts "$shape" "$rows" s1 1 || exit
      pack write_experts "$shape" "$rows" s2_sliced 2 "tile = [8, 128, 256], k_slices = 2, sliced_k" || exit
      pack write_experts "$shape" "$rows" s3_sliced 3 "tile = [8, 128, 256], k_slices = 3, sliced_k" || exit
    done
  done
  exit
fi
cd "$2" || exit
for _ in 1 2; do
  for library in *_m*.so; do
    measure "${library%.so}" "${library%.so}"
  done
done
