// Prepacked weights have no zeros behind their K (see zeros-behind-k.mlir): no instruction multiplies what is there.
// RUN: fp4-runner %s --device=sim --target=sm_90a | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --plan "tile_gemm, tile = [64, 128, 128]" | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_120a | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --plan "tile_gemm, tile = [16, 128, 128]" | FileCheck %s
// CHECK: y {{.*}}equals the {{.*}} model, bit for bit

!w = tensor<128x64xf4E2M1FN>
!sw = tensor<128x2xf8E8M0FNU>
!p = tensor<1x1x4352xi8, #fp4.weight_layout<wgmma>>
func.func @weights() -> (tensor<16x128xf32> {fp4.name = "y"}) {
  %x = arith.constant dense<0x8E80> : tensor<16x64xbf16>
  %w = arith.constant dense<1.0> : !w
  %s = arith.constant dense<0x43> : !sw
  %p = fp4.prepack %w scaled %s {format = #fp4.format<mxfp4>} : (!w, !sw) -> !p
  %y = fp4.matmul %x, %p : (tensor<16x64xbf16>, !p) -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}
