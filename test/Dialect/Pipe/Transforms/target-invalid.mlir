// RUN: not fp4-opt %s -pipe-pipeline="target=sm_1" 2>&1 | FileCheck %s
// RUN: not fp4-opt %s -pipe-verify-capacity="target=sm_1" 2>&1 | FileCheck %s
// RUN: fp4-opt %s -pipe-pipeline="target=sm_100a" -pipe-verify-capacity="target=sm_100a" -o /dev/null

// CHECK: error: {{.*}}sm_1
// CHECK: note: {{.*}}sm_100a
func.func @f() {
  return
}
