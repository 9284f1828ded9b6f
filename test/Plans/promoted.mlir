// RUN: fp4-opt %s -split-input-file -verify-diagnostics -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// Plans of GEMMs of FP8 with f32 scales: many rows have tiles of two parts; few have tiles of two blocks of
// scales, and 128 rows have two of them side by side; split-K by two is that of a cluster, and a ring has as many stages
// as their pieces leave room for. Split-K by four, whose clusters would take two waves, and tiles of two parts, reduce in a workspace.

!b = tensor<4096x7168xf8E4M3FN>
!sb = tensor<32x56xf32>

!lhs = !fp4.scaled<fp8_block128, tensor<4096x7168xf8E4M3FN>, tensor<4096x56xf32>>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// CHECK-LABEL: func.func @rows
// CHECK: tile = [256, 128, 128], schedule {{.*}} stages = 4
func.func @rows(%a: tensor<4096x7168xf8E4M3FN>, %sa: tensor<4096x56xf32>, %b: !b, %sb: !sb) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<4096x2048xf8E4M3FN>, tensor<4096x16xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<4096x2048xf8E4M3FN>, tensor<32x16xf32>>
// Tiles of few k tiles leave through shared memory, where a CTA has several of them.
// CHECK-LABEL: func.func @short
// CHECK: tile = [256, 128, 128], store = tma, schedule {{.*}} store warps 9 to 10 drives [bulk_store] {{.*}} stages = 3
func.func @short(%a: tensor<4096x2048xf8E4M3FN>, %sa: tensor<4096x16xf32>, %b: tensor<4096x2048xf8E4M3FN>, %sb: tensor<32x16xf32>) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

!lhs3 = !fp4.scaled<fp8_block128, tensor<4096x4096xf8E4M3FN>, tensor<4096x32xf32>>
!rhs3 = !fp4.scaled<fp8_block128, tensor<4096x4096xf8E4M3FN>, tensor<32x32xf32>>
// With 32 k tiles and more, three stages lose more than such stores gain.
// CHECK-LABEL: func.func @deeper
// CHECK: tile = [256, 128, 128], schedule {{.*}} stages = 4
func.func @deeper(%a: tensor<4096x4096xf8E4M3FN>, %sa: tensor<4096x32xf32>, %b: tensor<4096x4096xf8E4M3FN>, %sb: tensor<32x32xf32>) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs3) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

!lhs4 = !fp4.scaled<fp8_block128, tensor<300x1152xf8E4M3FN>, tensor<300x9xf32>>
!rhs4 = !fp4.scaled<fp8_block128, tensor<40x1152xf8E4M3FN>, tensor<1x9xf32>>
// The roles and the stages of the narrowest tile, which is there for who asks, are its own.
// CHECK-LABEL: func.func @narrow
// CHECK: tile = [64, 8, 128], {{.*}} math warps 0 to 4 {{.*}} stages = 16
// CHECK: tile = [64, 16, 128], {{.*}} math warps 0 to 4 {{.*}} stages = 16
func.func @narrow(%a: tensor<300x1152xf8E4M3FN>, %sa: tensor<300x9xf32>, %b: tensor<40x1152xf8E4M3FN>, %sb: tensor<1x9xf32>) -> (tensor<300x40xbf16>, tensor<300x40xbf16>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 8, 128]>}
      : (!lhs4, !rhs4) -> tensor<300x40xbf16>
  %z = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 16, 128]>}
      : (!lhs4, !rhs4) -> tensor<300x40xbf16>
  return %y, %z : tensor<300x40xbf16>, tensor<300x40xbf16>
}

