// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

!lhs = !fp4.scaled<fp8_block128, tensor<128x1024xf8E4M3FN>, tensor<128x8xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<128x1024xf8E4M3FN>, tensor<1x8xf32>>
// Both GEMMs of a dual one have an accumulator each, and their sums in one fragment. Scales of rows are those of one tile,
// and those of columns come from the scales of each weights. Codes of the gate are made of gathered rows.
// CHECK-LABEL: gpu.func @kernel
// CHECK-COUNT-2: pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
// CHECK: scf.for
// CHECK:   %[[SX:.*]] = pipe.load {{.*}} : !pipe.tensor_map<128x4xf32>
// CHECK:   %[[SW:.*]] = pipe.load %[[MW:.*]][{{.*}} : !pipe.tensor_map<1x4xf32>
// CHECK:   %[[SV:.*]] = pipe.load %[[MV:.*]][{{.*}} : !pipe.tensor_map<1x4xf32>
// CHECK:   scf.for
// CHECK:     %[[X:.*]] = pipe.load
// CHECK:     %[[W:.*]] = pipe.load
// CHECK:     %[[V:.*]] = pipe.load
// CHECK:     %[[SUMS:.*]] = pipe.accumulator
// CHECK:     %[[S0:.*]] = pipe.scales %[[SX]][0], %[[SW]] block
// CHECK:     %[[S1:.*]] = pipe.scales %[[SX]][0], %[[SV]] block
// CHECK:     pipe.mma %[[SUMS]], %[[X]], %[[W]] :
// CHECK:     pipe.promote %[[ACC:.*]], %[[SUMS]] scaled %[[S0]]
// CHECK:     pipe.mma %[[SUMS]], %[[X]], %[[V]] :
// CHECK:     pipe.promote %[[ACC2:.*]], %[[SUMS]] scaled %[[S1]]
// CHECK: pipe.read %[[ACC]]
// CHECK: pipe.read %[[ACC2]]
// CHECK: pipe.gather_rows
// CHECK: pipe.quantize_blocks
func.func @gate(%x: tensor<128x1024xf8E4M3FN>, %sx: tensor<128x8xf32>, %w: tensor<128x1024xf8E4M3FN>, %sw: tensor<1x8xf32>,
    %v: tensor<128x1024xf8E4M3FN>, %sv: tensor<1x8xf32>) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>) {
  %x_scaled = fp4.scaled %x, %sx : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %v_scaled = fp4.scaled %v, %sv : !rhs
  %c, %s = fp4.matmul %x_scaled, %w_scaled with %v_scaled epilogue() {
  ^bb0(%gate: f32, %up: f32):
    %gated = arith.mulf %gate, %up : f32
    %z = arith.truncf %gated : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!lhs, !rhs, !rhs) -> (tensor<128x128xf8E4M3FN>, tensor<128x1xf32>)
  return %c, %s : tensor<128x128xf8E4M3FN>, tensor<128x1xf32>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<512x768xf8E4M3FN>, tensor<512x6xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x768xf8E4M3FN>, tensor<2x6xf32>>
// The parts of a tile have an accumulator each, and their sums in one fragment. Rows of parts are numbers of
// the tile and not of the k tile, and so are the pointers to their scales, where K has parts
// that are no multiple of 512.
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[NEXT:.*]] = arith.addi %[[ROW:.*]], %c128
// CHECK-COUNT-2: pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
// CHECK: scf.for %[[K:.*]] =
// CHECK:   %[[SUMS:.*]] = pipe.accumulator
// CHECK:   %[[S0:.*]] = pipe.scales %{{.*}}[%[[ROW]]]
// CHECK:   %[[S1:.*]] = pipe.scales %{{.*}}[%[[NEXT]]]
// CHECK:   pipe.mma %[[SUMS]], %[[A:.*]], %[[B:.*]] :
// CHECK:   pipe.promote %{{.*}}, %[[SUMS]] scaled %[[S0]]
// CHECK:   pipe.mma %[[SUMS]], %[[A]][128], %[[B]] :
// CHECK:   pipe.promote %{{.*}}, %[[SUMS]] scaled %[[S1]]
func.func @parts(%a: tensor<512x768xf8E4M3FN>, %sa: tensor<512x6xf32>, %b: tensor<256x768xf8E4M3FN>, %sb: tensor<2x6xf32>) -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<512x1024xf8E4M3FN>, tensor<512x8xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x1024xf8E4M3FN>, tensor<2x8xf32>>
// Scales of four blocks of K are a tile. If each CTA has one tile, the kernel waits for the one before it.
// CHECK-LABEL: func.func @staged
// CHECK: gpu.launch_func @staged_matmul_0::@kernel blocks in (%c4, %c1, %c1)
// CHECK-SAME: {fp4.pdl = #fp4.launch_dependents<at_end>}
// CHECK-LABEL: gpu.func @kernel
// CHECK-SAME: !pipe.tensor_map<256x4xf32>, {{.*}}!pipe.tensor_map<1x4xf32>
// CHECK: scf.for %[[FIRST:.*]] = %c0{{.*}} to %c8{{.*}} step %c4
// CHECK:   %[[SA:.*]] = pipe.load %{{.*}}[%{{.*}}, %[[FIRST]]] : !pipe.tensor_map<256x4xf32>
// CHECK:   %[[SB:.*]] = pipe.load %{{.*}}[%{{.*}}, %[[FIRST]]] : !pipe.tensor_map<1x4xf32>
// CHECK:   scf.for %[[PLACE:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:     arith.addi %[[FIRST]], %[[PLACE]]
// CHECK-COUNT-2: pipe.load
// CHECK:     pipe.scales %[[SA]][0], %[[SB]] block %[[PLACE]]
// CHECK:     pipe.scales %[[SA]][128], %[[SB]] block %[[PLACE]]
// CHECK:     pipe.mma
func.func @staged(%a: tensor<512x1024xf8E4M3FN>, %sa: tensor<512x8xf32>, %b: tensor<256x1024xf8E4M3FN>, %sb: tensor<2x8xf32>) -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<100x512xf8E4M3FN>, tensor<100x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<2x4xf32>>
// Split-K by two within a cluster. The CTAs of the cluster add 7 pieces of 16 columns by turns.
// CHECK-LABEL: func.func @joined
// CHECK-NOT: gpu.memset
// CHECK: gpu.launch_func @joined_matmul_0::@kernel blocks in (%c4, %c1, %c1)
// CHECK-LABEL: gpu.func @kernel
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: %[[PLACE:.*]] = gpu.cluster_block_id x
// CHECK: %[[PART:.*]] = arith.index_cast %[[PLACE]]
// CHECK: pipe.reduce %[[ACC:.*]] by 16 : !pipe.fragment<64x112xf32, wgmma>
// CHECK: arith.cmpi eq, %[[PART]], %c0
// CHECK: arith.cmpi eq, %[[PART]], %c1
// CHECK: pipe.store
func.func @joined(%a: tensor<100x512xf8E4M3FN>, %sa: tensor<100x4xf32>, %b: tensor<200x512xf8E4M3FN>, %sb: tensor<2x4xf32>) -> tensor<100x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 112, 128]>}
      : (!lhs, !rhs) -> tensor<100x200xbf16>
  return %y : tensor<100x200xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<100x1280xf8E4M3FN>, tensor<100x10xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<200x1280xf8E4M3FN>, tensor<2x10xf32>>
