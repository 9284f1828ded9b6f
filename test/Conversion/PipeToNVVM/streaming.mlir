// A streaming kernel: pipe.view, gpu indices, structured control flow, vectors and math all
// end in llvm and nvvm; nothing calls libdevice.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target{target=sm_90a},pipe-schedule,gpu.module(convert-pipe-to-nvvm),fp4-emit-kernels)' \
// RUN:   | FileCheck %s --check-prefix=SM90

// SM90: gpu.binary @m
// SM90-SAME: .target sm_90a
// SM90-SAME: redux.sync
// CHECK-NOT: __nv_
// CHECK-LABEL: llvm.func @amax
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: i32)
// CHECK-SAME: gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK: %[[V:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: llvm.fpext
// CHECK: llvm.intr.fabs
// CHECK: llvm.intr.vector.reduce.fmax
// CHECK: nvvm.redux.sync
// CHECK: llvm.atomicrmw umax
gpu.module @m {
gpu.func @amax(%x: !pipe.global<?x1024xbf16>, %out: !pipe.global<f32>, %n: i32) kernel
    attributes {known_block_size = array<i32: 256, 1, 1>} {
  %p = pipe.view %x : !pipe.global<?x1024xbf16> -> !llvm.ptr<1>
  %o = pipe.view %out : !pipe.global<f32> -> !llvm.ptr<1>
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  %zero = arith.constant 0.0 : f32
  %mask = arith.constant -1 : i32
  %in = arith.cmpi slt, %i, %n : i32
  %m = scf.if %in -> f32 {
    %e = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xbf16>
    %v = llvm.load %e {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
    %f = arith.extf %v : vector<8xbf16> to vector<8xf32>
    %a = math.absf %f : vector<8xf32>
    %r = vector.reduction <maxnumf>, %a : vector<8xf32> into f32
    scf.yield %r : f32
  } else {
    scf.yield %zero : f32
  }
  %bits = arith.bitcast %m : f32 to i32
  %all = nvvm.redux.sync umax %bits, %mask : i32 -> i32
  %leader = nvvm.elect.sync -> i1
  scf.if %leader {
    %old = llvm.atomicrmw umax %o, %all syncscope("device") monotonic : !llvm.ptr<1>, i32
  }
  gpu.return
}
}
