#!/usr/bin/env bash
# small_m.sh pack BUILD FOLDER: compiles small-M GEMMs of fp4 operands for sm_90a into FOLDER,
#   a library for each format, shape N x K, number of rows and split of K, and one of each beside
#   prepacked weights (_packed).
# small_m.sh run FOLDER: on a machine with a Hopper GPU, verifies and times every library, and
#   PyTorch's bf16 GEMM of the same shape where there is PyTorch. One line per measurement:
#   microseconds, SM clock and power.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
shapes="8192x8192:1,2,4 7168x16384:1,2,4 4096x7168:1,2,4" all_rows="16 64"
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" products.py
  for format in nvfp4:16:f8E4M3FN:4608 mxfp4:32:f8E8M0FNU:4352; do
    IFS=: read -r name block scale bytes <<<"$format"
    for shape in $shapes; do
      IFS=:x read -r n k splits <<<"$shape"
      scales="$((k / block))x$scale, #fp4.scale_layout<tiled_128x4>"
      for rows in $all_rows; do
        for split in ${splits//,/ }; do
          file=${name}_${n}x${k}_m${rows}_s$split
          cat >"$folder/$file.mlir" <<X
!a = tensor<${rows}x${k}xf4E2M1FN>
!sa = tensor<${rows}x$scales>
!b = tensor<${n}x${k}xf4E2M1FN>
!sb = tensor<${n}x$scales>
!lhs = !fp4.scaled<$name, !a, !sa>
!rhs = !fp4.scaled<$name, !b, !sb>
func.func @few(%a: !a, %sa: !sa, %b: !b, %sb: !sb) -> tensor<${rows}x${n}xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = $split>}
      : (!lhs, !rhs) -> tensor<${rows}x${n}xbf16>
  return %y : tensor<${rows}x${n}xbf16>
}
X
          emit "$file" "$file" || exit
          weights="tensor<$((n / 128))x$((k / 64))x${bytes}xi8, #fp4.weight_layout<wgmma>>"
          cat >"$folder/${file}_packed.mlir" <<X
!a = tensor<${rows}x${k}xf4E2M1FN>
!sa = tensor<${rows}x$scales>
func.func @few(%a: !a, %sa: !sa, %w: $weights) -> tensor<${rows}x${n}xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %y = fp4.matmul %a_scaled, %w {work = #fp4.work<split_k = $split>}
      : (!lhs, $weights) -> tensor<${rows}x${n}xbf16>
  return %y : tensor<${rows}x${n}xbf16>
}
X
          emit "${file}_packed" "${file}_packed" || exit
        done
      done
    done
  done
  exit
fi
cd "$2" || exit
for rows in $all_rows; do
  for shape in $shapes; do
    for library in *_"${shape%:*}"_m"$rows"_s*.so; do
      measure "${library%.so}" "${library%.so}"
    done
    if has_torch; then python3 products.py "$rows" "${shape%:*}"; fi
  done
done
