// Gates begin while the kernel before them ends, and with few rows let the next one begin, too; what only adds or selects
// does not. CTAs that compute blocks of 16 are smaller than those of blocks of 32. Lanes of few rows have a block together.
// RUN: fp4-opt %s --target=sm_90a --compile-to=planned | FileCheck %s
// RUN: fp4-opt %s --target=sm_100a --compile-to=planned | FileCheck %s

!x = tensor<?x7168xbf16>
#all = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: func.func @silu
// CHECK: fp4.dispatch = [#fp4.case<m = [1, {{75|84}}] : stream_items, threads = 32, items_per_thread = 1, pdl = in_turn>], fp4.plan = #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = at_end>
func.func @silu(%g: !x, %u: !x, %out: !x) -> !x {
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : !x, !x) outs(%out : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %one = arith.constant 1.0 : f32
    %x = arith.extf %a : bf16 to f32
    %z = arith.extf %b : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %x, %d : f32
    %p = arith.mulf %q, %z : f32
    %r = arith.truncf %p : f32 to bf16
    linalg.yield %r : bf16
  } -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @sum
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 256, items_per_thread = 1>
func.func @sum(%g: !x, %u: !x) -> !x {
  %y = arith.addf %g, %u : !x
  return %y : !x
}

// CHECK-LABEL: func.func @nvfp4
// CHECK: fp4.quantize {{.*}}fp4.dispatch = [#fp4.case<m = [1, {{75|84}}] : stream_blocks, threads = 128, blocks_per_thread = 1, lanes_per_block = 2, pdl = behind_loads>], fp4.plan = #fp4.plan<stream_blocks, threads = 64, blocks_per_thread = 1, pdl = at_end>
func.func @nvfp4(%g: !x, %a: tensor<f32>) -> (tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!x, tensor<f32>) -> (tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>)
  return %q, %s : tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>
}

// CHECK-LABEL: func.func @mxfp8
// CHECK: fp4.quantize {{.*}}fp4.dispatch = [#fp4.case<m = [1, {{75|84}}] : stream_blocks, threads = 128, blocks_per_thread = 1, lanes_per_block = 4, pdl = behind_loads>], fp4.plan = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, pdl = at_end>
func.func @mxfp8(%g: !x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (!x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>)
  return %q, %s : tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>
}

// Blocks that are rounded stochastically have a thread each, in CTAs of more threads for few rows.
// CHECK-LABEL: func.func @random
// CHECK: fp4.quantize {{.*}}fp4.dispatch = [#fp4.case<m = [1, {{150|169}}] : stream_blocks, threads = 256, blocks_per_thread = 1, pdl = behind_loads>], fp4.plan = #fp4.plan<stream_blocks, threads = 64, blocks_per_thread = 1, pdl = at_end>
func.func @random(%g: !x, %a: tensor<f32>, %r: tensor<2xi64>) -> (tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y amax %a rng %r {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (!x, tensor<f32>, tensor<2xi64>) -> (tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>)
  return %q, %s : tensor<?x7168xf4E2M1FN>, tensor<?x448xf8E4M3FN>
}

// Rows that are scattered have one plan, which waits for the kernel before.
// CHECK-LABEL: func.func @scattered
// CHECK: fp4.quantize
// CHECK-NOT: fp4.dispatch
// CHECK-SAME: #fp4.plan<reduce_rows, {{.*}}pdl = at_end>
func.func @scattered(%k: tensor<?x256xbf16>, %slots: tensor<?x1xi64>) -> (tensor<96x256xf8E4M3FN>, tensor<96x1xf32>) {
  %q, %s = fp4.quantize %k {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>} : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x1xf32>)
  %e = tensor.empty() : tensor<96x256xf8E4M3FN>
  %f = tensor.empty() : tensor<96x1xf32>
  %c = tensor.scatter %q into %e[%slots] scatter_dims([0]) unique : (tensor<?x256xf8E4M3FN>, tensor<96x256xf8E4M3FN>, tensor<?x1xi64>) -> tensor<96x256xf8E4M3FN>
  %d = tensor.scatter %s into %f[%slots] scatter_dims([0]) unique : (tensor<?x1xf32>, tensor<96x1xf32>, tensor<?x1xi64>) -> tensor<96x1xf32>
  return %c, %d : tensor<96x256xf8E4M3FN>, tensor<96x1xf32>
}

