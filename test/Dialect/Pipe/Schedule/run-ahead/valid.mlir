// Numbers that a loop carries to a write are written where they are computed, those of the first
// iteration in front of the loop. With two stages the iteration acquires before it computes, and with
// one behind the waits in front of the numbers.
// RUN: fp4-opt %s --fp4-set-target --pipe-run-ahead --allow-unregistered-dialect | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: sed 's/depth 2/depth 1/' %s | fp4-opt --fp4-set-target --pipe-run-ahead --allow-unregistered-dialect | FileCheck %s --check-prefixes=CHECK,ONE

// CHECK: pipe.role softmax
// CHECK:   %[[T:.*]] = pipe.producer_acquire %[[POWERS:.*]][%c0_i32]
// CHECK:   pipe.write %{{.*}}, %[[T]]
// CHECK:   pipe.producer_commit %[[POWERS]][%c0_i32]
// CHECK:   %[[SECOND:.*]] = arith.addi %c0_i32, %c1_i32
// CHECK:   %[[LAST:.*]]:3 = scf.for {{.*}} iter_args(%[[IT:.*]] = %[[SECOND]], %[[X:.*]] = %{{.*}}, %{{.*}} = %c0_i32)
// TWO-NEXT:  pipe.producer_acquire %[[POWERS]][%[[IT]]]
// CHECK:     pipe.consumer_wait
// CHECK:     pipe.read
// CHECK:     pipe.consumer_release
// ONE-NEXT:  pipe.producer_acquire %[[POWERS]][%[[IT]]]
// CHECK:     %[[Y:.*]] = arith.truncf
// CHECK-NEXT: pipe.write %[[Y]]
// CHECK-NEXT: pipe.producer_commit %[[POWERS]][%[[IT]]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[IT]], %c1_i32
// CHECK:     scf.yield %[[NEXT]], %[[Y]]
// CHECK-NOT: pipe.write
// CHECK:   "test.count"(%[[LAST]]#0)

// The write stays in front of a loop that has no write behind it, and of one that reads its counter.
// RUN: sed 's/pipe.write %last#1/pipe.write %x/' %s | fp4-opt --fp4-set-target --pipe-run-ahead --allow-unregistered-dialect | FileCheck %s --check-prefix=STAYS
// RUN: sed 's/^ *scf.yield %next/"test.use"(%it) : (i32) -> ()\n scf.yield %next/' %s | fp4-opt --fp4-set-target --pipe-run-ahead --allow-unregistered-dialect | FileCheck %s --check-prefix=STAYS
// STAYS: scf.for
// STAYS-NEXT: pipe.producer_acquire
// STAYS-NEXT: pipe.write

!numbers = tensor<128x64xf32, #pipe.distribution<lanes>>
!row = tensor<128x64xbf16, #pipe.distribution<lanes>>
!channel = !pipe.channel<!pipe.tmem<128x64xbf16>>
!scores = !pipe.channel<!pipe.tmem<128x64xf32>>
gpu.module @kernels {
  gpu.func @rows(%n: i32, %x: !row) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %powers = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !channel
    %scores = pipe.channel from tensor to threads(128) depth 1 payload [64] barriers 64 : !scores
    pipe.role softmax warps 0 to 4 drives [threads] {
      %last:3 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0, %before = %x, %block = %c0) -> (i32, !row, i32) : i32 {
        %t = pipe.producer_acquire %powers[%it] : !channel
        pipe.write %before, %t : !row, !pipe.tmem<128x64xbf16>
        pipe.producer_commit %powers[%it] : !channel
        %next = arith.addi %it, %c1 : i32
        %tile = pipe.consumer_wait %scores[%block] : !scores
        %s = pipe.read %tile[%c0] : !pipe.tmem<128x64xf32> -> !numbers
        pipe.consumer_release %scores[%block] : !scores
        %y = arith.truncf %s : !numbers to !row
        %more = arith.addi %block, %c1 : i32
        scf.yield %next, %y, %more : i32, !row, i32
      }
      %t = pipe.producer_acquire %powers[%last#0] : !channel
      pipe.write %last#1, %t : !row, !pipe.tmem<128x64xbf16>
      pipe.producer_commit %powers[%last#0] : !channel
      %end = arith.addi %last#0, %c1 : i32
      "test.count"(%end) : (i32) -> ()
    }
    gpu.return
  }
}
