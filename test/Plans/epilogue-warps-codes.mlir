// Codes of columns beside an epilogue of eight warps: the lanes of a warp exchange 32 columns at a time.
// RUN: sed 's/COLUMNS/128/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s
// RUN: sed 's/COLUMNS/96/' %s | not fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=ODD

// CHECK: pipe.transpose
// ODD: error: {{.*}}'epilogue_warps' is 4 for tiles whose columns are no multiple of 64, but got 8

func.func @f(%a: tensor<1024x1024xf4E2M1FN>, %sa: tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %b: tensor<768x1024xf4E2M1FN>, %sb: tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %g: tensor<f32>) -> (tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %r:2 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb quantize_amax %g epilogue() {
  ^bb0(%x: f32):
    %narrow = arith.truncf %x : f32 to bf16
    fp4.yield %narrow : bf16
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<transformer_engine>, quantize_outputs = #fp4.outputs<columnwise>, fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, COLUMNS, 256], epilogue_warps = 8>}
      : (tensor<1024x1024xf4E2M1FN>, tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<f32>) -> (tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %r#0, %r#1 : tensor<768x1024xf4E2M1FN>, tensor<768x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
