// A role with registers computes the number itself; without registers nothing changes.
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --pipe-place-scalars | FileCheck %s
// RUN: sed 's/ registers 232//' %s | fp4-opt --fp4-set-target=target=sm_90a --pipe-place-scalars | FileCheck %s --check-prefix=SAME

// CHECK: pipe.role math
// CHECK-NEXT: %[[SIZE:.*]] = pipe.opaque %arg0
// CHECK-NEXT: %[[TILES:.*]] = arith.addi %[[SIZE]]
// CHECK-NEXT: to %[[TILES]]
// SAME-NOT: pipe.opaque

gpu.module @kernels {
  gpu.func @sizes(%m: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = arith.addi %m, %c1 : i32
    pipe.role math warps 0 to 4 drives [threads] registers 232 {
      scf.for %i = %c0 to %n step %c1 : i32 {
      }
    }
    gpu.return
  }
}
