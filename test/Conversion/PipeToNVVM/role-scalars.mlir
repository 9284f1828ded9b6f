// If roles set their registers, each computes the numbers of tiles behind that, from sizes that LLVM cannot
// follow from one role to another. If a role has 24 registers, the computations come before all roles.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

// CHECK-LABEL: llvm.func @own(
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]: i32
// CHECK-NOT: llvm.udiv %{{.*}} : i32
// CHECK: nvvm.setmaxregister decrease 48
// CHECK: %[[SIZE:.*]] = llvm.inline_asm{{.*}}"", "=r,0" %[[ROWS]]
// CHECK: %[[UP:.*]] = llvm.add %[[SIZE]]
// CHECK: llvm.udiv %[[UP]]
// CHECK: nvvm.read.ptx.sreg.nctaid.x
// CHECK: llvm.inline_asm{{.*}}"", "=r,0"
// CHECK: nvvm.setmaxregister increase 208
// CHECK: llvm.inline_asm{{.*}}"", "=r,0" %[[ROWS]]
// CHECK: llvm.udiv
// CHECK: nvvm.read.ptx.sreg.nctaid.x
gpu.module @m {
gpu.func @own(%rows: i32) kernel {
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %up = arith.addi %rows, %c127 : i32
  %tiles = arith.divui %up, %c128 : i32
  pipe.role other warps 8 to 16 drives [threads] registers 48 auxiliary {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] registers 208 {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  gpu.return
}
}

// An entry of a table is loaded in each role, too.
// CHECK-LABEL: llvm.func @entry(
// CHECK: nvvm.setmaxregister decrease 48
// CHECK: llvm.inline_asm{{.*}}"", "=r,0"
// CHECK: llvm.load %{{.*}} invariant
// CHECK: nvvm.setmaxregister increase 208
// CHECK: llvm.inline_asm{{.*}}"", "=r,0"
// CHECK: llvm.load %{{.*}} invariant
gpu.module @t {
gpu.func @entry(%table: !pipe.global<9x4xi32>) kernel {
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %row = pipe.load_entry %table[%c8] : !pipe.global<9x4xi32> -> vector<4xi32>
  %tiles = vector.extract %row[0] : i32 from vector<4xi32>
  pipe.role other warps 8 to 16 drives [threads] registers 48 auxiliary {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] registers 208 {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  gpu.return
}
}

// CHECK-LABEL: llvm.func @few(
// CHECK-NOT: llvm.inline_asm
// CHECK: llvm.udiv
// CHECK: nvvm.setmaxregister decrease 24
// CHECK-NOT: llvm.inline_asm
// CHECK: llvm.return
gpu.module @f {
gpu.func @few(%rows: i32) kernel {
  %c1 = arith.constant 1 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %up = arith.addi %rows, %c127 : i32
  %tiles = arith.divui %up, %c128 : i32
  pipe.role load warps 8 to 9 drives [tma] registers 24 {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  pipe.role math warps 0 to 8 drives [tensor, threads] registers 176 {
    pipe.for_each_work %m, %n in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    }
  }
  gpu.return
}
}
