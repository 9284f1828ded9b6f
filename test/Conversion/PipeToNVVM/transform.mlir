// Operations of the fused transform and quantization: tiles in panels, a matrix made by threads, one dense
// MMA per 16 rows, stores of packed fp4 and of scales in blocks.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B>
!x = !pipe.shared<64x128xbf16, swizzle_128B>
!h = !pipe.shared<16x16xbf16, swizzle_32B>
!acc = !pipe.tmem<128x64xf32>
!xs = !pipe.channel<!x>
!hs = !pipe.channel<!h>
!accs = !pipe.channel<!acc>

gpu.module @m {
// A tile of two panels is two boxes, 64 columns and 8192 bytes apart.
// CHECK-LABEL: llvm.func @load
// CHECK-SAME: %[[MAP:.*]]: !llvm.ptr {{{.*}}}, %[[ROW:.*]]: i32, %[[COL:.*]]: i32, %{{.*}}: i32)
gpu.func @load(%map: !map, %row: i32, %col: i32, %it: i32) kernel {
  %xs = pipe.channel from tma to tensor depth 2 payload [0] barriers 32768 : !xs
  pipe.role load warps 0 to 1 drives [tma] {
    // CHECK-DAG: %[[C64:.*]] = llvm.mlir.constant(64 : i32)
    // CHECK: %[[TILE:.*]] = llvm.inttoptr %{{.*}} : i32 to !llvm.ptr<3>
    %x = pipe.producer_acquire %xs[%it] : !xs
    // CHECK: %[[PANEL:.*]] = llvm.getelementptr inbounds %[[TILE]][8192]
    // CHECK: %[[NEXT:.*]] = llvm.add %[[COL]], %[[C64]]
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TILE]], %[[MAP]], %{{.*}}, box[%[[COL]], %[[ROW]]]
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[PANEL]], %[[MAP]], %{{.*}}, box[%[[NEXT]], %[[ROW]]]
    pipe.load %map[%row, %col] into %x signals %xs[%it] : !map, !x, !xs
  }
  gpu.return
}