!lhs5 = !fp4.scaled<fp8_block128, tensor<1024x2048xf8E4M3FN>, tensor<1024x16xf32>>
// CHECK-LABEL: func.func @one_wave
// CHECK: tile = [256, 128, 128], schedule {{.*}} stages = 4
func.func @one_wave(%a: tensor<1024x2048xf8E4M3FN>, %sa: tensor<1024x16xf32>, %b: tensor<4096x2048xf8E4M3FN>, %sb: tensor<32x16xf32>) -> tensor<1024x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs5, !rhs2) -> tensor<1024x4096xbf16>
  return %y : tensor<1024x4096xbf16>
}

!lhs6 = !fp4.scaled<fp8_block128, tensor<128x7168xf8E4M3FN>, tensor<128x56xf32>>
// CHECK-LABEL: func.func @beside
// CHECK: tile = [64, 64, 256], schedule {{.*}} stages = 6
func.func @beside(%a: tensor<128x7168xf8E4M3FN>, %sa: tensor<128x56xf32>, %b: !b, %sb: !sb) -> tensor<128x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs6, !rhs) -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}

!lhs7 = !fp4.scaled<fp8_block128, tensor<64x7168xf8E4M3FN>, tensor<64x56xf32>>
// CHECK-LABEL: func.func @two
// CHECK: tile = [64, 64, 256], cluster = [2, 1], schedule {{.*}} stages = 4
func.func @two(%a: tensor<64x7168xf8E4M3FN>, %sa: tensor<64x56xf32>, %b: !b, %sb: !sb) -> tensor<64x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>}
      : (!lhs7, !rhs) -> tensor<64x4096xbf16>
  return %y : tensor<64x4096xbf16>
}

// CHECK-LABEL: func.func @four
// CHECK: tile = [64, 128, 256], schedule {{.*}} stages = 4
func.func @four(%a: tensor<64x7168xf8E4M3FN>, %sa: tensor<64x56xf32>, %b: !b, %sb: !sb) -> tensor<64x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 4>}
      : (!lhs7, !rhs) -> tensor<64x4096xbf16>
  return %y : tensor<64x4096xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<256x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<128x512xf8E4M3FN>, tensor<1x4xf32>>
func.func @tall(%a: tensor<256x512xf8E4M3FN>, %sa: tensor<256x4xf32>, %b: tensor<128x512xf8E4M3FN>, %sb: tensor<1x4xf32>) -> tensor<256x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @below {{must have a plan whose 'cluster' is [1, 1], or [split_k / ranges, 1] for up to 8 split-K ranges of tiles of up to 128 rows, but got [2, 1]}}
  // expected-note @below {{}}
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], cluster = [2, 1]>}
      : (!lhs, !rhs) -> tensor<256x128xbf16>
  return %y : tensor<256x128xbf16>
}

// -----

// Many tiles along m are taken in panels along n, so that tiles that run at a time share rows of A. Wide tiles,
// of which a CTA has many, leave through shared memory. Groups with small M have the tiles
// that fill the last wave best, and four stages of the five that fit.
!a = tensor<32768x2048xf8E4M3FN>
!sa = tensor<32768x16xf32>
!b = tensor<16384x2048xf8E4M3FN>
!sb = tensor<128x16xf32>
!lhs = !fp4.scaled<fp8_block128, !a, !sa>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
// CHECK-LABEL: func.func @contiguous
// CHECK: tile = [128, 192, 128], store = tma, schedule = #pipe.static_persistent<panels<4>>, {{.*}} stages = 4
func.func @contiguous(%a: !a, %sa: !sa, %b: !b, %sb: !sb, %o: tensor<5xi64>) -> tensor<32768x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs, tensor<5xi64>) -> tensor<32768x4096xbf16>
  return %y : tensor<32768x4096xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<4096x2048xf8E4M3FN>, tensor<4096x16xf32>>
