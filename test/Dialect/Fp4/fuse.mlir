// RUN: fp4-opt %s -split-input-file -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -split-input-file -fp4-fuse --remarks-filter-passed=fp4-fuse 2>&1 | FileCheck %s --check-prefix=PASSED
// RUN: fp4-opt %s -split-input-file -fp4-fuse="fusions=amax,layout" | FileCheck %s --check-prefix=SOME
// RUN: not %fp4-opt-once %s -split-input-file -fp4-fuse="fusions=amax,swizzle" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// Results of each fusion of plain operations; the reasons why one does not fire are in fuse-missed.mlir.

// PASSED:      remark: [Passed] hadamard+quantize | Category:fp4-fuse | Remark="the quantizer transforms its input"
// PASSED-NEXT: %qt, %t = fp4.quantize %y
// PASSED:      remark: [Passed] hadamard+amax | Category:fp4-fuse | Remark="one pass for the amax before and after the transform"
// PASSED-NEXT: %ay = fp4.amax %y
// PASSED:      remark: [Passed] rowwise+columnwise | Category:fp4-fuse | Remark="one pass for both orientations"
// PASSED-NEXT: %q, %s = fp4.quantize %x
// PASSED:      remark: [Passed] quantize+swizzle_scales | Category:fp4-fuse | Remark="the quantizer writes its scales swizzled"

// SOME-LABEL: func @activations
// SOME:         fp4.hadamard_amax
// SOME-NEXT:    fp4.quantize {{.*}}tiled_128x4
// SOME-NEXT:    fp4.hadamard
// SOME-NEXT:    fp4.quantize {{.*}}tiled_128x4
// SOME-NEXT:    return

// UNKNOWN: error: option 'fusions' of fp4-fuse must be of attention, amax, transform, orientations, layout, epilogue, results, rows, prologue, but got 'swizzle'

// Seven kernels become two.
// CHECK-LABEL: func @activations
// CHECK-SAME:    (%[[X:.*]]: tensor<256x512xbf16>)
// CHECK-NEXT:    %[[AX:.*]], %[[AY:.*]] = fp4.hadamard_amax %[[X]] {dimension = 0 : i64}
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]], %[[T:.*]]:2 = fp4.quantize %[[X]] amax %[[AX]] columnwise_amax %[[AY]]
// CHECK-SAME:      columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>
// CHECK-SAME:      outputs = #fp4.outputs<both>
// CHECK-SAME:      -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    return %[[Q]], %[[S]], %[[T]]#0, %[[T]]#1
func.func @activations(%x: tensor<256x512xbf16>)
    -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %ax = fp4.amax %x : tensor<256x512xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %ax
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %st = fp4.swizzle_scales %s
      : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x512xbf16> -> tensor<256x512xbf16>
  %ay = fp4.amax %y : tensor<256x512xbf16> -> tensor<f32>
  %qt, %t = fp4.quantize %y amax %ay
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
       outputs = #fp4.outputs<columnwise>}
      : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>)
  %tt = fp4.swizzle_scales %t
      : tensor<512x16xf8E4M3FN> -> tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %st, %qt, %tt
      : tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// -----

