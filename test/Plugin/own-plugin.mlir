// RUN: not %fp4-opt-once %s --load-dialect-plugin=%plugin 2>&1 | FileCheck %s
// RUN: not %fp4-opt-once %s --load-pass-plugin %plugin 2>&1 | FileCheck %s

// CHECK: error: fp4-opt has the fp4 dialects built in and cannot load the fp4 plugin
// CHECK: note: drop this option here
