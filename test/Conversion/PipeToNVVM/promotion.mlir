// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s

// A loop over the blocks of a tile of scales becomes its two iterations. Sums that an MMA
// overwrites need no zeros of their own in each of them, but a fragment that is read as it begins
// does: 32 zeros are stored three times, once for the sums and twice for the fragment.
// CHECK-LABEL: llvm.func @turns
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0.000000e+00 : f32)
// CHECK-COUNT-96: llvm.store %[[ZERO]],
// CHECK-NOT: llvm.store %[[ZERO]],
!a = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!sums = !pipe.fragment<64x64xf32, wgmma>
!ta = !pipe.shared<128x4xf32>
!tb = !pipe.shared<1x4xf32>
!scales = !pipe.channel<!ta, !tb>
gpu.module @kernels {
gpu.func @turns(%a: !a, %b: !b, %sa: !pipe.shared<128x4xf32>, %sb: !pipe.shared<1x4xf32>, %y: !pipe.global<128x64xf32>) kernel
    attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    scf.for %k = %c0 to %c2 step %c1 : i32 {
      %acc = pipe.accumulator : !sums
      %sums = pipe.accumulator : !sums
      pipe.mma %sums, %a, %b : !sums, !a, !b
      %s = pipe.scales %sa[0], %sb block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> vector<3xf32>
      pipe.promote %acc, %sums scaled %s at %c0 : !sums, !sums, vector<3xf32>
      %v = pipe.read %acc[0] : !sums -> tensor<64x64xf32, #pipe.distribution<wgmma>>
      pipe.store %v, %y[%c0, %c0] : tensor<64x64xf32, #pipe.distribution<wgmma>>, !pipe.global<128x64xf32>
    }
  }
  gpu.return
}

// Reads of a stage are fenced before its release: within the MMA that follows them, while the tensor core is
// busy. Reads behind the MMA have a fence of their own.
// CHECK-LABEL: llvm.func @reads_before
// CHECK: wgmma.commit_group.sync.aligned;\0Afence.proxy.async.shared::cta;
// CHECK-NOT: nvvm.fence.proxy
// CHECK: mbarrier.arrive.shared
// CHECK-LABEL: llvm.func @reads_behind
// CHECK: wgmma.commit_group.sync.aligned;\0Awgmma.wait_group
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK: nvvm.fence.proxy
// CHECK: mbarrier.arrive.shared
gpu.func @reads_before(%a: !a, %b: !b, %it: i32) kernel attributes {known_block_size = array<i32: 288, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %sc = pipe.channel from tma to threads(256) depth 2 payload [0, 4096] barriers 8192 : !scales
  pipe.role load warps 8 to 9 drives [tma] {
    %ta, %tb = pipe.producer_acquire %sc[%it] : !scales
    pipe.producer_commit %sc[%it] : !scales
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !sums
    %sums = pipe.accumulator : !sums
    %ta, %tb = pipe.consumer_wait %sc[%it] : !scales
    %s = pipe.scales %ta[0], %tb block %c0 : !ta, !tb -> vector<3xf32>
    pipe.mma %sums, %a, %b : !sums, !a, !b
    pipe.promote %acc, %sums scaled %s at %c0 : !sums, !sums, vector<3xf32>
    pipe.consumer_release %sc[%it] : !scales
  }
  gpu.return
}
gpu.func @reads_behind(%a: !a, %b: !b, %it: i32) kernel attributes {known_block_size = array<i32: 288, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %sc = pipe.channel from tma to threads(256) depth 2 payload [0, 4096] barriers 8192 : !scales
  pipe.role load warps 8 to 9 drives [tma] {
    %ta, %tb = pipe.producer_acquire %sc[%it] : !scales
    pipe.producer_commit %sc[%it] : !scales
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !sums
    %sums = pipe.accumulator : !sums
    %ta, %tb = pipe.consumer_wait %sc[%it] : !scales
    pipe.mma %sums, %a, %b : !sums, !a, !b
    %s = pipe.scales %ta[0], %tb block %c0 : !ta, !tb -> vector<3xf32>
    pipe.promote %acc, %sums scaled %s at %c0 : !sums, !sums, vector<3xf32>
    pipe.consumer_release %sc[%it] : !scales
  }
  gpu.return
}

// Tiles of 160 columns begin at multiples of 32 in a scale block of 128. So columns 32 to 127 lie in
// either of two, 32 at a time: three selections for each of a thread's two rows, and not one for
// each 8 columns.
// CHECK-LABEL: llvm.func @selections
// CHECK-COUNT-6: llvm.select
// CHECK-NOT: llvm.select
// CHECK: llvm.return
gpu.func @selections(%sa: !pipe.shared<128x4xf32>, %sb: !pipe.shared<2x4xf32>, %column: i32) kernel
    attributes {known_block_size = array<i32: 256, 1, 1>} {
  %c0 = arith.constant 0 : i32
  pipe.role math warps 0 to 8 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.fragment<64x160xf32, wgmma>
    %sums = pipe.accumulator : !pipe.fragment<64x160xf32, wgmma>
    %s = pipe.scales %sa[0], %sb block %c0 : !pipe.shared<128x4xf32>, !pipe.shared<2x4xf32> -> vector<4xf32>
    pipe.promote %acc, %sums scaled %s at %column : !pipe.fragment<64x160xf32, wgmma>, !pipe.fragment<64x160xf32, wgmma>, vector<4xf32>
  }
  gpu.return
}
}