// A stage has the tiles of two blocks of scales, each with sums of its own. Rows of ten scales are sets of two rows,
// of which a tile has the scales of two blocks.
// CHECK-LABEL: gpu.func @kernel
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c2
// CHECK:   %[[SA:.*]] = pipe.load %{{.*}}[%[[ROW:.*]], %[[K]]] : !pipe.tensor_map<64x4xf32, rows_2_mod_4>
// CHECK:   %[[SB:.*]] = pipe.load %{{.*}}[%{{.*}}, %[[K]]] : !pipe.tensor_map<16x4xf32, rows_2_mod_4>
// CHECK-COUNT-2: pipe.load
// CHECK:   %{{.*}} = arith.addi %[[K]], %c1
// CHECK-COUNT-2: pipe.load
// CHECK:   %[[S0:.*]] = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
// CHECK:   pipe.scales %[[SA]][0], %[[SB]] block %c0{{.*}} from %[[ROW]], %{{.*}}, %[[K]] :
// CHECK:   %[[S1:.*]] = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
// CHECK:   pipe.scales %[[SA]][0], %[[SB]] block %c1{{.*}} from %[[ROW]], %{{.*}}, %[[K]] :
// CHECK:   pipe.mma %[[S0]],
// CHECK:   pipe.promote %[[ACC:.*]], %[[S0]] scaled
// CHECK:   pipe.mma %[[S1]],
// CHECK:   pipe.promote %[[ACC]], %[[S1]] scaled
func.func @two(%a: tensor<100x1280xf8E4M3FN>, %sa: tensor<100x10xf32>, %b: tensor<200x1280xf8E4M3FN>, %sb: tensor<2x10xf32>) -> tensor<100x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 64, 256]>}
      : (!lhs, !rhs) -> tensor<100x200xbf16>
  return %y : tensor<100x200xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<200x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<1152x512xf8E4M3FN>, tensor<9x4xf32>>