// CHECK-LABEL: func.func @few
// CHECK: tile = [128, 160, 128], schedule = #pipe.static_persistent<along_m>, {{.*}} stages = 4
func.func @few(%a: tensor<4096x2048xf8E4M3FN>, %sa: tensor<4096x16xf32>, %b: !b, %sb: !sb, %o: tensor<4x2xi64>) -> tensor<4096x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<expected_rows = 256>}
      : (!lhs2, !rhs, tensor<4x2xi64>) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<4096x1536xf8E4M3FN>, tensor<4096x12xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<24576x1536xf8E4M3FN>, tensor<192x12xf32>>
// Results of short GEMMs leave through shared memory. Wide tiles then take less than tall ones where they fill
// waves; tall ones are taken in panels, so that tiles that run at a time write longer pieces of rows.
// CHECK-LABEL: func.func @short_wide
// CHECK: tile = [128, 192, 128], store = tma, schedule = #pipe.static_persistent<along_m>, {{.*}} stages = 4
func.func @short_wide(%a: tensor<4096x1536xf8E4M3FN>, %sa: tensor<4096x12xf32>, %b: tensor<24576x1536xf8E4M3FN>, %sb: tensor<192x12xf32>) -> tensor<4096x24576xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x24576xbf16>
  return %y : tensor<4096x24576xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<4096x512xf8E4M3FN>, tensor<4096x4xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<32768x512xf8E4M3FN>, tensor<256x4xf32>>
// CHECK-LABEL: func.func @short_tall
// CHECK: tile = [256, 128, 128], store = tma, schedule = #pipe.static_persistent<panels<8>>, {{.*}} stages = 3
func.func @short_tall(%a: tensor<4096x512xf8E4M3FN>, %sa: tensor<4096x4xf32>, %b: tensor<32768x512xf8E4M3FN>, %sb: tensor<256x4xf32>) -> tensor<4096x32768xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<4096x32768xbf16>
  return %y : tensor<4096x32768xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<130x512xf8E4M3FN>, tensor<130x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<1024x512xf8E4M3FN>, tensor<8x4xf32>>
// A plan may ask for tiles that the planner never chooses: two scale blocks in the stages of groups, or of the widest
// tile where K is 512. Roles are those of the tile.
// CHECK-LABEL: func.func @deep_groups
// CHECK: tile = [64, 128, 256], {{.*}} math warps 0 to 4
func.func @deep_groups(%a: tensor<130x512xf8E4M3FN>, %sa: tensor<130x4xf32>, %b: tensor<1024x512xf8E4M3FN>, %sb: tensor<8x4xf32>) -> tensor<130x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [44, 86]>, fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (!lhs, !rhs) -> tensor<130x512xbf16>
  return %y : tensor<130x512xbf16>
}

// CHECK-LABEL: func.func @deep_short
// CHECK: tile = [64, 128, 256], {{.*}} math warps 0 to 4
func.func @deep_short(%a: tensor<130x512xf8E4M3FN>, %sa: tensor<130x4xf32>, %b: tensor<1024x512xf8E4M3FN>, %sb: tensor<8x4xf32>) -> tensor<130x1024xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (!lhs, !rhs) -> tensor<130x1024xbf16>
  return %y : tensor<130x1024xbf16>
}

!lhs8 = !fp4.scaled<fp8_block128, tensor<4096x5376xf8E4M3FN>, tensor<4096x42xf32>>
!rhs8 = !fp4.scaled<fp8_block128, tensor<5376x5376xf8E4M3FN>, tensor<42x42xf32>>
// Rows of 42 scales have the tiles of many rows, as those of 40 or 44 do. Their maps take the loading warp more than 24
// registers (test/Target/fp8-row-sets-cubin.mlir).
// CHECK-LABEL: func.func @sets
// CHECK: tile = [128, 192, 128], store = tma, {{.*}}load warps 8 to 9 drives [tma] registers 40, {{.*}} stages = 4
func.func @sets(%a: tensor<4096x5376xf8E4M3FN>, %sa: tensor<4096x42xf32>, %b: tensor<5376x5376xf8E4M3FN>, %sb: tensor<42x42xf32>) -> tensor<4096x5376xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs8
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs8, !rhs8) -> tensor<4096x5376xbf16>
  return %y : tensor<4096x5376xbf16>
}

