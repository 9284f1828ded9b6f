// Loads of no more rows than exist, and zeros in the rows that they leave out.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm))' \
// RUN:   | FileCheck %s --check-prefix=TWO

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B, residue>
!tile = !pipe.shared<64x128xbf16, swizzle_128B>
!ch = !pipe.channel<!tile>

gpu.module @m {
// Two maps in one argument, both prefetched.
// CHECK-LABEL: llvm.func @one(
// CHECK-SAME: %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<256 x i8>, nvvm.grid_constant}, %[[ROWS:[a-z0-9]+]]: i32, %[[ROW:[a-z0-9]+]]: i32,
// CHECK-DAG: %[[C256:.*]] = llvm.mlir.constant(256 : i32)
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[MOST:.*]] = llvm.mlir.constant(63 : i32)
// CHECK-DAG: %[[BOX:.*]] = llvm.mlir.constant(64 : i32)
// CHECK-DAG: %[[ID:.*]] = llvm.mlir.constant(15 : i32)
// CHECK-DAG: %[[ALL:.*]] = llvm.mlir.constant(160 : i32)
// CHECK-DAG: %[[OTHERS:.*]] = llvm.mlir.constant(128 : i32)
// CHECK-DAG: %[[PIECES:.*]] = llvm.mlir.constant(512 : i32)
// CHECK-DAG: %[[PER_ROW:.*]] = llvm.mlir.constant(8 : i32)
// CHECK: nvvm.prefetch tensormap in_param_space, %[[MAP]]
// CHECK: %[[SECOND:.*]] = llvm.getelementptr inbounds %[[MAP]][128]
// CHECK: nvvm.prefetch tensormap in_param_space, %[[SECOND]]
// CHECK: nvvm.barrier
// If a box has fewer rows, all threads but those that load clear the others: 8 pieces of each, in two panels of two
// stages.
// CHECK: %[[AWAY:.*]] = llvm.sub %[[THREAD:.*]], %[[OTHERS]]
// CHECK: %[[CLEARS:.*]] = llvm.icmp "uge" %[[AWAY]],
// CHECK: %[[LEFT:.*]] = llvm.urem %[[ROWS]], %[[BOX]]
// CHECK: %[[HAS:.*]] = llvm.icmp "ne" %[[LEFT]],
// CHECK: %[[MORE:.*]] = llvm.icmp "ugt" %[[ROWS]], %[[BOX]]
// CHECK: llvm.cond_br %[[HAS]]
// CHECK: llvm.cond_br %[[CLEARS]]
// CHECK: llvm.mul %{{.*}}, %[[PER_ROW]]
// CHECK: llvm.icmp "slt" %[[PIECE:.*]], %[[PIECES]]
// CHECK: %[[AT:.*]] = llvm.getelementptr inbounds %{{.*}}[%[[PIECE]]] : {{.*}} !llvm.array<16 x i8>
// CHECK: llvm.getelementptr inbounds %[[AT]][1024]
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK: llvm.getelementptr inbounds %[[AT]][9216]
// CHECK: llvm.store
// CHECK: llvm.getelementptr inbounds %[[AT]][17408]
// CHECK: llvm.store
// CHECK: llvm.getelementptr inbounds %[[AT]][25600]
// CHECK: llvm.store
// CHECK: llvm.add %[[PIECE]], %[[OTHERS]]
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// Threads that load wait only where whole boxes may come first.
// CHECK: %[[COUNT:.*]] = llvm.select %[[MORE]], %[[ALL]], %[[OTHERS]]
// CHECK: %[[JOINS:.*]] = llvm.or %[[CLEARS]], %[[MORE]]
// CHECK: llvm.cond_br %[[JOINS]]
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[COUNT]]
// A box behind the last row has all of its rows.
// CHECK: %[[FROM:.*]] = llvm.sub %[[ROWS]], %[[ROW]]
// CHECK: %[[LAST:.*]] = llvm.sub %[[FROM]], %[[ONE]]
// CHECK: %[[MIN:.*]] = llvm.intr.umin(%[[LAST]], %[[MOST]])
// CHECK: %[[EXIST:.*]] = llvm.add %[[MIN]], %[[ONE]]
// CHECK: %[[BYTES:.*]] = llvm.mul %[[EXIST]], %[[C256]]
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: %[[PART:.*]] = llvm.icmp "ult" %[[EXIST]], %[[BOX]]
// CHECK: %[[TAIL:.*]] = llvm.getelementptr inbounds %[[MAP]][128]
// CHECK: %[[TAKEN:.*]] = llvm.select %[[PART]], %[[TAIL]], %[[MAP]] : i1, !llvm.ptr
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[TAKEN]],
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
gpu.func @one(%x: !map, %rows: i32, %row: i32, %k: i32, %it: i32) kernel {
  %ab = pipe.channel from tma to tensor depth 2 payload [1024] barriers 33792 : !ch
  pipe.role multiply warps 0 to 4 drives [threads, tensor] {
  }
  pipe.role load warps 4 to 5 drives [tma] {
    %exist = pipe.existing_rows %rows from %row of 64
    %s = pipe.producer_acquire %ab[%it] : !ch
    %c256 = arith.constant 256 : i32
    %bytes = arith.muli %exist, %c256 : i32
    pipe.expect_tx %ab[%it], %bytes : !ch
    pipe.load %x[%row, %k] existing %exist into %s signals %ab[%it] : !map, !tile, !ch
    pipe.producer_commit %ab[%it] : !ch
  }
  gpu.return
}

