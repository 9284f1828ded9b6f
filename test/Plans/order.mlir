// The two conversions read plans and nothing of each other: either order gives the same kernels.
// DEFINE: %{order} =
// DEFINE: %{out} =
// DEFINE: %{compile} = mkdir -p %{out} && fp4-opt %s -o /dev/null --pass-pipeline='builtin.module(fp4-set-target, fp4-plan-kernels, \
// DEFINE:     %{order}, fp4-lower-host-tensors, fp4-finalize-host-buffers, canonicalize, cse, canonicalize, pipe-specialize-warps, cse, \
// DEFINE:     pipe-pipeline, cse, pipe-schedule,gpu.module(convert-pipe-to-nvvm, canonicalize, cse), fp4-emit-kernels{dump-dir=%{out}})'
// RUN: rm -rf %t
// REDEFINE: %{order} = convert-fp4-to-gpu, convert-fp4-to-pipe
// REDEFINE: %{out} = %t/gpu-first
// RUN: %{compile}
// REDEFINE: %{order} = convert-fp4-to-pipe, convert-fp4-to-gpu
// REDEFINE: %{out} = %t/pipe-first
// RUN: %{compile}
// RUN: diff -r %t/gpu-first %t/pipe-first
// RUN: ls %t/pipe-first | FileCheck %s
// The named phases give the same:
// RUN: fp4-runner %s --no-pdl --emit=ptx -o %t/phases/
// RUN: diff -r %t/gpu-first %t/phases
// CHECK: train_amax_0.ptx
// CHECK: train_dequantize_0.ptx
// CHECK: train_matmul_0.ptx
// CHECK: train_quantize_0.ptx
// CHECK: train_swizzle_scales_0.ptx
// CHECK: train_transform_0.ptx
// CHECK-NOT: ptx

!q = tensor<256x128xf4E2M1FN>
!linear = tensor<256x8xf8E4M3FN>
!tiled = tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !q, !tiled>
func.func @train(%x: tensor<256x128xbf16>) -> (tensor<256x256xbf16>, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xbf16>) {
  %a = fp4.amax %x : tensor<256x128xbf16> -> tensor<f32>
  // One kernel that streams, and one with roles.
  %q, %s, %qt, %st = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<both>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<256x128xbf16>, tensor<f32>) -> (!q, !linear, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : !linear -> !tiled
  %q_scaled = fp4.scaled %q, %t : !operand
  // Reads what kernels of the other conversion write, and is read by one.
  %y = fp4.matmul %q_scaled, %q_scaled : (!operand, !operand) -> tensor<256x256xbf16>
  %d = fp4.dequantize %q scaled %s amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!q, !linear, tensor<f32>) -> tensor<256x128xbf16>
  return %y, %qt, %st, %d : tensor<256x256xbf16>, tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<256x128xbf16>
}
