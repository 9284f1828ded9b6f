// Threads that have seen the sums of an MMA need not wait until it has read its operand A from tensor
// memory: two tiles have two stages.
// RUN: fp4-opt %s --fp4-set-target --pipe-elide-sync --allow-unregistered-dialect | FileCheck %s

!powers = !pipe.channel<!pipe.tmem<128x128xbf16>>
!sums = !pipe.channel<!pipe.tmem<128x64xf32>>
!tile = !pipe.shared<128x64xbf16, swizzle_128B>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @seen
  // CHECK: pipe.channel from threads(128) to tensor depth 2 {{.*}} without_empty
  gpu.func @seen(%n: i32, %more: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %powers = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !powers
    %sums = pipe.channel from tensor to threads(128) depth 4 payload [128] barriers 32 : !sums
    pipe.role mma warps 4 to 5 drives [tensor] {
      %values = "test.values"() : () -> !tile
      scf.for %i = %c0 to %n step %c1 : i32 {
        %p = pipe.consumer_wait %powers[%i] : !powers
        %acc = pipe.producer_acquire %sums[%i] : !sums
        pipe.mma %acc, %p, %values accumulate %more transposed : !pipe.tmem<128x64xf32>, !pipe.tmem<128x128xbf16>, !tile
        pipe.consumer_release %powers[%i] : !powers
        pipe.producer_commit %sums[%i] : !sums
      }
    }
    pipe.role softmax warps 0 to 4 drives [threads] {
      scf.for %i = %c0 to %n step %c2 : i32 {
        %j = arith.addi %i, %c1 : i32
        %p0 = pipe.producer_acquire %powers[%i] : !powers
        pipe.producer_commit %powers[%i] : !powers
        %p1 = pipe.producer_acquire %powers[%j] : !powers
        pipe.producer_commit %powers[%j] : !powers
        %s0 = pipe.consumer_wait %sums[%i] : !sums
        pipe.consumer_release %sums[%i] : !sums
        %s1 = pipe.consumer_wait %sums[%j] : !sums
        pipe.consumer_release %sums[%j] : !sums
      }
    }
    gpu.return
  }

  // The third tile has no stage before the sums of the first are seen.
  // CHECK-LABEL: gpu.func @a_tile_more
  // CHECK: pipe.channel from threads(128) to tensor depth 2
  // CHECK-NOT: without_empty
  gpu.func @a_tile_more(%n: i32, %more: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %powers = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !powers
    %sums = pipe.channel from tensor to threads(128) depth 4 payload [128] barriers 32 : !sums
    pipe.role mma warps 4 to 5 drives [tensor] {
      %values = "test.values"() : () -> !tile
      scf.for %i = %c0 to %n step %c1 : i32 {
        %p = pipe.consumer_wait %powers[%i] : !powers
        %acc = pipe.producer_acquire %sums[%i] : !sums
        pipe.mma %acc, %p, %values accumulate %more transposed : !pipe.tmem<128x64xf32>, !pipe.tmem<128x128xbf16>, !tile
        pipe.consumer_release %powers[%i] : !powers
        pipe.producer_commit %sums[%i] : !sums
      }
    }
    pipe.role softmax warps 0 to 4 drives [threads] {
      scf.for %i = %c0 to %n step %c3 : i32 {
        %j = arith.addi %i, %c1 : i32
        %k = arith.addi %i, %c2 : i32
        %p0 = pipe.producer_acquire %powers[%i] : !powers
        pipe.producer_commit %powers[%i] : !powers
        %p1 = pipe.producer_acquire %powers[%j] : !powers
        pipe.producer_commit %powers[%j] : !powers
        %p2 = pipe.producer_acquire %powers[%k] : !powers
        pipe.producer_commit %powers[%k] : !powers
        %s0 = pipe.consumer_wait %sums[%i] : !sums
        pipe.consumer_release %sums[%i] : !sums
        %s1 = pipe.consumer_wait %sums[%j] : !sums
        pipe.consumer_release %sums[%j] : !sums
        %s2 = pipe.consumer_wait %sums[%k] : !sums
        pipe.consumer_release %sums[%k] : !sums
      }
    }
    gpu.return
  }

  // Sums of one tile tell of that tile alone: the fourth would overwrite the second.
  // CHECK-LABEL: gpu.func @sums_of_one
  // CHECK: pipe.channel from threads(128) to tensor depth 2
  // CHECK-NOT: without_empty
  gpu.func @sums_of_one(%n: i32, %more: i1) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %powers = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !powers
    %sums = pipe.channel from tensor to threads(128) depth 4 payload [128] barriers 32 : !sums
    pipe.role mma warps 4 to 5 drives [tensor] {
      %values = "test.values"() : () -> !tile
      scf.for %i = %c0 to %n step %c1 : i32 {
        %p = pipe.consumer_wait %powers[%i] : !powers
        %acc = pipe.producer_acquire %sums[%i] : !sums
        pipe.mma %acc, %p, %values accumulate %more transposed : !pipe.tmem<128x64xf32>, !pipe.tmem<128x128xbf16>, !tile
        pipe.consumer_release %powers[%i] : !powers
        pipe.producer_commit %sums[%i] : !sums
      }
    }
    pipe.role softmax warps 0 to 4 drives [threads] {
      scf.for %i = %c0 to %n step %c4 : i32 {
        %j = arith.addi %i, %c1 : i32
        %k = arith.addi %i, %c2 : i32
        %l = arith.addi %i, %c3 : i32
        %p0 = pipe.producer_acquire %powers[%i] : !powers
        pipe.producer_commit %powers[%i] : !powers
        %p1 = pipe.producer_acquire %powers[%j] : !powers
        pipe.producer_commit %powers[%j] : !powers
        %s0 = pipe.consumer_wait %sums[%i] : !sums
        pipe.consumer_release %sums[%i] : !sums
        %p2 = pipe.producer_acquire %powers[%k] : !powers
        pipe.producer_commit %powers[%k] : !powers
        %p3 = pipe.producer_acquire %powers[%l] : !powers
        pipe.producer_commit %powers[%l] : !powers
        %s1 = pipe.consumer_wait %sums[%j] : !sums
        pipe.consumer_release %sums[%j] : !sums
        %s2 = pipe.consumer_wait %sums[%k] : !sums
        pipe.consumer_release %sums[%k] : !sums
        %s3 = pipe.consumer_wait %sums[%l] : !sums
        pipe.consumer_release %sums[%l] : !sums
      }
    }
    gpu.return
  }
}
