// Operands whose maps have residues: the rows of the result where a box may have fewer of them, on targets that load such
// boxes slowly.
// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s


!lhs = !fp4.scaled<fp8_block128, tensor<?x512xf8E4M3FN>, tensor<?x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<200x512xf8E4M3FN>, tensor<2x4xf32>>
// Dynamic rows. The rows are counted once for each tile.
// CHECK-LABEL: func.func @dynamic
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: pipe.make_tensor_map %{{.*}} columns 512 : memref<?x512xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B, residue>
// CHECK: pipe.make_tensor_map %{{.*}} columns 512 : memref<200x512xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
// CHECK: pipe.make_tensor_map %{{.*}} columns 4 : memref<?x4xf32> -> !pipe.tensor_map<128x4xf32, residue>
// CHECK: pipe.make_tensor_map %{{.*}} columns 4 : memref<2x4xf32> -> !pipe.tensor_map<1x4xf32>
// CHECK-LABEL: gpu.func @kernel
// CHECK-SAME: %[[M:[a-z0-9]*]]: i32)
// CHECK: pipe.for_each_work %[[TILE:.*]], %{{.*}} in
// CHECK:   %[[ROW:.*]] = arith.muli %[[TILE]]
// CHECK:   %[[EXIST:.*]] = pipe.existing_rows %[[M]] from %[[ROW]] of 128
// CHECK-NOT: pipe.existing_rows
// CHECK:   pipe.load %{{.*}}[%[[ROW]], %{{.*}}] existing %[[EXIST]] : !pipe.tensor_map<128x4xf32, residue>
// CHECK:   pipe.load %{{.*}} : !pipe.tensor_map<1x4xf32>
// CHECK:   scf.for
// CHECK:     pipe.load %{{.*}}[%[[ROW]], %{{.*}}] existing %[[EXIST]] : !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B, residue>
// CHECK-NOT: pipe.existing_rows
func.func @dynamic(%a: tensor<?x512xf8E4M3FN>, %sa: tensor<?x4xf32>, %b: tensor<200x512xf8E4M3FN>, %sb: tensor<2x4xf32>) -> tensor<?x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>}
      : (!lhs, !rhs) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

// -----

// Static rows that fill all boxes have one map, others two.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: residue
// CHECK-NOT: pipe.existing_rows
func.func @whole(%x: tensor<256x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<256x256xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (tensor<256x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

// -----

// CHECK-LABEL: func.func @ragged
// CHECK-LABEL: gpu.func @kernel
// CHECK: %[[C300:.*]] = arith.constant 300 : i32
// CHECK: pipe.existing_rows %[[C300]] from %{{.*}} of 64
// CHECK: pipe.load {{.*}} : !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
func.func @ragged(%x: tensor<300x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<300x256xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256]>}
      : (tensor<300x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<300x256xbf16>
  return %y : tensor<300x256xbf16>
}

// -----

// One box has all rows there are, so their number is a constant.
// CHECK-LABEL: gpu.func @kernel
// CHECK-DAG: %[[C20:.*]] = arith.constant 20 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: pipe.existing_rows %[[C20]] from %[[ZERO]] of 32
func.func @few(%x: tensor<20x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16> {
  %y = fp4.matmul %x, %w {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 128]>}
      : (tensor<20x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return %y : tensor<20x256xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<300x512xf8E4M3FN>, tensor<300x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<400x512xf8E4M3FN>, tensor<4x4xf32>>
// Tiles of groups end where other rows begin.
// CHECK-LABEL: func.func @groups
// CHECK-NOT: residue
// CHECK-NOT: pipe.existing_rows
func.func @groups(%a: tensor<300x512xf8E4M3FN>, %sa: tensor<300x4xf32>, %b: tensor<400x512xf8E4M3FN>, %sb: tensor<4x4xf32>) -> tensor<300x200xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {work = #fp4.work<groups = [100, 200]>}
      : (!lhs, !rhs) -> tensor<300x200xbf16>
  return %y : tensor<300x200xbf16>
}
