#!/usr/bin/env bash
# weights.sh pack BUILD FOLDER: compiles products of bf16 activations and prepacked fp4 weights for
#   sm_90a into FOLDER, a library for each format, shape N x K, number of rows of a tile and split of K.
# weights.sh run FOLDER [ROWS...]: on a machine with a Hopper GPU, verifies and times for these numbers
#   of rows every library whose tiles have them, and PyTorch's bf16 product of the same shape where
#   there is PyTorch. One line per measurement: microseconds, SM clock and power.
set -uo pipefail
shapes="8192x8192:1,2,4 7168x16384:1,2,4 4096x7168:1,2,4,8"
if [ "$1" = pack ]; then
  build=$2 folder=$3
  mkdir -p "$folder"
  cp "$build"/bin/fp4-run "$0" "$(dirname "$0")"/products.py "$folder"
  for format in nvfp4:4608 mxfp4:4352; do
    for shape in $shapes; do
      IFS=: read -r name bytes <<<"$format"
      IFS=:x read -r n k splits <<<"$shape"
      weights="tensor<$((n / 128))x$((k / 64))x${bytes}xi8, #fp4.weight_layout<wgmma>>"
      for split in ${splits//,/ }; do
        file="$folder/${name}_${n}x${k}_s$split"
        cat >"$file.mlir" <<X
func.func @weights(%x: tensor<?x${k}xbf16> {fp4.dims = ["M", "K"]}, %w: $weights) -> tensor<?x${n}xbf16> {
  %y = fp4.blockscaled_matmul %x, %w {format = #fp4.format<$name>, split_k = $split : i64}
      : (tensor<?x${k}xbf16>, $weights) -> tensor<?x${n}xbf16>
  return %y : tensor<?x${n}xbf16>
}
X
        for rows in 8 16 32 64 128 256; do
          if [ "$rows" -gt 128 ] && [ "$split" -gt 2 ]; then continue; fi
          "$build"/bin/fp4-runner "$file.mlir" --target=sm_90a --emit=so \
            --plan "tile_product, tile = [$rows, 128, 256]" -o "${file}_m$rows.so" || exit
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
    for tile in $tiles; do
      for library in mxfp4_"${shape%:*}"_s*_m"$tile".so nvfp4_"${shape%:*}"_s*_m"$tile".so; do
        [ -f "$library" ] || continue
        if [ "$rows" -gt 256 ] && [[ $library != *_s1_* ]]; then continue; fi
        ./fp4-run "$library" --device cuda --shape "$rows" --benchmark 2>&1 |
          grep -E 'matmul_0 .*(graph|rows) |error:|FAILED|differ' | sed "s/^/$rows ${library%.so} /"
      done
    done
    if python3 -c 'import torch' 2>/dev/null; then
      python3 products.py "$rows" ${shape%:*}
    fi
  done
done
