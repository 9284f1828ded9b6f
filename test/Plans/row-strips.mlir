// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -fp4-generalize-elementwise -fp4-fuse -fp4-plan-kernels | FileCheck %s --check-prefix=CONVERTS
// CTAs of quantizers with tiled or fp32 scales take four rows one after the other, where there are rows for one and a half
// waves of them. Threads have four chunks of a row, or two where four would leave many without one. The next row waits in
// shared memory, or in registers.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Rows of one SM each, rows of less than a wave and a half, and others.
// CHECK-LABEL: func @four(
// CONVERTS-LABEL: func @four(
// CHECK: fp4.quantize{{.*}}fp4.dispatch = [#fp4.case<m = [1, 132] : reduce_rows, threads = 512, ctas_per_sm = 2, pdl = in_turn>, #fp4.case<m = [133, 3959] : reduce_rows, threads = 128, ctas_per_sm = 5>], fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128, single_rows = 1280, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @four(%x: tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x8192xbf16>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %e = tensor.empty(%rows) : tensor<?x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x8192xbf16>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<?x8192xbf16>, tensor<?xf32>) outs(%e : tensor<?x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<?x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<?x8192xbf16>) -> (tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<?x256xf8E8M0FNU> -> tensor<?x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<?x8192xf4E2M1FN>, tensor<?x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// Two chunks of a thread. So many CTAs share an SM that rows wait in registers.
// CHECK-LABEL: func @short(
// CONVERTS-LABEL: func @short(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 64, single_rows = 1536, ctas_per_sm = 12>
// CONVERTS-NOT: strip =
func.func @short(%x: tensor<65536x2048xbf16>) -> (tensor<65536x2048xf4E2M1FN>, tensor<65536x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x2048xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x2048xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x2048xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x2048xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x2048xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x2048xbf16>) -> (tensor<65536x2048xf4E2M1FN>, tensor<65536x64xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<65536x64xf8E8M0FNU> -> tensor<65536x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x2048xf4E2M1FN>, tensor<65536x64xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// Four chunks of 128 threads would leave 16 threads without a chunk.
// CHECK-LABEL: func @between(
// CONVERTS-LABEL: func @between(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 224, single_rows = 512, ctas_per_sm = 4>
// CONVERTS-NOT: strip =
func.func @between(%x: tensor<65536x7168xbf16>) -> (tensor<65536x7168xf4E2M1FN>, tensor<65536x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x7168xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x7168xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x7168xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x7168xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x7168xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x7168xbf16>) -> (tensor<65536x7168xf4E2M1FN>, tensor<65536x224xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<65536x224xf8E8M0FNU> -> tensor<65536x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x7168xf4E2M1FN>, tensor<65536x224xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// No wave and a half.
// CHECK-LABEL: func @few(
// CONVERTS-LABEL: func @few(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @few(%x: tensor<3959x8192xbf16>) -> (tensor<3959x8192xf4E2M1FN>, tensor<3959x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<3959xf32>
  %e = tensor.empty() : tensor<3959x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3959x8192xbf16>) outs(%zeros : tensor<3959xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3959xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<3959x8192xbf16>, tensor<3959xf32>) outs(%e : tensor<3959x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<3959x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<3959x8192xbf16>) -> (tensor<3959x8192xf4E2M1FN>, tensor<3959x256xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<3959x256xf8E8M0FNU> -> tensor<3959x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<3959x8192xf4E2M1FN>, tensor<3959x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// A wave and a half.
// CHECK-LABEL: func @enough(
// CONVERTS-LABEL: func @enough(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128, single_rows = 1280, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @enough(%x: tensor<3960x8192xbf16>) -> (tensor<3960x8192xf4E2M1FN>, tensor<3960x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<3960xf32>
  %e = tensor.empty() : tensor<3960x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3960x8192xbf16>) outs(%zeros : tensor<3960xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<3960xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<3960x8192xbf16>, tensor<3960xf32>) outs(%e : tensor<3960x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<3960x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<3960x8192xbf16>) -> (tensor<3960x8192xf4E2M1FN>, tensor<3960x256xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<3960x256xf8E8M0FNU> -> tensor<3960x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<3960x8192xf4E2M1FN>, tensor<3960x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// Linear scales of a row are neighbours.
// CHECK-LABEL: func @linear(
// CONVERTS-LABEL: func @linear(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 128, ctas_per_sm = 5>
// CONVERTS-NOT: strip =
func.func @linear(%x: tensor<65536x8192xbf16>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %n : tensor<65536x8192xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x8192xbf16>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU>)
  return %q, %s : tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU>
}

// Words of two matrices leave room for two chunks of a thread.
// CHECK-LABEL: func @residual(
// CONVERTS-LABEL: func @residual(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256, ctas_per_sm = 3>
// CONVERTS-NOT: strip =
func.func @residual(%x: tensor<65536x8192xbf16>, %r0: tensor<65536x8192xbf16>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %zeros = arith.constant dense<0.0> : tensor<65536xf32>
  %e = tensor.empty() : tensor<65536x8192xbf16>
  %h = arith.addf %x, %r0 : tensor<65536x8192xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<65536x8192xbf16>) outs(%zeros : tensor<65536xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.mulf %f, %f : f32
    %a = arith.addf %o, %m : f32
    linalg.yield %a : f32
  } -> tensor<65536xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %n : tensor<65536x8192xbf16>, tensor<65536xf32>) outs(%e : tensor<65536x8192xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %b : f32
    %d = arith.mulf %f, %r : f32
    %u = arith.truncf %d : f32 to bf16
    linalg.yield %u : bf16
  } -> tensor<65536x8192xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x8192xbf16>) -> (tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<65536x256xf8E8M0FNU> -> tensor<65536x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<65536x8192xf4E2M1FN>, tensor<65536x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// Nobody waits for a row that is gathered: a thread has two chunks, and four of bytes.
// CHECK-LABEL: func @gathered(
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 512, ctas_per_sm = 3>
// CHECK: fp4.quantize{{.*}}fp4.plan = #fp4.plan<reduce_rows, threads = 256, ctas_per_sm = 2>
func.func @gathered(%x: tensor<65536x16384xbf16>, %numbers: tensor<65536xi64>) -> (tensor<65536x16384xf4E2M1FN>, tensor<65536x512xf8E8M0FNU>, tensor<65536x16384xf8E4M3FN>, tensor<65536x512xf8E8M0FNU>) {
  %rows = tensor.expand_shape %numbers [[0, 1]] output_shape [65536, 1] : tensor<65536xi64> into tensor<65536x1xi64>
  %g = tensor.gather %x[%rows] gather_dims([0]) : (tensor<65536x16384xbf16>, tensor<65536x1xi64>) -> tensor<65536x16384xbf16>
  %q, %s = fp4.quantize %g {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (tensor<65536x16384xbf16>) -> (tensor<65536x16384xf4E2M1FN>, tensor<65536x512xf8E8M0FNU>)
  %h = tensor.gather %x[%rows] gather_dims([0]) : (tensor<65536x16384xbf16>, tensor<65536x1xi64>) -> tensor<65536x16384xbf16>
  %p, %t = fp4.quantize %h {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>} : (tensor<65536x16384xbf16>) -> (tensor<65536x16384xf8E4M3FN>, tensor<65536x512xf8E8M0FNU>)
  return %q, %s, %p, %t : tensor<65536x16384xf4E2M1FN>, tensor<65536x512xf8E8M0FNU>, tensor<65536x16384xf8E4M3FN>, tensor<65536x512xf8E8M0FNU>
}
