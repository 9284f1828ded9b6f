// Loads of matrices that the L2 cache of Hopper does not hold outlast stores there, 50 MiB or more: of a gate, 51200
// runs of 1024 bytes, and of a norm 6400 rows of 8192. Other targets have no policy.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=gate_elementwise_0 -o %t.gate.ptx && FileCheck %s < %t.gate.ptx
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=gate_rows_0 -o %t.rows.ptx && FileCheck %s --check-prefix=ROWS < %t.rows.ptx
// RUN: fp4-runner %s --target=sm_100a --emit=ptx --kernel=gate_elementwise_0 -o %t.other.ptx && FileCheck %s --check-prefix=OTHER < %t.other.ptx
// RUN: fp4-runner %s --target=sm_90a --shape=5 | FileCheck %s --check-prefix=EQUAL
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @gate(%g: tensor<?x4096xbf16>, %u: tensor<?x4096xbf16>) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>) {
  // CHECK: setp.gt.u32 [[LARGE:%p[0-9]+]], %r{{[0-9]+}}, 819199
  // CHECK: createpolicy.fractional.L2::evict_last.b64 last, 1.0
  // CHECK: createpolicy.fractional.L2::evict_normal.b64 normal, 1.0
  // CHECK-COUNT-4: ld.global.nc.L2::cache_hint.v4.b32
  // CHECK-NOT: ld.global
  // OTHER-NOT: {{createpolicy|cache_hint}}
  %c0 = arith.constant 0 : index
  %m = tensor.dim %g, %c0 : tensor<?x4096xbf16>
  %e = tensor.empty(%m) : tensor<?x4096xbf16>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : tensor<?x4096xbf16>, tensor<?x4096xbf16>) outs(%e : tensor<?x4096xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %p = arith.mulf %a, %b : bf16
    linalg.yield %p : bf16
  } -> tensor<?x4096xbf16>

  // The sum of a row, and the row divided by it.
  // ROWS: setp.gt.u32 {{%p[0-9]+}}, %r{{[0-9]+}}, 6399
  // ROWS-COUNT-4: ld.global.nc.L2::cache_hint.v4.b32
  // ROWS-NOT: ld.global
  %zero = arith.constant 0.0 : f32
  %numbers = tensor.empty(%m) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%numbers : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%u : tensor<?x4096xbf16>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: bf16, %sum: f32):
    %f = arith.extf %a : bf16 to f32
    %n = arith.addf %sum, %f : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%u, %sums : tensor<?x4096xbf16>, tensor<?xf32>) outs(%e : tensor<?x4096xbf16>) {
  ^bb0(%a: bf16, %sum: f32, %out: bf16):
    %f = arith.extf %a : bf16 to f32
    %d = arith.divf %f, %sum : f32
    %b = arith.truncf %d : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<?x4096xbf16>
  return %z, %y : tensor<?x4096xbf16>, tensor<?x4096xbf16>
}
// EQUAL-COUNT-2: equals the reference, bit for bit
// EQUAL: hazards none
