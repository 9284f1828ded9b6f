// A field that the program and the options both set is that of the program: a warning at the operation names the winner
// and says what to change. A field that only one of them sets, or both alike, is no reason for a warning.
// RUN: split-file %s %t
// RUN: fp4-opt %t/all.mlir -verify-diagnostics -fp4-set-target=target=sm_90a \
// RUN:   "-fp4-plan-kernels=plans={tile_gemm, tile = [64, 128, 256]; m = [1, 8] : tile_gemm, stages = 2; reduce_grid, threads = 64}"
// The runner shows the warning too.
// RUN: fp4-runner %t/amax.mlir --emit=mlir --compile-to=planned --plan "reduce_grid, threads = 64, grid = 2" 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=LOST
// LOST: amax.mlir:2:{{[0-9]+}}: warning: fp4.plan of the program wins over the plan 'reduce_grid, threads = 64, grid = 2' of the options in: threads, grid
// LOST: note: leave threads, grid out of fp4.plan, and the options decide
// RUN: fp4-runner %t/amax.mlir --emit=mlir --compile-to=planned --plan "reduce_grid, threads = 128, items_per_thread = 2" 2>&1 >/dev/null \
// RUN:   | count 0

//--- amax.mlir
func.func @amax(%x: tensor<64x32xbf16>) -> tensor<f32> {
  %a = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 128, grid = 1>} : tensor<64x32xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

//--- all.mlir
func.func @amax(%x: tensor<64x32xbf16>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %twin = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
  %other = fp4.amax %x {nan = #fp4.nan_policy<propagate>, fp4.plan = #fp4.plan<reduce_grid, grid = 1>} : tensor<64x32xbf16> -> tensor<f32>
  %same = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 64, grid = 2>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-warning @+2 {{fp4.plan of the program wins over the plan 'reduce_grid, threads = 64' of the options in: threads}}
  // expected-note @+1 {{leave threads out of fp4.plan, and the options decide}}
  %lost = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 128>} : tensor<64x32xbf16> -> tensor<f32>
  return %twin, %other, %same, %lost : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>
func.func @rows(%x: tensor<?x8192xbf16>, %w: !w) -> (tensor<?x8192xbf16>, tensor<?x8192xbf16>) {
  %twin = fp4.matmul %x, %w
      {dispatch = [#fp4.case<m = [1, 8] : tile_gemm, stages = 2>, #fp4.case<m = [9, ?] : tile_gemm, stages = 3>]}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  // expected-warning @+2 {{dispatch of the program wins over the plan 'm = [1, 8] : tile_gemm, stages = 2' of the options in: stages}}
  // expected-note @+1 {{leave stages out of dispatch, and the options decide}}
  %lost = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 8] : tile_gemm, stages = 3>, #fp4.case<m = [9, ?] : tile_gemm>]}
      : (tensor<?x8192xbf16>, !w) -> tensor<?x8192xbf16>
  return %twin, %lost : tensor<?x8192xbf16>, tensor<?x8192xbf16>
}
