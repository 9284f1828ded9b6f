// A gated unit of a decoder: two GEMMs of one matrix and prepacked weights. With up to 8 rows the stages of both
// weights are as large as those of one with tiles twice as deep, two CTAs share an SM, and the next matmul begins while
// this one ends. One GEMM of these sizes only waits.
// RUN: fp4-opt %s -fp4-set-target="target=sm_90a device=h200" -fp4-plan-kernels | FileCheck %s
!w = tensor<112x64x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: func.func @unit
// CHECK: #fp4.case<m = [1, 8] : tile_gemm, {{.*}}tile = [8, 128, 128], {{[^:]*}}ctas_per_sm = 2, pdl = before_wait>, #fp4.case<m = [9, 16] : tile_gemm, {{.*}}tile = [16, 128, 256]
func.func @unit(%x: tensor<?x4096xbf16>, %g: !w, %u: !w) -> tensor<?x14336xbf16> {
  %y = fp4.matmul %x, %g with %u epilogue() {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.truncf %p : f32 to bf16
    fp4.yield %r : bf16
  } : (tensor<?x4096xbf16>, !w, !w) -> tensor<?x14336xbf16>
  return %y : tensor<?x14336xbf16>
}
// CHECK-LABEL: func.func @one
// CHECK: #fp4.case<m = [1, 8] : tile_gemm, {{.*}}tile = [8, 128, 256], {{[^:]*}}ctas_per_sm = 2, pdl = at_end>
func.func @one(%x: tensor<?x4096xbf16>, %g: !w) -> tensor<?x14336xbf16> {
  %y = fp4.matmul %x, %g : (tensor<?x4096xbf16>, !w) -> tensor<?x14336xbf16>
  return %y : tensor<?x14336xbf16>
}
