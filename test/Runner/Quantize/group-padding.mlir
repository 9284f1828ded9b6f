// Padding of tiled scales is zero (docs/reference/semantics.md), also that of the tiles of groups, whose type does not tell how many blocks
// a row has: 5 here, in two tiles. Block scales of the distribution "adversarial" are any bytes, such as NaN.
// RUN: fp4-runner %s --function=groups --dist=adversarial --check=strict | FileCheck %s
// RUN: fp4-runner %s --function=groups --dist=adversarial --seed=2 --check=strict | FileCheck %s
// RUN: fp4-runner %s --function=gate --dist=adversarial --check=strict | FileCheck %s --check-prefix=GATE
// RUN: fp4-runner %s --function=gate --dist=adversarial --seed=3 --check=strict | FileCheck %s --check-prefix=GATE
// CHECK: r0 {{.*}} equals the tcgen05 model, bit for bit
// GATE: r0 {{.*}} equals the reference, bit for bit

#tiled = #fp4.scale_layout<tiled_128x4>
!q = tensor<40x80xf4E2M1FN>
!s = tensor<512x4xf8E4M3FN, #tiled>
!w = tensor<48x80xf4E2M1FN>
func.func @groups(%q: !q, %s: !s, %w: !w, %t: !s) -> tensor<40x24xf32> {
  %y = fp4.blockscaled_matmul %q scaled %s, %w scaled %t {format = #fp4.format<nvfp4>, groups = array<i64: 30, 10>}
      : (!q, !s, !w, !s) -> tensor<40x24xf32>
  return %y : tensor<40x24xf32>
}

// The scales of a second rhs too: 3 blocks.
!a = tensor<64x96xf4E2M1FN>
!b = tensor<192x96xf4E2M1FN>
!e = tensor<128x4xf8E8M0FNU, #tiled>
!f = tensor<256x4xf8E8M0FNU, #tiled>
func.func @gate(%a: !a, %s: !e, %b: !b, %t: !f, %c: !b, %u: !f) -> tensor<64x192xf32> {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t with %c scaled %u epilogue() {
  ^bb0(%x: f32, %g: f32):
    fp4.yield %g : f32
  } {format = #fp4.format<mxfp4>, groups = array<i64: 64>} : (!a, !e, !b, !f, !b, !f) -> tensor<64x192xf32>
  return %y : tensor<64x192xf32>
}
