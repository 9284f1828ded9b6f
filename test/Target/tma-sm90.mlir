// A kernel of the pipelined form without tensor cores: a load warp fills a ring by TMA, 128 threads
// copy every tile to global memory as it lies in shared memory, swizzle included. A Hopper GPU can
// run this part of our channels and loads.
// RUN: rm -rf %t
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm),fp4-emit-kernels{dump-dir=%t})' -o /dev/null
// RUN: FileCheck %s < %t/tma.ptx
// The text that ran on an H200 (notebook/evidence.md) is still the text that is emitted; where it changes,
// run integration_test/cuda-sm90 again.
// RUN: diff %t/tma.ptx %fp4_src/integration_test/cuda-sm90/copy_tiles.ptx
// RUN: %if ptxas %{ fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm),fp4-emit-kernels{emit=cubin})' | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s --check-prefix=PTXAS %}

// CHECK: .version 8.6
// CHECK: .target sm_90a
// CHECK: .visible .entry copy_tiles(
// CHECK: .reqntid 160
// CHECK: mbarrier.init.shared.b64
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: ld.shared.v4.b32
// CHECK: st.global.v4.b32
// CHECK: fence.proxy.async.shared::cta
// CHECK: mbarrier.arrive.shared.b64
// CHECK-NOT: tcgen05
// PTXAS: tma copy_tiles: registers {{[1-9][0-9]}}, spill 0, stack 0

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!ring = !pipe.channel<!data>

gpu.module @tma {
// Tile t of %count comes from row 128 t and goes to bytes 16384 t of %out.
gpu.func @copy_tiles(%in: !map, %out: !pipe.global<?x16384xi8>, %count: i32) kernel
    attributes {pipe.shared_bytes = 32800 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %bytes = arith.constant 16384 : i32
  %ring = pipe.channel from tma to threads(128) depth 2 payload [0] barriers 32768 : !ring
  pipe.role load warps 4 to 5 drives [tma] {
    scf.for %t = %c0 to %count step %c1 : i32 {
      %tile = pipe.producer_acquire %ring[%t] : !ring
      pipe.expect_tx %ring[%t], %bytes : !ring
      %row = arith.muli %t, %c128 : i32
      pipe.load %in[%row, %c0] into %tile signals %ring[%t] : !map, !data, !ring
      pipe.producer_commit %ring[%t] : !ring
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %o = pipe.view %out : !pipe.global<?x16384xi8> -> !llvm.ptr<1>
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    scf.for %t = %c0 to %count step %c1 : i32 {
      %tile = pipe.consumer_wait %ring[%t] : !ring
      // Each thread copies the 16-byte chunks tid, tid + 128, ... of the tile.
      %s = builtin.unrealized_conversion_cast %tile : !data to !llvm.ptr<3>
      %d = llvm.getelementptr %o[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<16384 x i8>
      %chunks = arith.constant 1024 : i32
      scf.for %chunk = %tid to %chunks step %c128 : i32 {
        %from = llvm.getelementptr %s[%chunk] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
        %to = llvm.getelementptr %d[%chunk] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
        %v = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
        llvm.store %v, %to {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      }
      pipe.consumer_release %ring[%t] : !ring
    }
  }
  gpu.return
}
}
