// Instructions of the double K, which sm_107a alone has: always pairs, whose tile has whole scale tiles.
// RUN: fp4-opt %s --fp4-set-target=target=sm_107a --fp4-plan-kernels | FileCheck %s
// CHECK-LABEL: func @large
// CHECK: tile = [256, 256, 256], cluster = [2, {{[12]}}], pair
// CHECK-LABEL: func @few
// CHECK: tile = [256, {{64|128|192|256}}, 256], cluster = [2, 1], pair
// CHECK-LABEL: func @bytes
// CHECK: tile = [256, 256, 128], cluster = [2, {{[12]}}], pair
// RUN: not fp4-opt %s --fp4-set-target=target=sm_103a --fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'fp4.matmul' op target 'sm_103a' has no GEMMs of elements of 4 bits in instructions of K = 128
// OTHER: note: targets that have them: sm_107a; or leave 'arithmetic' out, and instructions have K = 64; there only sm_107a has instructions of twice the K
// RUN: not fp4-opt %s --fp4-set-target=target=sm_107a --fp4-plan-kernels="plans='tile_gemm, tile = [256, 96, 256]'" 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: must have a plan whose 'tile' is [256, n, k] with n = 64, 128, 192 or 256 and k a multiple of 256, but got [256, 96, 256]
// RUN: not fp4-opt %s --fp4-set-target=target=sm_107a --fp4-plan-kernels="plans='tile_gemm, tile = [128, 128, 256], pair, cluster = [2, 1]'" 2>&1 | FileCheck %s --check-prefix=HALF
// HALF: must have a plan whose 'tile' is [256, n, k] with n = 64, 128, 192 or 256 and k a multiple of 256, but got [128, 128, 256]

!large_lhs = !fp4.scaled<nvfp4, tensor<8192x8192xf4E2M1FN>,
    tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!large_rhs = !fp4.scaled<nvfp4, tensor<8192x8192xf4E2M1FN>,
    tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @large(%a: tensor<8192x8192xf4E2M1FN>, %la: tensor<8192x512xf8E4M3FN>, %b: tensor<8192x8192xf4E2M1FN>, %lb: tensor<8192x512xf8E4M3FN>) -> (tensor<8192x8192xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !large_lhs
  %b_scaled = fp4.scaled %b, %sb : !large_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>}
      : (!large_lhs, !large_rhs) -> tensor<8192x8192xbf16>
  return %y : tensor<8192x8192xbf16>
}

!few_lhs = !fp4.scaled<nvfp4, tensor<64x4096xf4E2M1FN>,
    tensor<64x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!few_rhs = !fp4.scaled<nvfp4, tensor<8192x4096xf4E2M1FN>,
    tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @few(%a: tensor<64x4096xf4E2M1FN>, %la: tensor<64x256xf8E4M3FN>, %b: tensor<8192x4096xf4E2M1FN>, %lb: tensor<8192x256xf8E4M3FN>) -> (tensor<64x8192xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<64x256xf8E4M3FN> -> tensor<64x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x256xf8E4M3FN> -> tensor<8192x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !few_lhs
  %b_scaled = fp4.scaled %b, %sb : !few_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>}
      : (!few_lhs, !few_rhs) -> tensor<64x8192xbf16>
  return %y : tensor<64x8192xbf16>
}

!bytes_lhs = !fp4.scaled<mxfp8_e4m3, tensor<8192x8192xf8E4M3FN>,
    tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!bytes_rhs = !fp4.scaled<mxfp8_e4m3, tensor<8192x8192xf8E4M3FN>,
    tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @bytes(%a: tensor<8192x8192xf8E4M3FN>, %la: tensor<8192x256xf8E8M0FNU>, %b: tensor<8192x8192xf8E4M3FN>, %lb: tensor<8192x256xf8E8M0FNU>) -> (tensor<8192x8192xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<8192x256xf8E8M0FNU> -> tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x256xf8E8M0FNU> -> tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !bytes_lhs
  %b_scaled = fp4.scaled %b, %sb : !bytes_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>}
      : (!bytes_lhs, !bytes_rhs) -> tensor<8192x8192xbf16>
  return %y : tensor<8192x8192xbf16>
}
