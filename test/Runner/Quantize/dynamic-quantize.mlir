// One library for quantizers of any rows and columns: both orientations, square blocks, transforms by butterflies, and
// stochastic rounding, each with the bits of static sizes.

// RUN: fp4-runner %s --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=both --dim M=96 --dim K=160 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=both --dim M=320 --dim K=32 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=square --dim M=80 --dim K=288 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=square --dim M=128 --dim K=128 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=hadamard --dim M=160 --dim K=192 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=hadamard --dim M=32 --dim K=64 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=rows --dim M=7 --dim K=96 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=rows --dim M=130 --dim K=544 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=transform --dim M=48 --dim K=40 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=floats --dim M=64 --dim K=96 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-run %t.so --device=sim --function=amax --dim M=1 --dim K=7 --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=so --ptxas=none -o %t.90.so
// RUN: fp4-run %t.90.so --device=sim --function=both --dim M=96 --dim K=160 --check=strict --policy=random | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=hadamard --dim M=160 --dim K=192 --check=strict | FileCheck %s
// RUN: fp4-run %t.90.so --device=sim --function=rows --dim M=130 --dim K=544 --check=strict --policy=lazy | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

// RUN: not fp4-run %t.so --device=sim --function=both --dim M=96 --dim K=80 2>&1 | FileCheck %s --check-prefix=UNIT
// UNIT: error: columns of operand 'input' of the quantize at dynamic-quantize.mlir:{{[0-9]+}}:{{[0-9]+}} must be 96, but got 80
// UNIT: note: pad the columns with zeros to a multiple of 32
// RUN: not fp4-run %t.so --device=sim --function=hadamard --dim M=96 --dim K=96 2>&1 | FileCheck %s --check-prefix=RUNS
// RUNS: error: columns of operand 'input' of the {{hadamard_amax|quantize}} at dynamic-quantize.mlir:{{[0-9]+}}:{{[0-9]+}} must be 128, but got 96
// RUN: not fp4-run %t.so --device=sim --function=given --dim M=96 --dim K=96 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: error: columns of operand 'input' of the quantize at dynamic-quantize.mlir:{{[0-9]+}}:{{[0-9]+}} must be 128, but got 96
// RUN: not fp4-run %t.so --device=sim --function=transform --dim M=48 --dim K=44 2>&1 | FileCheck %s --check-prefix=EIGHT
// EIGHT: error: columns of operand 'input' of the hadamard at dynamic-quantize.mlir:{{[0-9]+}}:{{[0-9]+}} must be 48, but got 44

!x = tensor<?x?xbf16>
!c = tensor<?x?xf4E2M1FN>
!n = tensor<?x?xf8E4M3FN>
!t = tensor<?x?xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @both(%x: !x {fp4.dims = ["M", "K"]}) -> (!c, !t, !c, !n) {
  %a = fp4.amax %x : !x -> tensor<f32>
  %q, %s, %p, %r = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (!x, tensor<f32>) -> (!c, !t, !c, !n)
  return %q, %s, %p, %r : !c, !t, !c, !n
}

func.func @square(%x: !x {fp4.dims = ["M", "K"]}) -> (!c, !t, !c, !t) {
  %a = fp4.amax %x : !x -> tensor<f32>
  %q, %s, %p, %r = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>, block = array<i64: 16, 16>}
      : (!x, tensor<f32>) -> (!c, !t, !c, !t)
  return %q, %s, %p, %r : !c, !t, !c, !t
}

#h = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>
#g = #fp4.hadamard<size = 64, sign_mask = 0xD7E8>
func.func @hadamard(%x: !x {fp4.dims = ["M", "K"]}) -> (!c, !n, !c, !t) {
  %ax, %at = fp4.hadamard_amax %x {dimension = 0 : i64, size = 16 : i64, sign_mask = 0xD7E8 : i64} : !x -> tensor<f32>, tensor<f32>
  %bx, %bt = fp4.hadamard_amax %x {dimension = 1 : i64, size = 64 : i64, sign_mask = 0xD7E8 : i64} : !x -> tensor<f32>, tensor<f32>
  %q, %s, %p, %r = fp4.quantize %x amax %bt columnwise_amax %at
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>, hadamard = #g, columnwise_hadamard = #h}
      : (!x, tensor<f32>, tensor<f32>) -> (!c, !n, !c, !t)
  return %q, %s, %p, %r : !c, !n, !c, !t
}

// The quantizer alone says that its rows are whole transforms.
func.func @given(%x: !x {fp4.dims = ["M", "K"]}, %bt: tensor<f32>, %at: tensor<f32>) -> (!c, !n, !c, !t) {
  %q, %s, %p, %r = fp4.quantize %x amax %bt columnwise_amax %at
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>, hadamard = #g, columnwise_hadamard = #h}
      : (!x, tensor<f32>, tensor<f32>) -> (!c, !n, !c, !t)
  return %q, %s, %p, %r : !c, !n, !c, !t
}

// Rounded stochastically, in rows, with a transform.
func.func @rows(%x: !x {fp4.dims = ["M", "K"]}, %rng: tensor<2xi64>) -> (!c, !n) {
  %a, %b = fp4.hadamard_amax %x {dimension = 1 : i64, size = 32 : i64} : !x -> tensor<f32>, tensor<f32>
  %q, %s = fp4.quantize %x amax %b rng %rng
      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>, hadamard = #fp4.hadamard<size = 32, sign_mask = 0x0>}
      : (!x, tensor<f32>, tensor<2xi64>) -> (!c, !n)
  return %q, %s : !c, !n
}

func.func @transform(%x: !x {fp4.dims = ["M", "K"]}) -> !x {
  %y = fp4.hadamard %x {dimension = 0 : i64, size = 16 : i64} : !x -> !x
  return %y : !x
}

func.func @amax(%x: !x {fp4.dims = ["M", "K"]}) -> tensor<f32> {
  %a = fp4.amax %x : !x -> tensor<f32>
  return %a : tensor<f32>
}

!f = tensor<?x?xf32>
!e = tensor<?x?xf8E4M3FN>
!m = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
func.func @floats(%x: !f {fp4.dims = ["M", "K"]}) -> (!e, !m, !e, !m) {
  %q, %s, %p, %r = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>, outputs = #fp4.outputs<both>}
      : (!f) -> (!e, !m, !e, !m)
  return %q, %s, %p, %r : !e, !m, !e, !m
}
