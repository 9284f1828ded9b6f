// REQUIRES: ptxas
// Small M with a pre-dequantized lhs: the two CTAs of a cluster each store what they have added, in lines of 128 bytes.
// RUN: fp4-runner %s --device=sim --target=sm_90a --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --check=strict --policy=lazy --dist=adversarial | FileCheck %s
// CHECK: kernels 2 launched
// CHECK: y {{.*}}equals the reference, bit for bit
// CHECK: hazards {{.*}}none (strict check)
!a = tensor<60x3584xf4E2M1FN>
!sa = tensor<60x112xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!b = tensor<200x3584xf4E2M1FN>
!sb = tensor<200x112xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, !a, !sa>
!rhs = !fp4.scaled<mxfp4, !b, !sb>
func.func @few(%x: !a, %sx: !sa, %w: !b, %sw: !sb, %bias: tensor<1x200xf32>) -> (tensor<60x200xbf16> {fp4.name = "y", fp4.strided}) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled epilogue(%bias) {
  ^bb0(%v: f32, %c: f32):
    %sum = arith.addf %v, %c : f32
    %z = arith.truncf %sum : f32 to bf16
    fp4.yield %z : bf16
  } {work = #fp4.work<split_k = 2>} : (!lhs, !rhs, tensor<1x200xf32>) -> tensor<60x200xbf16>
  return %y : tensor<60x200xbf16>
}
