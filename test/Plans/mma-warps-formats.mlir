// GEMMs that copy no scales to tensor memory have one warp that multiplies, and no field 'mma_warps'. GEMMs of e4m3
// and weights copy scales.
// RUN: split-file %s %t
// RUN: fp4-opt %t/scaled.mlir -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s
// RUN: not fp4-opt %t/lanes.mlir -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp4-opt %t/weights.mlir -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=NONE
// CHECK: mma_warps = 1, {{.*}}mma warps 4 to 5 drives [tensor, scale_copy]
// NONE: error: {{.*}}must have a plan without 'mma_warps', which route {{<.*>}} does not read

//--- scaled.mlir
!x = tensor<128x256xf8E4M3FN>
!w = tensor<256x256xf4E2M1FN>
!t = tensor<256x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !w, !t>
func.func @f(%x: !x, %w: !w, %t: !t) -> tensor<128x256xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, mma_warps = 1>}
      : (!x, !rhs) -> tensor<128x256xbf16>
  return %y : tensor<128x256xbf16>
}

//--- lanes.mlir
!lhs = !fp4.scaled<fp8_block128, tensor<128x256xf8E4M3FN>, tensor<128x2xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x256xf8E4M3FN>, tensor<2x2xf32>>
func.func @f(%a: tensor<128x256xf8E4M3FN>, %s: tensor<128x2xf32>, %b: tensor<256x256xf8E4M3FN>, %t: tensor<2x2xf32>) -> tensor<128x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, mma_warps = 1>}
      : (!lhs, !rhs) -> tensor<128x256xbf16>
  return %y : tensor<128x256xbf16>
}

//--- weights.mlir
!w = tensor<256x256xf4E2M1FN>
!t = tensor<256x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !w, !t>
func.func @f(%x: tensor<128x256xbf16>, %w: !w, %t: !t) -> tensor<128x256xbf16> {
  %w_scaled = fp4.scaled %w, %t : !rhs
  %y = fp4.matmul %x, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, mma_warps = 1>}
      : (tensor<128x256xbf16>, !rhs) -> tensor<128x256xbf16>
  return %y : tensor<128x256xbf16>
}
