// Elements of 8 bits with 4 beside them: a target that converts operands, one whose warps make bytes of 4 bits,
// and one whose TMA spreads them.
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --fp4-plan-kernels | FileCheck %s --check-prefix=HOPPER
// HOPPER: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*}}orientation = swapped>, tile = [128, 64, 128]
// RUN: fp4-opt %s --fp4-set-target=target=sm_120a --fp4-plan-kernels | FileCheck %s --check-prefix=WARPS
// WARPS: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*>}}, tile = [{{[0-9]+, [0-9]+}}, 128]
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --fp4-plan-kernels | FileCheck %s
// CHECK: fp4.plan = #fp4.plan<tile_gemm, route = {{<[^>]*}}orientation = swapped>, tile = [128, {{[0-9]+}}, 128]

!lhs = !fp4.scaled<mxfp8_e4m3, tensor<64x256xf8E4M3FN>,
                   tensor<64x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<96x256xf4E2M1FN>,
                   tensor<96x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @mixed(%a: tensor<64x256xf8E4M3FN>, %sa: tensor<64x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                 %b: tensor<96x256xf4E2M1FN>, %sb: tensor<96x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<64x96xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<64x96xbf16>
  return %y : tensor<64x96xbf16>
}