// The amaxes alone; that of the input may come after.
// CHECK-LABEL: func @amaxes
// CHECK-NEXT:    %[[AX:.*]], %[[AY:.*]] = fp4.hadamard_amax %{{.*}} {arithmetic = #fp4.hadamard_arithmetic<tensor_core>, nan = #fp4.nan_policy<propagate>, sign_mask = 7 : i64, size = 32 : i64}
// CHECK-NEXT:    return %[[AX]], %[[AY]]
func.func @amaxes(%x: tensor<?x64xbf16>) -> (tensor<f32>, tensor<f32>) {
  %y = fp4.hadamard %x {size = 32 : i64, sign_mask = 7 : i64, arithmetic = #fp4.hadamard_arithmetic<tensor_core>}
      : tensor<?x64xbf16> -> tensor<?x64xbf16>
  %ay = fp4.amax %y {nan = #fp4.nan_policy<propagate>} : tensor<?x64xbf16> -> tensor<f32>
  %ax = fp4.amax %x {nan = #fp4.nan_policy<propagate>} : tensor<?x64xbf16> -> tensor<f32>
  return %ax, %ay : tensor<f32>, tensor<f32>
}

// -----

// Without the amax of the input the transformed tensor still need not exist.
// CHECK-LABEL: func @rowwise_transform
// CHECK-NEXT:    %{{.*}}, %[[AY:.*]] = fp4.hadamard_amax %[[X:.*]] : tensor
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]] = fp4.quantize %[[X]] amax %[[AY]] {{.*}} hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>
// CHECK-NEXT:    return %[[Q]], %[[S]]
func.func @rowwise_transform(%x: tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %y = fp4.hadamard %x : tensor<?x64xbf16> -> tensor<?x64xbf16>
  %ay = fp4.amax %y : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %ay {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}

// -----

// A transform that is needed stays; the amaxes are still one pass.
// CHECK-LABEL: func @needed_transform
// CHECK-SAME:    (%[[X:.*]]: tensor<16x64xbf16>)
// CHECK-NEXT:    %[[AX:.*]], %[[AY:.*]] = fp4.hadamard_amax %[[X]]
// CHECK-NEXT:    %[[Y:.*]] = fp4.hadamard %[[X]]
// CHECK-NEXT:    fp4.quantize %[[Y]] amax %[[AY]]
// CHECK:         return %[[Y]], %[[AX]]
func.func @needed_transform(%x: tensor<16x64xbf16>)
    -> (tensor<16x64xbf16>, tensor<f32>, tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>) {
  %ax = fp4.amax %x : tensor<16x64xbf16> -> tensor<f32>
  %y = fp4.hadamard %x : tensor<16x64xbf16> -> tensor<16x64xbf16>
  %ay = fp4.amax %y : tensor<16x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %y amax %ay {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<16x64xbf16>, tensor<f32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>)
  return %y, %ax, %q, %s : tensor<16x64xbf16>, tensor<f32>, tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>
}

// -----

// Weights: 16 x 16 blocks, one amax for both orientations. The columnwise quantizer comes first.
// CHECK-LABEL: func @weights
// CHECK:         %[[A:.*]] = fp4.amax
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]], %[[T:.*]]:2 = fp4.quantize %{{.*}} amax %[[A]] {block = array<i64: 16, 16>, {{.*}}outputs = #fp4.outputs<both>
// CHECK-NEXT:    return %[[Q]], %[[S]], %[[T]]#0, %[[T]]#1
func.func @weights(%w: tensor<48x32xbf16>)
    -> (tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>, tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>) {
  %a = fp4.amax %w : tensor<48x32xbf16> -> tensor<f32>
  %qt, %st = fp4.quantize %w amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>, outputs = #fp4.outputs<columnwise>}
      : (tensor<48x32xbf16>, tensor<f32>) -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>)
  %q, %s = fp4.quantize %w amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, block = array<i64: 16, 16>}
      : (tensor<48x32xbf16>, tensor<f32>) -> (tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>, tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>
}

// -----

// Gradients: stochastic, with one draw of random numbers for both; the block of the default spelled
// out is the default. Operands of the later quantizer move up.
// CHECK-LABEL: func @gradients
// CHECK-SAME:    , %[[RNG:.*]]: tensor<2xi64>
// CHECK:         %[[AX:.*]], %[[AY:.*]] = fp4.hadamard_amax
// CHECK-NEXT:    fp4.quantize %{{.*}} amax %[[AX]] columnwise_amax %[[AY]] rng %[[RNG]] {{.*}}rounding = #fp4.rounding<stochastic>
// CHECK-NEXT:    fp4.swizzle_scales
// CHECK-NEXT:    return
func.func @gradients(%x: tensor<64x32xbf16>, %rng: tensor<2xi64>)
    -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<64x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
        tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>) {
  %ax = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %ax rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, block = array<i64: 1, 16>}
      : (tensor<64x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  %sw = fp4.swizzle_scales %s : tensor<64x2xf8E4M3FN> -> tensor<64x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<64x32xbf16> -> tensor<64x32xbf16>
  %ay = fp4.amax %y : tensor<64x32xbf16> -> tensor<f32>
  %qt, %st = fp4.quantize %y amax %ay rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  return %q, %s, %sw, %qt, %st : tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>, tensor<64x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>
}

// -----

