// Three roles of threads: operations name the auxiliary ones, and the others run on the third.
// RUN: fp4-opt %s -split-input-file -verify-diagnostics -pipe-specialize-warps | FileCheck %s

!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!acc = !pipe.tmem<128x64xf32>
!y = !pipe.global<128x64xf32>
!v = tensor<128x64xf32, #pipe.distribution<lanes>>
gpu.module @kernels {
// CHECK-LABEL: gpu.func @transform
// CHECK: %[[H:.*]] = pipe.channel from threads(128) to tensor
// CHECK: pipe.role matrix warps 8 to 12 drives [threads] auxiliary {
// CHECK-NEXT: pipe.producer_acquire %[[H]]
// CHECK-NEXT: pipe.hadamard_matrix signs 5 into %{{[a-z]+}} : !pipe.shared<16x16xbf16, swizzle_32B>
// CHECK-NEXT: pipe.producer_commit %[[H]]
// CHECK-NEXT: }
// CHECK: pipe.role clear warps 6 to 7 drives [threads] auxiliary {
// CHECK-NEXT: pipe.clear_rows %{{[a-z0-9]+}}[
// CHECK-NOT: {{pipe.role =|pipe.clear_rows}}
// CHECK: pipe.role epilogue warps 0 to 4 drives [threads] {
// CHECK: pipe.read
// CHECK: pipe.store
gpu.func @transform(%map: !pipe.tensor_map<64x64xbf16, swizzle_128B>, %y: !y, %begin: i32, %end: i32) kernel
    attributes {pipe.role_plan = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor],
                matrix warps 8 to 12 drives [threads] auxiliary, clear warps 6 to 7 drives [threads] auxiliary,
                epilogue warps 0 to 4 drives [threads]>} {
  %c0 = arith.constant 0 : i32
  pipe.clear_rows %y[%begin to %end] {pipe.role = "clear"} : !y
  %h = pipe.hadamard_matrix signs 5 {pipe.role = "matrix"} -> !h
  %x = pipe.load %map[%c0, %c0] : !pipe.tensor_map<64x64xbf16, swizzle_128B> -> !x
  %acc = pipe.accumulator : !acc
  pipe.mma %acc, %x, %h : !acc, !x, !h
  %v = pipe.read %acc[%c0] : !acc -> !v
  pipe.store %v, %y[%c0, %c0] : !v, !y
  gpu.return
}
}

// -----

gpu.module @kernels {
// expected-note @+1 {{the role plan is #pipe.role_plan<all warps 0 to 4 drives [threads]>}}
gpu.func @unknown(%y: !pipe.global<128x64xf32>, %begin: i32) kernel attributes {pipe.role_plan = #pipe.role_plan<all warps 0 to 4 drives [threads]>} {
  // expected-error @+1 {{must name a role of the plan, but got 'clear'}}
  pipe.clear_rows %y[%begin to %begin] {pipe.role = "clear"} : !pipe.global<128x64xf32>
  gpu.return
}
}

// -----

gpu.module @kernels {
// expected-note @+1 {{the role plan is}}
gpu.func @undriven(%y: !pipe.global<128x64xf32>, %begin: i32) kernel attributes {pipe.role_plan = #pipe.role_plan<all warps 0 to 4 drives [threads], load warps 4 to 5 drives [tma]>} {
  // expected-error @+1 {{must name a role that drives threads, but got 'load'}}
  pipe.clear_rows %y[%begin to %begin] {pipe.role = "load"} : !pipe.global<128x64xf32>
  gpu.return
}
}
