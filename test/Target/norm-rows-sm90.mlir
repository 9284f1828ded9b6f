// A chain along rows: a residual is added, and the sum normed by RMSNorm. The conformance suite launches this kernel on
// every device (lib/Conformance/EmittedCases.cpp).
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=norm_rows_0 -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// The text that ran on an H200 is still the text that is emitted; where it changes, run integration_test/cuda-sm90 again.
// RUN: diff %t.ptx %fp4_src/integration_test/cuda-sm90/norm_rows.ptx
// RUN: fp4-runner %s --target=sm_90a --shape=5 --check=strict | FileCheck %s --check-prefix=EQUAL
// CHECK: .target sm_90a
// CHECK: .visible .entry kernel(
// CHECK: ld.global.nc
// CHECK: shfl.sync.bfly.b32
// CHECK: bar.sync
// CHECK: sqrt.rn.f32
// CHECK: st.global
// EQUAL-COUNT-2: equals the reference, bit for bit
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!m = tensor<?x624xbf16>
!n = tensor<?xf32>
func.func @norm(%x: !m, %r: !m, %w: tensor<624xbf16>) -> (!m, !m) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : !m
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%rows) : !n
  %init = linalg.fill ins(%zero : f32) outs(%numbers : !n) -> !n
  %e = tensor.empty(%rows) : !m
  %h = arith.addf %x, %r : !m
  %squares = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h : !m) outs(%init : !n) {
  ^bb0(%v: bf16, %sum: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %next = arith.addf %sum, %s : f32
    linalg.yield %next : f32
  } -> !n
  %y = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%h, %squares, %w : !m, !n, tensor<624xbf16>) outs(%e : !m) {
  ^bb0(%v: bf16, %q: f32, %g: bf16, %out: bf16):
    %f = arith.extf %v : bf16 to f32
    %columns = arith.constant 624.0 : f32
    %eps = arith.constant 0x3727C5AC : f32
    %mean = arith.divf %q, %columns : f32
    %shifted = arith.addf %mean, %eps : f32
    %root = math.rsqrt %shifted : f32
    %scaled = arith.mulf %f, %root : f32
    %weight = arith.extf %g : bf16 to f32
    %product = arith.mulf %scaled, %weight : f32
    %b = arith.truncf %product : f32 to bf16
    linalg.yield %b : bf16
  } -> !m
  return %h, %y : !m, !m
}
