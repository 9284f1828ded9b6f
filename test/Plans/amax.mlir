// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -split-input-file -verify-diagnostics | FileCheck %s
// If a kernel before it read a tensor of more than half the L2 cache, or may have, a quantizer begins at the end. The
// quantizer computes its amax too if all of its CTAs may run at once, unless the program says otherwise.

!q = tensor<?x64xf4E2M1FN>
!s = tensor<?x4xf8E4M3FN>
// CHECK-LABEL: func @dynamic
func.func @dynamic(%x: tensor<?x64xbf16>) -> (tensor<f32>, !q, !s) {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, order = descending, amax = same>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (!q, !s)
  return %a, %q, %s : tensor<f32>, !q, !s
}

// -----

// 148 SMs hold 592 CTAs, of which 7/8 take 66304 rows of 64: 256 threads keep two blocks of 16 elements.
// CHECK-LABEL: func @most
func.func @most(%x: tensor<66304x64xbf16>) -> (tensor<66304x64xf4E2M1FN>, tensor<66304x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<66304x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, amax = same>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<66304x64xbf16>, tensor<f32>) -> (tensor<66304x64xf4E2M1FN>, tensor<66304x4xf8E4M3FN>)
  return %q, %s : tensor<66304x64xf4E2M1FN>, tensor<66304x4xf8E4M3FN>
}
// CHECK-LABEL: func @more
func.func @more(%x: tensor<66305x64xbf16>) -> (tensor<66305x64xf4E2M1FN>, tensor<66305x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<66305x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<66305x64xbf16>, tensor<f32>) -> (tensor<66305x64xf4E2M1FN>, tensor<66305x4xf8E4M3FN>)
  return %q, %s : tensor<66305x64xf4E2M1FN>, tensor<66305x4xf8E4M3FN>
}
// CHECK-LABEL: func @apart
func.func @apart(%x: tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}amax = separate>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, amax = separate>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}

// Two candidate scales would spill.
// CHECK-LABEL: func @adaptive
func.func @adaptive(%x: tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}blocks_per_thread = {{[0-9]}}>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<four_over_six>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}

// -----

// Another operation needs the amax before, or the amax is of something else.
// CHECK-LABEL: func @others
func.func @others(%x: tensor<64x64xbf16>, %y: tensor<64x64xbf16>, %b: tensor<f32>)
    -> (tensor<f32>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  %c = fp4.matmul_alpha %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}blocks_per_thread = 1>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  // CHECK: fp4.quantize {{.*}}blocks_per_thread = 1>
  %p, %t = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %c, %q, %s, %p, %t : tensor<f32>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>, tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}

// -----

// CHECK-LABEL: func @tiles
!rows = tensor<16384x4096xf4E2M1FN>
!rowScales = tensor<16384x256xf8E4M3FN>
!columns = tensor<4096x16384xf4E2M1FN>
!columnScales = tensor<4096x1024xf8E4M3FN>
func.func @tiles(%x: tensor<16384x4096xbf16>) -> (!rows, !rowScales, !columns, !columnScales) {
  %a, %at = fp4.hadamard_amax %x {dimension = 0 : i64} : tensor<16384x4096xbf16> -> tensor<f32>, tensor<f32>
  // CHECK: fp4.quantize {{.*}}#fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3, order = descending>
  %q, %s, %qt, %st = fp4.quantize %x amax %a columnwise_amax %at {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<size = 16>}
      : (tensor<16384x4096xbf16>, tensor<f32>, tensor<f32>) -> (!rows, !rowScales, !columns, !columnScales)
  return %q, %s, %qt, %st : !rows, !rowScales, !columns, !columnScales
}

// -----

// A field that a program sets is kept, and must fit.
// CHECK-LABEL: func @said
func.func @said(%x: tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>
  // CHECK: fp4.quantize {{.*}}order = ascending, amax = same>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, order = ascending, amax = same>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}

// -----

func.func @unfit(%x: tensor<64x64xbf16>, %a: tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {
  // expected-error @+3 {{must have a plan whose 'amax' is separate, but got same}}
  // expected-note @+2 {{leave 'amax' out, and fp4-plan-kernels decides it}}
  // expected-note @+1 {{a quantizer along rows computes the amax of its input where it is the first to need it}}
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, amax = same>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>
}
