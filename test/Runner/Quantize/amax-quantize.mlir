// The amax and its quantizer in one kernel, whose CTAs wait for each other, where it has at most 518 of the 592 CTAs
// that 148 SMs hold at once. One row more takes two kernels, which are in the same library. No bit changes.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: fp4-run %t.so --shape 300 --check=strict | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fp4-run %t.so --shape 300 --policy=random --seed=3 --check=strict | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fp4-run %t.so --shape 1 --policy=lazy --check=strict | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fp4-run %t.so --shape 66304 --check=strict | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: fp4-run %t.so --shape 66305 --check=strict | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fp4-run %t.so --shape 66305 --policy=random --seed=4 | FileCheck %s --check-prefixes=CHECK,TWO
// CHECK: passed
// ONE: amax_quantize_0
// ONE: kernels {{.*}}1 launched
// TWO-NOT: amax_quantize
// TWO: amax_0
// TWO: quantize_0
// TWO: kernels {{.*}}2 launched

func.func @small(%x: tensor<?x64xbf16>) -> (tensor<f32>, tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>)
  return %a, %q, %s : tensor<f32>, tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>
}
