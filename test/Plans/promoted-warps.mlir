// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_120a -fp4-plan-kernels | FileCheck %s
// Plans of FP8 with f32 scales for mma.sync: eight warps have 64 columns of 128 rows, and four have 64 rows where no
// more exist. Few columns have narrow tiles, so that more SMs work.

!lhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<4096x56xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<32x56xf32>>
// CHECK-LABEL: func.func @rows
// CHECK: route = <core = mma_sync, a = as_is, b = as_is, accumulate = promote(128), orientation = normal>
// CHECK-SAME: tile = [128, 64, 128], {{.*}}roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>
func.func @rows(%a: tensor<4096x7168xf8E4M3FN>, %sa: tensor<4096x56xf32>, %b: tensor<4096x7168xf8E4M3FN>, %sb: tensor<32x56xf32>) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<40x7168xf8E4M3FN>, tensor<40x56xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<32x56xf32>>
// CHECK-LABEL: func.func @few
// CHECK: tile = [64, 32, 128], {{.*}}math warps 0 to 4
func.func @few(%a: tensor<40x7168xf8E4M3FN>, %sa: tensor<40x56xf32>, %b: tensor<4096x7168xf8E4M3FN>, %sb: tensor<32x56xf32>) -> tensor<40x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<40x4096xbf16>
  return %y : tensor<40x4096xbf16>
}

// -----

// Eight warps with the sums of two GEMMs, or that quantize, take registers of a warpgroup; blocks of 128 have their columns.
!lhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<4096x56xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<32x56xf32>>
// CHECK-LABEL: func.func @results
// CHECK: tile = [128, 64, 128], {{.*}}roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 8 drives [tensor, threads] registers 240, idle warps 9 to 12 drives [] registers 24>
// CHECK: tile = [128, 128, 128], {{.*}}math warps 0 to 8 drives [tensor, threads] registers 240
func.func @results(%x: tensor<4096x7168xf8E4M3FN>, %sx: tensor<4096x56xf32>, %w: tensor<4096x7168xf8E4M3FN>, %sw: tensor<32x56xf32>)
    -> (tensor<4096x4096xbf16>, tensor<4096x4096xf8E4M3FN>, tensor<4096x32xf32>) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled with %w_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %gated = arith.mulf %gate, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } : (!lhs, !rhs, !rhs) -> tensor<4096x4096xbf16>
  %c, %s = fp4.matmul %x_scaled, %w_scaled epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!lhs, !rhs) -> (tensor<4096x4096xf8E4M3FN>, tensor<4096x32xf32>)
  return %y, %c, %s : tensor<4096x4096xbf16>, tensor<4096x4096xf8E4M3FN>, tensor<4096x32xf32>
}
