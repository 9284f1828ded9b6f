// Plans that a dual GEMM with quantized results cannot have, each named with what it is.
// RUN: sed s/PLAN/tile=[128,256,256]/ %s | not fp4-opt -fp4-set-target -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: sed s/PLAN/tile=[128,96,256]/ %s | not fp4-opt -fp4-set-target -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/PLAN/store = tma/' %s | not fp4-opt -fp4-set-target -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=STORE
// RUN: sed 's/PLAN/route = <orientation = swapped>/' %s | not fp4-opt -fp4-set-target -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=SWAP
// RUN: sed s/PLAN/tile=[128,128,128]/ %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed s/PLAN/tile=[256,128,128]/ %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TALL
// RUN: sed 's/PLAN/route = <orientation = swapped>/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/PLAN/route = <orientation = swapped>, tile=[128,128,128]/' %s | fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels -o /dev/null
// RUN: sed 's/PLAN/route = <orientation = swapped>, tile=[256,128,128]/' %s | not fp4-opt -fp4-set-target=target=sm_90a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: sed s/PLAN/tile=[128,64,128]/ %s | fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels -o /dev/null
// RUN: sed s/PLAN/tile=[64,64,128]/ %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed s/PLAN/tile=[128,128,128]/ %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/PLAN/tile=[128,64,128], roles=#pipe.role_plan<load warps 2 to 3 drives [tma], math warps 0 to 2 drives [tensor, threads]>/' %s | not fp4-opt -fp4-set-target=target=sm_120a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ROLES
// RUN: sed s/PLAN/tile=[128,128,256]/ %s | fp4-opt -fp4-set-target -fp4-plan-kernels -o /dev/null
// RUN: sed s/PLAN/tile=[128,64,256]/ %s | fp4-opt -fp4-set-target -fp4-plan-kernels -o /dev/null

// WIDE: error: {{.*}}must have a plan whose 'tile' is [128, n, k] with n = 64 or 128 and k a multiple of 256, but got
// STORE: error: {{.*}}must have a plan whose 'store' is direct where more than the elements is a result, but got tma
// SWAP: error: {{.*}}route <orientation = swapped> is none of target 'sm_100a' for GEMMs of elements of 4 bits with scales, with 'rhs2', results but the elements
// TALL: error: {{.*}}must have a plan whose 'tile' is [128, 128, 128] or, for up to 64 columns, [128, 64, 128] of a dual GEMM, and of one that quantizes its elements or has the amax of f32, but got [256, 128, 128]
// AHEAD: error: {{.*}}must have a plan whose 'tile' is, with swapped operands and 128 rows, [128, 128, 128] of a dual GEMM, and of one that derives results from elements of f32, but got [256, 128, 128]
// ROWS: error: {{.*}}must have a plan whose 'tile' is [m, n, k] with m = 128, whose rows threads quantize, n = 64, 128 or 256, m * n up to 8192 and k = 128 or 256, but got
// ROLES: error: {{.*}}must have a plan whose 'roles' quantize rows of 64 columns with 4 or 8 warps for tensor, from a multiple of 4 on, but got 2 from 0
!e = tensor<64x256xf4E2M1FN>
!s = tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !e, !s>
func.func @f(%a: !e, %s: !s, %amax: tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %q, %t = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue(%amax) {
  ^bb0(%x: f32, %y: f32, %amax_in: f32):
    %code, %scale = fp4.epilogue_quantize %x amax %amax_in {recipe = #fp4.recipe<transformer_engine>}
        : (f32, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } {fp4.plan = #fp4.plan<tile_gemm, PLAN>}
      : (!operand, !operand, !operand, tensor<f32>)
      -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %t : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}
