// Sums of one block of k, which threads of two warpgroups add to what they have in registers.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!a = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!sums = !pipe.tmem<128x64xf32>
!acc = !pipe.fragment<128x32xf32, lanes>
!abs = !pipe.channel<!a, !b>
!sumss = !pipe.channel<!sums>
!ta = !pipe.shared<128x4xf32>
!tb = !pipe.shared<2x4xf32>
!scales = !pipe.channel<!ta, !tb>

gpu.module @m {
// Four instructions of K = 32 begin the sums anew: M 128, N 64, e4m3 times e4m3, sums of fp32. The slices of a row
// are 32 bytes apart.
// CHECK-LABEL: llvm.func @product
// CHECK-DAG: %[[IDESC:.*]] = llvm.mlir.constant(135266320 : i32)
// CHECK-DAG: %[[FALSE:.*]] = llvm.mlir.constant(false) : i1
// CHECK-DAG: %[[TRUE:.*]] = llvm.mlir.constant(true) : i1
// CHECK-DAG: %[[C32:.*]] = llvm.mlir.constant(32 : i32)
// CHECK-DAG: %[[C128:.*]] = llvm.mlir.constant(128 : i32)
// CHECK: nvvm.tcgen05.mma %[[D:.*]], %{{.*}}, %{{.*}}, %[[IDESC]], %[[FALSE]] {{.*}}kind = #nvvm.tcgen05_mma_kind<f8f6f4>
// CHECK-COUNT-3: nvvm.tcgen05.mma %[[D]], %{{.*}}, %{{.*}}, %[[IDESC]], %[[TRUE]]
// CHECK-NOT: nvvm.tcgen05.mma

// The second warpgroup has the columns from 32 on, and the second row of scales.
// CHECK: %[[SCALE:.*]] = llvm.fmul %{{.*}}, %{{.*}} : f32
// CHECK: nvvm.tcgen05.fence <after>
// CHECK: %[[GROUP:.*]] = llvm.udiv %{{.*}}, %[[C128]]
// CHECK: llvm.mul %[[GROUP]], %[[C32]]
// CHECK: nvvm.tcgen05.ld %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<32xi32>
// CHECK: tcgen05.wait::ld.sync.aligned
// CHECK-COUNT-32: llvm.intr.fma(%{{.*}}, %[[SCALE]], %{{.*}})
// CHECK: nvvm.tcgen05.fence <before>
// CHECK: nvvm.mbarrier.arrive %

// One thread of each warp releases the scales, once all have read them.
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK-NOT: nvvm.mbarrier.arrive %
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.mbarrier.arrive %
// CHECK: llvm.inline_asm {{.*}}mbarrier.arrive
// CHECK-NOT: nvvm.mbarrier.arrive %
gpu.func @product(%it: i32, %y: !pipe.global<256x64xf32>) kernel attributes {pipe.tmem_columns = 64 : i64, pipe.tmem_slot = 34000 : i64} {
  %ab = pipe.channel from tma to tensor depth 1 payload [0, 16384] barriers 33280 : !abs
  %ss = pipe.channel from tensor to threads(256) depth 1 payload [0] barriers 33312 : !sumss
  %sc = pipe.channel from tma to threads(256) depth 1 payload [0, 2048] barriers 33328 : !scales
  pipe.role mma warps 8 to 9 drives [tensor] {
    %a, %b = pipe.consumer_wait %ab[%it] : !abs
    %sums = pipe.producer_acquire %ss[%it] : !sumss
    pipe.mma %sums, %a, %b : !sums, !a, !b
    pipe.producer_commit %ss[%it] : !sumss
    pipe.consumer_release %ab[%it] : !abs
  }
  pipe.role load warps 9 to 10 drives [tma] {
    %ta, %tb = pipe.producer_acquire %sc[%it] : !scales
    pipe.producer_commit %sc[%it] : !scales
  }
  pipe.role promote warps 0 to 8 drives [threads] {
    %c0 = arith.constant 0 : i32
    %acc = pipe.accumulator : !acc
    %ta, %tb = pipe.consumer_wait %sc[%it] : !scales
    %s = pipe.scales %ta[0], %tb block %c0 : !ta, !tb -> f32
    %sums = pipe.consumer_wait %ss[%it] : !sumss
    pipe.promote %acc, %sums scaled %s : !acc, !sums, f32
    pipe.consumer_release %ss[%it] : !sumss
    pipe.consumer_release %sc[%it] : !scales
    %zero, %column = pipe.place %acc : !acc
    %v = pipe.read %acc[0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.store %v, %y[%c0, %column] : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<256x64xf32>
  }
  gpu.return
}
}