!lhs9 = !fp4.scaled<fp8_block128, tensor<1024x5120xf8E4M3FN>, tensor<1024x40xf32>>
!rhs9 = !fp4.scaled<fp8_block128, tensor<6144x5120xf8E4M3FN>, tensor<48x40xf32>>
// Wide tiles have four stages of the five that fit, and leave through shared memory where a CTA has two of them.
// CHECK-LABEL: func.func @two_waves
// CHECK: tile = [128, 192, 128], store = tma, {{.*}} stages = 4
func.func @two_waves(%a: tensor<1024x5120xf8E4M3FN>, %sa: tensor<1024x40xf32>, %b: tensor<6144x5120xf8E4M3FN>, %sb: tensor<48x40xf32>) -> tensor<1024x6144xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs9
  %b_scaled = fp4.scaled %b, %sb : !rhs9
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs9, !rhs9) -> tensor<1024x6144xbf16>
  return %y : tensor<1024x6144xbf16>
}

!lhs10 = !fp4.scaled<fp8_block128, tensor<512x5120xf8E4M3FN>, tensor<512x40xf32>>
// CHECK-LABEL: func.func @wide_wave
// CHECK: tile = [128, 192, 128], schedule {{.*}} stages = 4
func.func @wide_wave(%a: tensor<512x5120xf8E4M3FN>, %sa: tensor<512x40xf32>, %b: tensor<6144x5120xf8E4M3FN>, %sb: tensor<48x40xf32>) -> tensor<512x6144xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs10
  %b_scaled = fp4.scaled %b, %sb : !rhs9
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs10, !rhs9) -> tensor<512x6144xbf16>
  return %y : tensor<512x6144xbf16>
}

!lhs11 = !fp4.scaled<fp8_block128, tensor<24x5376xf8E4M3FN>, tensor<24x42xf32>>
!rhs11 = !fp4.scaled<fp8_block128, tensor<12288x5376xf8E4M3FN>, tensor<96x42xf32>>
// Two waves of narrow tiles would take as long by what memory delivers, but rows of scales that come in sets delay
// the second one.
// CHECK-LABEL: func.func @one_wave_of_sets
// CHECK: tile = [64, 96, 256],
func.func @one_wave_of_sets(%a: tensor<24x5376xf8E4M3FN>, %sa: tensor<24x42xf32>, %b: tensor<12288x5376xf8E4M3FN>, %sb: tensor<96x42xf32>) -> tensor<24x12288xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs11
  %b_scaled = fp4.scaled %b, %sb : !rhs11
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs11, !rhs11) -> tensor<24x12288xbf16>
  return %y : tensor<24x12288xbf16>
}

!lhs12 = !fp4.scaled<fp8_block128, tensor<256x5120xf8E4M3FN>, tensor<256x40xf32>>
!rhs12 = !fp4.scaled<fp8_block128, tensor<5120x5120xf8E4M3FN>, tensor<40x40xf32>>
// Tiles of 96 columns take as long by the rates, and leave more SMs idle.
// CHECK-LABEL: func.func @least_work
// CHECK: tile = [128, 80, 128],
func.func @least_work(%a: tensor<256x5120xf8E4M3FN>, %sa: tensor<256x40xf32>, %b: tensor<5120x5120xf8E4M3FN>, %sb: tensor<40x40xf32>) -> tensor<256x5120xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs12
  %b_scaled = fp4.scaled %b, %sb : !rhs12
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs12, !rhs12) -> tensor<256x5120xbf16>
  return %y : tensor<256x5120xbf16>
}

// -----

// Threads of 128 x 160 select three scales, one for each 32 columns, and not one for each 8.
!lhs = !fp4.scaled<fp8_block128, tensor<4096x2048xf8E4M3FN>, tensor<4096x16xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<7168x2048xf8E4M3FN>, tensor<56x16xf32>>

