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
!lhs = !fp4.scaled<nvfp4, !q, !s>
!rhs = !fp4.scaled<nvfp4, !w, !s>
func.func @groups(%q: !q, %s: !s, %w: !w, %t: !s) -> tensor<40x24xf32> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled {work = #fp4.work<groups = [30, 10]>}
      : (!lhs, !rhs) -> tensor<40x24xf32>
  return %y : tensor<40x24xf32>
}

// The scales of a second rhs too: 3 blocks.
!a = tensor<64x96xf4E2M1FN>
!b = tensor<192x96xf4E2M1FN>
!e = tensor<128x4xf8E8M0FNU, #tiled>
!f = tensor<256x4xf8E8M0FNU, #tiled>
!lhs2 = !fp4.scaled<mxfp4, !a, !e>
!rhs2 = !fp4.scaled<mxfp4, !b, !f>
func.func @gate(%a: !a, %s: !e, %b: !b, %t: !f, %c: !b, %u: !f) -> tensor<64x192xf32> {
  %a_scaled = fp4.scaled %a, %s : !lhs2
  %b_scaled = fp4.scaled %b, %t : !rhs2
  %c_scaled = fp4.scaled %c, %u : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled with %c_scaled epilogue() {
  ^bb0(%x: f32, %g: f32):
    fp4.yield %g : f32
  } {work = #fp4.work<groups = [64]>} : (!lhs2, !rhs2, !rhs2) -> tensor<64x192xf32>
  return %y : tensor<64x192xf32>
}
