// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics

// #fp4.plan (C1)
func.func private @ok() attributes {p = #fp4.plan<stream_items, threads = 64>}
// expected-error @+2 {{a plan of family stream_items has no field 'tile'}}
// expected-note @+1 {{fields of the family: threads, items_per_thread}}
func.func private @field() attributes {p = #fp4.plan<stream_items, tile = [128, 64, 256]>}

// -----

// #fp4.plan (C1)
// expected-error @+2 {{field 'threads' of a plan must be given once}}
// expected-note @+1 {{remove all but one of them}}
func.func private @twice() attributes {p = #fp4.plan<stream_items, threads = 64, threads = 64>}

// -----

// expected-error @+2 {{unknown family of kernels 'stream'}}
// expected-note @+1 {{known: tile_gemm, tile_transform, tile_quantize, stream_blocks, stream_items, reduce_grid, reduce_rows}}
func.func private @family() attributes {p = #fp4.plan<stream, threads = 64>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'threads' of a plan must be positive, but got 0}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @zero() attributes {p = #fp4.plan<stream_items, threads = 0>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'tile' of a plan must be positive, but got -64}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @negative() attributes {p = #fp4.plan<tile_gemm, tile = [128, -64, 256]>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'store' of a plan must be direct or tma, but got bulk}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @store() attributes {p = #fp4.plan<tile_gemm, store = bulk>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'order' of a plan must be ascending or descending, but got down}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @order() attributes {p = #fp4.plan<tile_quantize, order = down>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'pdl' of a plan must be before_wait or in_turn or behind_loads or at_end or none, but got early}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
#plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, pdl = early>

// -----

// expected-error @+2 {{'amax' of a plan must be separate or same, but got before}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @amax() attributes {p = #fp4.plan<stream_blocks, amax = before>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'tile' of a plan of family tile_gemm must have 3 sizes, but got 2}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @two() attributes {p = #fp4.plan<tile_gemm, tile = [128, 64]>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'tile' of a plan must have 1 to 3 sizes, but got 4}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @four() attributes {p = #fp4.plan<tile_gemm, tile = [128, 64, 256, 1]>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'cluster' of a plan of family tile_gemm must have 2 sizes, but got 3}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @cluster() attributes {p = #fp4.plan<tile_gemm, cluster = [2, 1, 1]>}

// -----

// #fp4.plan (C2)
// expected-error @+2 {{'wave_cost' of a plan of family tile_gemm must have 3 sizes, but got 2}}
// expected-note @+1 {{leave the field out, and fp4-plan-kernels decides it}}
func.func private @cost() attributes {p = #fp4.plan<tile_gemm, wave_cost = [2, 1]>}

// -----

// #fp4.plan (C3)
func.func @place(%x: tensor<32x64xbf16>) {
  %a = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid>} : tensor<32x64xbf16> -> tensor<f32>
  // expected-error @+2 {{attribute fp4.plan must be on an operation of the fp4 dialect or a linalg.generic}}
  // expected-note @+1 {{remove it: other operations have no kernel of fp4's}}
  return {fp4.plan = #fp4.plan<reduce_grid>}
}

// -----

// #fp4.plan (C3)
func.func @kind(%x: tensor<32x64xbf16>) {
  // expected-error @+2 {{attribute fp4.plan must be a plan such as #fp4.plan<stream_blocks>, but got 7 : i64}}
  // expected-note @+1 {{--emit=mlir --compile-to=planned shows the plan of every kernel}}
  %a = fp4.amax %x {fp4.plan = 7} : tensor<32x64xbf16> -> tensor<f32>
  return
}

// -----

// #fp4.route (C1)
func.func private @route_ok() attributes {p = #fp4.route<core = wgmma, accumulate = promote(128)>}
// expected-error @+2 {{a route has no axis 'c'}}
// expected-note @+1 {{axes: core, a, b, accumulate, orientation}}
func.func private @axis() attributes {p = #fp4.route<c = as_is>}

// -----

// #fp4.route (C1)
// expected-error @+2 {{axis 'core' of a route must be tcgen05 or wgmma or mma_sync or fma, but got wmma}}
// expected-note @+1 {{leave the axis out, and fp4-plan-kernels decides it}}
func.func private @word() attributes {p = #fp4.plan<tile_gemm, route = <core = wmma>>}

// -----

// #fp4.route (C1)
// expected-error @+2 {{axis 'accumulate' of a route must be core or promote(128) or fast, but got promote(64)}}
// expected-note @+1 {{leave the axis out, and fp4-plan-kernels decides it}}
func.func private @number() attributes {p = #fp4.plan<tile_gemm, route = <accumulate = promote(64)>>}

// -----

// #fp4.route (C1)
// expected-error @+2 {{axis 'a' of a route must be given once}}
// expected-note @+1 {{remove all but one of them}}
func.func private @axis_twice() attributes {p = #fp4.plan<gemv, route = <a = as_is, a = pre>>}
