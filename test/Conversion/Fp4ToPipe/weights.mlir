// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize | FileCheck %s

// Rows of prepacked weights are rows of the accumulator, activations its columns, and the result leaves
// transposed. The conversion of NVFP4 multiplies by 2^-7, which is undone. 5 tiles of K are in two
// k tiles of 4, so that their number is said.
// CHECK-LABEL: func.func @prepacked
// CHECK: pipe.make_tensor_map %{{.*}} columns 320 : memref<20x320xbf16> -> !pipe.tensor_map<32x64xbf16, swizzle_128B, residue>
// CHECK: pipe.view %{{.*}} : memref<2x5x4608xi8> -> memref<10x4608xi8>
// CHECK: gpu.launch_func @prepacked_matmul_0::@kernel blocks in (%c2, %c1, %c1) threads in (%c288, %c1, %c1){{.*}}fp4.pdl = #fp4.launch_dependents<before_wait>
// CHECK: %[[POWER:.*]] = arith.constant dense<1.280000e+02> : tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
// CHECK: scf.for
// CHECK:   %[[COUNT:.*]] = arith.minsi
// CHECK:   %[[W:.*]] = pipe.load %{{.*}} existing %[[COUNT]] : !pipe.global<10x4608xi8> -> !pipe.shared<4x4608xi8>
// CHECK:   %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<32x256xbf16, swizzle_128B>
// CHECK:   pipe.mma %[[ACC]], %[[W]], %[[X]] accumulate %{{.*}} existing %[[COUNT]]
// CHECK: %[[V:.*]] = pipe.read %[[ACC]][0]
// CHECK: arith.mulf %[[V]], %[[POWER]]
// CHECK: pipe.store {{.*}} transposed : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<20x256xbf16>
func.func @prepacked(%x: tensor<20x320xbf16>, %p: tensor<2x5x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 256]>}
      : (tensor<20x320xbf16>, tensor<2x5x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return %y : tensor<20x256xbf16>
}

// -----

// Split-K within a cluster, whose CTAs add and store some columns each. With 8 columns, the first
// CTA has all.
// CHECK-LABEL: func.func @joined
// CHECK-NOT: gpu.memset
// CHECK: gpu.launch_func @joined_matmul_0::@kernel blocks in (%c4, %c1, %c1)
// CHECK-LABEL: gpu.func @kernel
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: %[[PLACE:.*]] = gpu.cluster_block_id x
// CHECK: %[[PART:.*]] = arith.index_cast %[[PLACE]]
// CHECK: pipe.reduce %[[ACC:.*]] by 8 : !pipe.fragment<64x8xf32, wgmma>
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK: scf.if %[[MINE]]
// CHECK:   pipe.read %[[ACC]][0]
// CHECK:   pipe.store {{.*}} transposed
func.func @joined(%x: tensor<7x512xbf16>, %p: tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>}
      : (tensor<7x512xbf16>, tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32>
  return %y : tensor<7x256xf32>
}

// -----

// Split-K through a workspace: each partial sum is a tile of its own. Threads leave their sums, and the last CTA
// adds its own, which are in registers, and those of the other. The CTAs count in memory that is zero already.
// CHECK-LABEL: func.func @split
// CHECK: gpu.alloc () {fp4.counters} : memref<2x8xi32>
// CHECK-NOT: gpu.memset
// CHECK: gpu.launch_func @split_matmul_0::@kernel blocks in (%c4, %c1, %c1)
// CHECK: pipe.store %{{.*}}, 0] : tensor<64x8xf32, #pipe.distribution<wgmma>>, !pipe.global<4x1024xf32>
// CHECK: %[[LAST:.*]] = pipe.count_partial %{{.*}} of 2 : !pipe.global<2x8xi32>
// CHECK: scf.if %[[LAST]]
// CHECK:   %[[OWN:.*]] = pipe.read
// CHECK:   %[[OTHER:.*]] = pipe.fetch
// CHECK-NOT: pipe.fetch
// CHECK:   arith.addf %[[OWN]], %[[OTHER]]
// CHECK:   pipe.store {{.*}} transposed
func.func @split(%x: tensor<7x512xbf16>, %p: tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, cluster = [1, 1]>}
      : (tensor<7x512xbf16>, tensor<2x8x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32>
  return %y : tensor<7x256xf32>
}

