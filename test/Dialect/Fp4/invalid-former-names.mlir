// RUN: fp4-opt %s --split-input-file --verify-diagnostics
// Words that were renamed are errors, and the note has the present word. The last function of each
// kind is right.

// expected-error @+2 {{unknown family of kernels 'tile_product'}}
// expected-note @+1 {{'tile_product' is called 'tile_gemm' now}}
#plan = #fp4.plan<tile_product>

// -----

// expected-error @+2 {{a plan of family stream_blocks has no field 'resident'}}
// expected-note @+1 {{'resident' is called 'ctas_per_sm' now}}
#plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, resident = 2>

// -----

// expected-error @+2 {{a plan of family tile_gemm has no field 'overlap'}}
// expected-note @+1 {{'overlap' is called 'pdl' now}}
#plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], overlap = both>

// -----

// expected-error @+2 {{a plan of family tile_gemm has no field 'split_k'}}
// expected-note @+1 {{'split_k' is called 'split_k of #fp4.case or of #fp4.work' now}}
#plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], split_k = 2>

// -----

// expected-error @+2 {{'pdl' of a plan must be before_wait or in_turn or behind_loads or at_end or none, but got both}}
// expected-note @+1 {{'pdl = both' is called 'pdl = before_wait of GEMMs, behind_loads of stream_blocks, else in_turn' now}}
#plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], pdl = both>

// -----

// expected-error @+2 {{'pdl' of a plan must be before_wait or in_turn or behind_loads or at_end or none, but got waits}}
// expected-note @+1 {{'pdl = waits' is called 'pdl = at_end' now}}
#plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, pdl = waits>

// -----

#plan = #fp4.plan<stream_blocks, threads = 256, blocks_per_thread = 1, pdl = at_end>

// -----

// expected-error @+2 {{'func.func' op unknown attribute 'fp4.overlaps'}}
// expected-note @+1 {{'fp4.overlaps' is called 'fp4.pdl' now}}
func.func @f() attributes {fp4.overlaps} {
  return
}

// -----

// expected-error @+2 {{'func.func' op unknown attribute 'fp4.waits'}}
// expected-note @+1 {{'fp4.waits' is called 'fp4.pdl = #fp4.launch_dependents<at_end>' now}}
func.func private @f() attributes {fp4.waits}

// -----

// expected-error @+2 {{'func.func' op unknown attribute 'fp4.pdl_in_turn'}}
// expected-note @+1 {{'fp4.pdl_in_turn' is called 'fp4.pdl = #fp4.launch_dependents<in_turn>' now}}
func.func private @f() attributes {fp4.pdl_in_turn}

// -----

// expected-error @+2 {{'func.func' op unknown attribute 'fp4.pdl_behind_loads'}}
// expected-note @+1 {{'fp4.pdl_behind_loads' is called 'fp4.pdl = #fp4.launch_dependents<behind_loads>' now}}
func.func private @f() attributes {fp4.pdl_behind_loads}

// -----

func.func private @f() attributes {fp4.pdl = #fp4.launch_dependents<before_wait>}
func.func private @g() attributes {fp4.pdl = #fp4.launch_dependents<at_end>}
func.func private @h() attributes {fp4.pdl = #fp4.launch_dependents<in_turn>}
func.func private @i() attributes {fp4.pdl = #fp4.launch_dependents<behind_loads>}

// -----

// expected-error @+2 {{a target has no field 'multiprocessors'}}
// expected-note @+1 {{'multiprocessors' is called 'sms' now}}
#target = #fp4.target<sm_100a, multiprocessors = 66>

// -----

// expected-error @+2 {{a target has no field 'cores'}}
// expected-note @+1 {{sms = N is the number of SMs that kernels may fill}}
#target = #fp4.target<sm_100a, cores = 66>

// -----

// expected-error @+2 {{unknown attribute `product_arithmetic` in dialect `fp4`}}
// expected-note @+1 {{'product_arithmetic' is called 'matmul_arithmetic' now}}
#arithmetic = #fp4.product_arithmetic<fma>

// -----

// expected-error @+1 {{unknown attribute `arithmetics` in dialect `fp4`}}
#arithmetic = #fp4.arithmetics<fma>

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.store_tile' is unknown}}
  // expected-note @+1 {{'pipe.store_tile' is called 'pipe.store' now}}
  pipe.store_tile
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.copied_scales' is unknown}}
  // expected-note @+1 {{'pipe.copied_scales' is called 'pipe.copy_scales copied' now}}
  pipe.copied_scales
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.mma_blockwise' is unknown}}
  // expected-note @+1 {{'pipe.mma_blockwise' is called 'pipe.mma' now}}
  pipe.mma_blockwise
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.load_scalar' is unknown}}
  // expected-note @+1 {{'pipe.load_scalar' is called 'pipe.load_entry' now}}
  pipe.load_scalar
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.load_factors' is unknown}}
  // expected-note @+1 {{'pipe.load_factors' is called 'pipe.fetch' now}}
  pipe.load_factors
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.matrix' is unknown}}
  // expected-note @+1 {{'pipe.matrix' is called 'pipe.view' now}}
  pipe.matrix
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.mma_sync' is unknown}}
  // expected-note @+1 {{'pipe.mma_sync' is called 'pipe.mma' now}}
  pipe.mma_sync
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.unpack_lanes' is unknown}}
  // expected-note @+1 {{'pipe.unpack_lanes' is called 'pipe.dequantize' now}}
  pipe.unpack_lanes
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.load_rows' is unknown}}
  // expected-note @+1 {{'pipe.load_rows' is called 'pipe.load' now}}
  pipe.load_rows
  return
}

// -----

func.func @operation() {
  // expected-error @+2 {{custom op 'pipe.hold_weights' is unknown}}
  // expected-note @+1 {{'pipe.hold_weights' is called 'pipe.dequantize' now}}
  pipe.hold_weights
  return
}

// -----

#plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], pdl = before_wait, ctas_per_sm = 1>
#target = #fp4.target<sm_100a, sms = 66>
#arithmetic = #fp4.matmul_arithmetic<fma>
func.func private @right() attributes {a = #plan, b = #target, c = #arithmetic}