// The device has the rows of more than eight groups. The kernel itself writes zeros to the rows between them, of which the table
// has a row before each group and one behind all, unless no role has threads for it.
// CHECK-LABEL: func.func @cleared
// CHECK-NOT: gpu.memset
// CHECK: gpu.alloc () : memref<21x4xi32>
// CHECK-LABEL: gpu.func @kernel
// CHECK: scf.for %[[GAP:.*]] = %c0{{.*}} to %c10{{.*}} step
// CHECK:   %[[PLACE:.*]] = arith.addi %[[GAP]], %c11
// CHECK:   pipe.load_entry %{{.*}}[%[[PLACE]]]
// CHECK:   pipe.clear_rows %{{.*}} to
// CHECK: pipe.for_each_work
// CHECK-LABEL: func.func @zeroed
// CHECK: gpu.memset
// CHECK: gpu.alloc () : memref<11x4xi32>
func.func @cleared(%a: tensor<200x512xf8E4M3FN>, %sa: tensor<200x4xf32>, %b: tensor<1152x512xf8E4M3FN>, %sb: tensor<9x4xf32>, %o: tensor<9x2xi64>) -> tensor<200x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs, tensor<9x2xi64>) -> tensor<200x128xbf16>
  return %y : tensor<200x128xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<200x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<1152x512xf8E4M3FN>, tensor<9x4xf32>>
func.func @zeroed(%a: tensor<200x512xf8E4M3FN>, %sa: tensor<200x4xf32>, %b: tensor<1152x512xf8E4M3FN>, %sb: tensor<9x4xf32>, %o: tensor<9x2xi64>) -> tensor<200x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>>}
      : (!lhs, !rhs, tensor<9x2xi64>) -> tensor<200x128xbf16>
  return %y : tensor<200x128xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<200x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
// With few groups each tile finds its own: the kernel reads the offsets, as words of 32 bits. Rows before a
// group begin where the group before ends.
// CHECK-LABEL: func.func @searched
// CHECK-NOT: gpu.alloc () : memref<{{.*}}xi32>
// CHECK: pipe.view %{{.*}} : memref<2x2xi64> -> memref<2x4xi32>
// CHECK: gpu.alloc () {fp4.group_report = "operand 'offsets' of the matmul at {{.*}}"} : memref<8xi64>
// CHECK-COUNT-1: gpu.launch_func
// CHECK-NOT: gpu.launch_func
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.check_groups %[[OFFSETS:.*]] limit 200 to %{{.*}} : !pipe.global<2x4xi32>, !pipe.global<8xi64>
// CHECK: %[[LAST:.*]] = scf.for %[[GROUP:.*]] = %c0{{.*}} to %c2{{.*}} iter_args(%[[BEFORE:.*]] = %c0
// CHECK:   pipe.load_entry %{{.*}}[%[[GROUP]]] : !pipe.global<2x4xi32> -> vector<4xi32>
// CHECK:   %[[BEGIN:.*]] = arith.maxui %[[BEFORE]]
// CHECK:   pipe.clear_rows %{{.*}}[%[[BEFORE]] to %[[BEGIN]]]
// CHECK: pipe.clear_rows %{{.*}}[%[[LAST]] to %c200
// CHECK: pipe.for_each_work
// CHECK: arith.cmpi uge
func.func @searched(%a: tensor<200x512xf8E4M3FN>, %sa: tensor<200x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>, %o: tensor<2x2xi64>) -> tensor<200x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs, tensor<2x2xi64>) -> tensor<200x128xbf16>
  return %y : tensor<200x128xbf16>
}
