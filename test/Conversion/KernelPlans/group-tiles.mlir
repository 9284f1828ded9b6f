// Where sums are in registers, a plan counts the tiles of all groups: of many small ones they have few rows, where the instruction
// has as few, and equal groups have the tiles of a product alone.
// RUN: fp4-opt %s -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=SYNC
// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=WGMMA
// RUN: not fp4-opt %s -fp4-set-target=target=sm_90a "-fp4-plan-kernels=plans={tile_product, swap}" 2>&1 | FileCheck %s --check-prefix=SWAP
// SWAP: error: {{.*}}must have a plan whose 'swap' is left out for groups, but got it

!t = tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!u = tensor<4096x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
// SYNC-LABEL: func.func @few
// SYNC: tile = [16, {{[0-9]+}}, 128]
// WGMMA-LABEL: func.func @few
// WGMMA: tile = [128, 128, 128], {{.*}}resident = 1>
func.func @few(%a: tensor<16x128xf4E2M1FN>, %sa: !u, %b: tensor<4096x128xf4E2M1FN>, %sb: !t) -> tensor<16x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<nvfp4>, groups = array<i64: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>}
      : (tensor<16x128xf4E2M1FN>, !u, tensor<4096x128xf4E2M1FN>, !t) -> tensor<16x256xbf16>
  return %y : tensor<16x256xbf16>
}
