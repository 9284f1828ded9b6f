// A gate to NVFP4 whose rows are no whole tile of scales: threads of rows that pad it store scales of zero and load nothing.
// RUN: fp4-runner %s --target=sm_90a --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --target=sm_100a --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// CHECK: passed
// CHECK: q {{.*}} equals the reference, bit for bit
// CHECK: t {{.*}} equals the reference, bit for bit
// CHECK: hazards {{.*}}none
// PTX: griddepcontrol.wait;
// PTX-NOT: ld.global
// PTX: bra
// PTX: ld.global

!x = tensor<5x160xbf16>
#all = affine_map<(i, j) -> (i, j)>
func.func @gate(%g: !x, %u: !x, %a: tensor<f32>)
    -> (tensor<5x160xf4E2M1FN> {fp4.name = "q"}, tensor<5x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "t"}) {
  %out = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : !x, !x) outs(%out : !x) {
  ^bb0(%v: bf16, %b: bf16, %o: bf16):
    %one = arith.constant 1.0 : f32
    %x = arith.extf %v : bf16 to f32
    %z = arith.extf %b : bf16 to f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %x, %d : f32
    %p = arith.mulf %q, %z : f32
    %r = arith.truncf %p : f32 to bf16
    linalg.yield %r : bf16
  } -> !x
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!x, tensor<f32>) -> (tensor<5x160xf4E2M1FN>, tensor<5x10xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<5x10xf8E4M3FN> -> tensor<5x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<5x160xf4E2M1FN>, tensor<5x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
