// Quantizers whose scales are f32, of 1 x 128 and 128 x 128 elements: every recipe, input types, blocks that
// end at the edges of the matrix, M at run time.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=rows --shape=5 --dist=bf16 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=rows --shape=3 --dist=adversarial --policy=random --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=squares --shape=150 --dist=bf16 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=squares --shape=140 --dist=adversarial --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=floats --dist=gaussian --check=strict | FileCheck %s
// CHECK: passed
// CHECK: q {{.*}}equals the reference, bit for bit
// CHECK: s {{.*}}equals the reference, bit for bit
// CHECK: hazards {{.*}}none (strict check)

func.func @rows(%x: tensor<?x400xbf16>) -> (tensor<?x400xf8E4M3FN> {fp4.name = "q"}, tensor<?x4xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x400xbf16>) -> (tensor<?x400xf8E4M3FN>, tensor<?x4xf32>)
  return %q, %s : tensor<?x400xf8E4M3FN>, tensor<?x4xf32>
}

func.func @squares(%x: tensor<?x272xbf16>) -> (tensor<?x272xf8E4M3FN> {fp4.name = "q"}, tensor<?x3xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 128, 128>,
      recipe = #fp4.recipe<fp8_deepgemm_power_of_two>} : (tensor<?x272xbf16>) -> (tensor<?x272xf8E4M3FN>, tensor<?x3xf32>)
  return %q, %s : tensor<?x272xf8E4M3FN>, tensor<?x3xf32>
}

func.func @floats(%x: tensor<40x256xf32>) -> (tensor<40x256xf8E4M3FN> {fp4.name = "q"}, tensor<1x2xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 128, 128>,
      recipe = #fp4.recipe<fp8_deepgemm, amax_nan = drop, amax_floor = 0.5>} : (tensor<40x256xf32>) -> (tensor<40x256xf8E4M3FN>, tensor<1x2xf32>)
  return %q, %s : tensor<40x256xf8E4M3FN>, tensor<1x2xf32>
}
