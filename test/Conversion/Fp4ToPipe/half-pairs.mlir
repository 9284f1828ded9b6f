// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize -cse | FileCheck %s
// Pairs with 128 rows: a kernel gives the scales of each 64 rows of A a scale tile, each CTA loads 64 rows of A with their
// scales, and one half of the scales of B for both. Threads of the second half of the lanes have the same rows and later columns.

!s = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!operand = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !s>
// CHECK-LABEL: func.func @pair
// CHECK: gpu.launch_func @pair_halve_
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 1024 : {{.*}} -> !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 1024 : {{.*}} -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 64 : {{.*}} -> !pipe.tensor_map<64x16xf8E4M3FN, tiled_128x4>
// CHECK-DAG: pipe.make_tensor_map {{.*}} columns 64 : {{.*}} -> !pipe.tensor_map<128x4xf8E4M3FN, tiled_128x4>
// CHECK: gpu.launch_func @pair_matmul_
// CHECK-LABEL: gpu.module @pair_matmul_0
// CHECK-SAME: {
// CHECK: gpu.func @kernel{{.*}}known_cluster_size = array<i32: 2, 1, 1>
// CHECK: %[[PLACE:.*]] = gpu.cluster_block_id x
// CHECK: %[[X:.*]] = arith.index_cast %[[PLACE]]
// CHECK: pipe.for_each_work %[[M:.*]], %[[N:.*]] in (%c4_i32, %c2_i32)
// CHECK: %[[M_PAIR:.*]] = arith.muli %[[M]], %c128_i32
// CHECK: %[[OF_BLOCK:.*]] = arith.muli %[[X]], %c64_i32
// CHECK: %[[ROW:.*]] = arith.addi %[[M_PAIR]], %[[OF_BLOCK]]
// CHECK: %[[COLUMN:.*]] = arith.muli %[[N]], %c256_i32
// CHECK: %[[OF_B:.*]] = arith.muli %[[X]], %c128_i32
// CHECK: %[[ROW_B:.*]] = arith.addi %[[COLUMN]], %[[OF_B]]
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.tmem<128x256xf32, pair>
// CHECK: pipe.load %arg0[%[[ROW]], %{{.*}}] :
// CHECK: pipe.load %arg1[%[[ROW_B]], %{{.*}}] :
// CHECK: pipe.load %arg2[%[[ROW]], %{{.*}}] : {{.*}} -> !pipe.shared<64x16xf8E4M3FN, tiled_128x4>
// CHECK: pipe.copy_scales {{.*}} -> !pipe.tmem<64x16xf8E4M3FN, tiled_128x4, pair>
// CHECK: pipe.load %arg3[%[[COLUMN]], %{{.*}}] multicast m : {{.*}} -> !pipe.shared<256x16xf8E4M3FN, halves_128x4>
// CHECK: pipe.copy_scales {{.*}} -> !pipe.tmem<256x16xf8E4M3FN, halves_128x4, pair>
// CHECK: %[[OFFSET:.*]], %[[COLUMNS:.*]] = pipe.place %[[ACC]] : !pipe.tmem<128x256xf32, pair>
// CHECK: %[[ROW0:.*]] = arith.addi %[[ROW]], %[[OFFSET]]
// CHECK: scf.for %[[C:.*]] = %c0_i32 to %c128_i32 step %c32_i32
// CHECK: pipe.read %[[ACC]][%[[C]]]
// CHECK: %[[IN_TILE:.*]] = arith.addi %[[COLUMN]], %[[C]]
// CHECK: %[[AT:.*]] = arith.addi %[[IN_TILE]], %[[COLUMNS]]
// CHECK: pipe.store {{.*}}[%[[ROW0]], %[[AT]]]
func.func @pair(%a: tensor<512x1024xf4E2M1FN>, %s: !s) -> tensor<512x512xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 256, 256]>}
      : (!operand, !operand) -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}

// -----

!s = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

!operand = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !s>
// With two pairs along m, no CTA can send half of the scales of B to all.
// CHECK-LABEL: gpu.module @pairs_matmul_0
// CHECK: pipe.load %arg3[%{{.*}}, %{{.*}}] : {{.*}} -> !pipe.shared<256x16xf8E4M3FN, halves_128x4>
// CHECK-NOT: from
// CHECK: pipe.mma {{.*}} !pipe.tmem<128x256xf32, pair>
func.func @pairs(%a: tensor<512x1024xf4E2M1FN>, %s: !s) -> tensor<512x512xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [128, 256, 256], cluster = [4, 1]>}
      : (!operand, !operand) -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}
