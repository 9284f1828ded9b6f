// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize -cse | FileCheck %s
// GEMMs in clusters: what each CTA loads, and with whom.

!s = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!operand = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !s>
// Two CTAs as one tensor core: half of the rows of B for each, the scales of B together, and a grid of pairs.
// CHECK-LABEL: func.func @pair
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 1024 : {{.*}} -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 64 : {{.*}} -> !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
// CHECK: gpu.launch_func {{.*}} blocks in (%[[C8]], %c1, %c1)
// CHECK-LABEL: gpu.module @pair_matmul_0
// CHECK-SAME: {
// CHECK: gpu.func @kernel{{.*}}known_cluster_size = array<i32: 2, 1, 1>
// CHECK: %[[PLACE:.*]] = gpu.cluster_block_id x
// CHECK: %[[X:.*]] = arith.index_cast %[[PLACE]]
// CHECK: pipe.for_each_work %[[M:.*]], %[[N:.*]] in (%c2_i32, %c2_i32)
// CHECK: %[[M_PAIR:.*]] = arith.muli %[[M]], %c256_i32
// CHECK: %[[HALF:.*]] = arith.muli %[[X]], %c128_i32
// CHECK: %[[ROW:.*]] = arith.addi %[[M_PAIR]], %[[HALF]]
// CHECK: %[[N_PAIR:.*]] = arith.muli %[[N]], %c256_i32
// CHECK: %[[ROW_B:.*]] = arith.addi %[[N_PAIR]], %[[HALF]]
// CHECK: pipe.accumulator : !pipe.tmem<256x256xf32, pair>
// CHECK: pipe.load %arg0[%[[ROW]], %{{.*}}] :
// CHECK: pipe.load %arg1[%[[ROW_B]], %{{.*}}] :
// CHECK: pipe.load %arg2[%[[ROW]], %{{.*}}] :
// CHECK: pipe.load %arg3[%[[N_PAIR]], %{{.*}}] multicast m :
// CHECK: pipe.copy_scales {{.*}} -> !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
func.func @pair(%a: tensor<512x1024xf4E2M1FN>, %s: !s) -> tensor<512x512xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 256]>}
      : (!operand, !operand) -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}

// -----

!s = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!lhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<256x1024xf4E2M1FN>,
                   tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Four CTAs with a tile each: those along n share A and its scales, those along m share B and its scales. Each CTA loads
// a half of one row of scale tiles.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK: gpu.launch_func {{.*}} blocks in (%[[C4]], %[[C2]], %c1)
// CHECK-LABEL: gpu.module @shared_matmul_0
// CHECK-SAME: {
// CHECK: gpu.func @kernel{{.*}}known_cluster_size = array<i32: 2, 2, 1>
// CHECK: pipe.accumulator : !pipe.tmem<128x128xf32>
// CHECK: pipe.load %arg0[%{{.*}}, %{{.*}}] multicast n : !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
// CHECK: pipe.load %arg1[%{{.*}}, %{{.*}}] multicast m : !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
// CHECK: pipe.load %arg2[%{{.*}}, %{{.*}}] multicast n : !pipe.tensor_map<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
// CHECK: pipe.load %arg3[%{{.*}}, %{{.*}}] multicast m : !pipe.tensor_map<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
func.func @shared(%a: tensor<512x1024xf4E2M1FN>, %s: !s, %b: tensor<256x1024xf4E2M1FN>, %sb: tensor<256x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<512x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 2], tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}

// -----

!s = tensor<1024x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!operand = !fp4.scaled<nvfp4, tensor<1024x1024xf4E2M1FN>, !s>
// Two pairs along m: the CTAs with the same place in their pairs share half of the rows of B, and all four its scales,
// of which each loads half of a row of tiles.
// CHECK-LABEL: gpu.module @pairs_matmul_0
// CHECK-SAME: {
// CHECK: gpu.func @kernel{{.*}}known_cluster_size = array<i32: 4, 2, 1>
// CHECK: %[[PLACE:.*]] = gpu.cluster_block_id x
// CHECK: %[[X:.*]] = arith.index_cast %[[PLACE]]
// CHECK: %[[IN_PAIR:.*]] = arith.remui %[[X]], %c2_i32
// CHECK: %[[HALF:.*]] = arith.muli %[[IN_PAIR]], %c128_i32
// CHECK: %[[ROW_B:.*]] = arith.addi %{{.*}}, %[[HALF]]
// CHECK: pipe.load %arg0[%{{.*}}, %{{.*}}] multicast n : !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
// CHECK: pipe.load %arg1[%[[ROW_B]], %{{.*}}] multicast pairs : !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
// CHECK: pipe.load %arg2[%{{.*}}, %{{.*}}] multicast n : !pipe.tensor_map<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
// CHECK: pipe.load %arg3[%{{.*}}, %{{.*}}] multicast m : !pipe.tensor_map<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
func.func @pairs(%a: tensor<1024x1024xf4E2M1FN>, %s: !s, %b: tensor<1024x1024xf4E2M1FN>, %sb: !s) -> tensor<1024x1024xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [4, 2], tile = [256, 256, 256]>}
      : (!operand, !operand) -> tensor<1024x1024xbf16>
  return %y : tensor<1024x1024xbf16>
}
