#!/usr/bin/env bash
# weights.sh pack BUILD FOLDER: compiles GEMMs of bf16 activations and prepacked fp4 weights for
#   sm_90a into FOLDER, a library for each format, shape N x K, number of rows of a tile and split of K;
#   of splits of K that can reduce in a cluster two, one of which reduces in a workspace; of tiles of 128 rows
#   two, one of which has 256 columns; and for each format and shape one, _rows, whose host code chooses a plan
#   by the number of rows, and that has split-K by two for up to 128.
# weights.sh run FOLDER [ROWS...]: on a machine with a Hopper GPU, verifies and times for these numbers
#   of rows every library whose tiles have them, and PyTorch's bf16 GEMM of the same shape where
#   there is PyTorch. One line per measurement: microseconds, SM clock and power.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
shapes="8192x8192:1,2,4 7168x16384:1,2,4 4096x7168:1,2,4,8"
if [ "$1" = pack ]; then
  begin_pack "$2" "$3" products.py
  for format in nvfp4:4608 mxfp4:4352; do
    for shape in $shapes; do
      IFS=: read -r name bytes <<<"$format"
      IFS=:x read -r n k splits <<<"$shape"
      weights="tensor<$((n / 128))x$((k / 64))x${bytes}xi8, #fp4.weight_layout<wgmma>>"
      file=${name}_${n}x${k}
      cat >"$folder/$file.mlir" <<X
func.func @weights(%x: tensor<?x${k}xbf16> {fp4.dims = ["M", "K"]}, %w: $weights) -> tensor<?x${n}xbf16> {
  %y = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 128], split_k = 2 : tile_gemm>, #fp4.case<m = [129, ?] : tile_gemm>]}
      : (tensor<?x${k}xbf16>, $weights) -> tensor<?x${n}xbf16>
  return %y : tensor<?x${n}xbf16>
}
X
      emit "$file" "${file}_rows" || exit
      for split in ${splits//,/ }; do
        file=${name}_${n}x${k}_s$split
        cat >"$folder/$file.mlir" <<X
func.func @weights(%x: tensor<?x${k}xbf16> {fp4.dims = ["M", "K"]}, %w: $weights) -> tensor<?x${n}xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = $split>}
      : (tensor<?x${k}xbf16>, $weights) -> tensor<?x${n}xbf16>
  return %y : tensor<?x${n}xbf16>
}
X
        for rows in 8 16 32 64 128 256; do
          if [ "$rows" -gt 128 ] && [ "$split" -gt 2 ]; then continue; fi
          plan="tile_gemm, tile = [$rows, 128, 256]"
          if [ "$rows" -gt 64 ]; then plan="tile_gemm, tile = [$rows, 128, 128]"; fi
          if [ "$rows" = 128 ]; then
            wide="tile_gemm, tile = [128, 256, 128]"
            if [ "$split" = 1 ]; then wide="$wide, schedule = #pipe.static_persistent<panels<4>>"; fi
            emit "$file" "${file}_m${rows}_wide" --plan "$wide" || exit
          fi
          if [ "$rows" -gt 64 ] || [ "$split" = 1 ]; then
            emit "$file" "${file}_m$rows" --plan "$plan" || exit
            continue
          fi
          emit "$file" "${file}_m$rows" --plan "$plan, cluster = [$split, 1]" || exit
          emit "$file" "${file}_m${rows}_workspace" --plan "$plan, cluster = [1, 1]" || exit
        done
      done
    done
  done
  exit
fi
cd "$2" || exit
shift 2
[ $# -gt 0 ] || set -- 1 16 64 128 256 1024 4096
for rows in "$@"; do
  tiles=$(for tile in 8 16 32 64 128 256; do [ "$tile" -ge "$rows" ] && echo "$tile"; done | head -1)
  [ "$rows" -le 128 ] || tiles="128 256"
  for shape in $shapes; do
    for library in {mxfp4,nvfp4}_"${shape%:*}"_rows.so; do
      [ ! -f "$library" ] || measure "$rows ${library%.so}" "${library%.so}" --shape "$rows"
    done
    for tile in $tiles; do
      for library in {mxfp4,nvfp4}_"${shape%:*}"_s*_m"$tile"{,_workspace,_wide}.so; do
        [ -f "$library" ] || continue
        if [ "$rows" -gt 256 ] && [[ $library != *_s1_* ]]; then continue; fi
        measure "$rows ${library%.so}" "${library%.so}" --shape "$rows"
      done
    done
    if has_torch; then python3 products.py "$rows" "${shape%:*}"; fi
  done
done
