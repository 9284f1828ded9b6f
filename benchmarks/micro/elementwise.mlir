// Streaming without quantization, for measurements beside benchmarks/streaming.mlir.
func.func @add(%x: tensor<?x4096xbf16> {fp4.name = "x"}, %y: tensor<?x4096xbf16> {fp4.name = "y"})
    -> tensor<?x4096xbf16> {
  %z = arith.addf %x, %y : tensor<?x4096xbf16>
  return %z : tensor<?x4096xbf16>
}
