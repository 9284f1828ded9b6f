// Quantizers whose columns are dynamic as well as their rows, beside two of rows of 4096 (`known`) that are in no other
// file here: bf16, NVFP4 and MXFP4, with scales row-major or tiled.
//
//   fp4-runner any_columns.mlir --target=sm_90a --emit=so -o any_columns.so
//   fp4-run any_columns.so --device cuda --function any_tiled --dim M=16384 --dim K=4096 --benchmark

func.func @any_amax(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> tensor<f32> {
  %a = fp4.amax %x : tensor<?x?xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @any_nvfp4(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x?xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x?xbf16>, tensor<f32>) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>)
  return %q, %s : tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>
}
func.func @any_mxfp4(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x?xbf16>) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E8M0FNU>)
  return %q, %s : tensor<?x?xf4E2M1FN>, tensor<?x?xf8E8M0FNU>
}
func.func @any_hadamard(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>) {
  %b, %a = fp4.hadamard_amax %x : tensor<?x?xbf16> -> tensor<f32>, tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>} : (tensor<?x?xbf16>, tensor<f32>) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>)
  return %q, %s : tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN>
}
func.func @any_tiled(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x?xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x?xbf16>, tensor<f32>) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @any_both(%x: tensor<?x?xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]}) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x?xbf16> -> tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<?x?xbf16>, tensor<f32>) -> (tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<?x?xf4E2M1FN>, tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @known_tiled(%x: tensor<?x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]}) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @known_both(%x: tensor<?x4096xbf16> {fp4.name = "x", fp4.dims = ["M", ""]}) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x?xf4E2M1FN>, tensor<4096x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x?xf4E2M1FN>, tensor<4096x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s, %qt, %st : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4096x?xf4E2M1FN>, tensor<4096x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
