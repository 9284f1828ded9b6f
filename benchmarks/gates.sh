#!/usr/bin/env bash
# gates.sh pack BUILD FOLDER: compiles the gated layer of 32 experts for sm_90a into FOLDER, with bf16 activations,
#   sorted by expert, and prepacked MXFP4 weights as gpt-oss has them (K = 2880, N = 2880 padded to 2944), a bias for
#   each column of each expert and its SwiGLU: as one GEMM of both weights in several tiles, of which one has two
#   CTAs of an SM, and as two GEMMs and an elementwise kernel. Experts have fewer rows than those behind them; two have none.
# gates.sh run FOLDER: on a machine with a Hopper GPU, verifies and times each of them. Inputs are those of a layer
#   (--dist layer): with sums of several hundred, half of the exponentials of gates are infinite, and divisions by
#   infinity take a subroutine.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
experts=32 n=2944 k=2880 rows="64 256 512 4096"

# The first row of each expert, and the end of the last.
offsets_of() {
  awk -v rows="$1" -v experts=$experts 'BEGIN {
    for (i = 0; i <= experts; ++i) {
      share = i < 2 ? 0 : (i - 2) / (experts - 2)
      printf "%s%d", i ? ", " : "", int(rows * share ^ 1.3)
    }
  }'
}

# gate FIRST SECOND: limits both as gpt-oss does, then (up + 1) * gate * sigmoid(1.702 gate), as %y.
gate() {
  cat <<X
    %limit = arith.constant 7.0 : f32
    %least = arith.constant -7.0 : f32
    %one = arith.constant 1.0 : f32
    %slope = arith.constant -1.702 : f32
    %g = arith.minimumf $1, %limit : f32
    %below = arith.minimumf $2, %limit : f32
    %u = arith.maximumf %below, %least : f32
    %scaled = arith.mulf %g, %slope : f32
    %e = math.exp %scaled : f32
    %sum = arith.addf %e, %one : f32
    %glu = arith.divf %g, %sum : f32
    %more = arith.addf %u, %one : f32
    %gated = arith.mulf %glu, %more : f32
    %y = arith.truncf %gated : f32 to bf16
X
}

# write_fused FILE M, write_parts FILE M: the layer of M rows as one GEMM, and as two and what follows them.
types_of() {
  weights="tensor<$((experts * n / 128))x$((k / 64))x4352xi8, #fp4.weight_layout<wgmma>>"
  x="tensor<${1}x${k}xbf16>" y="tensor<${1}x${n}xbf16>" bias="tensor<${experts}x1x${n}xbf16>"
  offsets="tensor<$((experts + 1))xi64>"
  attributes="{work = #fp4.work<expected_rows = $((($1 + experts - 1) / experts)), unspecified_rows>}"
  begin="func.func @gates(%x: $x, %w: $weights, %v: $weights, %a: $bias, %b: $bias) -> $y {
  %o = arith.constant dense<[$(offsets_of "$1")]> : $offsets"
}
write_fused() {
  types_of "$2"
  cat >"$1" <<X
$begin
  %r = fp4.matmul %x, %w with %v offsets %o epilogue(%a, %b) {
  ^bb0(%s: f32, %t: f32, %c: bf16, %d: bf16):
    %cw = arith.extf %c : bf16 to f32
    %dw = arith.extf %d : bf16 to f32
    %first = arith.addf %s, %cw : f32
    %second = arith.addf %t, %dw : f32
$(gate %first %second)
    fp4.yield %y : bf16
  } $attributes : ($x, $weights, $weights, $offsets, $bias, $bias) -> $y
  return %r : $y
}
X
}
write_parts() {
  types_of "$2"
  local product="epilogue(%BIAS) {
  ^bb0(%s: f32, %c: bf16):
    %cw = arith.extf %c : bf16 to f32
    %biased = arith.addf %s, %cw : f32
    %z = arith.truncf %biased : f32 to bf16
    fp4.yield %z : bf16
  } $attributes : ($x, $weights, $offsets, $bias) -> $y"
  cat >"$1" <<X
#all = affine_map<(i, j) -> (i, j)>
$begin
  %p = fp4.matmul %x, %w offsets %o ${product/BIAS/a}
  %q = fp4.matmul %x, %v offsets %o ${product/BIAS/b}
  %empty = tensor.empty() : $y
  %r = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : $y, $y) outs(%empty : $y) {
  ^bb0(%c: bf16, %d: bf16, %old: bf16):
    %first = arith.extf %c : bf16 to f32
    %second = arith.extf %d : bf16 to f32
$(gate %first %second)
    linalg.yield %y : bf16
  } -> $y
  return %r : $y
}
X
}

if [ "$1" = pack ]; then
  begin_pack "$2" "$3"
  for m in $rows; do
    write_fused "$folder/gates_$m.mlir" "$m"
    write_parts "$folder/gates_${m}_parts.mlir" "$m"
    emit "gates_$m" "gates_$m" || exit
    emit "gates_${m}_parts" "gates_${m}_parts" || exit
    for tile in "8, 128, 256" "16, 128, 256" "32, 128, 256" "64, 128, 256" "128, 128, 128"; do
      emit "gates_$m" "gates_${m}_tile${tile%%,*}" --plan "tile_gemm, tile = [$tile]" || exit
    done
    emit "gates_$m" "gates_${m}_tile32_two" --plan "tile_gemm, tile = [32, 128, 256], ctas_per_sm = 2" || exit
  done
  exit
fi
cd "$2" || exit
for library in gates_*.so; do
  measure "${library%.so}" "${library%.so}" --dist layer
done
