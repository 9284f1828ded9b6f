// silu(g) * u in front of a quantizer, for any number of rows. The kernels of `nvfp4` and `mxfp4` compute it; those of the
// others read it, because the function returns it too.
//   fp4-runner benchmarks/gate.mlir --target=sm_90a --emit=so -o gate.so
//   fp4-run gate.so --function nvfp4 --shape 4096 --device cuda --benchmark
#m = affine_map<(d0, d1) -> (d0, d1)>

func.func @nvfp4(%g: tensor<?x14336xbf16>, %u: tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>) {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %g, %zero : tensor<?x14336xbf16>
  %i = tensor.empty(%rows) : tensor<?x14336xbf16>
  %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<?x14336xbf16>, tensor<?x14336xbf16>) outs(%i : tensor<?x14336xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %silu = arith.divf %x, %d : f32
    %r = arith.truncf %silu : f32 to bf16
    %p = arith.mulf %r, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<?x14336xbf16>
  %amax = fp4.amax %y : tensor<?x14336xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x14336xbf16>, tensor<f32>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>)
  return %q, %s : tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>
}

func.func @mxfp4(%g: tensor<?x14336xbf16>, %u: tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>) {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %g, %zero : tensor<?x14336xbf16>
  %i = tensor.empty(%rows) : tensor<?x14336xbf16>
  %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<?x14336xbf16>, tensor<?x14336xbf16>) outs(%i : tensor<?x14336xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %silu = arith.divf %x, %d : f32
    %r = arith.truncf %silu : f32 to bf16
    %p = arith.mulf %r, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<?x14336xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>)
  return %q, %s : tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>
}

func.func @nvfp4_stored(%g: tensor<?x14336xbf16>, %u: tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>, tensor<?x14336xbf16>) {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %g, %zero : tensor<?x14336xbf16>
  %i = tensor.empty(%rows) : tensor<?x14336xbf16>
  %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<?x14336xbf16>, tensor<?x14336xbf16>) outs(%i : tensor<?x14336xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %silu = arith.divf %x, %d : f32
    %r = arith.truncf %silu : f32 to bf16
    %p = arith.mulf %r, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<?x14336xbf16>
  %amax = fp4.amax %y : tensor<?x14336xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x14336xbf16>, tensor<f32>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>)
  return %q, %s, %y : tensor<?x14336xf4E2M1FN>, tensor<?x896xf8E4M3FN>, tensor<?x14336xbf16>
}

func.func @mxfp4_stored(%g: tensor<?x14336xbf16>, %u: tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>, tensor<?x14336xbf16>) {
  %zero = arith.constant 0 : index
  %rows = tensor.dim %g, %zero : tensor<?x14336xbf16>
  %i = tensor.empty(%rows) : tensor<?x14336xbf16>
  %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%g, %u : tensor<?x14336xbf16>, tensor<?x14336xbf16>) outs(%i : tensor<?x14336xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %x = arith.extf %a : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %silu = arith.divf %x, %d : f32
    %r = arith.truncf %silu : f32 to bf16
    %p = arith.mulf %r, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<?x14336xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x14336xbf16>) -> (tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>)
  return %q, %s, %y : tensor<?x14336xf4E2M1FN>, tensor<?x448xf8E8M0FNU>, tensor<?x14336xbf16>
}