// CHECK-LABEL: llvm.func @transform
gpu.func @transform(%it: i32) kernel attributes {pipe.tmem_columns = 64 : i64, pipe.tmem_slot = 34000 : i64} {
  // A: 128-byte swizzle (2 << 61), stride of 8 rows 1024 bytes (64 << 32), of a panel 8192 bytes (512 << 16),
  // version 1 (1 << 46). B: 32-byte swizzle (6 << 61), stride 256 (16 << 32), leading offset 16, not used. The
  // instruction: M 128, N 16, bf16 times bf16 with A transposed, fp32 sums.
  // CHECK-DAG: %[[A:.*]] = llvm.mlir.constant(4611756662049472512 : i64)
  // CHECK-DAG: %[[B:.*]] = llvm.mlir.constant(-4611615580963733504 : i64)
  // CHECK-DAG: %[[IDESC:.*]] = llvm.mlir.constant(134513808 : i32)
  // CHECK-DAG: %[[FALSE:.*]] = llvm.mlir.constant(false) : i1
  // CHECK-DAG: %[[QUARTERS:.*]] = llvm.mlir.constant(1048592000 : i32)
  // CHECK-DAG: %[[C16:.*]] = llvm.mlir.constant(16 : i32)
  // CHECK-DAG: %[[STEP:.*]] = llvm.mlir.constant(128 : i32)
  %xs = pipe.channel from tma to tensor depth 2 payload [0] barriers 33280 : !xs
  %hs = pipe.channel from threads(128) to tensor depth 1 payload [32768] barriers 33312 : !hs
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 33328 : !accs
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs[%it] : !accs
    %h = pipe.consumer_wait %hs[%it] : !hs
    %x = pipe.consumer_wait %xs[%it] : !xs
    // Slice 1: 16 columns of the accumulator and 2048 bytes of A further.
    // CHECK: %[[ADESC:.*]] = llvm.or %{{.*}}, %[[A]]
    // CHECK: %[[BDESC:.*]] = llvm.or %{{.*}}, %[[B]]
    // CHECK: nvvm.tcgen05.mma %{{.*}}, %[[ADESC]], %[[BDESC]], %[[IDESC]], %[[FALSE]] {{.*}}ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.tcgen05_mma_kind<f16>
    // CHECK: %[[D1:.*]] = llvm.add %{{.*}}, %[[C16]] : i32
    // CHECK: %[[P1:.*]] = llvm.inttoptr %[[D1]]
    // CHECK: %[[LOW1:.*]] = llvm.add %{{.*}}, %[[STEP]]
    // CHECK: %[[WIDE1:.*]] = llvm.zext %[[LOW1]] : i32 to i64
    // CHECK: %[[A1:.*]] = llvm.or %[[WIDE1]], %[[A]]
    // CHECK: nvvm.tcgen05.mma %[[P1]], %[[A1]], %{{.*}}, %[[IDESC]], %[[FALSE]]
    // CHECK-COUNT-2: nvvm.tcgen05.mma
    // CHECK-NOT: nvvm.tcgen05.mma
    pipe.mma %acc, %x, %h : !acc, !x, !h
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %slot = pipe.producer_acquire %hs[%it] : !hs
    // 0.25 twice, bit 15 and bit 31 by parity of i & j and the signs; bit 7 of the place flips bit 4.
    // CHECK: llvm.intr.ctpop
    // CHECK: llvm.or %{{.*}}, %[[QUARTERS]]
    // CHECK: llvm.xor
    // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
    // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
    // CHECK: nvvm.mbarrier.arrive
    pipe.hadamard_matrix signs 55272 into %slot : !h
    pipe.producer_commit %hs[%it] : !hs
  }
  gpu.return
}

// Rows of 272 fp4 have a pitch of 144 bytes: two words of four each, the second guarded.
// CHECK-LABEL: llvm.func @packed
gpu.func @packed(%q: !pipe.global<512x272xf4E2M1FN>, %v: tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, %row: i32, %col: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: llvm.mlir.constant(36 : i32)
    // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
    // CHECK: llvm.cond_br
    // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
    pipe.store %v, %q[%row, %col] : tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, !pipe.global<512x272xf4E2M1FN>
  }
  gpu.return
}

// A pitch of a multiple of 32 bytes: one 256-bit store.
// CHECK-LABEL: llvm.func @wide
gpu.func @wide(%q: !pipe.global<512x256xf4E2M1FN>, %v: tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, %row: i32, %col: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: llvm.store %{{.*}} {alignment = 32 : i64} : vector<8xi32>, !llvm.ptr<1>
    // CHECK-NOT: llvm.store
    pipe.store %v, %q[%row, %col] : tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, !pipe.global<512x256xf4E2M1FN>
  }
  gpu.return
}

// 17 scales to a row: the last block keeps one byte of four; rows behind 500 of 512 are zero.
// CHECK-LABEL: llvm.func @scales
gpu.func @scales(%s: !pipe.global<500x17xf8E4M3FN, tiled_128x4>, %v: tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, %row: i32, %col: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // CHECK: %[[WORD:.*]] = llvm.bitcast %{{.*}} : vector<4xi8> to i32
    // CHECK: %[[KEPT:.*]] = llvm.select %{{.*}}, %[[WORD]], %{{.*}} : i1, i32
    // CHECK: %[[BYTE:.*]] = llvm.and %[[KEPT]], %{{.*}}
    // CHECK: %[[OUT:.*]] = llvm.select %{{.*}}, %[[KEPT]], %[[BYTE]] : i1, i32
    // CHECK: llvm.store %[[OUT]], %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
    pipe.store %v, %s[%row, %col] : tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>, !pipe.global<500x17xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}
}
