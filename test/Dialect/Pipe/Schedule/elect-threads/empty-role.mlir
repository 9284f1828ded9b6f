// A role without engines does nothing: its warps elect no thread, and the scheduled form parses again.
// RUN: fp4-runner %fp4_src/examples/mxfp4_experts.mlir --target=sm_100a --emit=mlir --compile-to=scheduled | fp4-opt | FileCheck %s
// CHECK: pipe.role idle warps {{[0-9]+ to [0-9]+}} drives []{{( registers [0-9]+)?}} {
