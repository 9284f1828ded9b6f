// Mutants as in mutations.mlir, of the warp-specialized quantizer that transforms on the tensor core: all mutants. Two CTAs
// with two strips of 19 tiles each make every ring wrap around; the last row and column of tiles are not whole. The amax is a constant: an amax kernel counts
// its CTAs with an acq_rel atomic, and that this may not be relaxed is beyond the simulator (docs/reference/simulator.md).
// RUN: fp4-runner %s --sms=1 --emit=so -o %t.so
// RUN: %python %fp4_src/validation/mutate.py --build %fp4_build %t.so --schedules=eager:1 --verbose \
// RUN:   | FileCheck %s

// CHECK-NOT: SURVIVED
// CHECK: {{^}}[[ALL:[0-9]+]] of [[ALL]] mutants killed, 0 equivalent, 0 redundant, 0 unreached, 0 survived

func.func @f(%x: tensor<1200x392xbf16>, %rng: tensor<2xi64>)
    -> (tensor<392x1200xf4E2M1FN>, tensor<392x75xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a = arith.constant dense<4.5> : tensor<f32>
  %q, %s = fp4.quantize %x amax %a rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>,
      rounding = #fp4.rounding<stochastic>}
      : (tensor<1200x392xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<392x1200xf4E2M1FN>, tensor<392x75xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<392x1200xf4E2M1FN>, tensor<392x75xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