// MXFP4 has no amax; the layouts of the two scales are independent.
// CHECK-LABEL: func @mxfp4
// CHECK-NEXT:    %{{.*}}, %[[S:.*]], %{{.*}}:2 = fp4.quantize %{{.*}} {format = #fp4.format<mxfp4>, hadamard = #fp4.hadamard<size = 32, sign_mask = 0x0>, outputs = #fp4.outputs<both>
// CHECK-SAME:      tensor<64x1xf8E8M0FNU>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    fp4.dequantize %{{.*}} scaled %[[S]]
func.func @mxfp4(%x: tensor<64x32xbf16>)
    -> (tensor<64x32xf32>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %y = fp4.hadamard %x {size = 32 : i64, sign_mask = 0 : i64} : tensor<64x32xbf16> -> tensor<64x32xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>}
      : (tensor<64x32xbf16>) -> (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>)
  %d = fp4.dequantize %q scaled %s {format = #fp4.format<mxfp4>}
      : (tensor<64x32xf4E2M1FN>, tensor<64x1xf8E8M0FNU>) -> tensor<64x32xf32>
  %qt, %st = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_even>, outputs = #fp4.outputs<columnwise>}
      : (tensor<64x32xbf16>) -> (tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>)
  %tt = fp4.swizzle_scales %st : tensor<32x2xf8E8M0FNU> -> tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %d, %qt, %tt : tensor<64x32xf32>, tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

// CHECK-LABEL: func @swizzle
// CHECK-NEXT:    %[[Q:.*]], %[[S:.*]] = fp4.quantize {{.*}} -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    return %[[Q]], %[[S]]
func.func @swizzle(%x: tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<?x2xf8E8M0FNU> -> tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// -----

// Amaxes of rows and of columns.
// CHECK-LABEL: func @rows
// CHECK:         %[[R:.*]] = fp4.amax %{{.*}} {per_row}
// CHECK:         %[[C:.*]] = fp4.amax %{{.*}} {per_column}
// CHECK:         fp4.quantize %{{.*}} amax %[[R]] columnwise_amax %[[C]] {{.*}}outputs = #fp4.outputs<both>, per_row
// CHECK-NEXT:    return
func.func @rows(%x: tensor<32x48xbf16>)
    -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>) {
  %r = fp4.amax %x {per_row} : tensor<32x48xbf16> -> tensor<32xf32>
  %c = fp4.amax %x {per_column} : tensor<32x48xbf16> -> tensor<48xf32>
  %q, %s = fp4.quantize %x amax %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row}
      : (tensor<32x48xbf16>, tensor<32xf32>) -> (tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>)
  %qt, %st = fp4.quantize %x amax %c
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, outputs = #fp4.outputs<columnwise>}
      : (tensor<32x48xbf16>, tensor<48xf32>) -> (tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<32x48xf4E2M1FN>, tensor<32x3xf8E4M3FN>, tensor<48x32xf4E2M1FN>, tensor<48x2xf8E4M3FN>
}

// -----

// The tokens of two experts. The transform of a group does not cross its edge.
// CHECK-LABEL: func @experts
// CHECK-NEXT:    %[[AX:.*]], %[[AY:.*]] = fp4.hadamard_amax %{{.*}} {dimension = 0 : i64, groups = array<i64: 32, 48>}
// CHECK-NEXT:    fp4.quantize %{{.*}} amax %[[AX]] columnwise_amax %[[AY]] {columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, {{.*}}groups = array<i64: 32, 48>, outputs = #fp4.outputs<both>
// CHECK-NEXT:    return
func.func @experts(%x: tensor<80x64xbf16>)
    -> (tensor<80x64xf4E2M1FN>, tensor<80x4xf8E4M3FN>, tensor<64x80xf4E2M1FN>, tensor<64x5xf8E4M3FN>) {
  %ax = fp4.amax %x {groups = array<i64: 32, 48>} : tensor<80x64xbf16> -> tensor<2xf32>
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 48>}
      : (tensor<80x64xbf16>, tensor<2xf32>) -> (tensor<80x64xf4E2M1FN>, tensor<80x4xf8E4M3FN>)
  %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<80x64xbf16> -> tensor<80x64xbf16>
  %ay = fp4.amax %y {groups = array<i64: 32, 48>} : tensor<80x64xbf16> -> tensor<2xf32>
  %qt, %st = fp4.quantize %y amax %ay
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 32, 48>, outputs = #fp4.outputs<columnwise>}
      : (tensor<80x64xbf16>, tensor<2xf32>) -> (tensor<64x80xf4E2M1FN>, tensor<64x5xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<80x64xf4E2M1FN>, tensor<80x4xf8E4M3FN>, tensor<64x80xf4E2M1FN>, tensor<64x5xf8E4M3FN>
}

// -----

// The tokens of two experts whose rows only the device knows: the quantizer writes the list of tiles that the swizzle makes.
// CHECK-LABEL: func @experts_of_the_device
// CHECK-NEXT:    fp4.quantize %{{.*}} amax %{{.*}} offsets %{{.*}} -> (tensor<80x64xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// CHECK-NEXT:    return
func.func @experts_of_the_device(%x: tensor<80x64xbf16>, %a: tensor<2xf32>, %o: tensor<3xi64>)
    -> (tensor<80x64xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %a offsets %o {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<80x64xbf16>, tensor<2xf32>, tensor<3xi64>) -> (tensor<80x64xf4E2M1FN>, tensor<80x4xf8E4M3FN>)
  %t = fp4.swizzle_scales %s offsets %o : tensor<80x4xf8E4M3FN>, tensor<3xi64> -> tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<80x64xf4E2M1FN>, tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
