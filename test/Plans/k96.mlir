// Instructions of K = 96: always pairs, with k tiles of three panels; sm_103a and sm_107a have them.
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --fp4-plan-kernels | FileCheck %s
// CHECK-LABEL: func @large
// CHECK: tile = [256, 256, 768], cluster = [2, 1], pair
// CHECK-LABEL: func @few
// CHECK: tile = [256, {{64|128|192|256}}, 768], cluster = [2, 1], pair
// RUN: not fp4-opt %s --fp4-set-target=target=sm_100a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'fp4.matmul' op target 'sm_100a' has no GEMMs of elements of 4 bits in instructions of K = 96
// OTHER: note: targets that have them: sm_103a, sm_107a; or leave 'arithmetic' out
// RUN: not fp4-opt %s --fp4-set-target=target=sm_103a --fp4-plan-kernels="plans='tile_gemm, tile = [256, 96, 768]'" 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: must have a plan whose 'tile' is [256, n, k] with n = 64, 128, 192 or 256 and k a multiple of 768, but got [256, 96, 768]
// RUN: not fp4-opt %s --fp4-set-target=target=sm_103a --fp4-plan-kernels="plans='tile_gemm, tile = [256, 128, 256]'" 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: must have a plan whose 'tile' is [256, n, k] with n = 64, 128, 192 or 256 and k a multiple of 768, but got [256, 128, 256]
// RUN: not fp4-opt %s --fp4-set-target=target=sm_103a --fp4-plan-kernels="plans='tile_gemm, route = <orientation = swapped>'" 2>&1 | FileCheck %s --check-prefix=SWAP
// SWAP: route <orientation = swapped> is none of target 'sm_103a' for GEMMs of elements of 4 bits in instructions of K = 96

!operand = !fp4.scaled<nvfp4, tensor<8192x8192xf4E2M1FN>,
                       tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @large(%a: tensor<8192x8192xf4E2M1FN>, %sa: tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8192x8192xf4E2M1FN>, %sb: tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8192x8192xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!operand, !operand) -> tensor<8192x8192xbf16>
  return %y : tensor<8192x8192xbf16>
}
!lhs = !fp4.scaled<nvfp4, tensor<64x4096xf4E2M1FN>,
                   tensor<64x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<8192x4096xf4E2M1FN>,
                   tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @few(%a: tensor<64x4096xf4E2M1FN>, %sa: tensor<64x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<8192x4096xf4E2M1FN>, %sb: tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<64x8192xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>}
      : (!lhs, !rhs) -> tensor<64x8192xbf16>
  return %y : tensor<64x8192xbf16>
}
