// ptxas accepts GEMMs by instructions of the double K for sm_107a without spills. LLVM knows no sm_107a: the
// header alone differs from the PTX of another target.
// RUN: fp4-runner %s --target=sm_107a --emit=ptx | FileCheck %s --check-prefix=PTX
// PTX: .version 9.4
// PTX-NEXT: .target sm_107a
// PTX-DAG: tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16
// PTX-DAG: tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale
// PTX-DAG: tcgen05.mma.cta_group::1.kind::f8f6f4

!pairs_lhs = !fp4.scaled<nvfp4, tensor<2048x3072xf4E2M1FN>,
    tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!pairs_rhs = !fp4.scaled<nvfp4, tensor<1536x3072xf4E2M1FN>,
    tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @pairs(%a: tensor<2048x3072xf4E2M1FN>, %la: tensor<2048x192xf8E4M3FN>, %b: tensor<1536x3072xf4E2M1FN>, %lb: tensor<1536x192xf8E4M3FN>) -> (tensor<2048x1536xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<2048x192xf8E4M3FN> -> tensor<2048x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<1536x192xf8E4M3FN> -> tensor<1536x192xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !pairs_lhs
  %b_scaled = fp4.scaled %b, %sb : !pairs_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 256, 256], cluster = [2, 1], pair>}
      : (!pairs_lhs, !pairs_rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}

!bytes_lhs = !fp4.scaled<mxfp8_e4m3, tensor<2048x3072xf8E4M3FN>,
    tensor<2048x96xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!bytes_rhs = !fp4.scaled<mxfp8_e4m3, tensor<1536x3072xf8E4M3FN>,
    tensor<1536x96xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @bytes(%a: tensor<2048x3072xf8E4M3FN>, %la: tensor<2048x96xf8E8M0FNU>, %b: tensor<1536x3072xf8E4M3FN>, %lb: tensor<1536x96xf8E8M0FNU>) -> (tensor<2048x1536xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<2048x96xf8E8M0FNU> -> tensor<2048x96xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<1536x96xf8E8M0FNU> -> tensor<1536x96xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !bytes_lhs
  %b_scaled = fp4.scaled %b, %sb : !bytes_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], cluster = [2, 1], pair>}
      : (!bytes_lhs, !bytes_rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}

!blocks_lhs = !fp4.scaled<fp8_block128, tensor<2048x3072xf8E4M3FN>, tensor<2048x24xf32>>
!blocks_rhs = !fp4.scaled<fp8_block128, tensor<1536x3072xf8E4M3FN>, tensor<12x24xf32>>
func.func @blocks(%a: tensor<2048x3072xf8E4M3FN>, %sa: tensor<2048x24xf32>, %b: tensor<1536x3072xf8E4M3FN>, %sb: tensor<12x24xf32>) -> (tensor<2048x1536xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !blocks_lhs
  %b_scaled = fp4.scaled %b, %sb : !blocks_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!blocks_lhs, !blocks_rhs) -> tensor<2048x1536xbf16>
  return %y : tensor<2048x1536xbf16>
}
