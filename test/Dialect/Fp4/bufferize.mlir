// RUN: not %fp4-opt-once %s --one-shot-bufferize="allow-unknown-ops bufferize-function-boundaries" 2>&1 \
// RUN:   | FileCheck %s
// RUN: not %fp4-opt-once %s --one-shot-bufferize 2>&1 | FileCheck %s
// RUN: not mlir-opt-22 --load-dialect-plugin=%plugin %s --one-shot-bufferize="allow-unknown-ops" 2>&1 \
// RUN:   | FileCheck %s

// One-shot-bufferize would make 400 bytes of scales that are 512, and says no instead.

// CHECK: bufferize.mlir:[[#@LINE+4]]:{{.*}} error: 'fp4.unswizzle_scales' op must not be bufferized by one-shot-bufferize, which knows no scale layouts
// CHECK: note: run fp4-outline-islands first, which leaves calls with buffers of the right sizes, or fp4-compile instead, which makes all buffers
func.func @scales(%t: tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<100x4xf8E4M3FN> {
  %s = fp4.unswizzle_scales %t
      : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<100x4xf8E4M3FN>
  return %s : tensor<100x4xf8E4M3FN>
}

// The bufferized form:
// RUN: %fp4-opt-once %s --compile-to=tiles | FileCheck %s --check-prefix=TWIN
// TWIN: func.func @scales(%{{.*}}: memref<1x1x512xi8>) -> memref<100x4xi8>
// RUN: mlir-opt-22 --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s --pass-pipeline="builtin.module(fp4-outline-islands,one-shot-bufferize{bufferize-function-boundaries=1})" | FileCheck %s --check-prefix=OUTLINED
// OUTLINED: func.func @scales(%{{.*}}: memref<1x1x512xi8, {{.*}}>) -> memref<100x4xf8E4M3FN>
// OUTLINED: call @scales_fp4_0(%{{.*}}, %{{.*}}) : (memref<1x1x512xi8>, memref<100x4xf8E4M3FN>) -> ()
