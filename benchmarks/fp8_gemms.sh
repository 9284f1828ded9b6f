#!/usr/bin/env bash
# fp8_gemms.sh pack BUILD FOLDER: compiles GEMMs of FP8 with f32 scales of 1 x 128 and 128 x 128 for
#   sm_90a into FOLDER: DeepGEMM's shapes, without split-K and with it, with the tile that fp4-plan-kernels
#   chooses and with others, and with a reduction in a workspace.
# fp8_gemms.sh run FOLDER [PATTERN]: on a machine with a Hopper GPU, verifies and times each library
#   whose name contains PATTERN, and PyTorch's GEMM of FP8 with one scale per tensor (cuBLASLt) of
#   the same shape where there is PyTorch; then the quantizers. One line per measurement: microseconds,
#   TFLOP/s, SM clock and power. The largest shapes take minutes to verify on the host.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" fp8_gemms.py
  while read -r m n k split tiles; do
    name=fp8_${m}_${n}x${k}_s$split b=$(((k + 127) / 128)) c=$(((n + 127) / 128))
    cat >"$folder/$name.mlir" <<X
!lhs = !fp4.scaled<fp8_block128, tensor<${m}x${k}xf8E4M3FN>, tensor<${m}x${b}xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<${n}x${k}xf8E4M3FN>, tensor<${c}x${b}xf32>>
func.func @$name(%a: tensor<${m}x${k}xf8E4M3FN>, %sa: tensor<${m}x${b}xf32>, %b: tensor<${n}x${k}xf8E4M3FN>,
    %sb: tensor<${c}x${b}xf32>) -> tensor<${m}x${n}xbf16> {
  %lhs = fp4.scaled %a, %sa : !lhs
  %rhs = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %lhs, %rhs {work = #fp4.work<split_k = $split>} : (!lhs, !rhs) -> tensor<${m}x${n}xbf16>
  return %y : tensor<${m}x${n}xbf16>
}
X
    emit "$name" "${name}_chosen" || exit
    if [ "$split" -gt 1 ]; then
      emit "$name" "${name}_workspace" --plan "tile_gemm, cluster = [1, 1]" || exit
    fi
    for tile in $tiles; do
      emit "$name" "${name}_$tile" --plan "tile_gemm, tile = [${tile//x/, }]" || exit
    done
  done <<X
64 4096 7168 1 64x32x128 64x64x128
64 4096 7168 2 64x64x128 64x64x256
128 4096 7168 1 128x32x128 128x64x128 64x64x128
128 4096 7168 2 128x64x128 128x64x256
64 7168 16384 1 64x56x256 64x64x128 64x64x256
64 7168 16384 2 64x112x128 64x112x256 64x128x256
128 7168 16384 1 128x56x128 128x64x128 64x112x128
128 7168 16384 2 128x112x128 128x128x128
1024 7168 2048 1 128x128x128 256x128x128
4096 7168 2048 1 128x128x128 256x128x128 128x160x128
4096 4096 7168 1 128x128x128 256x128x128 128x160x128
4096 32768 512 1 128x128x128 256x128x128
4096 24576 1536 1 128x128x128 256x128x128
4096 7168 16384 1 128x128x128 256x128x128
X
  for block in 1 128; do
    s=$((16384 / block))
    cat >"$folder/quantize_$block.mlir" <<X
func.func @quantize_$block(%x: tensor<16384x4096xbf16>) -> (tensor<16384x4096xf8E4M3FN>, tensor<${s}x32xf32>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>,
      block = array<i64: $block, 128>} : (tensor<16384x4096xbf16>) -> (tensor<16384x4096xf8E4M3FN>, tensor<${s}x32xf32>)
  return %q, %s : tensor<16384x4096xf8E4M3FN>, tensor<${s}x32xf32>
}
X
    emit "quantize_$block" "quantize_$block" || exit
  done
  exit
fi
cd "$2" || exit
for library in *"${3:-}"*.so; do
  measure "${library%.so}" "${library%.so}"
done
if has_torch; then
  for program in fp8_*_s1.mlir; do
    [[ $program == *"${3:-}"* ]] || continue
    IFS=_x. read -r _ m n k _ <<<"$program"
    python3 fp8_gemms.py "$m" "$n" "$k"
  done
fi
