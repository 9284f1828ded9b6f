#!/usr/bin/env bash
# experts.sh pack BUILD FOLDER: compiles GEMMs of bf16 activations, sorted by expert, and prepacked
#   MXFP4 weights of 32 experts for sm_90a into FOLDER, a library for each shape N x K of an expert in
#   gpt-oss (its N = 2880 padded to 2944), number of rows of all experts, and tile: the one that is
#   chosen, and others. Experts have fewer rows than those behind them; two have none.
# experts.sh run FOLDER: on a machine with a Hopper GPU, verifies and times each of them.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
experts=32 shapes="5760x2880 2944x2880" rows="64 512 4096 16384"

# The first row of each expert, and the end of the last.
offsets_of() {
  awk -v rows="$1" -v experts=$experts 'BEGIN {
    for (i = 0; i <= experts; ++i) {
      share = i < 2 ? 0 : (i - 2) / (experts - 2)
      printf "%s%d", i ? ", " : "", int(rows * share ^ 1.3)
    }
  }'
}

if [ "$1" = pack ]; then
  begin_pack "$2" "$3"
  for shape in $shapes; do
    IFS=x read -r n k <<<"$shape"
    weights="tensor<$((experts * n / 128))x$((k / 64))x4352xi8, #fp4.weight_layout<wgmma>>"
    for m in $rows; do
      file=experts_${shape}_$m offsets="tensor<$((experts + 1))xi64>"
      cat >"$folder/$file.mlir" <<X
func.func @experts(%x: tensor<${m}x${k}xbf16>, %w: $weights) -> tensor<${m}x${n}xbf16> {
  %o = arith.constant dense<[$(offsets_of "$m")]> : $offsets
  %y = fp4.matmul %x, %w offsets %o
      {work = #fp4.work<expected_rows = $(((m + experts - 1) / experts)), unspecified_rows>}
      : (tensor<${m}x${k}xbf16>, $weights, $offsets) -> tensor<${m}x${n}xbf16>
  return %y : tensor<${m}x${n}xbf16>
}
X
      emit "$file" "$file" || exit
      for tile in "8, 128, 256" "16, 128, 256" "32, 128, 256" "64, 128, 256" "128, 128, 128" "256, 128, 64"; do
        emit "$file" "${file}_tile${tile%%,*}" --plan "tile_gemm, tile = [$tile]" || exit
      done
    done
  done
  exit
fi
cd "$2" || exit
for library in experts_*.so; do
  measure "${library%.so}" "${library%.so}"
done
