// A schedule becomes a loop, whose bounds stand in front of the role.
// RUN: fp4-opt %s --fp4-set-target --pipe-expand-work | FileCheck %s

// CHECK: gpu.func @tiles({{.*}} kernel attributes {pipe.scheduled}
// CHECK: %[[TOTAL:.*]] = arith.muli
// CHECK: pipe.role all
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[TOTAL]]
// CHECK-NOT: pipe.for_each_work

gpu.module @kernels {
  gpu.func @tiles(%m: i32, %n: i32) kernel {
    pipe.role all warps 0 to 4 drives [threads] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
        %row = arith.muli %i, %m : i32
      }
    }
    gpu.return
  }
}
