// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target=target=sm_100a -fp4-plan-kernels | FileCheck %s
// Plans of GEMMs of FP8 with f32 scales whose sums are in tensor memory: many rows have tiles of 256 columns,
// which two warpgroups share, and few have as many columns as give every SM a tile. A thread has the sums of two GEMMs
// of half as many columns. Threads quantize whole blocks, or two warpgroups the halves of one of 128.

!b = tensor<4096x7168xf8E4M3FN>
!sb = tensor<32x56xf32>

!lhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<4096x56xf32>>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// CHECK-LABEL: func.func @rows
// CHECK: tile = [128, 256, 128], schedule
// CHECK-SAME: promote warps 0 to 8 drives [threads]
func.func @rows(%a: tensor<4096x7168xf8E4M3FN>, %sa: tensor<4096x56xf32>, %b: !b, %sb: !sb) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<64x7168xf8E4M3FN>, tensor<64x56xf32>>
// CHECK-LABEL: func.func @few
// CHECK: tile = [128, 32, 128], schedule
// CHECK-SAME: promote warps 0 to 4 drives [threads]
func.func @few(%a: tensor<64x7168xf8E4M3FN>, %sa: tensor<64x56xf32>, %b: !b, %sb: !sb) -> tensor<64x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs) -> tensor<64x4096xbf16>
  return %y : tensor<64x4096xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<128x512xf8E4M3FN>, tensor<1x4xf32>>
func.func @tile(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<128x512xf8E4M3FN>, %sb: tensor<1x4xf32>) -> tensor<256x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @below {{must have a plan whose 'tile' is [128, n, 128] with n = 16, 32, 64, 128 or 256, but got [128, 96, 128]}}
  // expected-note @below {{}}
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 96, 128]>}
      : (!lhs, !rhs) -> tensor<256x128xbf16>
  return %y : tensor<256x128xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<128x512xf8E4M3FN>, tensor<1x4xf32>>
func.func @pair(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<128x512xf8E4M3FN>, %sb: tensor<1x4xf32>) -> tensor<256x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @below {{must have a plan whose 'tile' is, with 'pair', [256, n, 128] with n = 32, 64, 128 or 256, but got [128, 128, 128]}}
  // expected-note @below {{}}
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], pair>}
      : (!lhs, !rhs) -> tensor<256x128xbf16>
  return %y : tensor<256x128xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @ranges(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @below {{must have a plan whose 'tile' has at most 128 columns for split-K, but got 256}}
  // expected-note @below {{}}
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @roles(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @below {{must have a plan whose 'roles' drive the engine threads with 8 warps from a multiple of 4, but got}}
  // expected-note @below {{}}
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor], promote warps 0 to 4 drives [threads]>>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
// The first has a cluster that fits; that of the second is too large to be counted.
func.func @clusters(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %fits = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 2]>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  // expected-error @below {{must have a plan whose 'cluster' has powers of two, of at most 16 CTAs on sm_100a, but got [4611686018427387904, 4]}}
  // expected-note @below {{leave 'cluster' out}}
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [4611686018427387904, 4]>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  return
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @stores(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %direct = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, accumulators = 2>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  // expected-error @below {{must have a plan without 'store', which route <core = tcgen05, a = as_is, b = as_is, accumulate = promote(128), orientation = normal> does not read}}
  // expected-note @below {{fields that the route reads: route, tile, cluster, pair, schedule}}
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, store = tma>}
      : (!lhs, !rhs) -> tensor<256x256xbf16>
  return
}

// -----

!x = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<4096x56xf32>>
!w = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<32x56xf32>>
// CHECK-LABEL: func.func @gate
// CHECK: tile = [128, 128, 128], schedule
// CHECK-SAME: promote warps 0 to 8 drives [threads] registers 232
func.func @gate(%qx: tensor<4096x7168xf8E4M3FN>, %sx: tensor<4096x56xf32>, %qw: tensor<4096x7168xf8E4M3FN>, %sw: tensor<32x56xf32>, %qv: tensor<4096x7168xf8E4M3FN>, %sv: tensor<32x56xf32>) -> tensor<4096x4096xbf16> {
  %x = fp4.scaled %qx, %sx : !x
  %w = fp4.scaled %qw, %sw : !w
  %v = fp4.scaled %qv, %sv : !w
  %y = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %all = arith.mulf %sum, %gate : f32
    %z = arith.truncf %all : f32 to bf16
    fp4.yield %z : bf16
  } : (!x, !w, !w) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

