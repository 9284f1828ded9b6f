// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target -pipe-verify-sync -pipe-verify-capacity -o /dev/null
// RUN: fp4-opt %s -fp4-set-target | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s --check-prefix=MUTANTS
// RUN: fp4-opt %s -fp4-set-target -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s --check-prefix=NVVM

// The GEMM of cluster-gemms.mlir's pair, by hand in the pipelined form, with two accumulators of
// 256 columns in 448: they have 64 columns in common. The epilogue reads what they share first and
// gives it back; the pair then fills the other accumulator while the epilogue reads the rest.
// unittests/Compiler/ClusterKernelTest.cpp executes it. A missing partial release is no mutant: without it
// the producer waits for the whole release.
// MUTANTS: 31 of 31 mutants rejected

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!scale_map = !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!scales2 = !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
!pscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4, pair>
!pscales2 = !pipe.tmem<256x16xf8E4M3FN, tiled_128x4, pair>
!acc = !pipe.tmem<256x256xf32, pair>
!ab = !pipe.channel<!data, !data, !scales, !scales2>
!accs = !pipe.channel<!acc>
!y = !pipe.global<?x512xbf16>
!scalar = !pipe.global<f32>

gpu.module @overlapped {
gpu.func @overlapped(%a: !map, %b: !map, %sfa: !scale_map, %sfb: !scale_map, %alpha: !scalar,
                     %y: !y, %m: i32)
    kernel attributes {known_block_size = array<i32: 192, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>,
                       pipe.shared_bytes = 155760 : i64, pipe.tmem_columns = 512 : i64,
                       pipe.tmem_slot = 155752 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c192 = arith.constant 192 : i32
  %c255 = arith.constant 255 : i32
  %c256 = arith.constant 256 : i32
  %bytes = arith.constant 77824 : i32
  %m255 = arith.addi %m, %c255 : i32
  %num_m = arith.divui %m255, %c256 : i32
  %place = gpu.cluster_block_id x
  %x = arith.index_cast %place : index to i32
  %half = arith.muli %x, %c128 : i32
  %ab = pipe.channel from tma to tensor scope cluster depth 4 payload [0, 65536, 131072, 139264] barriers 155648 : !ab
  // CHECK: pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] stride [192] barriers 155712 : !channel
  %accs = pipe.channel from tensor to threads(128) scope cluster depth 2 payload [0] stride [192] barriers 155712 : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0) -> (i32) {
      %m_pair = arith.muli %tm, %c256 : i32
      %n_pair = arith.muli %tn, %c256 : i32
      %m0 = arith.addi %m_pair, %half : i32
      %n0 = arith.addi %n_pair, %half : i32
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kcol = arith.muli %k, %c256 : i32
        %ks = arith.muli %k, %c16 : i32
        %as, %bs, %sas, %sbs = pipe.producer_acquire %ab[%it] : !ab
        pipe.expect_tx %ab[%it], %bytes : !ab
        pipe.load %a[%m0, %kcol] into %as signals %ab[%it] : !map, !data, !ab
        pipe.load %b[%n0, %kcol] into %bs signals %ab[%it] : !map, !data, !ab
        pipe.load %sfa[%m0, %ks] into %sas signals %ab[%it] : !scale_map, !scales, !ab
        pipe.load %sfb[%n_pair, %ks] multicast m into %sbs signals %ab[%it] : !scale_map, !scales2, !ab
        pipe.producer_commit %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      pipe.yield %last : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0, %tile_it = %c0) -> (i32, i32) {
      %acc = pipe.producer_acquire %accs[%tile_it] : !accs
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !ab
        pipe.await_release %ab[%it] distance 1 : !ab
        %sat = pipe.copy_scales %sas at 448 : !scales -> !pscales
        %sbt = pipe.copy_scales %sbs at 464 : !scales2 -> !pscales2
        %more = arith.cmpi sgt, %k, %c0 : i32
        pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !pscales, !data, !pscales2
        pipe.consumer_release %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      pipe.producer_commit %accs[%tile_it] : !accs
      %next_tile = arith.addi %tile_it, %c1 : i32
      pipe.yield %last, %next_tile : i32, i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %factor = pipe.load_entry %alpha : !scalar -> f32
    %factors = tensor.splat %factor : tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.for_each_work %tm, %tn in (%num_m, %c2) schedule #pipe.static_persistent<along_m>
        iter_args(%it = %c0) -> (i32) {
      %m_pair = arith.muli %tm, %c256 : i32
      %n_pair = arith.muli %tn, %c256 : i32
      %m0 = arith.addi %m_pair, %half : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      scf.for %c = %c0 to %c64 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n_pair, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      scf.for %c = %c192 to %c256 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n_pair, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      // CHECK: pipe.consumer_release %{{.*}}[%{{.*}}] partial : !channel
      pipe.consumer_release %accs[%it] partial : !accs
      scf.for %c = %c64 to %c192 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %factors : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n_pair, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  gpu.return
}
}

// The partial release arrives at the leader; the release behind it does nothing.
// NVVM-LABEL: llvm.func @overlapped
// NVVM: nvvm.fence.sync_restrict {order = #nvvm.mem_order<release>}
// NVVM: nvvm.mbarrier.arrive %{{.*}} {relaxed = true, scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
// NVVM-NOT: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<7>
