// RUN: fp4-opt %s --convert-host-to-runtime --canonicalize | FileCheck %s

// Kernels count blocks of 16 elements with 32 bits: more rows than that are refused at the entry.

module attributes {gpu.container_module} {

// CHECK-LABEL: llvm.func @fp4_entry_narrow
// CHECK: %[[MOST:.*]] = llvm.mlir.constant(2147483647 : i64)
// CHECK: llvm.call @fp4rt_expect_size({{.*}}, %{{.*}}, %{{.*}}, %[[MOST]],
func.func @narrow(%x: memref<?x8xbf16>) {
  return
}

// CHECK-LABEL: llvm.func @fp4_entry_wide
// CHECK: %[[MOST:.*]] = llvm.mlir.constant(16777215 : i64)
// CHECK: llvm.call @fp4rt_expect_size({{.*}}, %{{.*}}, %{{.*}}, %[[MOST]],
func.func @wide(%x: memref<?x1024xbf16>) {
  return
}

}
