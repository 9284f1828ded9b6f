// Strided results of FP8 with f32 scales.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=fp8 --shape=70 --check=strict --policy=random | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

func.func @fp8(%a: tensor<?x272xf8E4M3FN>, %s: tensor<?x3xf32>, %b: tensor<72x272xf8E4M3FN>, %t: tensor<1x3xf32>)
    -> (tensor<?x72xbf16> {fp4.strided}) {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t {format = #fp4.format<fp8_block128>}
      : (tensor<?x272xf8E4M3FN>, tensor<?x3xf32>, tensor<72x272xf8E4M3FN>, tensor<1x3xf32>) -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}
