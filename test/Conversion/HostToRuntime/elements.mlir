// RUN: fp4-opt %s --convert-host-to-runtime --canonicalize | FileCheck %s

// Two dynamic sizes that are each in range may be more elements than kernels count with 32 bits. If one size is
// dynamic, its own range is enough.

module attributes {gpu.container_module} {

// CHECK: llvm.mlir.global private constant @fp4_text_{{.*}}("argument 'x', the product of its dynamic sizes,\00")

func.func @any(%x: memref<?x?xbf16> {fp4.name = "x"}) {
  return
}

func.func @rows(%x: memref<?x64xbf16> {fp4.name = "x"}) {
  return
}

// CHECK-LABEL: llvm.func @fp4_entry_any(
// CHECK-DAG: %[[MOST:.*]] = llvm.mlir.constant(17179869176 : i64) : i64
// CHECK-DAG: %[[LARGEST:.*]] = llvm.mlir.constant(2147483647 : i64) : i64
// CHECK: llvm.call @fp4rt_expect_size(%{{.*}}, %{{.*}}, %{{.*}}, %[[LARGEST]], %
// CHECK: llvm.call @fp4rt_expect_size(%{{.*}}, %{{.*}}, %{{.*}}, %[[LARGEST]], %
// CHECK: %[[ELEMENTS:.*]] = llvm.mul %{{.*}}, %{{.*}} : i64
// CHECK: llvm.call @fp4rt_expect_size(%{{.*}}, %[[ELEMENTS]], %{{.*}}, %[[MOST]], %

// CHECK-LABEL: llvm.func @fp4_entry_rows(
// CHECK: llvm.mlir.constant(268435455 : i64) : i64
// CHECK-COUNT-2: llvm.call @fp4rt_expect_size(
// CHECK-NOT: llvm.call @fp4rt_expect_size(
// CHECK: llvm.return
}
