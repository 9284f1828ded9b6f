// A quantizer begins while the amax before it ends, loads what the amax loads too, and waits before it touches other memory. A
// kernel that may take the place of both can be between their launches; another kernel or a memset cannot.
// RUN: fp4-opt %s -fp4-pdl-launches=all=false | FileCheck %s

module attributes {gpu.container_module} {
// CHECK-LABEL: gpu.module @amax
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK: llvm.load %{{.*}} invariant
gpu.module @amax {
  llvm.func @kernel(%x: !llvm.ptr<1>, %amax: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %second = llvm.getelementptr %x[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %v = llvm.load %second invariant : !llvm.ptr<1> -> i32
    llvm.store %v, %amax : i32, !llvm.ptr<1>
    llvm.return
  }
}
// CHECK-LABEL: gpu.module @quantize
// CHECK: llvm.func @kernel(%[[X:.*]]: !llvm.ptr<1>, %[[AMAX:.*]]: !llvm.ptr<1>)
// CHECK-NEXT: %[[SECOND:.*]] = llvm.getelementptr %[[X]]
// CHECK-NEXT: llvm.load %[[SECOND]] : !llvm.ptr<1> -> i32
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load %[[AMAX]] : !llvm.ptr<1> -> i32
gpu.module @quantize {
  llvm.func @kernel(%x: !llvm.ptr<1>, %amax: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %second = llvm.getelementptr %x[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %v = llvm.load %second invariant : !llvm.ptr<1> -> i32
    %a = llvm.load %amax invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// Memory that the amax writes, or has no part in, is not loaded before.
// CHECK-LABEL: gpu.module @quantize_other
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load
gpu.module @quantize_other {
  llvm.func @kernel(%y: !llvm.ptr<1>, %amax: !llvm.ptr<1>, %x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %y invariant : !llvm.ptr<1> -> i32
    %w = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// Memory that the amax writes through another view of the same buffer is not loaded before either.
// CHECK-LABEL: gpu.module @quantize_view
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load
gpu.module @quantize_view {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// An amax that begins before what writes its input has ended does not know that this is there.
// CHECK-LABEL: gpu.module @quantize_early
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load
gpu.module @quantize_early {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
gpu.module @amax_early {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// A kernel with PDL overlaps with whatever is before it and behind it: it executes both, behind the
// barrier that follows what it has for itself.
// CHECK-LABEL: gpu.module @short
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load %{{[a-z0-9]*}} : !llvm.ptr<1> -> i32
gpu.module @short {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %own = llvm.alloca %one x !llvm.array<4 x i32> : (i32) -> !llvm.ptr
    %second = llvm.getelementptr %own[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<4 x i32>
    llvm.store %one, %second : i32, !llvm.ptr
    nvvm.barrier
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// Stores to another buffer are not the amax of this kernel.
// CHECK-LABEL: gpu.module @stores
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
gpu.module @stores {
  llvm.func @kernel(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store %one, %x : i32, !llvm.ptr
    nvvm.barrier
    llvm.return
  }
}
// Nor does it load elsewhere before, also where inline PTX says that it has no effects.
// CHECK-LABEL: gpu.module @silent
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.inline_asm has_side_effects "ld.global.b32 $0, [$1];"
gpu.module @silent {
  llvm.func @kernel(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.inline_asm "ld.global.nc.b32 $0, [$1];", "=r,l" %x : (!llvm.ptr) -> i32
    nvvm.barrier
    llvm.return
  }
}
// A kernel that only waits does not let the next one begin.
// CHECK-LABEL: gpu.module @waiting
// CHECK: nvvm.barrier
// CHECK-NOT: launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
gpu.module @waiting {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.barrier
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}
// CHECK-LABEL: gpu.module @other
// CHECK-NOT: griddepcontrol
gpu.module @other {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.return
  }
}

// A kernel that waits may let the next one begin behind its loads in front of the first barrier.
// CHECK-LABEL: gpu.module @rows
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}ld.global
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.mlir.zero
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: griddepcontrol
gpu.module @rows {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    %w = llvm.inline_asm "ld.global.nc.b32 $0, [$1];", "=r,l" %x : (!llvm.ptr<1>) -> i32
    %s = llvm.mlir.zero : !llvm.ptr<3>
    %t = llvm.load %s : !llvm.ptr<3> -> i32
    nvvm.barrier
    %u = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.store %v, %x : i32, !llvm.ptr<1>
    llvm.store %w, %x : i32, !llvm.ptr<1>
    llvm.store %t, %x : i32, !llvm.ptr<1>
    llvm.store %u, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}

// A kernel that takes turns lets the next one begin behind the wait.
// CHECK-LABEL: gpu.module @streams
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: griddepcontrol
gpu.module @streams {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.store %v, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}

// Blocks of computed elements are quantized behind the loads.
// CHECK-LABEL: gpu.module @blocks
// CHECK: llvm.func @kernel
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: griddepcontrol
gpu.module @blocks {
  llvm.func @kernel(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.store %v, %x : i32, !llvm.ptr<1>
    llvm.return
  }
}

// A kernel asks the L2 cache for what it will load, and then waits. Prefetches of a branch are behind the wait.
// CHECK-LABEL: gpu.module @ahead
// CHECK: llvm.func @kernel
// CHECK-NEXT: llvm.getelementptr
// CHECK-NEXT: llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];"
// CHECK-NEXT: llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];"
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.cond_br
// CHECK: llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];"
// CHECK-NEXT: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: griddepcontrol
gpu.module @ahead {
  llvm.func @kernel(%x: !llvm.ptr<1>, %c: i1) attributes {gpu.kernel, nvvm.kernel} {
    %next = llvm.getelementptr %x[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l" %x : (!llvm.ptr<1>) -> ()
    llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l" %next : (!llvm.ptr<1>) -> ()
    llvm.cond_br %c, ^bb1, ^bb2
  ^bb1:
    llvm.inline_asm has_side_effects "prefetch.global.L2 [$0];", "l" %next : (!llvm.ptr<1>) -> ()
    %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
    llvm.store %v, %x : i32, !llvm.ptr<1>
    llvm.br ^bb2
  ^bb2:
    llvm.return
  }
}

// CHECK-LABEL: func @together
// CHECK: gpu.launch_func @amax::@kernel
// CHECK-NOT: fp4.dependent
// CHECK: gpu.launch_func @quantize::@kernel {{.*}}fp4.dependent
func.func @together(%x: memref<64xf32>, %amax: memref<64xf32>, %y: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  %a = pipe.view %amax : memref<64xf32> -> !pipe.global<64xf32>
  %q = pipe.view %y : memref<64xf32> -> !pipe.global<64xf32>
  gpu.launch_func @amax::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>, %a : !pipe.global<64xf32>) {fp4.leads}
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.cooperative}
  gpu.launch_func @quantize::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>, %a : !pipe.global<64xf32>) {fp4.follows}
  gpu.launch_func @amax::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>, %a : !pipe.global<64xf32>) {fp4.leads}
  gpu.launch_func @quantize_other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%q : !pipe.global<64xf32>, %a : !pipe.global<64xf32>, %p : !pipe.global<64xf32>) {fp4.follows}
  return
}
// CHECK-LABEL: func @views
// CHECK-COUNT-3: fp4.dependent
func.func @views(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  %bytes = pipe.view %x offset 128 : memref<64xf32> -> memref<32xf32>
  %end = pipe.view %bytes : memref<32xf32> -> !pipe.global<32xf32>
  gpu.launch_func @amax::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>, %end : !pipe.global<32xf32>) {fp4.leads}
  gpu.launch_func @quantize_view::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.follows}
  gpu.launch_func @amax_early::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.leads, fp4.pdl = #fp4.launch_dependents<before_wait>}
  gpu.launch_func @quantize_early::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.follows}
  return
}
// CHECK-LABEL: func @alone
// CHECK: gpu.launch_func @short::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @stores::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @waiting::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @rows::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @ahead::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @streams::@kernel {{.*}}fp4.dependent
// CHECK: gpu.launch_func @blocks::@kernel {{.*}}fp4.dependent
func.func @alone(%x: memref<64xf32>) {
  %true = arith.constant true
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  gpu.launch_func @short::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<before_wait>}
  gpu.launch_func @stores::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<before_wait>}
  gpu.launch_func @silent::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<before_wait>}
  gpu.launch_func @waiting::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<at_end>}
  gpu.launch_func @rows::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<behind_loads>}
  gpu.launch_func @ahead::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>, %true : i1) {fp4.pdl = #fp4.launch_dependents<in_turn>}
  gpu.launch_func @streams::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<in_turn>}
  gpu.launch_func @blocks::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.pdl = #fp4.launch_dependents<behind_loads>}
  return
}
// CHECK-LABEL: func @apart
// CHECK-NOT: fp4.dependent
// CHECK: return
func.func @apart(%x: memref<64xf32>, %zero: f32) {
  %c1 = arith.constant 1 : index
  %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.leads}
  gpu.memset %x, %zero : memref<64xf32>, f32
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.follows}
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.leads}
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>)
  gpu.launch_func @other::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%p : !pipe.global<64xf32>) {fp4.follows}
  return
}
}
