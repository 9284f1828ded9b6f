#!/usr/bin/env bash
# byte_weights.sh pack BUILD FOLDER: compiles GEMMs of e4m3 activations, with a scale for each row, and
#   prepacked MXFP4 weights for sm_90a into FOLDER, a library for each shape N x K, tile and split of K;
#   of splits of K that can reduce in a cluster two, one of which reduces in a workspace; and one with
#   pre-dequantized weights ("ahead").
# byte_weights.sh run FOLDER [ROWS...]: on a machine with a Hopper GPU, verifies and times for these
#   numbers of rows the libraries with the smallest tile that has them, or for more than 64 rows with all
#   larger ones, and PyTorch's FP8 GEMM with one scale per tensor of the same shape where there is
#   PyTorch. One line per measurement: microseconds, SM clock and power.
# SHAPES says which N x K, and with which splits.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
shapes=${SHAPES:-8192x8192:1,2,4 7168x16384:1,2,4 4096x7168:1,2,4,8}
tiles="8x128 16x128 32x128 64x128 96x128 128x128 64x256 256x128"
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" fp8_gemms.py
  for shape in $shapes; do
    IFS=:x read -r n k splits <<<"$shape"
    weights="tensor<$((n / 128))x$((k / 128))x8704xi8, #fp4.weight_layout<wgmma>>"
    for split in ${splits//,/ }; do
      file=bytes_${n}x${k}_s$split
      cat >"$folder/$file.mlir" <<X
func.func @weights(%x: tensor<?x${k}xf8E4M3FN> {fp4.dims = ["M", "K"]}, %w: $weights, %s: tensor<?x1xf32>) -> tensor<?x${n}xbf16> {
  %y = fp4.matmul %x, %w alpha %s {work = #fp4.work<split_k = $split>}
      : (tensor<?x${k}xf8E4M3FN>, $weights, tensor<?x1xf32>) -> tensor<?x${n}xbf16>
  return %y : tensor<?x${n}xbf16>
}
X
      for tile in $tiles; do
        rows=${tile%x*} columns=${tile#*x}
        if [ "$rows" -gt 64 ] && [ "$split" -gt 2 ]; then continue; fi
        depth=256
        if [ "$rows" = 256 ]; then depth=128; fi # whose weights threads hold
        plan="tile_gemm, tile = [$rows, $columns, $depth]"
        if [ "$rows" -gt 64 ] || [ "$columns" -gt 128 ] || [ "$split" = 1 ]; then
          emit "$file" "${file}_t$tile" --plan "$plan" || exit
          continue
        fi
        emit "$file" "${file}_t$tile" --plan "$plan, cluster = [$split, 1]" || exit
        emit "$file" "${file}_t${tile}_workspace" --plan "$plan, cluster = [1, 1]" || exit
      done
      [ "$split" -gt 1 ] || emit "$file" "${file}_t256x128_ahead" --plan "tile_gemm, tile = [128, 256, 128], route = <a = pre>" || exit
    done
  done
  exit
fi
cd "$2" || exit
shift 2
[ $# -gt 0 ] || set -- 1 16 64 128 256 1024
for rows in "$@"; do
  fit=$(for tile in 8 16 32 64; do [ "$tile" -ge "$rows" ] && echo "${tile}x128"; done | head -1)
  for shape in $shapes; do
    for tile in ${fit:-96x128 128x128 64x256 256x128 256x128_ahead}; do
      for library in bytes_"${shape%:*}"_s*_t"$tile"{,_workspace}.so; do
        [ -f "$library" ] || continue
        if [ "$rows" -gt 256 ] && [[ $library != *_s1_* ]]; then continue; fi
        measure "$rows ${library%.so}" "${library%.so}" --shape "$rows"
      done
    done
    IFS=:x read -r n k _ <<<"$shape"
    if has_torch; then python3 fp8_gemms.py "$rows" "$n" "$k"; fi
  done
done
