// FP8 with f32 scales, and 16-bit floats with prepacked weights, whose rows their caller places.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=fp8 --shape=70 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=floats --shape=19 --check=strict --policy=delay | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=floats --shape=150 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=residual --shape=70 --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!lhs = !fp4.scaled<fp8_block128, tensor<?x272xf8E4M3FN>, tensor<?x3xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<72x272xf8E4M3FN>, tensor<1x3xf32>>
func.func @fp8(%a: tensor<?x272xf8E4M3FN> {fp4.strided}, %s: tensor<?x3xf32>,
               %b: tensor<72x272xf8E4M3FN> {fp4.strided}, %t: tensor<1x3xf32>) -> tensor<?x72xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

func.func @floats(%a: tensor<?x128xbf16> {fp4.strided},
                  %b: tensor<128x128xf4E2M1FN>, %t: tensor<128x8xf8E4M3FN>) -> tensor<?x128xbf16> {
  %w = fp4.prepack %b scaled %t {format = #fp4.format<nvfp4>}
      : (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) -> tensor<1x2x4608xi8, #fp4.weight_layout<wgmma>>
  %y = fp4.matmul %a, %w
      : (tensor<?x128xbf16>, tensor<1x2x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x128xbf16>
  return %y : tensor<?x128xbf16>
}

// The GEMM reads its rows where they are, and its epilogue reads them from a copy.
func.func @residual(%a: tensor<?x128xbf16> {fp4.strided},
                    %b: tensor<128x128xf4E2M1FN>, %t: tensor<128x8xf8E4M3FN>) -> tensor<?x128xbf16> {
  %w = fp4.prepack %b scaled %t {format = #fp4.format<nvfp4>}
      : (tensor<128x128xf4E2M1FN>, tensor<128x8xf8E4M3FN>) -> tensor<1x2x4608xi8, #fp4.weight_layout<wgmma>>
  %y = fp4.matmul %a, %w
      : (tensor<?x128xbf16>, tensor<1x2x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x128xbf16>
  %r = arith.addf %y, %a : tensor<?x128xbf16>
  return %r : tensor<?x128xbf16>
}
