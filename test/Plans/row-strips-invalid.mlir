// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -verify-diagnostics

// A CTA takes up to 64 rows one after the other.
func.func @rows(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is 2 to 64, but got 128}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 128, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// Scales of four rows follow each other in a tile.
func.func @tiles(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is 4 with tiled scales, but got 8}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 8, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// Threads keep 16 words of each chunk in registers, of four chunks at most.
func.func @kept(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 64>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is left out unless all threads of a CTA keep one row, but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 32>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// Two rows of 32 chunks have the threads of a CTA.
func.func @teams(%x: tensor<256x512xf32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x512xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x512xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 32>}
      : (tensor<256x512xf32>, tensor<256xf32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x512xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is left out unless all threads of a CTA keep one row, but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 64>}
      : (tensor<256x512xf32>, tensor<256xf32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
  return %q0, %q1 : tensor<256x512xf4E2M1FN>, tensor<256x512xf4E2M1FN>
}

// -----

// A CTA of a cluster has a part of a row.
func.func @cluster(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 2], threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is left out unless all threads of a CTA keep one row, but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, cluster = [1, 2], strip = 4, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// A thread has several rows one after the other, or at once.
func.func @several(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, threads = 256, rows_per_thread = 2>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is left out unless all threads of a CTA keep one row, but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 256, rows_per_thread = 2>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// A kernel that only has the amaxes of rows takes one row.
func.func @amax(%x: tensor<64x8192xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, threads = 256>} : tensor<64x8192xf32> -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'strip' is left out for this operation, but got 4}}
  // expected-note @+1 {{leave 'strip' out, and fp4-plan-kernels decides it}}
  %1 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, threads = 256, strip = 4>} : tensor<64x8192xf32> -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// One row waits in shared memory.
func.func @stages(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'stages' is 1, but got 2}}
  // expected-note @+1 {{leave 'stages' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 2, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// A row without a strip waits for none.
func.func @alone(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'stages' is left out without strips, but got 1}}
  // expected-note @+1 {{leave 'stages' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, stages = 1, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// Rows of their own are behind strips.
func.func @singles(%x: tensor<256x4096xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %a0 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %x amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, single_rows = 64, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %a1 = fp4.amax %x {per_row, fp4.prologue} : tensor<256x4096xf32> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'single_rows' is left out without strips, but got 64}}
  // expected-note @+1 {{leave 'single_rows' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %x amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, single_rows = 64, threads = 128>}
      : (tensor<256x4096xf32>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}

// -----

// Threads have chunks of their results in shared memory.
#all = affine_map<(i, j) -> (i, j)>
#angle = affine_map<(i, j) -> (i, j mod 64)>
func.func @columns(%x: tensor<256x4096xbf16>, %c: tensor<256x64xbf16>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>) {
  %e = tensor.empty() : tensor<256x4096xbf16>
  %y0 = linalg.generic {indexing_maps = [#all, #angle, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<256x4096xbf16>, tensor<256x64xbf16>) outs(%e : tensor<256x4096xbf16>) attrs = {fp4.prologue} {
  ^bb0(%v: bf16, %a: bf16, %o: bf16):
    %m = arith.mulf %v, %a : bf16
    linalg.yield %m : bf16
  } -> tensor<256x4096xbf16>
  %a0 = fp4.amax %y0 {per_row, fp4.prologue} : tensor<256x4096xbf16> -> tensor<256xf32>
  %q0, %s0 = fp4.quantize %y0 amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, threads = 128>}
      : (tensor<256x4096xbf16>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  %y1 = linalg.generic {indexing_maps = [#all, #angle, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<256x4096xbf16>, tensor<256x64xbf16>) outs(%e : tensor<256x4096xbf16>) attrs = {fp4.prologue} {
  ^bb0(%v: bf16, %a: bf16, %o: bf16):
    %m = arith.mulf %v, %a : bf16
    linalg.yield %m : bf16
  } -> tensor<256x4096xbf16>
  %a1 = fp4.amax %y1 {per_row, fp4.prologue} : tensor<256x4096xbf16> -> tensor<256xf32>
  // expected-error @+2 {{must have a plan whose 'stages' is left out where results are of other columns, but got 1}}
  // expected-note @+1 {{leave 'stages' out, and fp4-plan-kernels decides it}}
  %q1, %s1 = fp4.quantize %y1 amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.plan = #fp4.plan<reduce_rows, strip = 4, stages = 1, threads = 128>}
      : (tensor<256x4096xbf16>, tensor<256xf32>) -> (tensor<256x4096xf4E2M1FN>, tensor<256x256xf8E4M3FN>)
  return %q0, %q1 : tensor<256x4096xf4E2M1FN>, tensor<256x4096xf4E2M1FN>
}
