// Tiles of weights beside floats where warps multiply, on 170 SMs with 99 KB of shared memory each.
// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s

!p = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>
!w = tensor<8192x8192xf4E2M1FN>
!s = tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

// Tiles of half as many rows occupy twice as many SMs.
// CHECK-LABEL: @rows16
// CHECK: tile = [8, 128, 128], {{.*}} ctas_per_sm = 1{{[,>]}}
func.func @rows16(%x: tensor<16x8192xbf16>, %p: !p) -> tensor<16x8192xbf16> {
  %y = fp4.matmul %x, %p : (tensor<16x8192xbf16>, !p) -> tensor<16x8192xbf16>
  return %y : tensor<16x8192xbf16>
}
// Split-K does so without loading weights twice, two CTAs beside each other.
// CHECK-LABEL: @ranges16
// CHECK: tile = [16, 128, 128], {{.*}} ctas_per_sm = 2{{[,>]}}
func.func @ranges16(%x: tensor<16x8192xbf16>, %p: !p) -> tensor<16x8192xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 5>}
      : (tensor<16x8192xbf16>, !p) -> tensor<16x8192xbf16>
  return %y : tensor<16x8192xbf16>
}
// CHECK-LABEL: @rows64
// CHECK: tile = [32, 128, 128], {{.*}} ctas_per_sm = 1{{[,>]}}
func.func @rows64(%x: tensor<64x8192xbf16>, %p: !p) -> tensor<64x8192xbf16> {
  %y = fp4.matmul %x, %p : (tensor<64x8192xbf16>, !p) -> tensor<64x8192xbf16>
  return %y : tensor<64x8192xbf16>
}
!rhs = !fp4.scaled<nvfp4, !w, !s>
// Plain weights beside 128 rows take the registers of warps that neither load nor multiply.
// CHECK-LABEL: @many
// CHECK: tile = [128, 128, 128], {{.*}} math warps 0 to 8 drives [tensor, threads] registers 240, clear
func.func @many(%x: tensor<4096x8192xbf16>, %w: !w, %s: !s) -> tensor<4096x8192xbf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled : (tensor<4096x8192xbf16>, !rhs) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}
// CHECK-LABEL: @packed
// CHECK: tile = [128, 128, 128], {{.*}} math warps 0 to 8 drives [tensor, threads] registers 240
func.func @packed(%x: tensor<4096x8192xbf16>, %p: !p) -> tensor<4096x8192xbf16> {
  %y = fp4.matmul %x, %p : (tensor<4096x8192xbf16>, !p) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}
