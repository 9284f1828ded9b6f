// RUN: fp4-opt %s -pipe-specialize-warps | FileCheck %s
// Sums that a loop carries from one fetch to the next are those of one role: no other role keeps the
// loop, nor the branch around it, whose condition is a value of that role too.
!acc = !pipe.tmem<128x64xf32>
!ws = !pipe.global<256x64xf32>
#roles = #pipe.role_plan<mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>
gpu.module @kernels {
// CHECK-LABEL: gpu.func @carried
// CHECK: pipe.role mma
// CHECK-NOT: scf
// CHECK: pipe.role epilogue
// CHECK: pipe.count_partial
// CHECK: scf.if
// CHECK: pipe.fetch
// CHECK: scf.for
// CHECK: pipe.fetch
// CHECK: arith.addf
// CHECK: pipe.store
gpu.func @carried(%ws: !ws, %y: !ws, %counters: !pipe.global<1x4xi32>, %n: i32) kernel attributes {pipe.role_plan = #roles} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = pipe.accumulator : !acc
  %v = pipe.read %acc[%c0] : !acc -> tensor<128x16xf32, #pipe.distribution<lanes>>
  pipe.store %v, %ws[%c0, %c0] : tensor<128x16xf32, #pipe.distribution<lanes>>, !ws
  %last = pipe.count_partial %counters[%c0] of %n : !pipe.global<1x4xi32>
  scf.if %last {
    %first = pipe.fetch %ws[%c0, %c0] written : !ws -> tensor<128x16xf32, #pipe.distribution<lanes>>
    %sum = scf.for %i = %c1 to %n step %c1 iter_args(%s = %first) -> tensor<128x16xf32, #pipe.distribution<lanes>> : i32 {
      %next = pipe.fetch %ws[%i, %c0] written : !ws -> tensor<128x16xf32, #pipe.distribution<lanes>>
      %more = arith.addf %s, %next : tensor<128x16xf32, #pipe.distribution<lanes>>
      scf.yield %more : tensor<128x16xf32, #pipe.distribution<lanes>>
    }
    pipe.store %sum, %y[%c0, %c0] : tensor<128x16xf32, #pipe.distribution<lanes>>, !ws
  }
  gpu.return
}
}
