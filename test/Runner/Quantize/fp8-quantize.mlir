// Quantizers whose scales are f32, of 1 x 128 and 128 x 128 elements and of whole rows: every recipe, input types,
// blocks that end at the edges of the matrix, M at run time.

// RUN: fp4-runner %s --device=sim --target=sm_90a --function=rows --shape=5 --dist=bf16 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=rows --shape=3 --dist=adversarial --policy=random --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=squares --shape=150 --dist=bf16 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=squares --shape=140 --dist=adversarial --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=floats --dist=gaussian --check=strict | FileCheck %s
// Rows of a part of a warp, of a warp whose last threads have none, of warps, of a CTA, and of more than its registers:
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=parts --shape=37 --dist=adversarial --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_100a --function=warp --shape=9 --dist=bf16 --policy=random --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=warps --shape=5 --dist=gaussian --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=blocks --dist=bf16 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=sm_90a --function=long --dist=bf16 --check=strict | FileCheck %s
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

func.func @parts(%x: tensor<?x112xbf16>) -> (tensor<?x112xf8E4M3FN> {fp4.name = "q"}, tensor<?x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 112>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x112xbf16>) -> (tensor<?x112xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x112xf8E4M3FN>, tensor<?x1xf32>
}

func.func @warp(%x: tensor<?x1936xbf16>) -> (tensor<?x1936xf8E4M3FN> {fp4.name = "q"}, tensor<?x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 1936>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x1936xbf16>) -> (tensor<?x1936xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x1936xf8E4M3FN>, tensor<?x1xf32>
}

func.func @warps(%x: tensor<?x4096xf16>) -> (tensor<?x4096xf8E4M3FN> {fp4.name = "q"}, tensor<?x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 4096>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<?x4096xf16>) -> (tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x4096xf8E4M3FN>, tensor<?x1xf32>
}

func.func @blocks(%x: tensor<3x17408xbf16>) -> (tensor<3x17408xf8E4M3FN> {fp4.name = "q"}, tensor<3x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 17408>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<3x17408xbf16>) -> (tensor<3x17408xf8E4M3FN>, tensor<3x1xf32>)
  return %q, %s : tensor<3x17408xf8E4M3FN>, tensor<3x1xf32>
}

func.func @long(%x: tensor<2x20480xf32>) -> (tensor<2x20480xf8E4M3FN> {fp4.name = "q"}, tensor<2x1xf32> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, block = array<i64: 1, 20480>, recipe = #fp4.recipe<fp8_deepgemm>}
      : (tensor<2x20480xf32>) -> (tensor<2x20480xf8E4M3FN>, tensor<2x1xf32>)
  return %q, %s : tensor<2x20480xf8E4M3FN>, tensor<2x1xf32>
}