// -----

// With split-K by three, the CTA has one partial sum, whichever it is, and fetches the other two before any is added. The
// sums are added from the first to the last.
// CHECK-LABEL: func.func @three
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK:   %[[FIRST:.*]] = arith.cmpi eq, %[[PART:.*]], %c0_i32
// CHECK:   %[[A:.*]] = scf.if %[[FIRST]]
// CHECK:     pipe.read
// CHECK:     pipe.fetch %{{.*}}[%[[ROW:.*]]] first 0
// CHECK:   %[[SECOND:.*]] = arith.cmpi eq, %[[PART]], %c1_i32
// CHECK:   %[[B:.*]] = scf.if %[[SECOND]]
// CHECK:     pipe.read
// CHECK:     pipe.fetch
// CHECK:   %[[THIRD:.*]] = arith.cmpi eq, %[[PART]], %c2_i32
// CHECK:   %[[C:.*]] = scf.if %[[THIRD]]
// CHECK:     pipe.read
// CHECK:     pipe.fetch
// CHECK:   %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK:   arith.addf %[[AB]], %[[C]]
func.func @three(%x: tensor<7x768xbf16>, %p: tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 3>, fp4.plan = #fp4.plan<tile_gemm, cluster = [1, 1]>}
      : (tensor<7x768xbf16>, tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32>
  return %y : tensor<7x256xf32>
}

// -----

// With 128 rows all partial sums are fetched: a thread has no room for the sums of all three.
// CHECK-LABEL: func.func @many
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK-NOT: pipe.read
// CHECK: pipe.fetch
// CHECK-NOT: pipe.read
// CHECK: pipe.store
func.func @many(%x: tensor<70x768xbf16>, %p: tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<70x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 3>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128], cluster = [1, 1]>}
      : (tensor<70x768xbf16>, tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<70x256xf32>
  return %y : tensor<70x256xf32>
}

// -----

// More than four partial sums are added by a loop, of which ptxas loads none early.
// CHECK-LABEL: func.func @five
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK: %[[FIRST:.*]] = pipe.fetch %[[LEFT:.*]][%{{.*}}] first 0
// CHECK: %[[SECOND:.*]] = pipe.fetch %[[LEFT]][%{{.*}}] first 0
// CHECK: %[[BOTH:.*]] = arith.addf %[[FIRST]], %[[SECOND]]
// CHECK: scf.for %{{.*}} = %c2_i32 to %c5_i32 {{.*}} iter_args(%[[SUM:[^ ]*]] = %[[BOTH]],
// CHECK:   %[[NEXT:.*]] = pipe.fetch %[[LEFT]][%{{.*}}] first 0
// CHECK:   arith.addf %[[SUM]], %[[NEXT]]
// CHECK: pipe.store
func.func @five(%x: tensor<64x1280xbf16>, %p: tensor<2x20x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 5>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 256], cluster = [1, 1]>}
      : (tensor<64x1280xbf16>, tensor<2x20x4352xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// -----

// Threads of one CTA on an SM have registers for six partial sums of 32 rows, and add their own. Two CTAs have half
// of them each, and read all sums in a loop.
// CHECK-LABEL: func.func @alone
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK-NOT: scf.for
// CHECK: pipe.read
func.func @alone(%x: tensor<32x1536xbf16>, %p: tensor<2x24x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<32x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 6>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 256], cluster = [1, 1], ctas_per_sm = 1>}
      : (tensor<32x1536xbf16>, tensor<2x24x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<32x256xf32>
  return %y : tensor<32x256xf32>
}

// -----

// CHECK-LABEL: func.func @beside
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK-NOT: pipe.read
// CHECK: scf.for %{{.*}} = %c2_i32 to %c6_i32
func.func @beside(%x: tensor<32x1536xbf16>, %p: tensor<2x24x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<32x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 6>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 256], cluster = [1, 1], ctas_per_sm = 2>}
      : (tensor<32x1536xbf16>, tensor<2x24x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<32x256xf32>
  return %y : tensor<32x256xf32>
}

