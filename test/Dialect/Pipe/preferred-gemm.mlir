// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s --fp4-compile=to=pipelined | FileCheck %s --check-prefix=PIPELINED
// RUN: fp4-opt %s --fp4-compile=to=ptx | FileCheck %s --check-prefix=PTX

// An NVFP4 GEMM Y[M,512] = alpha * A[M,1024] B[512,1024]^T, by hand in the sequential form. Two pairs along n have
// the same rows of A and load them together; where the hardware has no room for both in one cluster, each pair is one and
// loads all of its rows. M is dynamic. unittests/Compiler/ClusterKernelTest.cpp executes it.

!half_map = !pipe.tensor_map<64x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!y = !pipe.global<?x512xbf16>
!scalar = !pipe.global<f32>

#plan = #pipe.role_plan<epilogue warps 0 to 4 drives [threads],
                        mma warps 4 to 5 drives [tensor, scale_copy],
                        load warps 5 to 6 drives [tma]>

// CHECK-LABEL: gpu.func @two_sizes
// CHECK-SAME: pipe.fallback_cluster = array<i32: 2, 1>
// PIPELINED-LABEL: gpu.func @two_sizes
// PIPELINED-SAME: pipe.fallback_cluster = array<i32: 2, 1>
// PIPELINED: pipe.load %{{.*}} multicast n into

// PTX cannot say two sizes; the launch does. The second load with multicast is that of a pair alone.
// PTX: clusters = array<i32: 2, 1, 2, 2>
// PTX: .explicitcluster
// PTX-SAME: .maxclusterrank 4
// PTX-NOT: .reqnctapercluster
// PTX: %cluster_nctarank
// PTX-COUNT-2: .multicast::cluster.cta_group::2
gpu.module @two_sizes {
gpu.func @two_sizes(%a: !half_map, %b: !half_map, %sfa: !scale_map, %sfb: !scale_map, %alpha: !scalar,
                    %y: !y, %m: i32)
    kernel attributes {known_cluster_size = array<i32: 2, 2, 1>,
                       pipe.fallback_cluster = array<i32: 2, 1>, pipe.role_plan = #plan} {
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
