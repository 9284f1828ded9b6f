// Every failure is located, says what it found and expected, and what to do; exit codes are those
// of docs/reference/diagnostics.md.

// RUN: not fp4-runner %s --split 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: --split

// RUN: not fp4-runner %t.missing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING:      error: cannot read '{{.*}}.missing.mlir': No such file or directory
// MISSING-NEXT: note: pass a file with MLIR text

// RUN: not fp4-runner %S/../Inputs/malformed.mlir 2>&1 | FileCheck %s --check-prefix=MALFORMED
// MALFORMED: malformed.mlir:2:17: error: use of undeclared SSA value name
// MALFORMED: error: '{{.*}}malformed.mlir' was not compiled

// RUN: not fp4-runner %S/../Inputs/wrong-layout.mlir 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: wrong-layout.mlir:8:15: error: 'fp4.scaled' op operand 'scales' must have layout
// LAYOUT-NOT: see current operation

// RUN: not fp4-runner %fp4_src/examples/mxfp4_linear.mlir --shape 128,64,48 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BLOCK
// BLOCK: mxfp4_linear.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'fp4.quantize' op operand 'input' must have a dimension 1 that is a multiple of 32, but got 48
// BLOCK: note: {{.*}}pad that axis with zeros

// RUN: not fp4-runner %fp4_src/examples/nvfp4_linear.mlir --target=sm_42 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TARGET
// TARGET:      error: unknown target 'sm_42'
// TARGET-NEXT: note: known targets: sm_100a, {{.*}}sm_90a

// RUN: not fp4-runner %S/../Gemm/tcgen05/k96.mlir --function=layer --target=sm_90a 2>&1 \
// RUN:   | FileCheck %s --check-prefix=WGMMA
// WGMMA: k96.mlir:{{[0-9:]+}} error: 'fp4.matmul' op target 'sm_90a' has no GEMMs of elements of 4 bits in instructions of K = 96
// WGMMA: note: targets that have them: sm_103a, sm_107a; or leave 'arithmetic' out, and instructions have K = 64

// RUN: not fp4-runner %fp4_src/examples/nvfp4_linear.mlir --emit=mlir --compile-to=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PHASE
// PHASE: unknown phase 'all', known: fused, planned, tiles, roles, pipelined, scheduled, nvvm, ptx, cubin, host

// An argument that no tool could describe is an error, even where nobody uses it; no library is left.
// RUN: rm -f %t.so
// RUN: not fp4-runner %S/../Inputs/unknown-element.mlir --emit=so -o %t.so 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ELEMENT
// RUN: not ls %t.so
// ELEMENT: unknown-element.mlir:3:14: error: argument 1 of 'f' must be a tensor with a device buffer, but got 'tensor<8x8xi16>'
// ELEMENT: note: {{.*}}drop what is not used, and convert other types outside
// RUN: sed s/i16/bf16/ %S/../Inputs/unknown-element.mlir | fp4-runner - --emit=so -o %t.so && fp4-run %t.so --list

// A layout is no comment that tensor.cast may change.
// RUN: not fp4-runner %S/../Inputs/cast-layout.mlir 2>&1 | FileCheck %s --check-prefix=CAST
// CAST: cast-layout.mlir:6:8: error: 'tensor.cast' op must not read or make scales in layout
// CAST: note: fp4.swizzle_scales makes them of row-major scales
// RUN: sed s/tensor.cast/fp4.swizzle_scales/ %S/../Inputs/cast-layout.mlir | sed 's/ to !tiled/ -> !tiled/' \
// RUN:   | fp4-runner -

// RUN: fp4-runner %fp4_src/examples/nvfp4_linear.mlir --emit=mlir \
// RUN:   | FileCheck %s --check-prefix=TWIN
// TWIN: fp4.matmul
