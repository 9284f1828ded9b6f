// Every streaming operation, for a GPU without tensor memory: compiled for sm_90a, these functions run on
// a Hopper GPU and in the simulator, and are verified bit for bit in both (run.sh).
//
//   fp4-runner programs.mlir --target=sm_90a --emit=so -o programs.so
//   fp4-run programs.so --device cuda --function quantize_nvfp4

func.func @nvfp4_bf16(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "amax"}, tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
        tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "tiled"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %a, %q, %s, %t : tensor<f32>, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @nvfp4_f16(%x: tensor<?x1024xf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "amax"}, tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
        tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "tiled"}) {
  %a = fp4.amax %x : tensor<?x1024xf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %a, %q, %s, %t : tensor<f32>, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @nvfp4_f32(%x: tensor<?x1024xf32> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "amax"}, tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
        tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "tiled"}) {
  %a = fp4.amax %x : tensor<?x1024xf32> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1024xf32>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %a, %q, %s, %t : tensor<f32>, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @nvfp4_2_13(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "amax"}, tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
        tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "tiled"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine_2_13>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %t = fp4.swizzle_scales %s
      : tensor<?x64xf8E4M3FN> -> tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %a, %q, %s, %t : tensor<f32>, tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @mxfp4_floor(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x32xf8E8M0FNU> {fp4.name = "s"},
        tensor<?x1024xf32> {fp4.name = "y"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x1024xbf16>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>)
  %y = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>) -> tensor<?x1024xf32>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>, tensor<?x1024xf32>
}

func.func @mxfp4_ceil(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x32xf8E8M0FNU> {fp4.name = "s"},
        tensor<?x1024xf32> {fp4.name = "y"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_ceil>}
      : (tensor<?x1024xbf16>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>)
  %y = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>) -> tensor<?x1024xf32>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>, tensor<?x1024xf32>
}

func.func @mxfp4_even(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x32xf8E8M0FNU> {fp4.name = "s"},
        tensor<?x1024xf32> {fp4.name = "y"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>}
      : (tensor<?x1024xbf16>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>)
  %y = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>) -> tensor<?x1024xf32>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>, tensor<?x1024xf32>
}

func.func @mxfp4_rceil(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x32xf8E8M0FNU> {fp4.name = "s"},
        tensor<?x1024xf32> {fp4.name = "y"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<?x1024xbf16>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>)
  %y = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>) -> tensor<?x1024xf32>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>, tensor<?x1024xf32>
}

func.func @dequantize_nvfp4(%q: tensor<?x1024xf4E2M1FN> {fp4.name = "q"},
                            %s: tensor<?x64xf8E4M3FN> {fp4.name = "s"},
                            %a: tensor<f32> {fp4.name = "amax"})
    -> (tensor<?x1024xbf16> {fp4.name = "y"}) {
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<f32>) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}

func.func @unswizzle(%t: tensor<300x60xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "t"})
    -> (tensor<300x60xf8E4M3FN> {fp4.name = "s"}) {
  %s = fp4.unswizzle_scales %t
      : tensor<300x60xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<300x60xf8E4M3FN>
  return %s : tensor<300x60xf8E4M3FN>
}

func.func @alpha(%a: tensor<f32> {fp4.name = "a"}, %b: tensor<f32> {fp4.name = "b"})
    -> (tensor<f32> {fp4.name = "alpha"}) {
  %r = fp4.matmul_alpha %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
  return %r : tensor<f32>
}

// Rows that are no whole blocks, of several alignments; scales in tiles; other recipes; the largest matrix.

func.func @nvfp4_k1000(%x: tensor<?x1000xbf16> {fp4.name = "x"})
    -> (tensor<?x1000xf4E2M1FN> {fp4.name = "q"}, tensor<?x63xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1000xbf16> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1000xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1000xbf16>, tensor<f32>) -> (tensor<?x1000xf4E2M1FN>, tensor<?x63xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1000xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<f32>) -> tensor<?x1000xbf16>
  return %q, %s, %y : tensor<?x1000xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<?x1000xbf16>
}

func.func @nvfp4_k1003(%x: tensor<?x1003xbf16> {fp4.name = "x"})
    -> (tensor<?x1003xf4E2M1FN> {fp4.name = "q"}, tensor<?x63xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1003xbf16> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1003xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1003xbf16>, tensor<f32>) -> (tensor<?x1003xf4E2M1FN>, tensor<?x63xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1003xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<f32>) -> tensor<?x1003xbf16>
  return %q, %s, %y : tensor<?x1003xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<?x1003xbf16>
}

func.func @nvfp4_k1001_f32(%x: tensor<?x1001xf32> {fp4.name = "x"})
    -> (tensor<?x1001xf4E2M1FN> {fp4.name = "q"}, tensor<?x63xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1001xf32> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1001xf32> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1001xf32>, tensor<f32>) -> (tensor<?x1001xf4E2M1FN>, tensor<?x63xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1001xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<f32>) -> tensor<?x1001xf32>
  return %q, %s, %y : tensor<?x1001xf4E2M1FN>, tensor<?x63xf8E4M3FN>, tensor<?x1001xf32>
}

