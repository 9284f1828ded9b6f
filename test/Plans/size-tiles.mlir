// Plans by waves of GEMMs of any N and K have tiles that the GEMM may have: where rows are quantized, columns of
// whole words of four scales, and rows for all threads; of 16-bit floats beside weights, those of their own family.

// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s --check-prefix=LANES
// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s --check-prefix=WARPS
// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s --check-prefix=ROWS

// One SM has no place for a pair of CTAs, and plans by waves all the same.
// RUN: %fp4-opt-once %s "-fp4-set-target=target=sm_100a sms=1" -fp4-plan-kernels | FileCheck %s --check-prefix=ALONE
// ALONE-LABEL: func.func @codes
// ALONE: tile_gemm, route = {{<[^>]*>}}, tile = [{{128|256}}, {{.*}}, 256]

// LANES-LABEL: func.func @codes
// LANES: dispatch = [#fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [256, 256, 256]
// LANES-SAME: epilogue_warps = 8
// LANES-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 256]
// LANES-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [256, 128, 256]
// LANES-NOT: tile_gemm
// WARPS-LABEL: func.func @codes
// WARPS-NOT: dispatch
// WARPS: tile = [128, 64, 128]
// ROWS-LABEL: func.func @codes
// ROWS-NOT: wave_cost
// ROWS: tile = [128, 128, 128]
!c = tensor<?x?xf4E2M1FN>
!e = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !e>
func.func @codes(%a: !c, %sa: !e, %b: !c, %sb: !e) -> (!c, !e) {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %q, %s = fp4.matmul %a_scaled, %b_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand) -> (!c, !e)
  return %q, %s : !c, !e
}

// LANES-LABEL: func.func @floats
// LANES: dispatch
// LANES-SAME: tile = [16, 128, 128]
// LANES-SAME: wave_cost
// LANES-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [64, 128, 128]
// WARPS-LABEL: func.func @floats
// WARPS: dispatch
// WARPS-SAME: tile = [8, 128, 128]
// WARPS-SAME: #fp4.case<any : tile_gemm, route = {{<[^>]*>}}, tile = [32, 128, 128]
// No model says what these tiles cost beside each other.
// ROWS-LABEL: func.func @floats
// ROWS: dispatch = [#fp4.case<m = [1, 8] : tile_gemm, route = {{<[^>]*>}}, tile = [8, 128, 128]
// ROWS-NOT: wave_cost
func.func @floats(%a: tensor<?x?xbf16>, %b: !c, %sb: !e) -> tensor<?x?xbf16> {
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a, %b_scaled : (tensor<?x?xbf16>, !operand) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
