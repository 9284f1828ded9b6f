// A negative amax gives scale bytes with a sign bit. A CTA that looks factors up by the other bits
// (ScaleTable.h) quantizes each scale block as the recipe spells it, and the bits are those of the reference.
// RUN: %python %S/../Inputs/write_npy.py %t.npy '<f4' '' -3
// RUN: fp4-runner %s --target=sm_90a --shape=130 --emit=so -o %t.so
// RUN: fp4-run %t.so --input a=%t.npy --shape=130 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --input a=%t.npy --shape=130 --dist=adversarial | FileCheck %s
// RUN: fp4-run %t.so --input a=%t.npy --shape=130 --dist=zeros | FileCheck %s
// CHECK: passed
func.func @both(%x: tensor<?x272xbf16>, %a: tensor<f32> {fp4.name = "a"})
    -> (tensor<?x272xf4E2M1FN>, tensor<?x17xf8E4M3FN>, tensor<272x?xf4E2M1FN>, tensor<272x?xf8E4M3FN>) {
  %q, %s, %qt, %st = fp4.quantize %x amax %a
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<?x272xbf16>, tensor<f32>)
      -> (tensor<?x272xf4E2M1FN>, tensor<?x17xf8E4M3FN>, tensor<272x?xf4E2M1FN>, tensor<272x?xf8E4M3FN>)
  return %q, %s, %qt, %st : tensor<?x272xf4E2M1FN>, tensor<?x17xf8E4M3FN>, tensor<272x?xf4E2M1FN>, tensor<272x?xf8E4M3FN>
}
