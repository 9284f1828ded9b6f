// RUN: fp4-opt %s -fp4-set-target=target=sm_90a -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s
// Zeros in rows: each CTA clears one of as many rows as there are CTAs, and a thread 16 bytes of each 1536,
// or as many as divide the row. The thread sleeps after each row.

// CHECK-LABEL: llvm.func @rows
// CHECK-DAG: %[[ZEROS:.*]] = llvm.mlir.constant(dense<0> : vector<4xi32>)
// CHECK-DAG: %[[THREADS:.*]] = llvm.mlir.constant(96 : i32)
// CHECK-DAG: %[[PIECES:.*]] = llvm.mlir.constant(5 : i32)
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[FIRST:.*]] = llvm.add %arg1, %[[BLOCK]]
// CHECK: llvm.icmp "slt" %[[ROW:.*]], %arg2
// CHECK: %[[LINE:.*]] = llvm.getelementptr inbounds %arg0[%[[ROW]]] : {{.*}}!llvm.array<80 x i8>
// CHECK: llvm.icmp "slt" %[[PIECE:.*]], %[[PIECES]]
// CHECK: %[[AT:.*]] = llvm.getelementptr inbounds %[[LINE]][%[[PIECE]]] : {{.*}}!llvm.array<16 x i8>
// CHECK: llvm.store %[[ZEROS]], %[[AT]] {alignment = 16 : i64} : vector<4xi32>
// CHECK: llvm.add %[[PIECE]], %[[THREADS]]
// CHECK: nvvm.nanosleep
// CHECK: llvm.add %[[ROW]], %[[BLOCKS]]

// CHECK-LABEL: llvm.func @narrow
// CHECK: llvm.store %{{.*}} {alignment = 2 : i64} : i16

// One thread checks groups: the first of the role in the first CTA. The thread takes the report before it
// writes it, and says last that it has written it. Ranges have two numbers each, and may not meet.
// CHECK-LABEL: llvm.func @offsets
// CHECK-DAG: %[[LIMIT:.*]] = llvm.mlir.constant(100 : i64)
// CHECK-DAG: %[[GROUPS:.*]] = llvm.mlir.constant(4 : i32)
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: nvvm.read.ptx.sreg.ctaid.y
// CHECK: llvm.icmp "slt" %{{.*}}, %[[GROUPS]]
// CHECK: %[[BEGIN:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : {{.*}} -> i64
// CHECK: %[[END:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : {{.*}} -> i64
// CHECK: llvm.icmp "slt" %[[END]], %[[BEGIN]]
// CHECK: llvm.icmp "sgt" %[[END]], %[[LIMIT]]
// CHECK: llvm.cmpxchg %arg1, {{.*}} monotonic monotonic
// CHECK-COUNT-5: llvm.store {{.*}} {alignment = 8 : i64} : i64
// CHECK: llvm.store %{{.*}}, %arg1 atomic release {alignment = 8 : i64} : i64

// CHECK-LABEL: llvm.func @ranges
// CHECK-DAG: %[[GROUPS:.*]] = llvm.mlir.constant(5 : i32)
// CHECK: llvm.icmp "slt" %{{.*}}, %[[GROUPS]]
// CHECK: llvm.icmp "ne"
// CHECK: llvm.cmpxchg
gpu.module @kernels {
gpu.func @rows(%y: !pipe.global<100x40xbf16>, %begin: i32, %end: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role spare warps 0 to 3 drives [threads] auxiliary {
    pipe.clear_rows %y[%begin to %end] : !pipe.global<100x40xbf16>
  }
  gpu.return
}
gpu.func @narrow(%y: !pipe.global<100x5xbf16>, %begin: i32, %end: i32) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role spare warps 0 to 3 drives [threads] auxiliary {
    pipe.clear_rows %y[%begin to %end] : !pipe.global<100x5xbf16>
  }
  gpu.return
}
gpu.func @offsets(%o: !pipe.global<5x2xi32>, %report: !pipe.global<8xi64>) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role spare warps 0 to 3 drives [threads] auxiliary {
    pipe.check_groups %o limit 100 to %report : !pipe.global<5x2xi32>, !pipe.global<8xi64>
  }
  gpu.return
}
gpu.func @ranges(%o: !pipe.global<5x4xi32>, %report: !pipe.global<8xi64>) kernel attributes {pipe.shared_bytes = 0 : i64} {
  pipe.role spare warps 0 to 3 drives [threads] auxiliary {
    pipe.check_groups %o limit 100 to %report : !pipe.global<5x4xi32>, !pipe.global<8xi64>
  }
  gpu.return
}
}
