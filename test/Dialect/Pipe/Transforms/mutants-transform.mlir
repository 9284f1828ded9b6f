// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -pipe-specialize-warps -pipe-pipeline -canonicalize -cse \
// RUN:   | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s

// Mutants of the transforming quantizer: a load and its announcement, and the acquire, commit, wait and
// release of three channels, one of which is filled by threads and once.
// CHECK: 28 of 28 mutants rejected
func.func @f(%x: tensor<81936x520xbf16>, %ax: tensor<f32>) -> (tensor<520x81936xf4E2M1FN>, tensor<520x5121xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<81936x520xbf16>, tensor<f32>) -> (tensor<520x81936xf4E2M1FN>, tensor<520x5121xf8E4M3FN>)
  return %q, %s : tensor<520x81936xf4E2M1FN>, tensor<520x5121xf8E4M3FN>
}
