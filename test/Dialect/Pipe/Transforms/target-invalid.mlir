// RUN: not fp4-opt %s -fp4-set-target=target=sm_1 -pipe-pipeline 2>&1 | FileCheck %s
// RUN: not fp4-opt %s -fp4-set-target=target=sm_1 -pipe-verify-capacity 2>&1 | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target=target=sm_100a -pipe-pipeline -pipe-verify-capacity -o /dev/null

// CHECK: error: {{.*}}sm_1
// CHECK: note: {{.*}}sm_100a
func.func @f() {
  return
}
