// Costs of GEMMs by threads in PTX, for 32 elements of a row of the lhs and of four of the rhs, twice.
// RUN: fp4-runner %s --emit=ptx | FileCheck %s --check-prefixes=CHECK,SM100
// RUN: fp4-runner %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefixes=CHECK,SM90

// With conversions to f16: one for two codes, of bytes that a word is taken apart into, and one fma for two
// products but the first ones. Without: two permutations for four codes, and dp4a adds four products.
// CHECK-LABEL:     ---- dots_dots_0
// SM100-NOT:       dp4a
// SM90-NOT:        e2m1x2
// SM100-COUNT-2:   cvt.rn.f16x2.e4m3x2
// SM100:           mov.b32 {%e0, %e1, %e2, %e3}
// SM100-COUNT-4:   cvt.rn.f16x2.e2m1x2
// SM100:           mul.rn.f16x2
// SM100-COUNT-7:   fma.rn.f16x2
// SM90-COUNT-2:    prmt.b32
// SM90:            dp4a.u32.s32
// CHECK:           ret;
!s = tensor<1x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<128x128xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<1x2048xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<128x2048xf4E2M1FN>, !t>
func.func @dots(%a: tensor<1x2048xf4E2M1FN>, %sa: !s, %b: tensor<128x2048xf4E2M1FN>, %sb: !t) -> tensor<1x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<1x128xbf16>
  return %y : tensor<1x128xbf16>
}
