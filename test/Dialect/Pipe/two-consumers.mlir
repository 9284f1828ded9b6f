// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -mlir-print-op-generic | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target -pipe-verify-sync -pipe-verify-capacity -o /dev/null
// RUN: fp4-opt %s -fp4-set-target -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s --check-prefix=NVVM

// The pipelined GEMM of ops.mlir, whose epilogue looks at every stage of operands too: a stage is
// empty when the tensor core and all threads have released it.
// unittests/Compiler/ClusterKernelTest.cpp executes it.

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!ab = !pipe.channel<!data, !data, !scales, !scales>
!accs = !pipe.channel<!acc>
!sfa = !pipe.global<?x64xf8E4M3FN, tiled_128x4>
!sfb = !pipe.global<512x64xf8E4M3FN, tiled_128x4>
!y = !pipe.global<?x512xbf16>
!scalar = !pipe.global<f32>

// CHECK: pipe.channel from tma to [tensor, threads(128)] depth 4
// Four full barriers of one arrival, four empty ones of 1 + 128.
// NVVM-LABEL: llvm.func @two_consumers
// NVVM: %[[BOTH:.*]] = llvm.mlir.constant(129 : i32)
// NVVM: nvvm.mbarrier.init %{{.*}}, %[[BOTH]]
gpu.module @two_consumers {
gpu.func @two_consumers(%a: !map, %b: !map, %sfa: !sfa, %sfb: !sfb, %alpha: !scalar, %y: !y, %m: i32)
    kernel attributes {known_block_size = array<i32: 192, 1, 1>, pipe.shared_bytes = 147560 : i64,
                       pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 147552 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %bytes = arith.constant 36864 : i32
  %m127 = arith.addi %m, %c127 : i32
  %num_m = arith.divui %m127, %c128 : i32
  %ab = pipe.channel from tma to [tensor, threads(128)] depth 4 payload [0, 65536, 131072, 139264] barriers 147456 : !ab
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 147520 : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0) -> (i32) {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kcol = arith.muli %k, %c256 : i32
        %kb = arith.muli %k, %c4 : i32
        %as, %bs, %sas, %sbs = pipe.producer_acquire %ab[%it] : !ab
        pipe.expect_tx %ab[%it], %bytes : !ab
        pipe.load %a[%m0, %kcol] into %as signals %ab[%it] : !map, !data, !ab
        pipe.load %b[%n0, %kcol] into %bs signals %ab[%it] : !map, !data, !ab
        pipe.load %sfa[%tm, %kb] into %sas signals %ab[%it] : !sfa, !scales, !ab
        pipe.load %sfb[%tn, %kb] into %sbs signals %ab[%it] : !sfb, !scales, !ab
        pipe.producer_commit %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      pipe.yield %last : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0, %tile_it = %c0) -> (i32, i32) {
      %acc = pipe.producer_acquire %accs[%tile_it] : !accs
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !ab
        pipe.await_release %ab[%it] distance 2 : !ab
        %sat = pipe.copy_scales %sas at 256 sets 2 : !scales -> !tscales
        %sbt = pipe.copy_scales %sbs at 288 sets 4 : !scales -> !tscales
        %more = arith.cmpi sgt, %k, %c0 : i32
        pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !tscales, !data, !tscales
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
    %scale = pipe.load_entry %alpha : !scalar -> f32
    %scales = tensor.splat %scale : tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0, %tile_it = %c0) -> (i32, i32) {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !ab
        pipe.consumer_release %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      %acc = pipe.consumer_wait %accs[%tile_it] : !accs
      scf.for %c = %c0 to %c128 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %scales : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n0, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      pipe.consumer_release %accs[%tile_it] : !accs
      %next_tile = arith.addi %tile_it, %c1 : i32
      pipe.yield %last, %next_tile : i32, i32
    }
  }
  gpu.return
}
}
