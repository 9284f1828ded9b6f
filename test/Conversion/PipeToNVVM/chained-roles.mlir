// Roles beside sums in registers are branches of one question, where no warp has two of them: warps that have
// ended the first do not ask whether they have the second.
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s

!sums = !pipe.fragment<128x64xf32, lanes>

// CHECK-LABEL: llvm.func @apart
// CHECK: %[[MATH:.*]] = llvm.icmp "ult"
// CHECK-NEXT: llvm.cond_br %[[MATH]], ^[[FIRST:.*]], ^[[ELSE:.*]]
// CHECK: ^[[FIRST]]:
// CHECK: llvm.br ^[[END:[a-z0-9]*]]
// CHECK: ^[[ELSE]]:
// CHECK-NEXT: %[[LOAD:.*]] = llvm.icmp "eq"
// CHECK-NEXT: llvm.cond_br %[[LOAD]]
// CHECK: ^[[END]]:
// CHECK-NEXT: llvm.return
gpu.module @kernels {
gpu.func @apart() kernel {
  pipe.role math warps 0 to 8 drives [threads] registers 120 {
    %acc = pipe.accumulator : !sums
  }
  pipe.role load warps 8 to 9 drives [tma] registers 120 {
  }
  gpu.return
}

// Warps with two regions execute both.
// CHECK-LABEL: llvm.func @twice
// CHECK: %[[MATH:.*]] = llvm.icmp "ult"
// CHECK-NEXT: llvm.cond_br %[[MATH]], ^[[FIRST:.*]], ^[[NEXT:[a-z0-9]*]]
// CHECK: ^[[FIRST]]:
// CHECK: llvm.br ^[[NEXT]]
// CHECK: ^[[NEXT]]:
// CHECK: llvm.icmp "ult"
gpu.func @twice() kernel {
  pipe.role math warps 0 to 8 drives [threads] registers 120 {
    %acc = pipe.accumulator : !sums
  }
  pipe.role math warps 0 to 8 drives [threads] registers 120 {
    %acc = pipe.accumulator : !sums
  }
  gpu.return
}
}
