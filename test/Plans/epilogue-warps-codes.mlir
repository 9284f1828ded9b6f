// Codes of columns beside an epilogue of eight warps: the lanes of a warp exchange 32 columns at a time.
// RUN: sed 's/COLUMNS/128/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s
// RUN: sed 's/COLUMNS/96/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ODD

// CHECK: pipe.transpose
// ODD: error: {{.*}}'epilogue_warps' is 4 for tiles whose columns are no multiple of 64, but got 8

!lhs = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>,
                   tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<768x1024xf4E2M1FN>,
                   tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @f(%a: tensor<1024x1024xf4E2M1FN>, %sa: tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<768x1024xf4E2M1FN>, %sb: tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %g: tensor<f32>) -> (tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %r:2 = fp4.matmul %a_scaled, %b_scaled epilogue(%g) {
  ^bb0(%x: f32, %amax_in: f32):
    %narrow = arith.truncf %x : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %narrow amax %amax_in {recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
        : (bf16, f32) -> (f4E2M1FN, f8E4M3FN)
    fp4.yield %code, %scale : f4E2M1FN, f8E4M3FN
  } {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, COLUMNS, 256], epilogue_warps = 8>}
      : (!lhs, !rhs, tensor<f32>)
      -> (tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %r#0, %r#1 : tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
