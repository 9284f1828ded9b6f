// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s
// Numbers of rows beside a transposed fragment: a thread has two neighbours of each eight, which it loads at once,
// or the last two rows. With an odd number of rows one of two may not exist, and if rows begin anywhere, as those
// of groups, the first may be odd, so they are loaded one by one. If all rows share one number, a thread has two
// columns. Numbers that are in bounds are loaded without a comparison, where the op is.

// CHECK-LABEL: llvm.func @even
// CHECK: %[[LAST:.*]] = llvm.mlir.constant(298 : i32)
// CHECK: llvm.intr.umin(%{{.*}}, %[[LAST]])
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} {{.*}}vector<2xf32>
// CHECK-LABEL: llvm.func @odd
// CHECK-NOT: vector<2xf32>
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} {{.*}}f32
// CHECK-LABEL: llvm.func @anywhere
// CHECK-NOT: vector<2xf32>
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} {{.*}}f32
// CHECK-LABEL: llvm.func @group(
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 4 : i64} {{.*}}f32
// CHECK-NOT: llvm.load
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @behind(
// CHECK: "{\0A.reg .pred p;\0Asetp.ne.b32 p, $3, 0;\0A@p ld.global.nc.b64 $0, [$2];\0A}"
// CHECK-LABEL: llvm.func @within(
// CHECK-NOT: setp
// CHECK-COUNT-2: "ld.global.nc.b64 $0, [$1];"
// CHECK-NOT: ld.global
// CHECK: llvm.return
gpu.module @kernels {
gpu.func @even(%p: !pipe.global<300x1xf32>, %y: !pipe.global<300x512xf32>, %tile: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  %c16 = arith.constant 16 : i32
  %c8 = arith.constant 8 : i32
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %first = arith.muli %tile, %c16 : i32
    %m = arith.addi %first, %c8 : i32
    %f = pipe.fetch %p[%m, %n] transposed : !pipe.global<300x1xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<300x512xf32>
  }
  gpu.return
}
gpu.func @odd(%p: !pipe.global<301x1xf32>, %y: !pipe.global<301x512xf32>, %tile: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  %c16 = arith.constant 16 : i32
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %m = arith.muli %tile, %c16 : i32
    %f = pipe.fetch %p[%m, %n] transposed : !pipe.global<301x1xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<301x512xf32>
  }
  gpu.return
}
gpu.func @anywhere(%p: !pipe.global<300x1xf32>, %y: !pipe.global<300x512xf32>, %m: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %f = pipe.fetch %p[%m, %n] transposed : !pipe.global<300x1xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<300x512xf32>
  }
  gpu.return
}
gpu.func @group(%p: !pipe.global<5x512xf32>, %y: !pipe.global<300x512xf32>, %group: i32, %m: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %f = pipe.fetch %p[%group, %n] transposed one_row : !pipe.global<5x512xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] transposed : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<300x512xf32>
  }
  gpu.return
}
gpu.func @behind(%p: !pipe.global<1x300xf32>, %y: !pipe.global<300x512xf32>, %m: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %f = pipe.fetch %p[%m, %n] : !pipe.global<1x300xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<300x512xf32>
  }
  gpu.return
}
gpu.func @within(%p: !pipe.global<1x300xf32>, %y: !pipe.global<300x512xf32>, %m: i32, %n: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role math warps 0 to 4 drives [tensor, threads] {
    %f = pipe.fetch %p[%m, %n] in_bounds : !pipe.global<1x300xf32> -> tensor<64x16xf32, #pipe.distribution<wgmma>>
    pipe.store %f, %y[%m, %n] : tensor<64x16xf32, #pipe.distribution<wgmma>>, !pipe.global<300x512xf32>
  }
  gpu.return
}
}
