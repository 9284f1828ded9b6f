// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s --fp4-compile=to=pipelined | FileCheck %s --check-prefix=PIPELINED
// RUN: fp4-opt %s --fp4-compile=to=pipelined | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s --check-prefix=MUTANTS

// NVFP4 GEMMs Y[M,512] = alpha * A[M,1024] B[512,1024]^T in clusters, by hand in the sequential
// form. M is dynamic. unittests/Compiler/ClusterKernelTest.cpp executes them.

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!half_map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!scales2 = !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!pscales2 = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<128x128xf32>
!pair_acc = !pipe.tmem<256x256xf32, pair>
!sfa = !pipe.global<?x64xf8E4M3FN, tiled_128x4>
!sfb = !pipe.global<512x64xf8E4M3FN, tiled_128x4>
!y = !pipe.global<?x512xbf16>
!scalar = !pipe.global<f32>

#plan = #pipe.role_plan<epilogue warps 0 to 4 drives [threads],
                        mma warps 4 to 5 drives [tensor, scale_copy],
                        load warps 5 to 6 drives [tma]>

// No channel op of the three kernels is redundant, and no channel may have another scope.
// MUTANTS: 95 of 95 mutants rejected

// Tiles of 256x256 by two CTAs: each loads half of the rows of A and of B. The scales of all rows
// of B are in both CTAs; each loads half of them and sends it to both.
// CHECK-LABEL: gpu.func @pair
gpu.module @pair {
gpu.func @pair(%a: !map, %b: !map, %sfa: !scale_map, %sfb: !scale_map, %alpha: !scalar, %y: !y,
               %m: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, pipe.role_plan = #plan} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %c255 = arith.constant 255 : i32
  %c256 = arith.constant 256 : i32
  %m255 = arith.addi %m, %c255 : i32
  %num_m = arith.divui %m255, %c256 : i32
  %place = gpu.cluster_block_id x
  %x = arith.index_cast %place : index to i32
  %half = arith.muli %x, %c128 : i32
  pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_m> {
    %m_pair = arith.muli %tm, %c256 : i32
    %n_pair = arith.muli %tn, %c256 : i32
    %m0 = arith.addi %m_pair, %half : i32
    %n0 = arith.addi %n_pair, %half : i32
    // CHECK: pipe.accumulator : !pipe.tmem<256x256xf32, pair>
    %acc = pipe.accumulator : !pair_acc
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %kcol = arith.muli %k, %c256 : i32
      %ks = arith.muli %k, %c16 : i32
      %as = pipe.load %a[%m0, %kcol] : !map -> !data
      %bs = pipe.load %b[%n0, %kcol] : !map -> !data
      // CHECK: pipe.load %{{.*}}[%{{.*}}, %{{.*}}] : !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
      %sas = pipe.load %sfa[%m0, %ks] : !scale_map -> !scales
      // CHECK: pipe.load %{{.*}}[%{{.*}}, %{{.*}}] multicast m : !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4> -> !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
      %sbs = pipe.load %sfb[%n_pair, %ks] multicast m : !scale_map -> !scales2
      // CHECK: pipe.copy_scales %{{.*}} -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
      %sat = pipe.copy_scales %sas : !scales -> !pscales
      %sbt = pipe.copy_scales %sbs : !scales2 -> !pscales2
      %more = arith.cmpi sgt, %k, %c0 : i32
      pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !pair_acc, !data, !pscales, !data, !pscales2
    }
    %factor = pipe.load_entry %alpha : !scalar -> f32
    %factors = tensor.splat %factor : tensor<128x32xf32, #pipe.distribution<lanes>>
    scf.for %c = %c0 to %c256 step %c32 : i32 {
      %v = pipe.read %acc[%c] : !pair_acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
      %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
      %col = arith.addi %n_pair, %c : i32
      pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
    }
  }
  gpu.return
}
}

// The tensor core of the pair stands at an end of both channels. The leader announces the bytes of
// both CTAs: 2 * (16384 + 16384 + 2048 + 4096).
// PIPELINED-LABEL: gpu.func @pair
// PIPELINED-DAG: %[[BYTES:.*]] = arith.constant 77824 : i32
// PIPELINED-DAG: %[[ACCS:.*]] = pipe.channel from tensor to threads(128) scope cluster depth 1
// PIPELINED-DAG: %[[AB:.*]] = pipe.channel from tma to tensor scope cluster depth 5
// PIPELINED: pipe.expect_tx %[[AB]][%{{.*}}], %[[BYTES]]
// PIPELINED: pipe.load %{{.*}} multicast m into %{{.*}} signals %[[AB]]

