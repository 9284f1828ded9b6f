// RUN: fp4-opt %s -verify-diagnostics -pipe-verify-sync

// Each role computes the end of its loop itself, and one of them counts a tile more.
gpu.module @kernels {
  gpu.func @twin(%m: i32) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    pipe.role load warps 4 to 5 drives [tma] {
      %size = pipe.opaque %m
      %end = arith.addi %size, %c1 : i32
      scf.for %i = %c0 to %end step %c1 : i32 {
      } {pipe.work}
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %end = arith.addi %m, %c1 : i32
      scf.for %i = %c0 to %end step %c1 : i32 {
      } {pipe.work}
    }
    gpu.return
  }
  gpu.func @longer(%m: i32) kernel attributes {pipe.scheduled} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    pipe.role load warps 4 to 5 drives [tma] {
      %end = arith.addi %m, %c1 : i32
      // expected-note @+1 {{role load goes over work here; compute the numbers of the loops alike}}
      scf.for %i = %c0 to %end step %c1 : i32 {
      } {pipe.work}
    }
    pipe.role math warps 0 to 4 drives [threads] {
      %end = arith.addi %m, %c2 : i32
      // (C630)
      // expected-error @+1 {{over work must end as that of role load does}}
      scf.for %i = %c0 to %end step %c1 : i32 {
      } {pipe.work}
    }
    gpu.return
  }
}
