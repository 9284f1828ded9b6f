// RUN: fp4-opt %s --fp4-lower-host-tensors --split-input-file --verify-diagnostics
// The first operation of a case is a view, the second differs from it in why it is none.

func.func @columns(%x: tensor<8x64xbf16>) -> (tensor<4x64xbf16>, tensor<8x32xbf16>) {
  %0 = tensor.extract_slice %x[4, 0] [4, 64] [1, 1] : tensor<8x64xbf16> to tensor<4x64xbf16>
  // expected-error @+2 {{'tensor.extract_slice' op would have to move data, and has no kernel: its rows do not follow each other}}
  // expected-note @+1 {{take whole rows; of columns make an argument of their own}}
  %1 = tensor.extract_slice %x[0, 32] [8, 32] [1, 1] : tensor<8x64xbf16> to tensor<8x32xbf16>
  return %0, %1 : tensor<4x64xbf16>, tensor<8x32xbf16>
}

// -----

func.func @rows_of_experts(%x: tensor<2x8x64xbf16>) -> (tensor<8x64xbf16>, tensor<2x4x64xbf16>) {
  %0 = tensor.extract_slice %x[1, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<2x8x64xbf16> to tensor<8x64xbf16>
  // expected-error @+2 {{its rows do not follow each other}}
  // expected-note @+1 {{take whole rows}}
  %1 = tensor.extract_slice %x[0, 0, 0] [2, 4, 64] [1, 1, 1] : tensor<2x8x64xbf16> to tensor<2x4x64xbf16>
  return %0, %1 : tensor<8x64xbf16>, tensor<2x4x64xbf16>
}

// -----

func.func @alignment(%x: tensor<8x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %0 = tensor.extract_slice %x[2, 0] [4, 8] [1, 1] : tensor<8x8xbf16> to tensor<4x8xbf16>
  // expected-error @+2 {{it starts at byte 48}}
  // expected-note @+1 {{kernels read 32 bytes at once}}
  %1 = tensor.extract_slice %x[3, 0] [4, 8] [1, 1] : tensor<8x8xbf16> to tensor<4x8xbf16>
  return %0, %1 : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// -----

func.func @strides(%x: tensor<8x64xbf16>, %i: index) -> (tensor<4x64xbf16>, tensor<4x64xbf16>) {
  %0 = tensor.extract_slice %x[4, 0] [4, 64] [1, 1] : tensor<8x64xbf16> to tensor<4x64xbf16>
  // expected-error @+2 {{its place is not known}}
  // expected-note @+1 {{slices have static offsets and sizes, of static tensors, and strides of 1}}
  %1 = tensor.extract_slice %x[0, 0] [4, 64] [2, 1] : tensor<8x64xbf16> to tensor<4x64xbf16>
  return %0, %1 : tensor<4x64xbf16>, tensor<4x64xbf16>
}

// -----

func.func @offset(%x: tensor<8x64xbf16>, %i: index) -> tensor<4x64xbf16> {
  // expected-error @+2 {{its place is not known}}
  // expected-note @+1 {{pass other parts as arguments}}
  %1 = tensor.extract_slice %x[%i, 0] [4, 64] [1, 1] : tensor<8x64xbf16> to tensor<4x64xbf16>
  return %1 : tensor<4x64xbf16>
}

// -----

func.func @packed(%x: tensor<8x64xf4E2M1FN>) -> (tensor<4x64xf4E2M1FN>, tensor<8x32xf4E2M1FN>) {
  %0 = tensor.extract_slice %x[4, 0] [4, 64] [1, 1] : tensor<8x64xf4E2M1FN> to tensor<4x64xf4E2M1FN>
  // expected-error @+2 {{it cuts rows of packed elements}}
  // expected-note @+1 {{take whole rows, or slice before quantizing}}
  %1 = tensor.extract_slice %x[0, 0] [8, 32] [1, 1] : tensor<8x64xf4E2M1FN> to tensor<8x32xf4E2M1FN>
  return %0, %1 : tensor<4x64xf4E2M1FN>, tensor<8x32xf4E2M1FN>
}

// -----

func.func @packed_reshape(%x: tensor<8x64xf4E2M1FN>) -> (tensor<8x2x32xf4E2M1FN>, tensor<8x4x16xf4E2M1FN>) {
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 2, 32] : tensor<8x64xf4E2M1FN> into tensor<8x2x32xf4E2M1FN>
  // expected-error @+2 {{'tensor.expand_shape' op would have to move data, and has no kernel: rows of 'tensor<8x64xf4E2M1FN>' become rows of another length}}
  // expected-note @+1 {{keep the last dimension as it is, or reshape before quantizing}}
  %1 = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 4, 16] : tensor<8x64xf4E2M1FN> into tensor<8x4x16xf4E2M1FN>
  return %0, %1 : tensor<8x2x32xf4E2M1FN>, tensor<8x4x16xf4E2M1FN>
}

// -----

!s = tensor<300x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!u = tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @tiles(%x: !s) -> (!t, !u) {
  %0 = tensor.extract_slice %x[128, 0] [128, 4] [1, 1] : !s to !t
  // expected-error @+2 {{it cuts tiles of 128 rows by 4 scale blocks}}
  // expected-note @+1 {{take all columns, from a multiple of 128 rows on; or slice the row-major scales and use fp4.swizzle_scales}}
  %1 = tensor.extract_slice %x[128, 0] [100, 4] [1, 1] : !s to !u
  return %0, %1 : !t, !u
}

// -----

func.func @constant() -> (tensor<2xf32>, tensor<2xi16>) {
  %0 = arith.constant dense<1.0> : tensor<2xf32>
  // expected-error @+2 {{'arith.constant' op must be a tensor with a device buffer, but got 'tensor<2xi16>'}}
  // expected-note @+1 {{buffers exist for bf16, f16, f32, i32, i64}}
  %1 = arith.constant dense<1> : tensor<2xi16>
  return %0, %1 : tensor<2xf32>, tensor<2xi16>
}

// -----

func.func @resource() -> (tensor<2x4xf4E2M1FN>, tensor<2x4xf4E2M1FN>) {
  %0 = arith.constant dense_resource<whole> : tensor<2x4xf4E2M1FN>
  // expected-error @+2 {{'arith.constant' op must have a blob of 8 bytes for 'tensor<2x4xf4E2M1FN>', but got 3}}
  // expected-note @+1 {{or of 4: two elements per byte, even k in the low nibble}}
  %1 = arith.constant dense_resource<cut> : tensor<2x4xf4E2M1FN>
  return %0, %1 : tensor<2x4xf4E2M1FN>, tensor<2x4xf4E2M1FN>
}
{-#
  dialect_resources: { builtin: { whole: "0x0100000001020304", cut: "0x01000000010203" } }
#-}

// -----

func.func @nowhere() -> tensor<2x4xbf16> {
  // expected-error @+2 {{'arith.constant' op has elements that are not there}}
  // expected-note @+1 {{a dense_resource needs its blob in the dialect_resources of the file}}
  %1 = arith.constant dense_resource<nowhere> : tensor<2x4xbf16>
  return %1 : tensor<2x4xbf16>
}
