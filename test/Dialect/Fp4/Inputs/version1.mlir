// Operations of version 1 of the dialect. version1.mlirbc has them as the compiler of that version
// wrote them: fp4-opt version1.mlir --emit-bytecode -o version1.mlirbc.
!d = tensor<256x1024xf4E2M1FN>
!s = tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sq = tensor<256x16xf8E4M3FN>
func.func @split(%a: !d, %sa: !s, %b: !d, %sb: !s, %alpha: tensor<f32>) -> tensor<256x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb alpha %alpha
      {format = #fp4.format<nvfp4>, epilogue = #fp4.epilogue<relu>, split_k = 4 : i64, split_rows = 64 : i64}
      : (!d, !s, !d, !s, tensor<f32>) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
func.func @stream(%a: !d, %sa: !s, %b: !d, %sb: !s) -> tensor<256x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb
      {format = #fp4.format<nvfp4>, stream_k = array<i64: 132, 128, 128>}
      : (!d, !s, !d, !s) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
func.func @mixed(%a: tensor<256x1024xf8E4M3FN>, %sa: tensor<256x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                 %b: !d, %sb: tensor<256x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb
      {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>}
      : (tensor<256x1024xf8E4M3FN>, tensor<256x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
         !d, tensor<256x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
func.func @floats(%a: tensor<256x1024xbf16>, %b: !d, %sb: !s) -> tensor<256x256xbf16> {
  %y = fp4.blockscaled_matmul %a, %b scaled %sb {format = #fp4.format<nvfp4>}
      : (tensor<256x1024xbf16>, !d, !s) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
func.func @gate(%a: !d, %sa: !s, %b: !d, %sb: !s, %c: !d, %sc: !s, %bias: tensor<1x256xf32>, %amax: tensor<f32>)
    -> (tensor<256x256xbf16>, tensor<256x256xf4E2M1FN>, !sq, tensor<256x256xf4E2M1FN>, !sq, tensor<f32>) {
  %y:6 = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb with %c scaled %sc quantize_amax %amax
      epilogue(%bias) {
  ^bb0(%up: f32, %gate: f32, %add: f32):
    %product = arith.mulf %up, %gate : f32
    %sum = arith.addf %product, %add : f32
    %rounded = arith.truncf %sum : f32 to bf16
    fp4.yield %rounded : bf16
  } {format = #fp4.format<nvfp4>, quantize_recipe = #fp4.recipe<transformer_engine>,
     quantize_outputs = #fp4.outputs<both>, with_amax}
      : (!d, !s, !d, !s, tensor<1x256xf32>, !d, !s, tensor<f32>)
      -> (tensor<256x256xbf16>, tensor<256x256xf4E2M1FN>, !sq, tensor<256x256xf4E2M1FN>, !sq, tensor<f32>)
  return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5
      : tensor<256x256xbf16>, tensor<256x256xf4E2M1FN>, !sq, tensor<256x256xf4E2M1FN>, !sq, tensor<f32>
}
func.func @groups(%a: !d, %sa: !s, %b: tensor<512x1024xf4E2M1FN>,
                  %sb: tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %o: tensor<3xi64>,
                  %sl: tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sl, %b scaled %sb offsets %o
      {format = #fp4.format<nvfp4>, expected_rows = 64 : i64, unspecified_rows}
      : (!d, tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<512x1024xf4E2M1FN>,
         tensor<8192x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<3xi64>) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
