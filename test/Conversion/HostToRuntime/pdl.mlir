// Kernels wait for the one before them where they first touch global memory, and read it as memory that may be
// written meanwhile.
// RUN: fp4-opt %s -fp4-pdl-launches | FileCheck %s

module attributes {gpu.container_module} {
// CHECK-LABEL: gpu.module @streaming
gpu.module @streaming {
  // CHECK: llvm.func @kernel
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
  // CHECK: llvm.inline_asm {{.*}}"ld.global.L1::no_allocate.b32 $0, [$1];"
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    %a = llvm.ptrtoint %x : !llvm.ptr<1> to i64
    %w = llvm.inline_asm has_side_effects "ld.global.nc.L1::no_allocate.b32 $0, [$1];", "=r,l" %a : (i64) -> i32
    nvvm.barrier
    llvm.return
  }
}

// PTX that says it has no effects may load all the same: it comes behind the wait and stays there.
// CHECK-LABEL: gpu.module @silent
gpu.module @silent {
  // CHECK: llvm.func @kernel
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK: llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, $2, 0;\0A@p ld.global.f32 $0, [$1];\0A}"
  // CHECK: llvm.inline_asm "cvt.rn.f16.f32 $0, $1;"
  llvm.func @kernel(%x: !llvm.ptr<1>, %flag: i32) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.inline_asm "{\0A.reg .pred p;\0Asetp.ne.b32 p, $2, 0;\0A@p ld.global.nc.f32 $0, [$1];\0A}", "=f,l,r" %x, %flag : (!llvm.ptr<1>, i32) -> f32
    nvvm.barrier
    %w = llvm.inline_asm "cvt.rn.f16.f32 $0, $1;", "=h,f" %v : (f32) -> i16
    llvm.return
  }
}

// A CTA takes tensor memory after it has waited: the kernel that it waits for may need that.
// CHECK-LABEL: gpu.module @product
gpu.module @product {
  // CHECK: nvvm.shfl.sync
  // CHECK: nvvm.mbarrier.init
  // CHECK: nvvm.barrier
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT: nvvm.tcgen05.alloc
  llvm.func @kernel(%x: !llvm.ptr<1>, %shared: !llvm.ptr<3>, %columns: i32) attributes {gpu.kernel, nvvm.kernel} {
    %warp = nvvm.shfl.sync idx %columns, %columns, %columns, %columns : i32 -> i32
    nvvm.mbarrier.init %shared, %columns : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init
    nvvm.barrier
    nvvm.tcgen05.alloc %shared, %columns : !llvm.ptr<3>, i32
    %v = llvm.load %shared : !llvm.ptr<3> -> i32
    %w = llvm.load %x : !llvm.ptr<1> -> i32
    nvvm.barrier
    llvm.return
  }
  // CHECK: llvm.func @early
  // CHECK-NEXT: nvvm.griddepcontrol wait
  // CHECK-NEXT: nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT: nvvm.tcgen05.alloc
  llvm.func @early(%shared: !llvm.ptr<3>, %columns: i32) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.tcgen05.alloc %shared, %columns : !llvm.ptr<3>, i32
    nvvm.barrier
    llvm.return
  }
  // A function that is no kernel is left alone.
  // CHECK-LABEL: llvm.func @helper
  // CHECK-NOT: griddepcontrol
  llvm.func @helper() {
    llvm.return
  }
}

// CHECK-LABEL: func @host
// CHECK: gpu.launch_func {{.*}}fp4.dependent
func.func @host(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  gpu.launch_func @streaming::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>)
  return
}
}
