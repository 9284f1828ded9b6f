// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

!lhs = !fp4.scaled<fp8_block128, tensor<512x400xf8E4M3FN>, tensor<512x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<256x400xf8E4M3FN>, tensor<2x4xf32>>
// Each k tile has an accumulator of its own, whose sums threads add to theirs. Rows of scales are those of the
// tile, and scales are asked for before the sums.
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
// CHECK: scf.for %[[K:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:   %[[A:.*]] = pipe.load %{{.*}}[%[[ROW:.*]], %{{.*}}]
// CHECK:   %[[B:.*]] = pipe.load %{{.*}}[%[[COLUMN:.*]], %{{.*}}]
// CHECK:   %[[SCALE:.*]] = pipe.scales %{{.*}}[%[[ROW]]], %{{.*}}[%[[COLUMN]] of 64] block %[[K]] :
// CHECK:   %[[SUMS:.*]] = pipe.accumulator : !pipe.tmem<128x64xf32>
// CHECK:   pipe.mma %[[SUMS]], %[[A]], %[[B]]
// CHECK:   pipe.promote %[[ACC]], %[[SUMS]] scaled %[[SCALE]]
// CHECK: pipe.read %[[ACC]][0]
// CHECK: pipe.store {{.*}}[%[[ROW]], %[[COLUMN]]]
// CHECK: pipe.read %[[ACC]][32]
// CHECK: pipe.store
func.func @one(%a: tensor<512x400xf8E4M3FN>, %sa: tensor<512x4xf32>, %b: tensor<256x400xf8E4M3FN>, %sb: tensor<2x4xf32>) -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>}
      : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<512x1024xf8E4M3FN>, tensor<512x8xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<512x1024xf8E4M3FN>, tensor<4x8xf32>>
// Scales of four blocks of K are a tile. Two warpgroups have 128 columns each, and store them.
// CHECK-LABEL: gpu.func @kernel
// CHECK-SAME: !pipe.tensor_map<128x4xf32>, {{.*}}!pipe.tensor_map<2x4xf32>
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<128x128xf32, lanes>
// CHECK: scf.for %[[FIRST:.*]] = %c0{{.*}} to %c8{{.*}} step %c4
// CHECK:   %[[SA:.*]] = pipe.load %{{.*}}[%{{.*}}, %[[FIRST]]] : !pipe.tensor_map<128x4xf32>
// CHECK:   %[[SB:.*]] = pipe.load %{{.*}}[%{{.*}}, %[[FIRST]]] : !pipe.tensor_map<2x4xf32>
// CHECK:   scf.for %[[PLACE:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:     pipe.scales %[[SA]][0], %[[SB]] block %[[PLACE]]
// CHECK:     pipe.mma
// CHECK:     pipe.promote
// CHECK: %{{.*}}, %[[OWN:.*]] = pipe.place %[[ACC]]
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[OWN]]
// CHECK: pipe.store {{.*}}, %[[COLUMN]]]
func.func @staged(%a: tensor<512x1024xf8E4M3FN>, %sa: tensor<512x8xf32>, %b: tensor<512x1024xf8E4M3FN>, %sb: tensor<4x8xf32>) -> tensor<512x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (!lhs, !rhs) -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<200x400xf8E4M3FN>, tensor<200x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<400x400xf8E4M3FN>, tensor<4x4xf32>>
// Groups have scales of their own: those of rhs begin at a block of 128 columns of each.
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[GROUP:.*]] = vector.extract %{{.*}}[2]
// CHECK: %[[BAND:.*]] = arith.muli %[[GROUP]], %c256
// CHECK: arith.addi %{{.*}}, %[[BAND]]
// CHECK: pipe.scales
func.func @groups(%a: tensor<200x400xf8E4M3FN>, %sa: tensor<200x4xf32>, %b: tensor<400x400xf8E4M3FN>, %sb: tensor<4x4xf32>) -> tensor<200x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [150, 50]>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs) -> tensor<200x200xbf16>
  return %y : tensor<200x200xbf16>
}

// -----

// Prepacked weights are lanes. Three tiles of K are in two k tiles of 2, so that the number of those that exist is
// said to all: the missing one is neither loaded nor multiplied.
// CHECK-LABEL: gpu.func @kernel
// CHECK: scf.for %{{.*}} to %c2
// CHECK:   %[[TILES:.*]] = arith.minsi
// CHECK:   %[[W:.*]] = pipe.load %{{.*}} existing %[[TILES]] : !pipe.global<6x4352xi8> -> !pipe.shared<2x4352xi8>
// CHECK:   %[[A:.*]] = pipe.dequantize %[[W]] existing %[[TILES]] {pipe.role = "convert"} : !pipe.shared<2x4352xi8> -> !pipe.tmem<128x128xbf16>
// CHECK:   pipe.mma %{{.*}}, %[[A]], %{{.*}} accumulate %{{.*}} existing %[[TILES]]
func.func @prepacked(%x: tensor<20x192xbf16>, %p: tensor<2x3x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<20x192xbf16>, tensor<2x3x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return %y : tensor<20x256xbf16>
}

// -----

