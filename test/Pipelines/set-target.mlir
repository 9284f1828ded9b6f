// The target of a module is set once; a module without one cannot be lowered.
// RUN: split-file %s %t
// RUN: fp4-opt %t/none.mlir -fp4-set-target | FileCheck %s --check-prefix=DEFAULT
// RUN: fp4-opt %t/none.mlir -fp4-set-target="target=sm_90a sms=66" | FileCheck %s --check-prefix=ASKED
// RUN: fp4-opt %t/hopper.mlir -fp4-set-target | FileCheck %s --check-prefix=KEPT
// RUN: fp4-opt %t/hopper.mlir -fp4-set-target=target=sm_90a | FileCheck %s --check-prefix=KEPT
// RUN: not fp4-opt %t/hopper.mlir -fp4-set-target=target=sm_100a 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not fp4-opt %t/none.mlir -fp4-plan-kernels -convert-fp4-to-gpu 2>&1 | FileCheck %s --check-prefix=MISSING
// DEFAULT: module attributes {fp4.target = #fp4.target<sm_100a>}
// ASKED: module attributes {fp4.target = #fp4.target<sm_90a, sms = 66>}
// KEPT: module attributes {fp4.target = #fp4.target<sm_90a>}
// OTHER: hopper.mlir:1:1: error: must be compiled for its target sm_90a, but got sm_100a
// OTHER: note: ask for sm_90a, or remove the attribute fp4.target
// MISSING: none.mlir:2:8: error: must know its target: no module has the attribute fp4.target
// MISSING: note: run fp4-set-target first, or write 'module attributes {fp4.target = #fp4.target<sm_100a>}'

//--- none.mlir
func.func @f(%x: tensor<32x64xbf16>) -> tensor<f32> {
  %a = fp4.amax %x : tensor<32x64xbf16> -> tensor<f32>
  return %a : tensor<f32>
}

//--- hopper.mlir
module attributes {fp4.target = #fp4.target<sm_90a>} {
}
