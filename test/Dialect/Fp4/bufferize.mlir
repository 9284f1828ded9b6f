// RUN: not %fp4-opt-once %s --one-shot-bufferize="allow-unknown-ops bufferize-function-boundaries" 2>&1 \
// RUN:   | FileCheck %s
// RUN: not %fp4-opt-once %s --one-shot-bufferize 2>&1 | FileCheck %s
// RUN: not mlir-opt-22 --load-dialect-plugin=%plugin %s --one-shot-bufferize="allow-unknown-ops" 2>&1 \
// RUN:   | FileCheck %s

// One-shot-bufferize would make 400 bytes of scales that are 512, and says no instead.

// CHECK: bufferize.mlir:[[#@LINE+4]]:{{.*}} error: 'fp4.unswizzle_scales' op must not be bufferized by one-shot-bufferize, which knows no scale layouts
// CHECK: note: run fp4-compile, or convert-fp4-to-gpu and convert-fp4-to-pipe, instead: they make the buffers
func.func @scales(%t: tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<100x4xf8E4M3FN> {
  %s = fp4.unswizzle_scales %t
      : tensor<100x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<100x4xf8E4M3FN>
  return %s : tensor<100x4xf8E4M3FN>
}

// What is to be done:
// RUN: %fp4-opt-once %s --compile-to=tiles | FileCheck %s --check-prefix=TWIN
// TWIN: func.func @scales(%{{.*}}: memref<1x1x512xi8>) -> memref<100x4xi8>
