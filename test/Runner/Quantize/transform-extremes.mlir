// Blocks whose transform leaves its scale to the block's factor (QuickBlock.h, 5) where that makes no difference, and are
// quantized as the recipe spells it where it does.

// RUN: rm -rf %t && mkdir %t
// RUN: fp4-runner %s --target=sm_90a --emit=so -o %t/f.so
// RUN: %python %S/../Inputs/transform_extremes.py fp4-run %t/f.so %t | FileCheck %s
// CHECK: passed

func.func @sixteen(%x: tensor<?x256xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x256xbf16>, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
// No power of two.
func.func @thirty_two(%x: tensor<?x256xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 32>}
      : (tensor<?x256xbf16>, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
// Across lanes.
func.func @sixty_four(%x: tensor<?x256xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, hadamard = #fp4.hadamard<size = 64>}
      : (tensor<?x256xbf16>, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
// The least scale is no zero.
func.func @floor(%x: tensor<?x256xbf16> {fp4.name = "x"}, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine, guard = none, scale_floor = 0.015625>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x256xbf16>, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
func.func @mxfp4(%x: tensor<?x256xbf16> {fp4.name = "x"}) -> (tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU>) {
  %q, %s = fp4.quantize %x
      {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, hadamard = #fp4.hadamard<size = 16>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU>
}
