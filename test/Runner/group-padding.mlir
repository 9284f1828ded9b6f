// Padding of tiled scales is zero (Spec.md), also that of the tiles of groups, whose type does not tell how many blocks
// a row has: 5 here, in two tiles. Block scales of the distribution "adversarial" are any bytes, such as NaN.
// RUN: fp4-runner %s --dist=adversarial --check=strict | FileCheck %s
// RUN: fp4-runner %s --dist=adversarial --seed=2 --check=strict | FileCheck %s
// CHECK: r0 {{.*}} equals the tcgen05 model, bit for bit

#tiled = #fp4.scale_layout<tiled_128x4>
!q = tensor<40x80xf4E2M1FN>
!s = tensor<512x4xf8E4M3FN, #tiled>
!w = tensor<48x80xf4E2M1FN>
func.func @groups(%q: !q, %s: !s, %w: !w, %t: !s) -> tensor<40x24xf32> {
  %y = fp4.blockscaled_matmul %q scaled %s, %w scaled %t {format = #fp4.format<nvfp4>, groups = array<i64: 30, 10>}
      : (!q, !s, !w, !s) -> tensor<40x24xf32>
  return %y : tensor<40x24xf32>
}
