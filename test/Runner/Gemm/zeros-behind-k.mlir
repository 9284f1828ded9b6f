// A sum below the smallest number is -0, and an instruction that multiplies zeros behind K makes +0 of it. The
// instructions of a kernel there depend on its target and its operands, and on no plan.
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=wide | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=wide | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=wide | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=whole | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=plain | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a --function=plain | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=plain | FileCheck %s
// CHECK: y {{.*}}equals the {{.*}} model, bit for bit

!s = tensor<16x3xf8E8M0FNU>
!t = tensor<16x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp8_e4m3, tensor<16x96xf8E4M3FN>, !t>
func.func @wide() -> (tensor<16x16xf32> {fp4.name = "y"}) {
  %a = arith.constant dense<1.0> : tensor<16x96xf8E4M3FN>
  %b = arith.constant dense<-1.0> : tensor<16x96xf8E4M3FN>
  %s = arith.constant dense<0x31> : !s
  %t = fp4.swizzle_scales %s : !s -> !t
  %a_scaled = fp4.scaled %a, %t : !operand
  %b_scaled = fp4.scaled %b, %t : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// K has whole tiles.
!s4 = tensor<16x4xf8E8M0FNU>
!t4 = tensor<16x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand2 = !fp4.scaled<mxfp8_e4m3, tensor<16x128xf8E4M3FN>, !t4>
func.func @whole() -> (tensor<16x16xf32> {fp4.name = "y"}) {
  %a = arith.constant dense<1.0> : tensor<16x128xf8E4M3FN>
  %b = arith.constant dense<-1.0> : tensor<16x128xf8E4M3FN>
  %s = arith.constant dense<0x31> : !s4
  %t = fp4.swizzle_scales %s : !s4 -> !t4
  %a_scaled = fp4.scaled %a, %t : !operand2
  %b_scaled = fp4.scaled %b, %t : !operand2
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand2, !operand2) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// bf16 of -2^-98 beside weights of 2^-60.
!w = tensor<128x64xf4E2M1FN>
!sw = tensor<128x2xf8E8M0FNU>
!tw = tensor<128x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !w, !tw>
func.func @plain() -> (tensor<16x128xf32> {fp4.name = "y"}) {
  %x = arith.constant dense<0x8E80> : tensor<16x64xbf16>
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<0x43> : !sw
  %t = fp4.swizzle_scales %s : !sw -> !tw
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled : (tensor<16x64xbf16>, !rhs) -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}
