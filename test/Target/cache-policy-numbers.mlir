// Rows of a kernel that stores numbers alone leave the L2 cache first where it does not hold them: nothing that is
// stored needs their place.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=sums_reduce_rows_0 -o - | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --shape=5 | FileCheck %s --check-prefix=EQUAL
// CHECK: setp.gt.u32 {{%p[0-9]+}}, %r{{[0-9]+}}, 6399
// CHECK: createpolicy.fractional.L2::evict_first.b64 first, 1.0
// CHECK: createpolicy.fractional.L2::evict_normal.b64 normal, 1.0
// CHECK: selp.b64 {{%rd[0-9]+}}, first, normal, p;
// CHECK-COUNT-4: ld.global.nc.L2::cache_hint.v4.b32
// CHECK-NOT: ld.global
// EQUAL: equals the reference, bit for bit
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @sums(%u: tensor<?x4096xbf16>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %u, %c0 : tensor<?x4096xbf16>
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%u : tensor<?x4096xbf16>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: bf16, %sum: f32):
    %f = arith.extf %a : bf16 to f32
    %n = arith.addf %sum, %f : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %sums : tensor<?xf32>
}