!few = !fp4.scaled<fp8_block128, tensor<16x7168xf8E4M3FN>, tensor<16x56xf32>>
// One warpgroup would have half of a block.
// CHECK-LABEL: func.func @codes
// CHECK: tile = [128, 128, 128], schedule
func.func @codes(%qx: tensor<16x7168xf8E4M3FN>, %sx: tensor<16x56xf32>, %qw: tensor<4096x7168xf8E4M3FN>, %sw: tensor<32x56xf32>) -> (tensor<16x4096xf8E4M3FN>, tensor<16x32xf32>) {
  %x = fp4.scaled %qx, %sx : !few
  %w = fp4.scaled %qw, %sw : !w
  %q, %s = fp4.matmul %x, %w epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!few, !w) -> (tensor<16x4096xf8E4M3FN>, tensor<16x32xf32>)
  return %q, %s : tensor<16x4096xf8E4M3FN>, tensor<16x32xf32>
}

// -----

!x = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!w = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @wide_gate(%qx: tensor<256x512xf8E4M3FN>, %sx: tensor<256x4xf32>, %qw: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>, %qv: tensor<256x512xf8E4M3FN>, %sv: tensor<2x4xf32>) -> tensor<256x256xf32> {
  %x = fp4.scaled %qx, %sx : !x
  %w = fp4.scaled %qw, %sw : !w
  %v = fp4.scaled %qv, %sv : !w
  // expected-error @below {{must have a plan whose 'tile' is [128, n, 128] with n = 16, 32, 64 or 128, but got [128, 256, 128]}}
  // expected-note @below {{}}
  %y = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %all = arith.mulf %sum, %gate : f32
    fp4.yield %all : f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>} : (!x, !w, !w) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

!x = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!w = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @half_block(%qx: tensor<256x512xf8E4M3FN>, %sx: tensor<256x4xf32>, %qw: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>) -> (tensor<256x256xf8E4M3FN>, tensor<256x2xf32>) {
  %x = fp4.scaled %qx, %sx : !x
  %w = fp4.scaled %qw, %sw : !w
  // expected-error @below {{must have a plan whose 'tile' is [128, n, 128] with n = 128 or 256, but got [128, 64, 128]}}
  // expected-note @below {{}}
  %q, %s = fp4.matmul %x, %w epilogue() {
  ^bb0(%sum: f32):
    %code, %scale = fp4.epilogue_quantize %sum {recipe = #fp4.recipe<fp8_deepgemm>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>} : (!x, !w) -> (tensor<256x256xf8E4M3FN>, tensor<256x2xf32>)
  return %q, %s : tensor<256x256xf8E4M3FN>, tensor<256x2xf32>
}

// -----

!x = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!w = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @half_square(%qx: tensor<256x512xf8E4M3FN>, %sx: tensor<256x4xf32>, %qw: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>) -> (tensor<256x256xf4E2M1FN>, tensor<256x8xf8E8M0FNU>) {
  %x = fp4.scaled %qx, %sx : !x
  %w = fp4.scaled %qw, %sw : !w
  // expected-error @below {{must have a plan whose 'tile' is [128, n, 128] with n = 32, 64, 128 or 256, but got [128, 16, 128]}}
  // expected-note @below {{}}
  %q, %s = fp4.matmul %x, %w epilogue() {
  ^bb0(%sum: f32):
    %code, %scale = fp4.epilogue_quantize %sum {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>} : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 16, 128]>} : (!x, !w) -> (tensor<256x256xf4E2M1FN>, tensor<256x8xf8E8M0FNU>)
  return %q, %s : tensor<256x256xf4E2M1FN>, tensor<256x8xf8E8M0FNU>
}

// -----

!w = tensor<32x32x8704xi8, #fp4.weight_layout<wgmma>>
// Beside two GEMMs of 64 rows, two warpgroups convert.
// CHECK-LABEL: func.func @weight_gate
// CHECK: tile = [64, 128, 128], schedule
// CHECK-SAME: convert warps 4 to 12
func.func @weight_gate(%x: tensor<4096x4096xf8E4M3FN>, %w: !w, %v: !w) -> tensor<4096x4096xf32> {
  %y = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %all = arith.mulf %sum, %gate : f32
    fp4.yield %all : f32
  } : (tensor<4096x4096xf8E4M3FN>, !w, !w) -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

!w = tensor<2x4x8704xi8, #fp4.weight_layout<wgmma>>
func.func @tall_weight_gate(%x: tensor<256x512xf8E4M3FN>, %w: !w, %v: !w) -> tensor<256x256xf32> {
  // expected-error @below {{must have a plan whose 'tile' has up to 64 rows, whose sums threads have in a dual GEMM, but got 128}}
  // expected-note @below {{}}
  %y = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %all = arith.mulf %sum, %gate : f32
    fp4.yield %all : f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (tensor<256x512xf8E4M3FN>, !w, !w) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
