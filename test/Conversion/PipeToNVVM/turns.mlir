// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --convert-pipe-to-nvvm --canonicalize --cse | FileCheck %s

// Three warpgroups begin two MMAs each in turn. The last one gives the first turn away, each one gives its turn to the
// next behind the second MMA, in front of the wait for the first one, and the first takes the turn back that is left.
// An MMA alone begins at any time.

!a = !pipe.shared<192x64xbf16, swizzle_128B>
!b = !pipe.shared<64x64xbf16, swizzle_128B>
!sums = !pipe.fragment<64x64xf32, wgmma>
!values = tensor<64x64xf32, #pipe.distribution<wgmma>>
!powers = tensor<64x64xbf16, #pipe.distribution<wgmma>>
gpu.module @kernels {
  // CHECK-LABEL: llvm.func @ring
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK-DAG: %[[THREADS:.*]] = llvm.mlir.constant(256 : i32)
  // CHECK: nvvm.barrier
  // CHECK: %[[GROUP:.*]] = llvm.udiv
  // CHECK: %[[LAST:.*]] = llvm.icmp "eq" %[[GROUP]], %[[TWO]]
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "bar.arrive $0, $1;", "n,n" %[[FIRST]], %[[THREADS]]
  // CHECK: llvm.inline_asm
  // CHECK-NOT: bar.
  // CHECK-SAME: wgmma.mma_async
  // CHECK: %[[OWN:.*]] = llvm.add %[[GROUP]], %[[FIRST]]
  // CHECK: %[[BEHIND:.*]] = llvm.add %[[OWN]]
  // CHECK: llvm.select %[[LAST]], %[[FIRST]], %[[BEHIND]]
  // CHECK: llvm.inline_asm
  // CHECK-SAME: bar.sync ${{[0-9]+}}, 256;\0Awgmma.fence
  // CHECK-SAME: wgmma.commit_group.sync.aligned;
  // CHECK-SAME: wgmma.commit_group.sync.aligned;\0Abar.arrive ${{[0-9]+}}, 256;\0Awgmma.wait_group.sync.aligned 1;
  // CHECK: nvvm.barrier id = %[[FIRST]] number_of_threads = %[[THREADS]]
  // CHECK: llvm.return
  gpu.func @ring(%map: !pipe.tensor_map<64x64xbf16, swizzle_128B>) kernel attributes {known_block_size = array<i32: 384, 1, 1>, pipe.scheduled, pipe.shared_bytes = 49152 : i64} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %true = arith.constant true
    %as = pipe.channel from tma to threads(384) depth 1 payload [0] barriers 40960 : !pipe.channel<!a>
    %bs = pipe.channel from tma to threads(384) depth 2 payload [24576] barriers 40976 : !pipe.channel<!b>
    pipe.role math warps 0 to 12 drives [tensor, threads] in_turn products {
      %a = pipe.consumer_wait %as[%c0] : !pipe.channel<!a>
      %b = pipe.consumer_wait %bs[%c0] : !pipe.channel<!b>
      %out = pipe.accumulator : !sums
      %first = pipe.accumulator : !sums
      pipe.mma %first, %a, %b : !sums, !a, !b
      %p = pipe.read %first[0] : !sums -> !values
      %rounded = arith.truncf %p : !values to !powers
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %next = pipe.accumulator : !sums
        pipe.mma %next, %a, %b chain leads : !sums, !a, !b
        %n = pipe.read %next[0] : !sums -> !values
        pipe.mma %out, %rounded, %b accumulate %true transposed chain follows : !sums, !powers, !b
        pipe.write %n, %out[0] : !values, !sums
      }
    }
    gpu.return
  }
}