// Whole k tiles say nothing.
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.load {{.*}}] : !pipe.global<8x4352xi8>
// CHECK: pipe.dequantize %{{[0-9a-z_]+}} {pipe.role = "convert"} :
// CHECK: pipe.mma {{.*}} accumulate %{{[0-9a-z_]+}} :
func.func @whole(%x: tensor<20x256xbf16>, %p: tensor<2x4x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<20x256xbf16>, tensor<2x4x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return %y : tensor<20x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<512x1024xf8E4M3FN>, tensor<512x8xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<512x1024xf8E4M3FN>, tensor<4x8xf32>>
// Both GEMMs have sums of their own, and scales of their weights. The core multiplies both before threads add. Two
// warpgroups have halves of the blocks of 128 that they quantize.
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
// CHECK: %[[SECOND:.*]] = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
// CHECK: scf.for %{{.*}} to %c8{{.*}} step %c4
// CHECK:   %[[SA:.*]] = pipe.load %{{.*}} : !pipe.tensor_map<128x4xf32>
// CHECK:   %[[SB:.*]] = pipe.load %{{.*}} : !pipe.tensor_map<1x4xf32>
// CHECK:   %[[SB2:.*]] = pipe.load %{{.*}} : !pipe.tensor_map<1x4xf32>
// CHECK:   scf.for %[[PLACE:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:     %[[SCALE:.*]] = pipe.scales %[[SA]][0], %[[SB]] block %[[PLACE]]
// CHECK:     %[[SCALE2:.*]] = pipe.scales %[[SA]][0], %[[SB2]] block %[[PLACE]]
// CHECK:     pipe.mma %[[SUMS:acc_[0-9]+]], %[[A:.*]], %{{.*}} :
// CHECK:     pipe.mma %[[SUMS2:acc_[0-9]+]], %[[A]], %{{.*}} :
// CHECK:     pipe.promote %[[ACC]], %[[SUMS]] scaled %[[SCALE]] :
// CHECK:     pipe.promote %[[SECOND]], %[[SUMS2]] scaled %[[SCALE2]] :
// CHECK: pipe.read %[[ACC]][0]
// CHECK: pipe.read %[[SECOND]][0]
// CHECK: pipe.read %[[ACC]][32]
// CHECK: pipe.read %[[SECOND]][32]
// CHECK: pipe.quantize_blocks {{.*}} tensor<128x64xbf16, #pipe.distribution<lanes>>
// CHECK: pipe.store
// CHECK: pipe.store
func.func @gate(%qa: tensor<512x1024xf8E4M3FN>, %sa: tensor<512x8xf32>, %qb: tensor<512x1024xf8E4M3FN>, %sb: tensor<4x8xf32>, %qc: tensor<512x1024xf8E4M3FN>, %sc: tensor<4x8xf32>) -> (tensor<512x512xf8E4M3FN>, tensor<512x4xf32>) {
  %a = fp4.scaled %qa, %sa : !lhs
  %b = fp4.scaled %qb, %sb : !rhs
  %b2 = fp4.scaled %qc, %sc : !rhs
  %q, %s = fp4.matmul %a, %b with %b2 epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %y = arith.mulf %sum, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (!lhs, !rhs, !rhs) -> (tensor<512x512xf8E4M3FN>, tensor<512x4xf32>)
  return %q, %s : tensor<512x512xf8E4M3FN>, tensor<512x4xf32>
}

// -----

// A TMEM lane has a power of each GEMM. Rows are columns of tensor memory: a thread quantizes columns of codes, and a
// warp exchanges the elements of rows.
!w = tensor<1x2x8704xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<128x32xf32, lanes>
// CHECK: %[[SECOND:.*]] = pipe.accumulator : !pipe.fragment<128x32xf32, lanes>
// CHECK: scf.for
// CHECK:   %[[P:.*]] = pipe.fetch %[[W:.*]][%{{.*}}] :
// CHECK:   %[[E:.*]] = pipe.elements %[[P]]
// CHECK:   %[[FACTOR:.*]] = vector.extract %[[E]][0]
// CHECK:   %[[P2:.*]] = pipe.fetch %[[W2:.*]][%{{.*}}] :
// CHECK:   %[[E2:.*]] = pipe.elements %[[P2]]
// CHECK:   %[[FACTOR2:.*]] = vector.extract %[[E2]][0]
// CHECK:   pipe.promote %[[ACC]], %{{.*}} scaled %[[FACTOR]] :
// CHECK:   pipe.promote %[[SECOND]], %{{.*}} scaled %[[FACTOR2]] :
// CHECK: pipe.read %[[ACC]][0]
// CHECK: pipe.read %[[SECOND]][0]
// CHECK: pipe.transpose
// CHECK: pipe.quantize_blocks {{.*}} tensor<128x32xbf16, #pipe.distribution<columns>>
func.func @weight_gate(%x: tensor<32x256xf8E4M3FN>, %p: !w, %q: !w) -> (tensor<32x128xf4E2M1FN>, tensor<32x4xf8E8M0FNU>) {
  %c, %s = fp4.matmul %x, %p with %q epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %y = arith.mulf %sum, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>} : (bf16) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>} : (tensor<32x256xf8E4M3FN>, !w, !w) -> (tensor<32x128xf4E2M1FN>, tensor<32x4xf8E8M0FNU>)
  return %c, %s : tensor<32x128xf4E2M1FN>, tensor<32x4xf8E8M0FNU>
}
