// RUN: fp4-opt %fp4_src/examples/nvfp4_linear.mlir --compile-to=host | FileCheck %s

// The whole linear layer as a host program: two maxima, two quantizers, which write their scales
// swizzled, alpha and the GEMM, each a launch of a kernel that is embedded as PTX. The GEMM has
// a kernel for up to 128 rows and one for more. A quantizer that computes its maximum too is launched
// in place of these two where all of its CTAs run at once. The first quantizer begins while the
// maximum before it ends.

// CHECK: llvm.mlir.global private constant @fp4_module_nvfp4_linear_amax_0_ptx
// CHECK: llvm.func internal @nvfp4_linear
// CHECK-COUNT-2: llvm.call @fp4rt_launch(
// CHECK: llvm.call @fp4rt_launch_cooperative(
// CHECK: llvm.call @fp4rt_launch_dependent(
// CHECK: llvm.call @fp4rt_launch_cooperative(
// CHECK-COUNT-4: llvm.call @fp4rt_launch(
// CHECK-NOT: llvm.call @fp4rt_launch
// CHECK: llvm.func @fp4_entry_nvfp4_linear(%arg0: !llvm.ptr)
// CHECK: llvm.mlir.global private constant @fp4_module_nvfp4_linear_matmul_0_ptx