// Two boxes side by side: the second may be behind the last row and is whole then, so all wait. The rows of a constant
// tensor are constant; of the first warp, the places of the others begin behind it.
// TWO-LABEL: llvm.func @two(
// TWO-DAG: %[[ID:.*]] = llvm.mlir.constant(15 : i32)
// TWO-DAG: %[[ALL:.*]] = llvm.mlir.constant(160 : i32)
// TWO-DAG: %[[FIRST:.*]] = llvm.mlir.constant(288 : i32)
// TWO-DAG: %[[C32:.*]] = llvm.mlir.constant(32 : i32)
// TWO: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
// TWO: %[[CLEARS:.*]] = llvm.icmp "uge" %[[THREAD]], %[[C32]]
// TWO: llvm.cond_br %[[CLEARS]]
// TWO: %[[PLACE:.*]] = llvm.sub %[[THREAD]], %[[C32]]
// TWO: llvm.add %[[PLACE]], %[[FIRST]]
// TWO-COUNT-4: llvm.store {{.*}}vector<4xi32>
// TWO: nvvm.barrier id = %[[ID]] number_of_threads = %[[ALL]]
gpu.func @two(%x: !map, %row: i32, %k: i32, %it: i32) kernel {
  %ab = pipe.channel from tma to tensor depth 1 payload [0, 16384] barriers 32768 : !pipe.channel<!tile, !tile>
  pipe.role load warps 0 to 1 drives [tma] {
    %c100 = arith.constant 100 : i32
    %c64 = arith.constant 64 : i32
    %next = arith.addi %row, %c64 : i32
    %first = pipe.existing_rows %c100 from %row of 64
    %second = pipe.existing_rows %c100 from %next of 64
    %s, %t = pipe.producer_acquire %ab[%it] : !pipe.channel<!tile, !tile>
    pipe.load %x[%row, %k] existing %first into %s signals %ab[%it] : !map, !tile, !pipe.channel<!tile, !tile>
    pipe.load %x[%next, %k] existing %second into %t signals %ab[%it] : !map, !tile, !pipe.channel<!tile, !tile>
    pipe.producer_commit %ab[%it] : !pipe.channel<!tile, !tile>
  }
  pipe.role multiply warps 1 to 5 drives [threads, tensor] {
  }
  gpu.return
}
}
