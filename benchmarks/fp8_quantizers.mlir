// Quantizers to FP8 at the sizes of docs/performance/quantizers.md: bf16 rows of 4096.
//
//   fp4-runner fp8_quantizers.mlir --target=sm_90a --emit=so -o fp8_quantizers.so
//   fp4-run fp8_quantizers.so --device cuda --function rows --shape 16384 --benchmark
//
// A scale for 1 x 128 elements, for 128 x 128, and for each row: f32, or with `power_of_two` a power of two. `mxfp8`: a
// power of two as e8m0 for 1 x 32.

func.func @blocks(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x32xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @squares(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x32xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 128, 128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @rows(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 4096>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
}
func.func @blocks_power_of_two(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x32xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x32xf32>
}
func.func @rows_power_of_two(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 4096>, recipe = #fp4.recipe<fp8_deepgemm_power_of_two>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
}
func.func @mxfp8(%x: tensor<?x4096xbf16> {fp4.name = "x"})
    -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x128xf8E8M0FNU> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x128xf8E8M0FNU>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x128xf8E8M0FNU>
}
