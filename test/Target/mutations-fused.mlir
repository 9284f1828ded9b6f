// As mutations.mlir, of a kernel with two accumulators of one lhs whose elements leave it as codes and an amax: the
// simulator, or the reference, notices when what orders it is gone. 4 tiles on 1 block make every ring wrap around.
// RUN: fp4-runner %s --multiprocessors=1 --emit=so -o %t.so
// RUN: %python %fp4_src/utils/mutate.py --build %fp4_build %t.so --shape=420 --schedules=eager:1 --verbose \
// RUN:   | FileCheck %s

// CHECK-NOT: SURVIVED
// CHECK: {{^}}[[ALL:[0-9]+]] of [[ALL]] mutants killed, 0 equivalent, 0 survived

!e = tensor<?x768xf4E2M1FN>
!s = tensor<?x24xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!w = tensor<96x768xf4E2M1FN>
!t = tensor<96x24xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!p = tensor<?x96xf32>
func.func @matmul(%a: !e {fp4.name = "a"}, %sa: !s {fp4.name = "sa"}, %b: !w {fp4.name = "b"}, %sb: !t {fp4.name = "sb"},
                  %c: !w {fp4.name = "c"}, %sc: !t {fp4.name = "sc"})
    -> (tensor<?x96xf4E2M1FN> {fp4.name = "q"}, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}, tensor<f32>) {
  %x = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp4>} : (!e, !s, !w, !t) -> !p
  %y = fp4.blockscaled_matmul %a scaled %sa, %c scaled %sc {format = #fp4.format<mxfp4>} : (!e, !s, !w, !t) -> !p
  %z = arith.mulf %x, %y : !p
  %q, %t = fp4.quantize %z {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>} : (!p) -> (tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU>)
  %u = fp4.swizzle_scales %t : tensor<?x3xf8E8M0FNU> -> tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %m = fp4.amax %z : !p -> tensor<f32>
  return %q, %u, %m : tensor<?x96xf4E2M1FN>, tensor<?x3xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<f32>
}
