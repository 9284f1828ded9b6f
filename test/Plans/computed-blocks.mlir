// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// Threads that compute the elements of their blocks are 128 of a CTA, and 256 that load them. 32 codes of FP4 of a
// thread leave registers for six CTAs. FP8 of rows needs 256 threads where 128 have no registers for a row.

// CHECK-LABEL: func @bytes(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, pdl = at_end>
func.func @bytes(%g: tensor<?x8192xbf16>, %u: tensor<?x8192xbf16>) -> (tensor<?x8192xf8E4M3FN>, tensor<?x256xf8E8M0FNU>) {
  %y = arith.mulf %g, %u : tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf8E4M3FN>, tensor<?x256xf8E8M0FNU>)
  return %q, %s : tensor<?x8192xf8E4M3FN>, tensor<?x256xf8E8M0FNU>
}

// CHECK-LABEL: func @codes(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, ctas_per_sm = 6, pdl = at_end>
func.func @codes(%g: tensor<?x8192xbf16>, %u: tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>) {
  %y = arith.mulf %g, %u : tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>
}

// CHECK-LABEL: func @given(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, pdl = at_end>
func.func @given(%g: tensor<?x8192xbf16>, %u: tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>) {
  %y = arith.mulf %g, %u : tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, fp4.plan = #fp4.plan<stream_blocks, threads = 256>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>
}

// CHECK-LABEL: func @small(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 64, blocks_per_thread = 1, pdl = at_end>
func.func @small(%g: tensor<?x8192xbf16>, %u: tensor<?x8192xbf16>, %a: tensor<f32>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x512xf8E4M3FN>) {
  %y = arith.mulf %g, %u : tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (tensor<?x8192xbf16>, tensor<f32>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x512xf8E4M3FN>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x512xf8E4M3FN>
}

// CHECK-LABEL: func @loaded(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
func.func @loaded(%y: tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>) {
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>)
  return %q, %s : tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>
}

// CHECK-LABEL: func @rows(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, pdl = at_end>
func.func @rows(%g: tensor<?x8192xbf16>, %u: tensor<?x8192xbf16>) -> (tensor<?x8192xf8E4M3FN>, tensor<?x1xf32>) {
  %y = arith.mulf %g, %u : tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8192>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x8192xf8E4M3FN>, tensor<?x1xf32>
}

// CHECK-LABEL: func @long(
// CHECK: fp4.quantize {{.*}}fp4.plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, pdl = at_end>
func.func @long(%g: tensor<?x8208xbf16>, %u: tensor<?x8208xbf16>) -> (tensor<?x8208xf8E4M3FN>, tensor<?x1xf32>) {
  %y = arith.mulf %g, %u : tensor<?x8208xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 8208>} : (tensor<?x8208xbf16>) -> (tensor<?x8208xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x8208xf8E4M3FN>, tensor<?x1xf32>
}
