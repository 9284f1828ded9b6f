// Lowerings choose nothing: an operation without a plan, or with a part of one, is an error that names the pass.
// RUN: fp4-opt %s -split-input-file -fp4-set-target -convert-fp4-to-gpu -convert-fp4-to-pipe -verify-diagnostics

func.func @stream(%x: tensor<64x32xbf16>) {
  // expected-error @+2 {{must have a plan before it is lowered}}
  // expected-note @+1 {{run fp4-plan-kernels first}}
  %0 = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @product(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // expected-error @+2 {{must have a plan before it is lowered}}
  // expected-note @+1 {{run fp4-plan-kernels first}}
  %0 = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

func.func @partial(%x: tensor<64x32xbf16>) {
  %0 = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 32, items_per_thread = 1, grid = 1>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{must have a complete plan before it is lowered, but 'grid' is missing}}
  // expected-note @+1 {{run fp4-plan-kernels, which completes plans}}
  %1 = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 32, items_per_thread = 1>} : tensor<64x32xbf16> -> tensor<f32>
  return
}

// -----

// A plan that was written by hand is checked here too.
func.func @misfit(%x: tensor<64x32xbf16>) {
  // expected-error @+2 {{must have a plan whose 'threads' are a power of two, but got 96}}
  // expected-note @+1 {{leave 'threads' out, and fp4-plan-kernels decides it}}
  %0 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, threads = 96>} : tensor<64x32xbf16> -> tensor<64xf32>
  return
}

// -----

// Plans for few rows are complete, too.
func.func @few(%y: tensor<?x512xf32>) {
  %a0 = fp4.amax %y {per_row, fp4.prologue} : tensor<?x512xf32> -> tensor<?xf32>
  %q0, %s0 = fp4.quantize %y amax %a0 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 64>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  %a1 = fp4.amax %y {per_row, fp4.prologue} : tensor<?x512xf32> -> tensor<?xf32>
  // expected-error @+2 {{must have a complete plan before it is lowered, but 'threads' is missing}}
  // expected-note @+1 {{run fp4-plan-kernels, which completes plans}}
  %q1, %s1 = fp4.quantize %y amax %a1 {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>], fp4.plan = #fp4.plan<reduce_rows, threads = 128>} : (tensor<?x512xf32>, tensor<?xf32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>)
  return
}
