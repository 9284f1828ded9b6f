// RUN: fp4-opt %s -fp4-set-target -pipe-schedule -convert-pipe-to-nvvm | FileCheck %s
// Tables, parts of a tile, and the last CTA of a reduction. Lane 0 of a warp counts for it, with release
// and acquire on the whole GPU; the other lanes hear of it by a shuffle between barriers of the warp.

// CHECK-LABEL: llvm.func @join
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr<1>, %[[COUNTERS:[a-z0-9]+]]: !llvm.ptr<1>
// CHECK: %[[ENTRY:.*]] = llvm.getelementptr inbounds %[[TABLE]][128]
// CHECK: llvm.load %[[ENTRY]] invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: nvvm.bar.warp.sync
// CHECK: llvm.inline_asm has_side_effects {{.*}}"atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;"
// CHECK: nvvm.shfl.sync idx
// CHECK: nvvm.bar.warp.sync
// CHECK: llvm.icmp "eq"
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<32xf32>
gpu.module @kernels {
gpu.func @join(%table: !pipe.global<24x4xi32>, %counters: !pipe.global<24x4xi32>, %parts: !pipe.global<256x64xf32>, %y: !pipe.global<128x64xf32>)
    kernel attributes {known_block_size = array<i32: 128, 1, 1>, pipe.shared_bytes = 0 : i64} {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %e = pipe.load_entry %table[%c128] : !pipe.global<24x4xi32> -> vector<4xi32>
    %row = vector.extract %e[0] : i32 from vector<4xi32>
    %last = pipe.count_partial %counters[%row] of 2 : !pipe.global<24x4xi32>
    scf.if %last {
      %v = pipe.fetch %parts[%c128, %c0] written : !pipe.global<256x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
      pipe.store %v, %y[%c0, %c0] : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<128x64xf32>
    }
  }
  gpu.return
}
}
