// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// Plans of every family, complete and with open fields; fields are printed in one order.

func.func private @families() attributes {
  // CHECK: a = #fp4.plan<tile_gemm, tile = [256, 128, 256], cluster = [2, 1], pair, store = tma, schedule = #pipe.static_persistent<panels<8>>, roles = #pipe.role_plan<load warps 0 to 1 drives [tma]>, stages = 3, accumulators = 1, ctas_per_sm = 1>
  a = #fp4.plan<tile_gemm, accumulators = 1, ctas_per_sm = 1, stages = 3, roles = #pipe.role_plan<load warps 0 to 1 drives [tma]>,
                schedule = #pipe.static_persistent<panels<8>>, tile = [256, 128, 256], pair, store = tma, cluster = [2, 1]>,
  // CHECK-SAME: b = #fp4.plan<tile_transform, tile = [64, 128], strip = 3>
  b = #fp4.plan<tile_transform, tile = [64, 128], strip = 3>,
  // CHECK-SAME: c = #fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>
  c = #fp4.plan<tile_quantize, threads = 256, ctas_per_sm = 3>,
  // CHECK-SAME: d = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 2, ctas_per_sm = 12, cache_hints>
  d = #fp4.plan<stream_blocks, cache_hints, ctas_per_sm = 12, threads = 128, blocks_per_thread = 2>,
  // CHECK-SAME: e = #fp4.plan<stream_items, threads = 256, items_per_thread = 4>
  e = #fp4.plan<stream_items, threads = 256, items_per_thread = 4>,
  // CHECK-SAME: f = #fp4.plan<reduce_grid, grid = 8>
  f = #fp4.plan<reduce_grid, grid = 8>,
  // CHECK-SAME: g = #fp4.plan<reduce_rows>
  g = #fp4.plan<reduce_rows>,
  // Equal plans are one attribute.
  // CHECK-SAME: h = #fp4.plan<reduce_rows>
  h = #fp4.plan<reduce_rows>,
  // CHECK-SAME: i = #fp4.plan<stream_blocks, order = descending, amax = same>
  i = #fp4.plan<stream_blocks, amax = same, order = descending>,
  // CHECK-SAME: j = #fp4.plan<tile_quantize, order = ascending>
  j = #fp4.plan<tile_quantize, order = ascending>,
  // CHECK-SAME: k = #fp4.plan<stream_blocks, amax = separate>
  k = #fp4.plan<stream_blocks, amax = separate>,
  // A route has its axes in one order, as an attribute and as a field of a plan.
  // CHECK-SAME: l = #fp4.plan<tile_gemm, route = <core = wgmma, b = pre, accumulate = promote(128)>, tile = [128, 128, 128]>
  l = #fp4.plan<tile_gemm, tile = [128, 128, 128], route = <accumulate = promote(128), b = pre, core = wgmma>>,
  // CHECK-SAME: m = #fp4.route<core = tcgen05, a = unit_scales, b = as_is, accumulate = core, orientation = normal>
  m = #fp4.route<core = tcgen05, a = unit_scales, b = as_is, accumulate = core, orientation = normal>
}

// CHECK-LABEL: func @on_an_operation
func.func @on_an_operation(%x: tensor<32x64xbf16>) -> tensor<f32> {
  // CHECK: fp4.amax %{{.*}} {fp4.plan = #fp4.plan<reduce_grid, threads = 128>}
  %a = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 128>} : tensor<32x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}
