// The recipe must be one, of the format. The twin is tosa.mlir.

// RUN: not fp4-opt %s --convert-tosa-to-fp4=recipe=ocp_roof 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fp4-opt %s --convert-tosa-to-fp4=recipe=transformer_engine 2>&1 | FileCheck %s --check-prefix=FORMAT
// NAME: error: 'tosa.cast_to_block_scaled' op has no counterpart in fp4: unknown recipe 'ocp_roof'
// FORMAT: error: {{.*}}: the recipe must be one of mxfp4, but got 'transformer_engine'
// FORMAT: note: its recipes are ocp_floor, ocp_ceil
func.func @f(%x: tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>) {
  %q, %s = tosa.cast_to_block_scaled %x {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>)
  return %q, %s : tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>
}
