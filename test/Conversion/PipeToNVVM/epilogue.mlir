// Accumulator reads and predicated stores.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>

gpu.module @m {
// CHECK-LABEL: llvm.func @aligned
// CHECK-SAME: %[[Y:.*]]: !llvm.ptr<1>, %[[ROW:.*]]: i32, %[[COL:.*]]: i32, %[[M:.*]]: i32, %{{.*}}: i32)
gpu.func @aligned(%y: !pipe.global<?x512xbf16>, %row: i32, %col: i32, %m: i32, %it: i32) kernel
    attributes {pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 64 : i64} {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  // CHECK-DAG: %[[C512:.*]] = llvm.mlir.constant(512 : i32)
  // CHECK-DAG: %[[C127:.*]] = llvm.mlir.constant(127 : i32)
  // CHECK-DAG: %[[C96:.*]] = llvm.mlir.constant(96 : i32)
  // CHECK-DAG: %[[C16:.*]] = llvm.mlir.constant(16 : i32)
  // CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: nvvm.tcgen05.fence <after>
    %acc = pipe.consumer_wait %accs[%it] : !accs
    // A whole warp reads its quadrant: lane field 32 q = (thread & 96) << 16.
    // CHECK: nvvm.bar.warp.sync
    // CHECK: %[[Q:.*]] = llvm.and %[[THREAD]], %[[C96]]
    // CHECK: %[[LANE:.*]] = llvm.shl %[[Q]], %[[C16]]
    // CHECK: %[[COLUMN:.*]] = llvm.add %{{.*}}, %[[COL]]
    // CHECK: %[[AT:.*]] = llvm.add %[[COLUMN]], %[[LANE]]
    // CHECK: %[[PTR:.*]] = llvm.inttoptr %[[AT]] : i32 to !llvm.ptr<6>
    // CHECK: %[[LD:.*]] = nvvm.tcgen05.ld %[[PTR]] {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<4xi32>
    // The registers flow through the wait; nothing reads %[[LD]] behind it.
    // CHECK: %[[E0:.*]] = llvm.extractelement %[[LD]]
    // CHECK: %[[WAIT:.*]] = llvm.inline_asm has_side_effects "tcgen05.wait::ld.sync.aligned;", "=r,=r,=r,=r,0,1,2,3" %[[E0]], %{{.*}}, %{{.*}}, %{{.*}} :
    // CHECK-NOT: %[[LD]]
    // CHECK: llvm.extractvalue %[[WAIT]][0]
    %v = pipe.read %acc[%col] : !acc -> tensor<128x4xf32, #pipe.distribution<lanes>>
    // CHECK: %[[H:.*]] = llvm.fptrunc %{{.*}} : vector<4xf32> to vector<4xbf16>
    %h = arith.truncf %v : tensor<128x4xf32, #pipe.distribution<lanes>> to tensor<128x4xbf16, #pipe.distribution<lanes>>
    // Row r = row + thread mod 128 must be below M, the column below 512; rows are 1024 bytes.
    // CHECK: %[[INDEX:.*]] = llvm.and %[[THREAD]], %[[C127]]
    // CHECK: %[[R:.*]] = llvm.add %[[ROW]], %[[INDEX]]
    // CHECK: %[[INM:.*]] = llvm.icmp "slt" %[[R]], %[[M]]
    // CHECK: %[[INN:.*]] = llvm.icmp "slt" %[[COL]], %[[C512]]
    // CHECK: %[[IN:.*]] = llvm.and %[[INM]], %[[INN]]
    // CHECK: llvm.cond_br %[[IN]]
    // CHECK: llvm.getelementptr inbounds %[[Y]][%[[R]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<1024 x i8>
    // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr<1>
    pipe.store %h, %y[%row, %col] rows %m : tensor<128x4xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
  }
  gpu.return
}

// Rows of 200 bf16 are 400 bytes, a multiple of 16, but not of the segment of 32 columns: pieces of
// 8 elements, each guarded, since a segment may straddle the last column.
// CHECK-LABEL: llvm.func @ragged
gpu.func @ragged(%y: !pipe.global<?x200xbf16>, %v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %row: i32, %col: i32, %m: i32)
    kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>
    // CHECK: %[[NEXT:.*]] = llvm.add %{{.*}}
    // CHECK: %[[IN:.*]] = llvm.icmp "slt" %[[NEXT]]
    // CHECK: llvm.cond_br %[[IN]]
    // CHECK-COUNT-3: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>
    // CHECK-NOT: llvm.store
    pipe.store %v, %y[%row, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x200xbf16>
  }
  gpu.return
}

// Rows of 7 f32 are 28 bytes: aligned for one element at a time.
// CHECK-LABEL: llvm.func @odd
gpu.func @odd(%y: !pipe.global<5x7xf32>, %v: tensor<128x2xf32, #pipe.distribution<lanes>>, %row: i32, %col: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: llvm.mlir.constant(5 : i32)
    // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : f32
    pipe.store %v, %y[%row, %col] : tensor<128x2xf32, #pipe.distribution<lanes>>, !pipe.global<5x7xf32>
  }
  gpu.return
}

// A factor for each row: one load for the thread, of the last row at most. For each column: wide loads
// where no vector crosses the end, else one by one.
// CHECK-LABEL: llvm.func @factors
gpu.func @factors(%y: !pipe.global<?x64xf32>, %p: !pipe.global<?x1xf32>, %q: !pipe.global<1x64xf32>,
    %r: !pipe.global<1x6xf32>, %row: i32, %col: i32, %m: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: %[[LAST:.*]] = llvm.sub %{{.*}}, %{{.*}} : i32
    // CHECK: %[[AT:.*]] = llvm.intr.smin(%{{.*}}, %[[LAST]])
    // CHECK: llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %f = pipe.fetch %p[%row, %col] rows %m : !pipe.global<?x1xf32> -> tensor<128x4xf32, #pipe.distribution<lanes>>
    // CHECK: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %g = pipe.fetch %q[%row, %col] : !pipe.global<1x64xf32> -> tensor<128x4xf32, #pipe.distribution<lanes>>
    // CHECK-COUNT-4: llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %h = pipe.fetch %r[%row, %col] : !pipe.global<1x6xf32> -> tensor<128x4xf32, #pipe.distribution<lanes>>
    pipe.store %f, %y[%row, %col] rows %m : tensor<128x4xf32, #pipe.distribution<lanes>>, !pipe.global<?x64xf32>
    pipe.store %g, %y[%row, %col] rows %m : tensor<128x4xf32, #pipe.distribution<lanes>>, !pipe.global<?x64xf32>
    pipe.store %h, %y[%row, %col] rows %m : tensor<128x4xf32, #pipe.distribution<lanes>>, !pipe.global<?x64xf32>
  }
  gpu.return
}
}
