#!/usr/bin/env bash
# products.sh pack BUILD FOLDER: compiles 8192 x 8192 GEMMs of fp4 operands for sm_90a into FOLDER.
# products.sh run FOLDER [ROWS...]: on a machine with a Hopper GPU, verifies and times each of them
#   for these numbers of rows, and PyTorch's bf16 GEMM of the same shape where there is PyTorch.
#   One line per measurement: microseconds, TFLOP/s, SM clock and power.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" products.py
  for format in nvfp4:16:f8E4M3FN mxfp4:32:f8E8M0FNU; do
    IFS=: read -r name block scale <<<"$format"
    data=8192xf4E2M1FN scales="$((8192 / block))x$scale, #fp4.scale_layout<tiled_128x4>"
    cat >"$folder/$name.mlir" <<X
!lhs = !fp4.scaled<$name, tensor<?x$data>, tensor<?x$scales>>
!rhs = !fp4.scaled<$name, tensor<8192x$data>, tensor<8192x$scales>>
func.func @$name(%a: tensor<?x$data> {fp4.dims = ["M", "K"]}, %sa: tensor<?x$scales>,
    %b: tensor<8192x$data>, %sb: tensor<8192x$scales>) -> tensor<?x8192xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8192xbf16>
  return %y : tensor<?x8192xbf16>
}
X
    for tile in 128x128 128x256 256x128; do
      emit "$name" "${name}_$tile" --plan "tile_gemm, tile = [${tile/x/, }, 128]" || exit
    done
  done
  exit
fi
cd "$2" || exit
shift 2
[ $# -gt 0 ] || set -- 64 1024 2048 8192
for rows in "$@"; do
  for library in *.so; do
    measure "$rows ${library%.so}" "${library%.so}" --shape "$rows"
  done
  if has_torch; then python3 products.py "$rows"; fi
done