// -----

// Nor have they beside 256 columns of the result, which are two parts of 64 rows.
// CHECK-LABEL: func.func @wide
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.count_partial
// CHECK-NOT: pipe.read
// CHECK: pipe.fetch
// CHECK-NOT: pipe.read
// CHECK: pipe.store
func.func @wide(%x: tensor<64x768xbf16>, %p: tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xf32> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 3>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 128], cluster = [1, 1]>}
      : (tensor<64x768xbf16>, tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// -----

// Three workers share two tiles, as a table says: a work has rows of a tile and a range of its k tiles. A
// worker with all of a tile stores it. The last of several workers adds what all have left.
// CHECK-LABEL: func.func @shared
// CHECK: gpu.launch_func @shared_matmul_0::@kernel blocks in (%c4, %c1, %c1)
// CHECK-LABEL: gpu.func @kernel
// CHECK: pipe.for_each_work %[[WORK:.*]], %{{.*}} in (%c4_i32, %c1_i32)
// CHECK: pipe.load_entry
// CHECK: %[[ACC:.*]] = pipe.accumulator
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[PARTS:.*]], %c1_i32
// CHECK: scf.if %[[ONE]]
// CHECK:   pipe.store
// CHECK: %[[MORE:.*]] = arith.cmpi ne, %[[PARTS]], %c1_i32
// CHECK: scf.if %[[MORE]]
// CHECK:   pipe.store {{.*}} : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<4x2048xf32>
// CHECK:   %[[LAST:.*]] = pipe.count_partial %{{.*}} of %[[PARTS]] : !pipe.global<2x8xi32>
// CHECK:   scf.if %[[LAST]]
// CHECK:     %[[TWO:.*]] = arith.cmpi eq, %[[PARTS]], %c2_i32
// CHECK:     scf.if %[[TWO]]
// CHECK:     scf.for
// CHECK:     pipe.store
func.func @shared(%x: tensor<7x768xbf16>, %p: tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32> {
  %y = fp4.matmul %x, %p {work = #fp4.work<stream_k = [3, 16, 128]>}
      : (tensor<7x768xbf16>, tensor<2x12x4352xi8, #fp4.weight_layout<wgmma>>) -> tensor<7x256xf32>
  return %y : tensor<7x256xf32>
}

// -----

// A tile of 256 columns has two fragments, and one tile of activations for both.
// CHECK-LABEL: func.func @wide
// CHECK: gpu.launch_func @wide_matmul_0::@kernel blocks in (%c1, %c1, %c1)
// CHECK-DAG: %[[UPPER:.*]] = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
// CHECK-DAG: %[[LOWER:.*]] = pipe.accumulator : !pipe.fragment<64x64xf32, wgmma>
// CHECK: scf.for
// CHECK:   %[[W0:.*]] = pipe.load %{{.*}} : !pipe.global<16x4608xi8> -> !pipe.shared<2x4608xi8>
// CHECK:   %[[W1:.*]] = pipe.load %{{.*}} : !pipe.global<16x4608xi8> -> !pipe.shared<2x4608xi8>
// CHECK:   %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<64x128xbf16, swizzle_128B>
// CHECK:   pipe.mma %[[A0:.*]], %[[W0]], %[[X]] accumulate
// CHECK:   pipe.mma %[[A1:.*]], %[[W1]], %[[X]] accumulate
// CHECK: pipe.read %[[A0]][0]
// CHECK: pipe.store {{.*}} transposed
// CHECK: pipe.read %[[A1]][0]
// CHECK: pipe.store {{.*}} transposed
func.func @wide(%x: tensor<60x512xbf16>, %p: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<60x256xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 256, 128]>}
      : (tensor<60x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<60x256xbf16>
  return %y : tensor<60x256xbf16>
}

// -----

!rhs = !fp4.scaled<nvfp4, tensor<200x256xf4E2M1FN>,
                   tensor<200x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Plain weights are decoded as the operand A of any converted GEMM.
// CHECK-LABEL: func.func @plain
// CHECK: %[[W:.*]] = pipe.load %{{.*}} -> !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
// CHECK: %[[S:.*]] = pipe.load
// CHECK: %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<8x128xf16, swizzle_128B>
// CHECK: pipe.mma %{{.*}}, %[[W]] scaled %[[S]], %[[X]]
func.func @plain(%x: tensor<5x256xf16>, %w: tensor<200x256xf4E2M1FN>,
                 %s: tensor<200x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<5x200xf16> {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %y = fp4.matmul %x, %w_scaled : (tensor<5x256xf16>, !rhs) -> tensor<5x200xf16>
  return %y : tensor<5x200xf16>
}

// -----

// Beside e4m3 a tile has 128 elements of K, and every MMA begins with an accumulator of zeros.
// CHECK-LABEL: func.func @bytes
// CHECK: pipe.make_tensor_map %{{.*}} columns 384 : memref<20x384xi8> -> !pipe.tensor_map<32x128xf8E4M3FN, swizzle_128B, residue>
// CHECK: pipe.view %{{.*}} : memref<2x3x8704xi8> -> memref<6x8704xi8>
// CHECK: %[[MORE:.*]] = arith.constant true
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x32xf32, wgmma>
// CHECK: %[[W:.*]] = pipe.load %{{.*}} existing %[[COUNT:.*]] : !pipe.global<6x8704xi8> -> !pipe.shared<2x8704xi8>
// CHECK: %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<32x256xf8E4M3FN, swizzle_128B>
// CHECK: pipe.mma %[[ACC]], %[[W]], %[[X]] accumulate %[[MORE]] existing %[[COUNT]]
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<64x32xf32, #pipe.distribution<wgmma>>
func.func @bytes(%x: tensor<20x384xf8E4M3FN>, %p: tensor<2x3x8704xi8, #fp4.weight_layout<wgmma>>, %s: tensor<20x1xf32>) -> tensor<20x256xbf16> {
  %y = fp4.matmul %x, %p alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [32, 128, 256]>}
      : (tensor<20x384xf8E4M3FN>, tensor<2x3x8704xi8, #fp4.weight_layout<wgmma>>, tensor<20x1xf32>)
      -> tensor<20x256xbf16>
  return %y : tensor<20x256xbf16>
}

// -----

// Fast accumulation: rows of weights have one power of two, which is loaded once for a tile and multiplies the
// sums before alpha does.
// CHECK-LABEL: func.func @fast
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
// CHECK: %[[POWERS:.*]] = pipe.fetch %{{.*}}[%{{.*}}] : !pipe.global<8x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
// CHECK: pipe.mma %[[ACC]], %{{.*}}, %{{.*}} accumulate %{{.*}} without_powers
// CHECK-COUNT-8: pipe.fetch
// CHECK: %[[SUMS:.*]] = pipe.read %[[ACC]][0] {{.*}}-> tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: %[[VECTOR:.*]] = pipe.elements %[[POWERS]]
// CHECK: %[[REPEATED:.*]] = vector.shuffle %[[VECTOR]], %[[VECTOR]] [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
// CHECK: %[[OF_ROWS:.*]] = pipe.elements %[[REPEATED]] : vector<16xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUMS]], %[[OF_ROWS]]
// CHECK: arith.mulf %[[SCALED]], %{{.*}} : tensor<64x32xf32, #pipe.distribution<wgmma>>
// CHECK: pipe.store {{.*}} transposed staged
func.func @fast(%x: tensor<300x512xf8E4M3FN>, %p: tensor<2x4x8704xi8, #fp4.weight_layout<wgmma_rows>>, %s: tensor<300x1xf32>) -> tensor<300x256xbf16> {
  %y = fp4.matmul %x, %p alpha %s
      {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<300x512xf8E4M3FN>, tensor<2x4x8704xi8, #fp4.weight_layout<wgmma_rows>>,
         tensor<300x1xf32>) -> tensor<300x256xbf16>
  return %y : tensor<300x256xbf16>
}

// -----

// Three warpgroups have one and a half tiles of weights: the second tile behind the last one is the last.
// CHECK-LABEL: func.func @thirds
// CHECK: threads in (%c512, %c1, %c1)
// CHECK: %[[COLUMN:.*]] = arith.muli %{{.*}}, %c192_i32
// CHECK: %[[W:.*]] = pipe.load %{{.*}} -> !pipe.shared<2x4608xi8>
// CHECK: %[[HALVES:.*]] = arith.divui %[[COLUMN]], %c64_i32
// CHECK: %[[ODD:.*]] = arith.remui %[[HALVES]], %c2_i32
// CHECK: %[[ROW:.*]] = arith.muli %[[ODD]], %c64_i32
// CHECK: %[[BEHIND:.*]] = arith.addi %[[COLUMN]], %c128_i32
// CHECK: arith.minsi %[[BEHIND]], %c384_i32
// CHECK: %[[V:.*]] = pipe.load %{{.*}} -> !pipe.shared<2x4608xi8>
// CHECK: pipe.mma %{{.*}}, %[[W]] from %[[ROW]], %{{.*}} accumulate %{{.*}} next %[[V]]
func.func @thirds(%x: tensor<200x512xbf16>, %p: tensor<4x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<200x512xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [192, 192, 128]>}
      : (tensor<200x512xbf16>, tensor<4x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<200x512xbf16>
  return %y : tensor<200x512xbf16>
}

// -----

// Their powers are those of two tiles, from row 0 or 64 of the first on.
// CHECK-LABEL: func.func @fast_thirds
// CHECK: %[[TILE:.*]] = arith.muli %{{.*}}, %c4_i32
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c64_i32
// CHECK: %[[BEHIND:.*]] = arith.muli %{{.*}}, %c4_i32
// CHECK: pipe.fetch %{{.*}}[%[[TILE]], %[[FIRST]]] rows %[[BEHIND]] : !pipe.global<16x8704xi8> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
// CHECK: pipe.mma %{{.*}}, %{{.*}} from %{{.*}}, %{{.*}} accumulate %{{.*}} next %{{.*}} without_powers
func.func @fast_thirds(%x: tensor<200x512xf8E4M3FN>, %p: tensor<4x4x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> tensor<200x512xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>, fp4.plan = #fp4.plan<tile_gemm, tile = [104, 192, 128]>}
      : (tensor<200x512xf8E4M3FN>, tensor<4x4x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> tensor<200x512xbf16>
  return %y : tensor<200x512xbf16>
}

// -----

// Pre-dequantized weights: four k tiles follow one another, whose powers are loaded together. Rows
// are multiplied in two parts.
// CHECK-LABEL: func.func @ahead
// CHECK: gpu.launch_func @ahead_convert_0::@kernel blocks in (%c8, %c1, %c1) threads in (%c256, %c1, %c1)
// CHECK-SAME: {fp4.pdl = #fp4.launch_dependents<before_wait>}
// CHECK: gpu.launch_func @ahead_matmul_0::@kernel blocks in (%c4, %c1, %c1) threads in (%c384, %c1, %c1)
// CHECK-SAME: {fp4.pdl = #fp4.launch_dependents<before_wait>}
// CHECK: %[[P:.*]] = pipe.load %{{.*}} : !pipe.global<8x128xf32> -> !pipe.shared<4x128xf32>
// CHECK: scf.for %[[BLOCK:.*]] = %{{.*}} to %c4_i32
// CHECK: %[[W:.*]] = pipe.load %arg1{{.*}} -> !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
// CHECK: %[[X0:.*]] = pipe.load %arg0{{.*}} -> !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
// CHECK: %[[X1:.*]] = pipe.load %arg0{{.*}} -> !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
// CHECK: %[[S:.*]] = pipe.scales %[[P]][0] block %[[BLOCK]]
// CHECK: pipe.mma %[[SUMS:.*]], %[[W]], %[[X0]]
// CHECK: pipe.promote %[[ACC0:.*]], %[[SUMS]] scaled %[[S]]
// CHECK: pipe.mma %[[SUMS]], %[[W]], %[[X1]]
// CHECK: pipe.promote %[[ACC1:.*]], %[[SUMS]] scaled %[[S]]
// CHECK: pipe.read %[[ACC0]][96]
// CHECK: pipe.store {{.*}} transposed staged
// CHECK: pipe.read %[[ACC1]][0]
func.func @ahead(%x: tensor<300x512xf8E4M3FN>, %p: tensor<2x4x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<300x256xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], route = <a = pre>>}
      : (tensor<300x512xf8E4M3FN>, tensor<2x4x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<300x256xbf16>
  return %y : tensor<300x256xbf16>
}

// -----

// Alphas of rows are asked for before any is used, as many as a part of the tile has.
// CHECK-LABEL: func.func @ahead_rows
// CHECK-COUNT-4: pipe.fetch
// CHECK: pipe.read
// CHECK-NOT: pipe.fetch
// CHECK-COUNT-4: pipe.store
// CHECK-COUNT-4: pipe.fetch
func.func @ahead_rows(%x: tensor<300x512xf8E4M3FN>, %p: tensor<2x4x8704xi8, #fp4.weight_layout<wgmma>>, %s: tensor<300x1xf32>) -> tensor<300x256xbf16> {
  %y = fp4.matmul %x, %p alpha %s {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128], route = <a = pre>>}
      : (tensor<300x512xf8E4M3FN>, tensor<2x4x8704xi8, #fp4.weight_layout<wgmma>>,
         tensor<300x1xf32>) -> tensor<300x256xbf16>
  return %y : tensor<300x256xbf16>
}

// -----

// Register-resident weights are loaded a k tile before the rows that they multiply; behind the last comes the last again.
// CHECK-LABEL: func.func @held
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
// CHECK: %[[FIRST:.*]] = pipe.load %{{.*}} -> !pipe.shared<1x8704xi8>
// CHECK: %[[HELD:.*]] = pipe.dequantize %[[FIRST]]
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %{{.*}} : i32
// CHECK: arith.minsi %[[NEXT]], %{{.*}} : i32
// CHECK: %[[W:.*]] = pipe.load %{{.*}} -> !pipe.shared<1x8704xi8>
// CHECK: %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<256x128xf8E4M3FN, swizzle_128B>
// CHECK: pipe.mma %[[ACC]], %[[HELD]], %[[X]] accumulate %{{.*}} next %[[W]]
func.func @held(%x: tensor<300x384xf8E4M3FN>, %p: tensor<2x3x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<300x256xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<300x384xf8E4M3FN>, tensor<2x3x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<300x256xbf16>
  return %y : tensor<300x256xbf16>
}

// -----

// Weights of 6 bits have a byte for each element, and are converted in the order of memory. Nothing is undone behind the
// sums.
// CHECK-LABEL: func.func @six
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
// CHECK: %[[W:.*]] = pipe.load %{{.*}} -> !pipe.shared<128x128xf6E3M2FN, swizzle_128B>
// CHECK: %[[S:.*]] = pipe.load %{{.*}} -> !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
// CHECK: %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<16x128xbf16, swizzle_128B>
// CHECK: pipe.mma %[[ACC]], %[[W]] scaled %[[S]], %[[X]] accumulate %{{.*}} in_order
// CHECK: pipe.read %[[ACC]]
// CHECK-NOT: arith.mulf
func.func @six(%x: tensor<16x512xbf16>, %w: tensor<256x512xf6E3M2FN>, %t: tensor<256x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<16x256xf32> {
  %w_scaled = fp4.scaled %w, %t : !fp4.scaled<mxfp6_e3m2, tensor<256x512xf6E3M2FN>, tensor<256x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
  %y = fp4.matmul %x, %w_scaled
      : (tensor<16x512xbf16>, !fp4.scaled<mxfp6_e3m2, tensor<256x512xf6E3M2FN>, tensor<256x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>) -> tensor<16x256xf32>
  return %y : tensor<16x256xf32>
}