// Bytes that nobody combines have a thread for each 16 elements, and wider ones half as many.
// CHECK-LABEL: func.func @scattered_bytes
// CHECK: #fp4.plan<reduce_rows, threads = 448, {{.*}}pdl = at_end>
func.func @scattered_bytes(%x: !x, %slots: tensor<?x1xi64>) -> tensor<96x7168xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %x, %c0 : !x
  %e = tensor.empty(%height) : tensor<?x7168xf8E4M3FN>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : tensor<?x7168xf8E4M3FN>) {
  ^bb0(%a: bf16, %o: f8E4M3FN):
    %f = arith.extf %a : bf16 to f32
    %n = arith.negf %f : f32
    %r = arith.truncf %n : f32 to f8E4M3FN
    linalg.yield %r : f8E4M3FN
  } -> tensor<?x7168xf8E4M3FN>
  %cache = tensor.empty() : tensor<96x7168xf8E4M3FN>
  %c = tensor.scatter %y into %cache[%slots] scatter_dims([0]) unique : (tensor<?x7168xf8E4M3FN>, tensor<96x7168xf8E4M3FN>, tensor<?x1xi64>) -> tensor<96x7168xf8E4M3FN>
  return %c : tensor<96x7168xf8E4M3FN>
}
// CHECK-LABEL: func.func @scattered_elements
// CHECK: #fp4.plan<reduce_rows, threads = 224, pdl = at_end>
func.func @scattered_elements(%x: !x, %slots: tensor<?x1xi64>) -> tensor<96x7168xbf16> {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %x, %c0 : !x
  %e = tensor.empty(%height) : tensor<?x7168xbf16>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : tensor<?x7168xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %n = arith.negf %f : f32
    %r = arith.truncf %n : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<?x7168xbf16>
  %cache = tensor.empty() : tensor<96x7168xbf16>
  %c = tensor.scatter %y into %cache[%slots] scatter_dims([0]) unique : (tensor<?x7168xbf16>, tensor<96x7168xbf16>, tensor<?x1xi64>) -> tensor<96x7168xbf16>
  return %c : tensor<96x7168xbf16>
}

// A row that is a block has a thread for each 16 elements.
// CHECK-LABEL: func.func @fp8_rows
// CHECK: fp4.quantize {{.*}}fp4.dispatch = [#fp4.case<m = [1, {{132|148}}] : stream_blocks, threads = 448, blocks_per_thread = 1, lanes_per_block = 448, pdl = behind_loads>], fp4.plan = #fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, pdl = at_end>
func.func @fp8_rows(%g: !x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x1xf32>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 7168>}
      : (!x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x7168xf8E4M3FN>, tensor<?x1xf32>
}

// Static rows are few or many, here, too.
// CHECK-LABEL: func.func @mxfp4
// CHECK-NOT: fp4.dispatch
// CHECK: fp4.quantize {{.*}}#fp4.plan<stream_blocks, threads = 128, blocks_per_thread = 1, lanes_per_block = 4, ctas_per_sm = 6, pdl = behind_loads>
func.func @mxfp4(%g: tensor<64x7168xbf16>) -> (tensor<64x7168xf4E2M1FN>, tensor<64x224xf8E8M0FNU>) {
  %y = math.exp %g : tensor<64x7168xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<64x7168xbf16>) -> (tensor<64x7168xf4E2M1FN>, tensor<64x224xf8E8M0FNU>)
  return %q, %s : tensor<64x7168xf4E2M1FN>, tensor<64x224xf8E8M0FNU>
}

// A quantizer of what memory has does not wait for other kernels than its amax.
// CHECK-LABEL: func.func @stored
// CHECK: fp4.quantize
// CHECK-NOT: fp4.dispatch
// CHECK-SAME: #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1>
func.func @stored(%g: !x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>) {
  %q, %s = fp4.quantize %g {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>}
      : (!x) -> (tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>)
  return %q, %s : tensor<?x7168xf8E4M3FN>, tensor<?x224xf8E8M0FNU>
}

// Static rows are few or many.
// CHECK-LABEL: func.func @few
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = in_turn>
func.func @few(%g: tensor<75x7168xbf16>) -> tensor<75x7168xbf16> {
  %y = math.exp %g : tensor<75x7168xbf16>
  return %y : tensor<75x7168xbf16>
}

// CHECK-LABEL: func.func @many
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = at_end>
func.func @many(%g: tensor<85x7168xbf16>) -> tensor<85x7168xbf16> {
  %y = math.exp %g : tensor<85x7168xbf16>
  return %y : tensor<85x7168xbf16>
}

// Nothing is known of rows whose columns are dynamic, nor of elements without rows.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = at_end>
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = at_end>
func.func @dynamic(%g: tensor<?x?xbf16>, %v: tensor<?xbf16>) -> (tensor<?x?xbf16>, tensor<?xbf16>) {
  %y = math.exp %g : tensor<?x?xbf16>
  %z = math.exp %v : tensor<?xbf16>
  return %y, %z : tensor<?x?xbf16>, tensor<?xbf16>
}

// A plan that the program gives is for all rows, and its cases stay.
// CHECK-LABEL: func.func @given
// CHECK-NOT: fp4.dispatch
// CHECK: #fp4.plan<stream_items, threads = 64, items_per_thread = 1, pdl = at_end>
// CHECK: fp4.dispatch = [#fp4.case<m = [1, 9] : stream_items, threads = 96, items_per_thread = 1, pdl = in_turn>], fp4.plan = #fp4.plan<stream_items, threads = 32, items_per_thread = 1, pdl = at_end>
func.func @given(%g: !x, %out: !x) -> (!x, !x) {
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g : !x) outs(%out : !x) attrs = {fp4.plan = #fp4.plan<stream_items, threads = 64>} {
  ^bb0(%a: bf16, %o: bf16):
    %e = math.exp %a : bf16
    linalg.yield %e : bf16
  } -> !x
  %z = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g : !x) outs(%out : !x) attrs = {fp4.dispatch = [#fp4.case<m = [1, 9] : stream_items, threads = 96>]} {
  ^bb0(%a: bf16, %o: bf16):
    %e = math.log %a : bf16
    linalg.yield %e : bf16
  } -> !x
  return %y, %z : !x, !x
}
