// RUN: fp4-opt %s -fp4-set-target -pipe-pipeline -pipe-verify-sync -pipe-verify-capacity | FileCheck %s

// A channel that is filled once needs one stage; pipeline.mlir has the loops around it. A launch of
// another kernel of the module asks for no shared memory.

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!sf = !pipe.global<128x17xf8E4M3FN, tiled_128x4>
!y = !pipe.global<128x128xf32>
!ab = !pipe.channel<!scales, !data, !data, !scales>
!accs = !pipe.channel<!acc>

// CHECK: %[[BYTES:.*]] = arith.constant 36904 : i32
// CHECK: gpu.launch_func @kernels::@gemm {{.*}} dynamic_shared_memory_size %[[BYTES]]
// CHECK: gpu.launch_func @kernels::@other
// CHECK-NOT: dynamic_shared_memory_size
// CHECK: return
module attributes {gpu.container_module} {
func.func @host(%a: memref<128x144xi8>, %sf: memref<1x5x512xi8>, %y: memref<128x128xf32>) {
  %c1 = arith.constant 1 : index
  %c192 = arith.constant 192 : index
  %map = pipe.make_tensor_map %a columns 272 : memref<128x144xi8> -> !map
  %s = pipe.view %sf : memref<1x5x512xi8> -> !sf
  %g = pipe.view %y : memref<128x128xf32> -> !y
  gpu.launch_func @kernels::@gemm blocks in (%c1, %c1, %c1) threads in (%c192, %c1, %c1)
      args(%map : !map, %s : !sf, %g : !y)
  gpu.launch_func @kernels::@other blocks in (%c1, %c1, %c1) threads in (%c192, %c1, %c1)
  return
}

// CHECK-LABEL: gpu.func @gemm
// CHECK: pipe.channel from tma to tensor depth 1 payload
// CHECK: pipe.channel from tensor to threads(128) depth 1 payload
gpu.module @kernels {
gpu.func @gemm(%a: !map, %sf: !sf, %y: !y) kernel attributes {known_block_size = array<i32: 192, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %ab = pipe.channel from tma to tensor : !ab
  %accs = pipe.channel from tensor to threads(128) : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    %sas, %as, %bs, %sbs = pipe.producer_acquire %ab : !ab
    pipe.load %a[%c0, %c0] into %as signals %ab : !map, !data, !ab
    pipe.load %a[%c0, %c0] into %bs signals %ab : !map, !data, !ab
    pipe.load %sf[%c0, %c0] existing %c4 into %sas signals %ab : !sf, !scales, !ab
    pipe.load %sf[%c0, %c0] existing %c4 into %sbs signals %ab : !sf, !scales, !ab
    pipe.producer_commit %ab : !ab
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs : !accs
    %sas, %as, %bs, %sbs = pipe.consumer_wait %ab : !ab
    %ta = pipe.copy_scales %sas blocks %c4 : !scales -> !tscales
    %tb = pipe.copy_scales %sbs blocks %c4 : !scales -> !tscales
    %more = arith.constant false
    pipe.mma %acc, %as scaled %ta, %bs scaled %tb accumulate %more existing %c4 : !acc, !data, !tscales, !data, !tscales
    pipe.consumer_release %ab : !ab
    pipe.producer_commit %accs : !accs
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %acc = pipe.consumer_wait %accs : !accs
    scf.for %c = %c0 to %c128 step %c64 : i32 {
      %v = pipe.read %acc[%c] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.store %v, %y[%c0, %c] : tensor<128x64xf32, #pipe.distribution<lanes>>, !y
    }
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
gpu.func @other() kernel {
  gpu.return
}
}
}