// CHECK-LABEL: func.func @selections
// CHECK: tile = [128, 160, 128], store = tma, {{.*}} stages = 4
func.func @selections(%a: tensor<4096x2048xf8E4M3FN>, %sa: tensor<4096x16xf32>, %b: tensor<7168x2048xf8E4M3FN>, %sb: tensor<56x16xf32>) -> tensor<4096x7168xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x7168xbf16>
  return %y : tensor<4096x7168xbf16>
}

// -----

// Both GEMMs of a dual one have accumulators in a tile of 128 rows, and a stage has the tiles of both weights. Threads that
// quantize have 128 rows and whole blocks; where they read nothing else, a tile may have two parts.
!x = tensor<4096x7168xf8E4M3FN>
!sx = tensor<4096x56xf32>
!w = tensor<2048x7168xf8E4M3FN>
!sw = tensor<16x56xf32>
!lhs = !fp4.scaled<fp8_block128, !x, !sx>
!rhs = !fp4.scaled<fp8_block128, !w, !sw>
!codes = tensor<4096x2048xf8E4M3FN>
!scales = tensor<4096x16xf32>
// CHECK-LABEL: func.func @results
// CHECK: tile = [128, 128, 128], {{.*}} math warps 0 to 8 drives [tensor, threads] registers 240, {{.*}} stages = 4
// CHECK: tile = [256, 128, 128], {{.*}} registers 240, {{.*}} stages = 4
// CHECK: tile = [128, 128, 128], {{.*}} registers 240, {{.*}} stages = 4
func.func @results(%x: !x, %sx: !sx, %w: !w, %sw: !sw, %v: !w, %sv: !sw, %bias: tensor<1x2048xbf16>)
    -> (tensor<4096x2048xbf16>, !codes, !scales, !codes, !scales) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %v_scaled = fp4.scaled %v, %sv : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled with %v_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %gated = arith.mulf %gate, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } : (!lhs, !rhs, !rhs) -> tensor<4096x2048xbf16>
  %c, %s = fp4.matmul %x_scaled, %w_scaled epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!lhs, !rhs) -> (!codes, !scales)
  %d, %t = fp4.matmul %x_scaled, %w_scaled epilogue(%bias) {
  ^bb0(%sum: f32, %b: bf16):
    %wide = arith.extf %b : bf16 to f32
    %biased = arith.addf %sum, %wide : f32
    %z = arith.truncf %biased : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!lhs, !rhs, tensor<1x2048xbf16>) -> (!codes, !scales)
  return %y, %c, %s, %d, %t : tensor<4096x2048xbf16>, !codes, !scales, !codes, !scales
}

// A stage has the tiles of both weights: half as many stages fit as of one.
!lhs2 = !fp4.scaled<fp8_block128, tensor<40x7168xf8E4M3FN>, tensor<40x56xf32>>
// CHECK-LABEL: func.func @both
// CHECK: tile = [64, 128, 128], {{.*}} stages = 4
// CHECK: tile = [64, 128, 128], {{.*}} stages = 8
func.func @both(%x: tensor<40x7168xf8E4M3FN>, %sx: tensor<40x56xf32>, %w: !w, %sw: !sw) -> (tensor<40x2048xbf16>, tensor<40x2048xbf16>) {
  %x_scaled = fp4.scaled %x, %sx : !lhs2
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %x_scaled, %w_scaled with %w_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %gated = arith.mulf %gate, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    fp4.yield %z : bf16
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>} : (!lhs2, !rhs, !rhs) -> tensor<40x2048xbf16>
  %z = fp4.matmul %x_scaled, %w_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>}
      : (!lhs2, !rhs) -> tensor<40x2048xbf16>
  return %y, %z : tensor<40x2048xbf16>, tensor<40x2048xbf16>
}
