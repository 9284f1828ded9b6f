// RUN: fp4-runner %s --dist=adversarial --seed=4 --function=overflows | FileCheck %s
// RUN: fp4-runner %s --dist=gaussian --seed=4 --function=overflows | FileCheck %s --check-prefix=SMALL

// Scales near 2^127 on both sides: a partial sum of the GEMM passes fp32's range, where the
// accumulator becomes infinite and stays so, though the exact sum is finite. The bound of the exact
// sum must allow that, and the result is right.

// With relu an element that became -infinity is zero.
// RUN: fp4-runner %s --dist=adversarial --seed=6 --function=clamped | FileCheck %s

!lhs = !fp4.scaled<mxfp4, tensor<64x192xf4E2M1FN>,
                   tensor<64x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<192x192xf4E2M1FN>,
                   tensor<192x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// SMALL: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound; largest error {{[0-9.]+}}
func.func @overflows(%x: tensor<64x192xbf16>, %q: tensor<192x192xf4E2M1FN>,
                     %s: tensor<192x6xf8E8M0FNU>) -> (tensor<64x192xf32> {fp4.name = "y"}) {
  %a, %sa = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<64x192xbf16>) -> (tensor<64x192xf4E2M1FN>, tensor<64x6xf8E8M0FNU>)
  %ta = fp4.swizzle_scales %sa
      : tensor<64x6xf8E8M0FNU> -> tensor<64x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %ts = fp4.swizzle_scales %s
      : tensor<192x6xf8E8M0FNU> -> tensor<192x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %ta : !lhs
  %q_scaled = fp4.scaled %q, %ts : !rhs
  %y = fp4.matmul %a_scaled, %q_scaled : (!lhs, !rhs) -> tensor<64x192xf32>
  return %y : tensor<64x192xf32>
}
func.func @clamped(%x: tensor<64x192xbf16>, %q: tensor<192x192xf4E2M1FN>,
                     %s: tensor<192x6xf8E8M0FNU>) -> (tensor<64x192xf32> {fp4.name = "y"}) {
  %a, %sa = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<64x192xbf16>) -> (tensor<64x192xf4E2M1FN>, tensor<64x6xf8E8M0FNU>)
  %ta = fp4.swizzle_scales %sa
      : tensor<64x6xf8E8M0FNU> -> tensor<64x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %ts = fp4.swizzle_scales %s
      : tensor<192x6xf8E8M0FNU> -> tensor<192x6xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %ta : !lhs
  %q_scaled = fp4.scaled %q, %ts : !rhs
  %y = fp4.matmul %a_scaled, %q_scaled {epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs) -> tensor<64x192xf32>
  return %y : tensor<64x192xf32>
}
