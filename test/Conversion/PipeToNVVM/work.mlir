// The code of a schedule: CTA b of g takes the tiles b, b + g, ...; the raster says which tile is t.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

gpu.module @m {
// CHECK-LABEL: llvm.func @along_m
// CHECK: %[[TOTAL:.*]] = llvm.mul %[[M:arg0]], %[[N:arg1]]
gpu.func @along_m(%m: i32, %n: i32, %p: !llvm.ptr<1>) kernel {
  // CHECK-DAG: nvvm.read.ptx.sreg.ctaid.x
  // CHECK-DAG: nvvm.read.ptx.sreg.nctaid.x
  // CHECK: llvm.icmp "slt" %[[T:.*]], %[[TOTAL]]
  // Small numbers are divided as floats, near the middle between two integers.
  // CHECK: llvm.icmp "ule" %{{.*}}, %{{.*}} : i32
  // CHECK: %[[FLOAT:.*]] = llvm.uitofp %[[T]] : i32 to f32
  // CHECK: %[[BETWEEN:.*]] = llvm.fadd %[[FLOAT]], %{{.*}} : f32
  // CHECK: %[[SIZE:.*]] = llvm.uitofp %[[M]] : i32 to f32
  // CHECK: %[[INVERSE:.*]] = nvvm.rcp.approx.ftz.f %[[SIZE]]
  // CHECK: %[[PRODUCT:.*]] = llvm.fmul %[[BETWEEN]], %[[INVERSE]]
  // CHECK: %[[SMALL:.*]] = llvm.fptoui %[[PRODUCT]]
  // CHECK: llvm.br ^[[BEHIND:.*]](%[[SMALL]] : i32)
  // CHECK: %[[LARGE:.*]] = llvm.udiv %[[T]], %[[M]]
  // CHECK: llvm.br ^[[BEHIND]](%[[LARGE]] : i32)
  // CHECK: ^[[BEHIND]](%[[COLUMN:[0-9]+]]: i32)
  // CHECK: %[[BEFORE:.*]] = llvm.mul %[[COLUMN]], %[[M]]
  // CHECK: %[[ROW:.*]] = llvm.sub %[[T]], %[[BEFORE]]
  // CHECK: llvm.store volatile %[[ROW]], %arg2
  // CHECK: llvm.store volatile %[[COLUMN]], %arg2
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
// CHECK-LABEL: llvm.func @along_n
gpu.func @along_n(%m: i32, %n: i32, %p: !llvm.ptr<1>) kernel {
  // CHECK-DAG: llvm.mlir.constant(5.000000e-01 : f32)
  // CHECK-DAG: llvm.mlir.constant(1048576 : i32)
  // CHECK: llvm.udiv %{{.*}}, %arg1
  // CHECK: {{^ *}}^{{.*}}(%[[ROW:[0-9]+]]: i32)
  // CHECK: llvm.mul %[[ROW]], %arg1
  // CHECK: llvm.store volatile %[[ROW]], %arg2
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_n> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
// The last panel has the columns that are left.
// CHECK-LABEL: llvm.func @panels
gpu.func @panels(%m: i32, %n: i32, %p: !llvm.ptr<1>) kernel {
  // CHECK-DAG: %[[WIDTH:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK: %[[WHOLE:.*]] = llvm.mul %arg0, %[[WIDTH]]
  // CHECK: llvm.udiv %[[T:.*]], %{{.*}} : i32
  // CHECK: {{^ *}}^{{.*}}(%[[PANEL:[0-9]+]]: i32)
  // CHECK: %[[BEFORE:.*]] = llvm.mul %[[PANEL]], %{{.*}} : i32
  // CHECK: %[[WITHIN:.*]] = llvm.sub %[[T]], %[[BEFORE]]
  // CHECK: %[[FIRST:.*]] = llvm.mul %[[PANEL]], %[[WIDTH]]
  // CHECK: %[[LEFT:.*]] = llvm.sub %arg1, %[[FIRST]]
  // CHECK: %[[ACTUAL:.*]] = llvm.intr.umin(%[[LEFT]], %[[WIDTH]])
  // CHECK: llvm.udiv %[[WITHIN]], %[[ACTUAL]]
  // CHECK: llvm.urem %[[WITHIN]], %[[ACTUAL]]
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<panels<8>> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
// With a known number of tiles the last panel has a known width, and a quotient is the high word of a product.
// CHECK-LABEL: llvm.func @known_panels
gpu.func @known_panels(%p: !llvm.ptr<1>) kernel {
  %m = arith.constant 32 : i32
  %n = arith.constant 43 : i32
  // CHECK-DAG: %[[WIDTH:.*]] = llvm.mlir.constant(10 : i32)
  // CHECK-DAG: %[[REST:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK-DAG: %[[LAST:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK-DAG: %[[TENTH:.*]] = llvm.mlir.constant(429496730 : i32)
  // CHECK-DAG: %[[THIRD:.*]] = llvm.mlir.constant(1431655766 : i32)
  // CHECK-DAG: %[[INVERSE_OF_PANEL:.*]] = llvm.mlir.constant(13421773 : i32)
  // CHECK-NOT: llvm.udiv
  // CHECK: llvm.zext %[[INVERSE_OF_PANEL]]
  // CHECK: llvm.lshr
  // CHECK: %[[PANEL:.*]] = llvm.trunc
  // CHECK: %[[BEFORE_PANEL:.*]] = llvm.mul %[[PANEL]]
  // CHECK: %[[WITHIN:.*]] = llvm.sub %{{.*}}, %[[BEFORE_PANEL]]
  // CHECK: %[[IS:.*]] = llvm.icmp "eq" %[[PANEL]], %[[LAST]]
  // CHECK: %[[INVERSE:.*]] = llvm.select %[[IS]], %[[THIRD]], %[[TENTH]]
  // CHECK: llvm.zext %[[WITHIN]]
  // CHECK: llvm.zext %[[INVERSE]]
  // CHECK: llvm.lshr
  // CHECK: %[[ROW:.*]] = llvm.trunc
  // CHECK: %[[OF:.*]] = llvm.select %[[IS]], %[[REST]], %[[WIDTH]]
  // CHECK: %[[BEFORE:.*]] = llvm.mul %[[ROW]], %[[OF]]
  // CHECK: llvm.sub %[[WITHIN]], %[[BEFORE]]
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<panels<10>> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
// A panel is no wider than the grid: 32 bits hold the number of its tiles.
// CHECK-LABEL: llvm.func @wide_panels
gpu.func @wide_panels(%m: i32, %n: i32, %p: !llvm.ptr<1>) kernel {
  // CHECK: %[[COLUMNS:.*]] = llvm.intr.umin(%arg1, %{{.*}})
  // CHECK: llvm.mul %arg0, %[[COLUMNS]]
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<panels<2147483647>> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}

// Without tiles nothing is divided by their number here.
// CHECK-LABEL: llvm.func @no_rows
gpu.func @no_rows(%p: !llvm.ptr<1>) kernel {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  // CHECK: llvm.icmp "slt"
  pipe.for_each_work %i, %j in (%c0, %c4) schedule #pipe.static_persistent<along_m> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
// CHECK-LABEL: llvm.func @no_columns
gpu.func @no_columns(%p: !llvm.ptr<1>) kernel {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  // CHECK: llvm.icmp "slt"
  pipe.for_each_work %i, %j in (%c4, %c0) schedule #pipe.static_persistent<panels<3>> {
    llvm.store volatile %i, %p : i32, !llvm.ptr<1>
    llvm.store volatile %j, %p : i32, !llvm.ptr<1>
  }
  gpu.return
}
}
