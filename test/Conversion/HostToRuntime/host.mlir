// RUN: fp4-opt %s --convert-host-to-runtime --canonicalize | FileCheck %s

module attributes {gpu.container_module} {

// The embedded kernels are one constant fp4rt_module per gpu.binary; a launch passes the address of
// every parameter's value, and the shared memory that the kernel table states.

// CHECK-DAG: llvm.mlir.global private constant @fp4_module_m_ptx(".version 8.8") {{.*}}alignment = 16
// CHECK-DAG: llvm.mlir.global private constant @fp4_module_m() {{.*}} !llvm.struct<(ptr, ptr, ptr, i64, ptr, i64)>
gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">,
  properties = {target = "sm_100a"},
  kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void (ptr<1>, i32, ptr)>,
    metadata = {dynamic_shared_bytes = 2048 : i64}>]>, assembly = ".version 8.8">]

// CHECK-LABEL: llvm.func internal @f(
func.func @f(%q: memref<?x144xi8> {fp4.name = "q"}, %y: memref<?x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant 0 : i8
  %rows = memref.dim %q, %c0 : memref<?x144xi8>
  %m = arith.index_cast %rows : index to i32
  // CHECK: llvm.call @fp4rt_memset(%{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i8, i64)
  gpu.memset %q, %zero : memref<?x144xi8>, i8
  // A packed row of 272 elements is 136 bytes of the map, whatever the pitch; a box row is 128.
  // CHECK: %[[MAP:.*]] = llvm.alloca %{{.*}} x i8 {alignment = 64 : i64}
  // CHECK: llvm.call @fp4rt_tensor_map(%[[MAP]],
  %map = pipe.make_tensor_map %q columns 272
      : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  %out = pipe.global_view %y : memref<?x64xbf16> -> !pipe.global<?x64xbf16>
  // CHECK: %[[PARAMS:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
  // CHECK: llvm.store %[[MAP]], %{{.*}} : !llvm.ptr, !llvm.ptr
  // CHECK: llvm.call @fp4rt_launch(%{{.*}}, %{{.*}}, %{{.*}}, %[[PARAMS]], %{{.*}})
  gpu.launch_func @m::@k blocks in (%rows, %c1, %c1) threads in (%c192, %c1, %c1)
      args(%out : !pipe.global<?x64xbf16>, %m : i32,
           %map : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>)
  return
}

// The entry point checks the sizes of its descriptors before it calls.

// CHECK-LABEL: llvm.func @fp4_entry_f(%arg0: !llvm.ptr)
// CHECK-COUNT-4: llvm.call @fp4rt_expect_size
// CHECK: llvm.call @_mlir_ciface_f

}
