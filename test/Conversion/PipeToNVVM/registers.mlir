// Roles that ask for registers: the launch gives every thread an equal share of the SM's
// 65536, and each role sets its own when it begins. Warps get
// registers by fours: 17 of them as many as 20.
// RUN: split-file %s %t
// RUN: fp4-opt %t/roles.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s
// RUN: not fp4-opt %t/many.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: roles must ask for at most the 53760 registers of the launch on sm_100a, but ask for 81920
//
// Warps without a role keep their share. With those of role 'idle', which gives registers away, as many are enough.
// RUN: fp4-opt %t/given.mlir --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' -o /dev/null
// RUN: sed '/idle/,/}/d' %t/given.mlir | not fp4-opt --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' 2>&1 | FileCheck %s --check-prefix=KEPT
// KEPT: error: roles must ask for at most the 65536 registers of the launch on sm_100a, but ask for 78848

//--- roles.mlir
// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: nvvm.maxnreg = 168
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.setmaxregister increase 232
gpu.module @m {
gpu.func @kernel() kernel {
  pipe.role load warps 0 to 1 drives [tma] registers 40 {
  }
  pipe.role idle warps 1 to 4 drives [threads] registers 40 {
  }
  pipe.role math warps 4 to 12 drives [tensor, bulk_store, threads] registers 232 {
  }
  gpu.return
}
}

// CHECK-LABEL: llvm.func @seventeen
// CHECK-SAME: nvvm.maxnreg = 96
// CHECK-LABEL: llvm.func @twenty
// CHECK-SAME: nvvm.maxnreg = 96
gpu.module @n {
gpu.func @seventeen() kernel {
  pipe.role math warps 0 to 16 drives [tensor, threads] registers 96 {
  }
  pipe.role load warps 16 to 17 drives [tma] {
  }
  gpu.return
}
gpu.func @twenty() kernel {
  pipe.role math warps 0 to 20 drives [tensor, threads] registers 96 {
  }
  gpu.return
}
}

//--- many.mlir
gpu.module @m {
gpu.func @kernel() kernel {
  pipe.role math warps 0 to 8 drives [tensor, threads] registers 256 {
  }
  pipe.role more warps 8 to 10 drives [threads] registers 256 {
  }
  gpu.return
}
}

//--- given.mlir
gpu.module @m {
gpu.func @kernel() kernel {
  pipe.role idle warps 0 to 4 drives [threads] registers 24 {
  }
  pipe.role math warps 4 to 12 drives [tensor, threads] registers 232 {
  }
  pipe.role load warps 12 to 16 drives [threads] registers 24 {
  }
  gpu.return
}
}
