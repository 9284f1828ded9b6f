// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark:
// A candidate that does not fire says why, at the operation; each differs in one thing from one in
// fuse.mlir that does. Nothing else fires.

// Something else reads the transformed tensor.
func.func @other_reader(%x: tensor<32x32xbf16>, %a: tensor<f32>) -> tensor<32x32xbf16> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'func.return' reads the transformed tensor from memory"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+amax | Category:fp4-fuse | Reason="the transform stays, and no amax of its input could be had in the same pass"
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  return %y : tensor<32x32xbf16>
}

// -----

// Blocks across the transform.
func.func @dimension(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="the transform runs along dimension 0, but the blocks run along dimension 1"
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// One quantizer of both orientations.
func.func @both(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="the quantizer writes both orientations, and the transform runs along the blocks of one"
  %q:4 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Square blocks.
func.func @square(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="blocks of 16 x 16 have no transform: their outputs are each other's transposed"
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Two transforms.
func.func @twice(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="the quantizer transforms its input already"
  %q:2 = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 32>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Amaxes that treat NaN differently are two passes.
func.func @nan(%x: tensor<32x32xbf16>) {
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %ax = fp4.amax %x {nan = #fp4.nan_policy<propagate>} : tensor<32x32xbf16> -> tensor<f32>
  // CHECK: :[[@LINE+2]]:{{.*}}remark: [Missed] hadamard+amax | Category:fp4-fuse | Reason="the amax of the transform has nan drop, that of its input nan propagate"
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Passed] hadamard+amax
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  return
}

// -----

// The amax of the input is in another block: what is computed there may never run.
func.func @other_block(%x: tensor<32x32xbf16>, %p: i1) -> tensor<32x32xbf16> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'func.return' reads the transformed tensor from memory"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+amax | Category:fp4-fuse | Reason="the transform stays, and no amax of its input could be had in the same pass"
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  scf.if %p {
    %ax = fp4.amax %x : tensor<32x32xbf16> -> tensor<f32>
  }
  return %y : tensor<32x32xbf16>
}

// -----

// The amax of the input has other groups.
func.func @other_groups(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'func.return' reads the transformed tensor from memory"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+amax | Category:fp4-fuse | Reason="the transform stays, and no amax of its input could be had in the same pass"
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  %ax = fp4.amax %x {groups = array<i64: 16, 16>} : tensor<32x32xbf16> -> tensor<2xf32>
  return %y : tensor<32x32xbf16>
}

// -----

// The right twin has both operations in one block.
func.func @same_block(%x: tensor<32x32xbf16>, %p: i1) -> tensor<32x32xbf16> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'func.return' reads the transformed tensor from memory"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Passed] hadamard+amax
  %ay = fp4.amax %y : tensor<32x32xbf16> -> tensor<f32>
  %ax = fp4.amax %x : tensor<32x32xbf16> -> tensor<f32>
  return %y : tensor<32x32xbf16>
}

// -----

// Attributes that differ.
func.func @format(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their format"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>) -> (tensor<32x32xf4E2M1FN>, tensor<32x1xf8E8M0FNU>)
  return
}

// -----

func.func @recipe(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their recipe"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<vllm>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @block(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their block"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @square_amax(%x: tensor<32x32xbf16>, %a: tensor<f32>, %b: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their amax, and blocks of 16 x 16 have one"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @tensor_core(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the columnwise transform runs on the tensor core, in a kernel of its own"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @rounding(%x: tensor<32x32xbf16>, %a: tensor<f32>, %r: tensor<2xi64>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their rounding"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Draws of their own.
func.func @rng(%x: tensor<32x32xbf16>, %a: tensor<f32>, %r: tensor<2xi64>, %s: tensor<2xi64>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their random numbers"
  %q:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a rng %s {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @mapping(%x: tensor<32x32xbf16>, %a: tensor<f32>, %r: tensor<2xi64>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their mapping of random numbers"
  %q:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// A mapping that knows what a launch writes.
func.func @launch(%x: tensor<32x32xbf16>, %a: tensor<f32>, %r: tensor<2xi64>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="TransformerEngine's mapping draws other numbers for a columnwise output that is written with the rowwise one"
  %q:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>, philox = #fp4.philox<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Amaxes of rows beside one of the whole.
func.func @rows(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  %r = fp4.amax %x {per_row} : tensor<32x32xbf16> -> tensor<32xf32>
  // CHECK: :[[@LINE+2]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their amax: one has an amax for each row"
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Passed] rows | Category:fp4-fuse | Remark="one kernel by rows computes 1 operation before it and stores 0 of them"
  %q:2 = fp4.quantize %x amax %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x32xbf16>, tensor<32xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// One quantizer needs what the other computed.
func.func @dependence(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="an operand of one quantizer is computed from the other, or cannot move before it"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %d = fp4.dequantize %q#0 scaled %q#1 amax %a {format = #fp4.format<nvfp4>}
      : (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>, tensor<f32>) -> tensor<32x32xf32>
  %b = fp4.amax %d : tensor<32x32xf32> -> tensor<f32>
  %t:2 = fp4.quantize %x amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// Scales that something reads row-major.
func.func @row_major(%x: tensor<32x32xbf16>, %a: tensor<f32>) -> (tensor<32x2xf8E4M3FN>, tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] quantize+swizzle_scales | Category:fp4-fuse | Reason="'func.return' reads the scales row-major"
  %t = fp4.swizzle_scales %s : tensor<32x2xf8E4M3FN> -> tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %s, %t : tensor<32x2xf8E4M3FN>, tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// A group that ends within a run.
func.func @cut(%x: tensor<64x32xbf16>) -> tensor<2xf32> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="a group ends within a run of elements that are transformed together"
  %y = fp4.hadamard %x {dimension = 0 : i64, size = 32 : i64} : tensor<64x32xbf16> -> tensor<64x32xbf16>
  %ay = fp4.amax %y {groups = array<i64: 48, 16>} : tensor<64x32xbf16> -> tensor<2xf32>
  return %ay : tensor<2xf32>
}

// -----

func.func @groups(%x: tensor<32x32xbf16>, %a: tensor<2xf32>, %b: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="the rowwise and the columnwise quantizer differ in their groups"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<2xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %b {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

// The tiles of all rows are not the tiles of each group.
func.func @tiles(%x: tensor<32x32xbf16>, %a: tensor<2xf32>) -> tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16>}
      : (tensor<32x32xbf16>, tensor<2xf32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] quantize+swizzle_scales | Category:fp4-fuse | Reason="the quantizer would write the scales of each group into tiles of their own"
  %t = fp4.swizzle_scales %s : tensor<32x2xf8E4M3FN> -> tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Nor are the tiles of other groups.
func.func @tiles_of_offsets(%x: tensor<32x32xbf16>, %a: tensor<2xf32>, %o: tensor<3xi64>, %p: tensor<3xi64>) -> tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %q, %s = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] quantize+swizzle_scales | Category:fp4-fuse | Reason="the quantizer would write the scales of each group into tiles of their own"
  %t = fp4.swizzle_scales %s offsets %p : tensor<32x2xf8E4M3FN>, tensor<3xi64> -> tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// The amaxes of groups that only the device knows have no kernel with a transform.
func.func @amaxes_of_offsets(%x: tensor<32x32xbf16>, %o: tensor<3xi64>) -> tensor<2xf32> {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="the amaxes are those of groups that only the device knows"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %a = fp4.amax %y offsets %o : tensor<32x32xbf16>, tensor<3xi64> -> tensor<2xf32>
  return %a : tensor<2xf32>
}

// -----

// A plan makes an operation a kernel of its own.
func.func @planned(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'fp4.hadamard' has a plan for a kernel of its own"
  %y = fp4.hadamard %x {dimension = 1 : i64, fp4.plan = #fp4.plan<stream_items, threads = 64>} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %ay = fp4.amax %y {fp4.plan = #fp4.plan<reduce_grid>} : tensor<32x32xbf16> -> tensor<f32>
  return
}

// -----

func.func @planned_amax(%x: tensor<32x32xbf16>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="'fp4.amax' has a plan for a kernel of its own"
  %y = fp4.hadamard %x {dimension = 1 : i64} : tensor<32x32xbf16> -> tensor<32x32xbf16>
  %ay = fp4.amax %y {fp4.plan = #fp4.plan<reduce_grid>} : tensor<32x32xbf16> -> tensor<f32>
  return
}

// -----

func.func @planned_pair(%x: tensor<32x32xbf16>, %a: tensor<f32>) {
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] rowwise+columnwise | Category:fp4-fuse | Reason="'fp4.quantize' has a plan for a kernel of its own"
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  return
}

// -----

func.func @planned_layout(%x: tensor<32x32xbf16>, %a: tensor<f32>) -> tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {
  %q:2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<32x32xbf16>, tensor<f32>) -> (tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>)
  %t = fp4.swizzle_scales %q#1 {fp4.plan = #fp4.plan<stream_items>} : tensor<32x2xf8E4M3FN> -> tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %t : tensor<32x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Columns that end within a tile of prepacked weights are those of the elements, unless these are no result.
!packed = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
func.func @amax(%x: tensor<8x128xbf16>, %p: !packed) -> (tensor<f32>, tensor<f32>) {
  %y = fp4.matmul %x, %p : (tensor<8x128xbf16>, !packed) -> tensor<8x200xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] matmul+amax | Category:fp4-fuse | Reason="the columns end within a tile of prepacked weights, and the elements are no result"
  %a = fp4.amax %y : tensor<8x200xbf16> -> tensor<f32>
  %z = fp4.matmul %x, %p : (tensor<8x128xbf16>, !packed) -> tensor<8x256xbf16>
  // CHECK: remark: [Passed] matmul+amax
  %b = fp4.amax %z : tensor<8x256xbf16> -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// -----

// Quantizers of format fp8_block128 have no transform.
func.func @fp8(%x: tensor<128x256xbf16>) -> (tensor<128x256xf8E4M3FN>, tensor<128x2xf32>) {
  %t = fp4.hadamard %x {size = 16 : i64, dimension = 1 : i64} : tensor<128x256xbf16> -> tensor<128x256xbf16>
  // CHECK: :[[@LINE+1]]:{{.*}}remark: [Missed] hadamard+quantize | Category:fp4-fuse | Reason="quantizers of format fp8_block128 do not transform their input"
  %q:2 = fp4.quantize %t {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<128x256xbf16>) -> (tensor<128x256xf8E4M3FN>, tensor<128x2xf32>)
  return %q#0, %q#1 : tensor<128x256xf8E4M3FN>, tensor<128x2xf32>
}

// -----

// Promoted sums of many rows are one dual GEMM, as those of few are: 4096 rows take 0.9 of the time of two kernels.
#m = affine_map<(i, j) -> (i, j)>
!w = tensor<128x128xf8E4M3FN>
!sw = tensor<1x1xf32>
!rhs = !fp4.scaled<fp8_block128, !w, !sw>
!lhs = !fp4.scaled<fp8_block128, tensor<4096x128xf8E4M3FN>, tensor<4096x1xf32>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
  func.func @many(%e: tensor<4096x128xf8E4M3FN>, %s: tensor<4096x1xf32>, %p: !w, %q: !w, %t: !sw, %i: tensor<4096x128xf32>) -> tensor<4096x128xf32> {
    %x = fp4.scaled %e, %s : !lhs
    %w = fp4.scaled %p, %t : !rhs
    %v = fp4.scaled %q, %t : !rhs
    %a = fp4.matmul %x, %w : (!lhs, !rhs) -> tensor<4096x128xf32>
    %b = fp4.matmul %x, %v : (!lhs, !rhs) -> tensor<4096x128xf32>
    // CHECK: remark: [Passed] matmul+matmul
    %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<4096x128xf32>, tensor<4096x128xf32>) outs(%i : tensor<4096x128xf32>) {
    ^bb0(%f: f32, %g: f32, %o: f32):
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
    } -> tensor<4096x128xf32>
    return %y : tensor<4096x128xf32>
  }
}

// -----

// Groups of so many rows stay two GEMMs.
#m = affine_map<(i, j) -> (i, j)>
!w = tensor<256x128xf8E4M3FN>
!sw = tensor<2x1xf32>
!rhs = !fp4.scaled<fp8_block128, !w, !sw>
!lhs = !fp4.scaled<fp8_block128, tensor<520x128xf8E4M3FN>, tensor<520x1xf32>>
module attributes {fp4.target = #fp4.target<sm_90a>} {
  func.func @groups(%e: tensor<520x128xf8E4M3FN>, %s: tensor<520x1xf32>, %p: !w, %q: !w, %t: !sw, %o: tensor<3xi64>, %i: tensor<520x128xf32>) -> tensor<520x128xf32> {
    %x = fp4.scaled %e, %s : !lhs
    %w = fp4.scaled %p, %t : !rhs
    %v = fp4.scaled %q, %t : !rhs
    %a = fp4.matmul %x, %w offsets %o {work = #fp4.work<unspecified_rows>} : (!lhs, !rhs, tensor<3xi64>) -> tensor<520x128xf32>
    %b = fp4.matmul %x, %v offsets %o {work = #fp4.work<unspecified_rows>} : (!lhs, !rhs, tensor<3xi64>) -> tensor<520x128xf32>
    // CHECK: remark: [Missed] matmul+matmul | Category:fp4-fuse | Reason="so many rows are faster in two kernels, where no tensor core waits for a gate"
    // CHECK: remark: [Passed] matmul+elementwise
    %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<520x128xf32>, tensor<520x128xf32>) outs(%i : tensor<520x128xf32>) {
    ^bb0(%f: f32, %g: f32, %o2: f32):
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
    } -> tensor<520x128xf32>
    return %y : tensor<520x128xf32>
  }
}

// -----

// Two GEMMs with instructions of K = 96 stay two. With K = 64 they are a dual GEMM.
#m = affine_map<(i, j) -> (i, j)>
!d = tensor<128x768xf4E2M1FN>
!s = tensor<128x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!x = !fp4.scaled<nvfp4, !d, !s>
module attributes {fp4.target = #fp4.target<sm_103a>} {
  func.func @k96(%d: !d, %s: !s, %w: !d, %v: !d, %t: !s, %i: tensor<128x128xf32>) -> tensor<128x128xf32> {
    %x = fp4.scaled %d, %s : !x
    %p = fp4.scaled %w, %t : !x
    %q = fp4.scaled %v, %t : !x
    %a = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>} : (!x, !x) -> tensor<128x128xf32>
    %b = fp4.matmul %x, %q {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>} : (!x, !x) -> tensor<128x128xf32>
    // CHECK: :[[@LINE+2]]:{{.*}}remark: [Missed] matmul+matmul | Category:fp4-fuse | Reason="no route has 'rhs2' for elements of 4 bits in instructions of K = 96"
    // CHECK: remark: [Passed] matmul+elementwise
    %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%i : tensor<128x128xf32>) {
    ^bb0(%f: f32, %g: f32, %o: f32):
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
    } -> tensor<128x128xf32>
    return %y : tensor<128x128xf32>
  }
  func.func @k64(%d: !d, %s: !s, %w: !d, %v: !d, %t: !s, %i: tensor<128x128xf32>) -> tensor<128x128xf32> {
    %x = fp4.scaled %d, %s : !x
    %p = fp4.scaled %w, %t : !x
    %q = fp4.scaled %v, %t : !x
    %a = fp4.matmul %x, %p : (!x, !x) -> tensor<128x128xf32>
    %b = fp4.matmul %x, %q : (!x, !x) -> tensor<128x128xf32>
    // CHECK: remark: [Passed] matmul+matmul
    %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%i : tensor<128x128xf32>) {
    ^bb0(%f: f32, %g: f32, %o: f32):
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
    } -> tensor<128x128xf32>
    return %y : tensor<128x128xf32>
  }
}

// -----

// The two GEMMs of a row are those of one group.
#m = affine_map<(i, j) -> (i, j)>
!p = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
func.func @gates(%x: tensor<8x128xbf16>, %p: !p, %q: !p) -> tensor<8x128xf32> {
  %a = fp4.matmul %x, %p {work = #fp4.work<groups = [3, 5]>}
      : (tensor<8x128xbf16>, !p) -> tensor<8x128xf32>
  %b = fp4.matmul %x, %q {work = #fp4.work<groups = [4, 4]>}
      : (tensor<8x128xbf16>, !p) -> tensor<8x128xf32>
  %i = tensor.empty() : tensor<8x128xf32>
  // CHECK: :[[@LINE+2]]:{{.*}}remark: [Missed] matmul+matmul | Category:fp4-fuse | Reason="the matmuls have different groups"
  // CHECK: remark: [Passed] matmul+elementwise
  %y = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<8x128xf32>, tensor<8x128xf32>) outs(%i : tensor<8x128xf32>) {
  ^bb0(%f: f32, %g: f32, %o: f32):
    %h = arith.mulf %f, %g : f32
    linalg.yield %h : f32
  } -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}
