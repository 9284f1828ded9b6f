// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-chain-mmas | FileCheck %s

// The second of two MMAs of one B awaits the first. MMAs that the next iteration awaits stay so.

!weights = !pipe.shared<4x4608xi8>
!x = !pipe.shared<32x256xbf16, swizzle_128B>
!acc = !pipe.fragment<64x32xf32, wgmma>
!channel = !pipe.channel<!weights, !weights, !x>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @parts
  // CHECK: pipe.mma {{.*}} accumulate %{{[a-z0-9]+}} chain until_mma : !pipe.fragment
  // CHECK: pipe.mma {{.*}} accumulate %{{[a-z0-9]+}} : !pipe.fragment
  // CHECK: pipe.mma {{.*}} accumulate %{{[a-z0-9]+}} chain until_iteration : !pipe.fragment
  // CHECK: pipe.mma {{.*}} accumulate %{{[a-z0-9]+}} chain until_iteration : !pipe.fragment
  gpu.func @parts(%more: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %tiles = pipe.channel from tma to threads(256) depth 4 payload [65536, 139264, 0] barriers 212992 : !channel
    pipe.role math warps 0 to 8 drives [tensor, threads] {
      %acc = pipe.accumulator : !acc
      %acc2 = pipe.accumulator : !acc
      %v, %w, %x = pipe.consumer_wait %tiles[%c0] : !channel
      pipe.mma %acc, %v, %x accumulate %more : !acc, !weights, !x
      pipe.mma %acc2, %w, %x accumulate %more : !acc, !weights, !x
      pipe.consumer_release %tiles[%c0] : !channel
      scf.for %k = %c1 to %c4 step %c1 : i32 {
        %v2, %w2, %x2 = pipe.consumer_wait %tiles[%k] : !channel
        pipe.mma %acc, %v2, %x2 accumulate %more chain until_iteration : !acc, !weights, !x
        pipe.mma %acc2, %w2, %x2 accumulate %more chain until_iteration : !acc, !weights, !x
        pipe.consumer_release %tiles[%k] : !channel
      }
    }
    gpu.return
  }
}
