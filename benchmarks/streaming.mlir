// The streaming kernels at the sizes of docs/performance/quantizers.md: bf16 rows of 4096.
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
func.func @hadamard(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, tensor<?x256xf8E4M3FN> {fp4.name = "s"}) {
  %ax, %a = fp4.hadamard_amax %x : tensor<?x4096xbf16> -> tensor<f32>, tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @stochastic(%x: tensor<?x4096xbf16> {fp4.name = "x"}, %rng: tensor<2xi64> {fp4.name = "rng"})
    -> (tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, tensor<?x256xf8E4M3FN> {fp4.name = "s"}) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x4096xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @adaptive(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, tensor<?x256xf8E4M3FN> {fp4.name = "s"}) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
func.func @dequantize(%q: tensor<?x4096xf4E2M1FN> {fp4.name = "q"}, %s: tensor<?x256xf8E4M3FN> {fp4.name = "s"},
                      %a: tensor<f32> {fp4.name = "a"}) -> (tensor<?x4096xbf16> {fp4.name = "y"}) {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>, tensor<f32>) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
func.func @amaxes(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "a"}, tensor<f32> {fp4.name = "at"}) {
  %a, %at = fp4.hadamard_amax %x : tensor<?x4096xbf16> -> tensor<f32>, tensor<f32>
  return %a, %at : tensor<f32>, tensor<f32>
}
