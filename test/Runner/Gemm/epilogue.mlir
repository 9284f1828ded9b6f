// A GEMM with an epilogue: the kernel, the model and the bound read one description of it. The twin without it
// has the negative elements that this one has not.
// RUN: fp4-runner %s --device=sim --seed=3 --check=strict --output y=%t.y.npy | FileCheck %s
// RUN: sed 's/epilogue = #fp4.epilogue<relu>//' %s > %t.plain.mlir
// RUN: fp4-runner %t.plain.mlir --device=sim --seed=3 --output y=%t.plain.npy | FileCheck %s
// CHECK: y {{.*}}130x72x{{.*}} equals the tcgen05 model, bit for bit
// RUN: %python %S/../Inputs/relu_of.py %t.plain.npy %t.y.npy

// The reference computes what the manifest of a library says.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --device=sim --seed=3 --policy=random --output y=%t.y2.npy
// RUN: cmp %t.y.npy %t.y2.npy

// Swapping the operands of a transposed GEMM keeps the epilogue.
// RUN: fp4-runner %s --emit=mlir --compile-to=fused | FileCheck %s --check-prefix=FUSED
// FUSED: fp4.matmul {{.*}}epilogue = #fp4.epilogue<relu>

#tiled = #fp4.scale_layout<tiled_128x4>
!lhs = !fp4.scaled<nvfp4, tensor<130x272xf4E2M1FN>, tensor<130x17xf8E4M3FN, #tiled>>
!rhs = !fp4.scaled<nvfp4, tensor<72x272xf4E2M1FN>, tensor<72x17xf8E4M3FN, #tiled>>
func.func @activated(%qx: tensor<130x272xf4E2M1FN> {fp4.name = "qx"}, %sx: tensor<130x17xf8E4M3FN> {fp4.name = "sx"},
    %qw: tensor<72x272xf4E2M1FN> {fp4.name = "qw"}, %sw: tensor<72x17xf8E4M3FN> {fp4.name = "sw"})
    -> (tensor<130x72xf32> {fp4.name = "y"}) {
  %tx = fp4.swizzle_scales %sx : tensor<130x17xf8E4M3FN> -> tensor<130x17xf8E4M3FN, #tiled>
  %tw = fp4.swizzle_scales %sw : tensor<72x17xf8E4M3FN> -> tensor<72x17xf8E4M3FN, #tiled>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled {epilogue = #fp4.epilogue<relu>}
      : (!lhs, !rhs) -> tensor<130x72xf32>
  return %y : tensor<130x72xf32>
}
