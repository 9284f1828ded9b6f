// RUN: fp4-opt %s | FileCheck %s
// RUN: not %fp4-opt-once %t.does-not-exist.mlir 2>&1 | FileCheck %s --check-prefix=MISSING

// Former names of passes and of their options.
// RUN: not %fp4-opt-once %s --fp4-overlap-launches 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not %fp4-opt-once %s --fp4-set-target="target=sm_90a multiprocessors=66" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not %fp4-opt-once %s --pass-pipeline='builtin.module(fp4-set-target{multiprocessors=66})' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: %fp4-opt-once %s --fp4-set-target="target=sm_90a sms=66" | FileCheck %s
// PASS: error: unknown option '--fp4-overlap-launches'
// PASS: note: '--fp4-overlap-launches' is called '--fp4-pdl-launches' now
// OPTION: error: unknown option '--{{.*}}multiprocessors=66{{.*}}'
// OPTION: note: 'multiprocessors=' is called 'sms=' now

// MISSING: cannot open input file

// CHECK-LABEL: func.func @identity
// CHECK: return %{{.*}} : tensor<16x16xf4E2M1FN>
func.func @identity(%x: tensor<16x16xf4E2M1FN>) -> tensor<16x16xf4E2M1FN> {
  return %x : tensor<16x16xf4E2M1FN>
}
