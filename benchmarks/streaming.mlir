// The streaming kernels at the sizes of docs/Performance.md: bf16 rows of 4096.
//
//   fp4-runner streaming.mlir --target=sm_90a --emit=so -o streaming.so
//   fp4-run streaming.so --device cuda --function nvfp4 --shape 16384 --benchmark

func.func @amax(%x: tensor<?x4096xbf16> {fp4.name = "x"}) -> (tensor<f32> {fp4.name = "amax"}) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
func.func @nvfp4(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "amax"}, tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, tensor<?x256xf8E4M3FN> {fp4.name = "s"}) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %a, %q, %s : tensor<f32>, tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @mxfp4(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, tensor<?x128xf8E8M0FNU> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>
}