// Tiles of 256x256 by 2x2 CTAs, two pairs along n, each with 256x128: the pairs have the same rows
// of A, so CTAs along n load them together.
gpu.module @pair_2x2 {
gpu.func @pair_2x2(%a: !half_map, %b: !half_map, %sfa: !scale_map, %sfb: !scale_map, %alpha: !scalar,
                   %y: !y, %m: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.role_plan = #plan} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c255 = arith.constant 255 : i32
  %c256 = arith.constant 256 : i32
  %m255 = arith.addi %m, %c255 : i32
  %num_m = arith.divui %m255, %c256 : i32
  %place_m = gpu.cluster_block_id x
  %x = arith.index_cast %place_m : index to i32
  %place_n = gpu.cluster_block_id y
  %yy = arith.index_cast %place_n : index to i32
  %half = arith.muli %x, %c128 : i32
  %quarter = arith.muli %x, %c64 : i32
  %right = arith.muli %yy, %c128 : i32
  pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_n> {
    %m_pair = arith.muli %tm, %c256 : i32
    %n_cluster = arith.muli %tn, %c256 : i32
    %n_pair = arith.addi %n_cluster, %right : i32
    %m0 = arith.addi %m_pair, %half : i32
    %n0 = arith.addi %n_pair, %quarter : i32
    %acc = pipe.accumulator : !pipe.tmem<256x128xf32, pair>
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %kcol = arith.muli %k, %c256 : i32
      %ks = arith.muli %k, %c16 : i32
      %as = pipe.load %a[%m0, %kcol] multicast n : !half_map -> !data
      %bs = pipe.load %b[%n0, %kcol] : !half_map -> !pipe.shared<64x256xf4E2M1FN, swizzle_128B>
      %sas = pipe.load %sfa[%m0, %ks] : !scale_map -> !scales
      %sbs = pipe.load %sfb[%n_pair, %ks] : !scale_map -> !scales
      %sat = pipe.copy_scales %sas : !scales -> !pscales
      %sbt = pipe.copy_scales %sbs : !scales -> !pscales
      %more = arith.cmpi sgt, %k, %c0 : i32
      pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !pipe.tmem<256x128xf32, pair>, !data, !pscales, !pipe.shared<64x256xf4E2M1FN, swizzle_128B>, !pscales
    }
    %factor = pipe.load_entry %alpha : !scalar -> f32
    %factors = tensor.splat %factor : tensor<128x32xf32, #pipe.distribution<lanes>>
    scf.for %c = %c0 to %c128 step %c32 : i32 {
      %v = pipe.read %acc[%c] : !pipe.tmem<256x128xf32, pair> -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
      %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
      %col = arith.addi %n_pair, %c : i32
      pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
    }
  }
  gpu.return
}
}

// Without pairs: four CTAs work on 256x256, each on 128x128. CTAs along n share A, those along m
// share B; the scales of each tile are loaded by its CTA.
gpu.module @shared_2x2 {
gpu.func @shared_2x2(%a: !half_map, %b: !half_map, %sfa: !sfa, %sfb: !sfb, %alpha: !scalar, %y: !y,
                     %m: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>, pipe.role_plan = #plan} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %c255 = arith.constant 255 : i32
  %c256 = arith.constant 256 : i32
  %m255 = arith.addi %m, %c255 : i32
  %num_m = arith.divui %m255, %c256 : i32
  %place_m = gpu.cluster_block_id x
  %x = arith.index_cast %place_m : index to i32
  %place_n = gpu.cluster_block_id y
  %yy = arith.index_cast %place_n : index to i32
  pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_m> {
    %tm2 = arith.muli %tm, %c2 : i32
    %tn2 = arith.muli %tn, %c2 : i32
    %bm = arith.addi %tm2, %x : i32
    %bn = arith.addi %tn2, %yy : i32
    %m0 = arith.muli %bm, %c128 : i32
    %n0 = arith.muli %bn, %c128 : i32
    %acc = pipe.accumulator : !acc
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %kcol = arith.muli %k, %c256 : i32
      %kb = arith.muli %k, %c4 : i32
      %as = pipe.load %a[%m0, %kcol] multicast n : !half_map -> !data
      %bs = pipe.load %b[%n0, %kcol] multicast m : !half_map -> !data
      %sas = pipe.load %sfa[%bm, %kb] : !sfa -> !scales
      %sbs = pipe.load %sfb[%bn, %kb] : !sfb -> !scales
      %sat = pipe.copy_scales %sas : !scales -> !tscales
      %sbt = pipe.copy_scales %sbs : !scales -> !tscales
      %more = arith.cmpi sgt, %k, %c0 : i32
      pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !tscales, !data, !tscales
    }
    %factor = pipe.load_entry %alpha : !scalar -> f32
    %factors = tensor.splat %factor : tensor<128x32xf32, #pipe.distribution<lanes>>
    scf.for %c = %c0 to %c128 step %c32 : i32 {
      %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
      %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
      %col = arith.addi %n0, %c : i32
      pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
    }
  }
  gpu.return
}
}

// Only the operands travel between CTAs. The four CTAs of a stage's consumers release it to three
// producers each.
// PIPELINED-LABEL: gpu.func @shared_2x2
// PIPELINED-DAG: pipe.channel from tensor to threads(128) depth 2
// PIPELINED-DAG: pipe.channel from tma to tensor scope cluster