func.func @nvfp4_tiled_k1000(%x: tensor<?x1000xbf16> {fp4.name = "x"})
    -> (tensor<?x1000xf4E2M1FN> {fp4.name = "q"}, tensor<?x63xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %a = fp4.amax %x : tensor<?x1000xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x1000xbf16>, tensor<f32>) -> (tensor<?x1000xf4E2M1FN>, tensor<?x63xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x1000xf4E2M1FN>, tensor<?x63xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @mxfp4_tiled(%x: tensor<?x1056xbf16> {fp4.name = "x"})
    -> (tensor<?x1056xf4E2M1FN> {fp4.name = "q"}, tensor<?x33xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<?x1056xbf16>) -> (tensor<?x1056xf4E2M1FN>, tensor<?x33xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x1056xf4E2M1FN>, tensor<?x33xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

func.func @torchao(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1024xbf16> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<torchao>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<f32>) -> tensor<?x1024xbf16>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<?x1024xbf16>
}

func.func @cutlass(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1024xbf16> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<cutlass>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<cutlass>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<f32>) -> tensor<?x1024xbf16>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<?x1024xbf16>
}

func.func @four_over_six(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1024xbf16> {fp4.name = "y"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %y = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<f32>) -> tensor<?x1024xbf16>
  return %q, %s, %y : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<?x1024xbf16>
}

func.func @nvfp4_8192(%x: tensor<?x8192xbf16> {fp4.name = "x"})
    -> (tensor<?x8192xf4E2M1FN> {fp4.name = "q"}, tensor<?x512xf8E4M3FN> {fp4.name = "s"}) {
  %a = fp4.amax %x : tensor<?x8192xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x8192xbf16>, tensor<f32>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x512xf8E4M3FN>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x512xf8E4M3FN>
}

func.func @mxfp4_8192(%x: tensor<?x8192xbf16> {fp4.name = "x"})
    -> (tensor<?x8192xf4E2M1FN> {fp4.name = "q"}, tensor<?x256xf8E8M0FNU> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>
}

func.func @transform(%x: tensor<?x1024xbf16> {fp4.name = "x"})
    -> (tensor<f32> {fp4.name = "before"}, tensor<f32> {fp4.name = "after"},
        tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1024xbf16> {fp4.name = "y"}) {
  %before, %after = fp4.hadamard_amax %x : tensor<?x1024xbf16> -> tensor<f32>, tensor<f32>
  %q, %s = fp4.quantize %x amax %after
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x1024xbf16>, tensor<f32>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %y = fp4.hadamard %x {size = 128 : i64} : tensor<?x1024xbf16> -> tensor<?x1024xbf16>
  return %before, %after, %q, %s, %y : tensor<f32>, tensor<f32>, tensor<?x1024xf4E2M1FN>,
      tensor<?x64xf8E4M3FN>, tensor<?x1024xbf16>
}

func.func @stochastic(%x: tensor<?x1024xbf16> {fp4.name = "x"}, %rng: tensor<2xi64>)
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<?x1024xf4E2M1FN> {fp4.name = "m"}, tensor<?x32xf8E8M0FNU> {fp4.name = "e"}) {
  %a = fp4.amax %x : tensor<?x1024xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       rounding = #fp4.rounding<stochastic>}
      : (tensor<?x1024xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>)
  %m, %e = fp4.quantize %x rng %rng
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>,
       hadamard = #fp4.hadamard<size = 64>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x1024xbf16>, tensor<2xi64>) -> (tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>)
  return %q, %s, %m, %e : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<?x1024xf4E2M1FN>, tensor<?x32xf8E8M0FNU>
}

// A gradient as TransformerEngine quantizes it: rows as they are, columns transformed, both with random bits.
func.func @training(%x: tensor<?x1024xbf16> {fp4.name = "x"}, %rng: tensor<2xi64>)
    -> (tensor<?x1024xf4E2M1FN> {fp4.name = "q"}, tensor<?x64xf8E4M3FN> {fp4.name = "s"},
        tensor<1024x?xf4E2M1FN> {fp4.name = "qt"}, tensor<1024x?xf8E4M3FN> {fp4.name = "st"}) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<?x1024xbf16> -> tensor<f32>, tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       outputs = #fp4.outputs<both>, rounding = #fp4.rounding<stochastic>,
       columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x1024xbf16>, tensor<f32>, tensor<f32>, tensor<2xi64>)
      -> (tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>, tensor<1024x?xf4E2M1FN>,
          tensor<1024x?xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<?x1024xf4E2M1FN>, tensor<?x64xf8E4M3FN>,
      tensor<1024x?xf4E2M1FN>, tensor<1024x?xf8E4M3FN>
}
