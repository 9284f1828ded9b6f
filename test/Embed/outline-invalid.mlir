// RUN: fp4-opt %s --split-input-file --verify-diagnostics --fp4-outline-islands

// Foreign code that computes on packed elements, and next to it what it should compute on.
func.func @packed(%q: tensor<64x32xf4E2M1FN>, %d: tensor<64x32xf32>) -> tensor<64x32xf32> {
  // expected-error @below {{'arith.extf' op must not compute on 'tensor<64x32xf4E2M1FN>', whose elements only fp4 operations find}}
  // expected-note @below {{fp4.dequantize and fp4.unswizzle_scales give tensors that any operation can read}}
  %r = arith.extf %q : tensor<64x32xf4E2M1FN> to tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}

// -----

func.func @scales(%s: tensor<64x32xf8E4M3FN>) -> tensor<64x32xf32> {
  %r = arith.extf %s : tensor<64x32xf8E4M3FN> to tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}

// -----

#tiled = #fp4.scale_layout<tiled_128x4>
func.func @tiled(%s: tensor<128x4xf8E4M3FN, #tiled>, %i: index) -> f8E4M3FN {
  // expected-error @below {{'tensor.extract' op must not compute on 'tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @below {{fp4.dequantize and fp4.unswizzle_scales give tensors}}
  %e = tensor.extract %s[%i, %i] : tensor<128x4xf8E4M3FN, #tiled>
  return %e : f8E4M3FN
}

// -----

// A cast to bytes of another number.
func.func @bytes(%b: tensor<64x32xi8>) -> tensor<64x32xf4E2M1FN> {
  // expected-error @below {{'builtin.unrealized_conversion_cast' op must not compute on 'tensor<64x32xf4E2M1FN>'}}
  // expected-note @below {{fp4.dequantize and fp4.unswizzle_scales give tensors}}
  %q = builtin.unrealized_conversion_cast %b : tensor<64x32xi8> to tensor<64x32xf4E2M1FN>
  return %q : tensor<64x32xf4E2M1FN>
}

// -----

// The rows of an output that stands on its side are columns, and their pitch is not known here.
func.func @sideways(%x: tensor<?x32xf32>, %a: tensor<f32>) -> tensor<32x?xf4E2M1FN> {
  // expected-error @below {{result of an island of fp4 operations must have dense bytes, but got 'tensor<32x?xf4E2M1FN>'}}
  // expected-note @below {{static sizes, or dynamic rows of a matrix with an even number of columns, have; keep other tensors inside of one island}}
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       outputs = #fp4.outputs<columnwise>}
      : (tensor<?x32xf32>, tensor<f32>) -> (tensor<32x?xf4E2M1FN>, tensor<32x?xf8E4M3FN>)
  return %q : tensor<32x?xf4E2M1FN>
}

// -----

// expected-error @below {{'func.func' op must not hand on 'tensor<?x?xf4E2M1FN>', which has no dense bytes}}
// expected-note @below {{static sizes, or dynamic rows of a matrix with an even number of columns, have}}
func.func @unknown(%q: tensor<?x?xf4E2M1FN>) {
  return
}

// -----

func.func @rows(%s: tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'tensor.dim' op must not ask for the rows of tiled scales, which their bytes do not tell; take them from the data}}
  // expected-note @below {{tensor.dim of the codes gives the rows}}
  %m = tensor.dim %s, %c0 : tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %m : index
}

// -----

// expected-error @below {{symbol 'fp4_islands' must be free for the functions of the islands}}
// expected-note @below {{rename it}}
func.func @fp4_islands(%x: tensor<64x32xf32>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
  return %a : tensor<f32>
}

// -----

// A kernel of the host is no function of the host.
gpu.module @kernels {
  gpu.func @kernel(%x: tensor<64x32xf32>) kernel {
    // expected-error @below {{'fp4.amax' op must be in a func.func of the module whose islands are outlined}}
    // expected-note @below {{move the operation into a function, or inline the function of the other module}}
    %a = fp4.amax %x : tensor<64x32xf32> -> tensor<f32>
    gpu.return
  }
}

// -----

// Half a byte further along a row; next to it whole bytes.
func.func @nibble(%q: tensor<64x32xf4E2M1FN>, %i: index) -> tensor<8x16xf4E2M1FN> {
  // expected-error @below {{'tensor.extract_slice' op must not compute on 'tensor<64x32xf4E2M1FN>'}}
  // expected-note @below {{fp4.dequantize and fp4.unswizzle_scales give tensors}}
  %r = tensor.extract_slice %q[%i, 1] [8, 16] [1, 1]
      : tensor<64x32xf4E2M1FN> to tensor<8x16xf4E2M1FN>
  return %r : tensor<8x16xf4E2M1FN>
}

// -----

func.func @byte(%q: tensor<64x32xf4E2M1FN>, %i: index) -> tensor<8x16xf4E2M1FN> {
  %r = tensor.extract_slice %q[%i, 2] [8, 16] [1, 1]
      : tensor<64x32xf4E2M1FN> to tensor<8x16xf4E2M1FN>
  return %r : tensor<8x16xf4E2M1FN>
}

// -----

func.func @any(%q: tensor<?x32xf4E2M1FN>, %d: index) -> index {
  // expected-error @below {{'tensor.dim' op must ask for a constant dimension of 'tensor<?x32xf4E2M1FN>'}}
  // expected-note @below {{write the dimension as an arith.constant from 0 to below the rank}}
  %n = tensor.dim %q, %d : tensor<?x32xf4E2M1FN>
  return %n : index
}

// -----

func.func @resource() -> tensor<2x4xf4E2M1FN> {
  // expected-error @below {{'arith.constant' op has elements that are not there}}
  // expected-note @below {{a dense_resource needs its blob}}
  %q = arith.constant dense_resource<missing> : tensor<2x4xf4E2M1FN>
  return %q : tensor<2x4xf4E2M1FN>
}

// -----

!a = !fp4.scaled<mxfp4, tensor<64x64xf4E2M1FN>, tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @bundle(%d: tensor<64x64xf4E2M1FN>, %s: tensor<64x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> !a {
  // expected-error @below {{'fp4.scaled' op must be read by fp4.matmul alone}}
  // expected-note @below {{hand on data and scales as two tensors, and write fp4.scaled before the matmul}}
  %a = fp4.scaled %d, %s : !a
  return %a : !a
}
