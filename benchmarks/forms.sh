#!/usr/bin/env bash
# forms.sh pack BUILD FOLDER: compiles for sm_90a into FOLDER the same work in several forms: GEMMs whose
#   N and K are dynamic beside static ones (any_FORMAT, known_FORMAT_MxNxK); a gated layer of two GEMMs and
#   its MXFP4 quantizer in one kernel, as the plan has it and with operands that are not swapped, beside what it
#   consists of (gated_M, straight_M, one_M, joined_M); and groups beside one GEMM of as many rows
#   (groups_FORMAT, whole_FORMAT).
# forms.sh run FOLDER [PATTERN]: on a machine with a Hopper GPU, verifies each of them, or those whose names
#   match, and times them in three rounds. One line per measurement: microseconds, SM clock and power.
# forms.sh predict FOLDER [PATTERN]: the same in the simulator, on any machine, once and without results.
set -uo pipefail
source "$(dirname "$0")"/measuring.sh
shapes="64x7168x2048 128x4096x7168 1024x4096x4096 2048x4096x2048"
tiled='#fp4.scale_layout<tiled_128x4>'

blocks() { [ "$1" = '?' ] && echo '?' || echo $((($1 + $2 - 1) / $2)); }

# types FORMAT M N K [GROUPS]: sets a, s, b, t and y, the types of operands, scales and result; sizes may be ?.
types() {
  local m=$2 n=$3 k=$4 groups=${5:-1}
  case $1 in
  nvfp4) local block=16 rows=1 scale="f8E4M3FN, $tiled" data=f4E2M1FN ;;
  mxfp4) local block=32 rows=1 scale="f8E8M0FNU, $tiled" data=f4E2M1FN ;;
  fp8_block128) local block=128 rows=128 scale=f32 data=f8E4M3FN ;;
  esac
  a="tensor<${m}x${k}x$data>" y="tensor<${m}x${n}xbf16>"
  s="tensor<${m}x$(blocks "$k" $block)x$scale>" t="tensor<$(blocks "$n" $rows)x$(blocks "$k" $block)x$scale>"
  b="tensor<${n}x${k}x$data>"
  [ "$groups" = 1 ] && return
  b="tensor<$((groups * n))x${k}x$data>"
  if [ $rows = 1 ]; then # lists of tiles of 128 rows and 4 blocks
    s="tensor<$((m * k / block / 4))x4x$scale>" t="tensor<$((groups * n * k / block / 4))x4x$scale>"
  else
    t="tensor<$((groups * n / rows))x$((k / block))x$scale>"
  fi
}

# any FORMAT: a GEMM of any sizes.
any() {
  types "$1" '?' '?' '?'
  local block=16 rows=
  [ "$1" = nvfp4 ] || block=128 rows=/128
  cat <<X
func.func @product(%a: $a {fp4.dims = ["M", "K"]}, %s: $s {fp4.dims = ["M", "K/$block"]},
    %b: $b {fp4.dims = ["N", "K"]}, %t: $t {fp4.dims = ["N$rows", "K/$block"]}) -> $y {
  %lhs = fp4.scaled %a, %s : !fp4.scaled<$1, $a, $s>
  %rhs = fp4.scaled %b, %t : !fp4.scaled<$1, $b, $t>
  %y = fp4.matmul %lhs, %rhs : (!fp4.scaled<$1, $a, $s>, !fp4.scaled<$1, $b, $t>) -> $y
  return %y : $y
}
X
}

# product FORMAT M N K [ATTRIBUTE GROUPS]: a function with one GEMM.
product() {
  types "$1" "$2" "$3" "$4" "${6:-1}"
  cat <<X
func.func @product(%a: $a, %s: $s, %b: $b, %t: $t) -> $y {
  %lhs = fp4.scaled %a, %s : !fp4.scaled<$1, $a, $s>
  %rhs = fp4.scaled %b, %t : !fp4.scaled<$1, $b, $t>
  %y = fp4.matmul %lhs, %rhs {${5:-}} : (!fp4.scaled<$1, $a, $s>, !fp4.scaled<$1, $b, $t>) -> $y
  return %y : $y
}
X
}

# gated M N K: a dual GEMM whose results are multiplied, in MXFP4 with tiled scales.
gated() {
  types mxfp4 "$@"
  local q="tensor<$1x$2xf4E2M1FN>" r="tensor<$1x$(($2 / 32))xf8E8M0FNU, $tiled>"
  cat <<X
!lhs = !fp4.scaled<mxfp4, $a, $s>
!rhs = !fp4.scaled<mxfp4, $b, $t>
func.func @gated(%a: $a, %s: $s, %b: $b, %t: $t, %d: $b, %u: $t) -> ($q, $r) {
  %lhs = fp4.scaled %a, %s : !lhs
  %rhs = fp4.scaled %b, %t : !rhs
  %second = fp4.scaled %d, %u : !rhs
  %q, %r = fp4.matmul %lhs, %rhs with %second epilogue() {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    %z = arith.truncf %p : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_rceil>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!lhs, !rhs, !rhs) -> ($q, $r)
  return %q, %r : $q, $r
}
X
}

# joined M N: two matrices, multiplied, in MXFP4 with tiled scales.
joined() {
  local v="tensor<$1x$2xbf16>" q="tensor<$1x$2xf4E2M1FN>" scales="$1x$(($2 / 32))xf8E8M0FNU"
  cat <<X
func.func @joined(%x: $v, %y: $v) -> ($q, tensor<$scales, $tiled>) {
  %p = arith.mulf %x, %y : $v
  %q, %l = fp4.quantize %p {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>} : ($v) -> ($q, tensor<$scales>)
  %r = fp4.swizzle_scales %l : tensor<$scales> -> tensor<$scales, $tiled>
  return %q, %r : $q, tensor<$scales, $tiled>
}
X
}

# write NAME [OPTIONS...]: NAME.mlir from standard input, and its library.
write() {
  cat >"$folder/$1.mlir"
  emit "$1" "$1" "${@:2}" || exit
}

if [ "$1" = pack ]; then
  begin_pack "$2" "$3"
  for format in nvfp4 fp8_block128; do
    any $format | write any_$format
    for shape in $shapes; do
      product $format ${shape//x/ } | write known_${format}_"$shape"
    done
    product $format 2048 2048 2048 | write whole_$format
    product $format 2048 2048 2048 "work = #fp4.work<groups = [512, 512, 512, 512]>" 4 | write groups_$format
  done
  for m in 64 256 1024; do
    gated $m 4096 4096 | write gated_$m
    gated $m 4096 4096 | write straight_$m --plan "tile_gemm, tile = [128, 128, 128]"
    product mxfp4 $m 4096 4096 | write one_$m
    joined $m 4096 | write joined_$m
  done
  exit
fi
# predict LABEL LIBRARY [OPTIONS...]: what the simulator says of LIBRARY.so, a line for each kernel.
predict() {
  ./fp4-run "$2.so" --device sim --time-only "${@:3}" 2>&1 | grep -E ': predicted|error:' | sed "s/^/$1 /"
}

cd "$2" || exit
verb=measure rounds='1 2 3' pattern=${3:-.}
[ "$1" = predict ] && verb=predict rounds=1
for round in $rounds; do
  for library in *.so; do
    name=${library%.so}
    [[ $name =~ $pattern ]] || continue
    if [[ $name != any_* ]]; then
      $verb "$round $name" "$name"
      continue
    fi
    for shape in $shapes; do
      IFS=x read -r m n k <<<"$shape"
      $verb "$round $name $shape" "$name" --dim M="$m" --dim N="$n" --dim K="$k"
    done
  done
done
