#!/usr/bin/env bash
# tails.sh pack BUILD FOLDER: compiles GEMMs whose rows are dynamic for sm_90a into FOLDER: bf16 activations
#   and prepacked NVFP4 weights, and FP8 with f32 scales (sm90/strided.mlir).
# tails.sh run FOLDER: on a machine with a Hopper GPU, verifies and times them with numbers of rows that end
#   within a tile, beside whole tiles, to say what rows that do not exist cost. One line per measurement:
#   microseconds, SM clock and power.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" sm90/strided.mlir
  for shape in 8192x8192 4096x7168; do
    IFS=x read -r n k <<<"$shape"
    weights="tensor<$((n / 128))x$((k / 64))x4608xi8, #fp4.weight_layout<wgmma>>"
    cat >"$folder/weights_$shape.mlir" <<X
func.func @weights(%x: tensor<?x${k}xbf16> {fp4.dims = ["M", "K"]}, %w: $weights) -> tensor<?x${n}xbf16> {
  %y = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 128], split_k = 2 : tile_gemm>, #fp4.case<m = [129, ?] : tile_gemm>]}
      : (tensor<?x${k}xbf16>, $weights) -> tensor<?x${n}xbf16>
  return %y : tensor<?x${n}xbf16>
}
X
    emit weights_$shape weights_$shape || exit
  done
  emit strided strided
  exit
fi
cd "$2" || exit
for round in 1 2; do
  for rows in 17 24 32 40 48 56 63 64 65 80 96 112 127 128; do
    measure "$round $rows 8192x8192" weights_8192x8192 --shape $rows
  done
  for rows in 129 160 192 224 256; do
    measure "$round $rows 4096x7168" weights_4096x7168 --shape $rows
    measure "$round $rows fp8 2048x2048" strided --function fp8_dense --shape $rows
  done
done
