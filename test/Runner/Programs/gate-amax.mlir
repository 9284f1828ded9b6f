// A gate loads its amax in front of its rows: behind the branches of its quotients it would be waited for once more.
// RUN: fp4-runner %s --target=sm_90a --shape=5 --policy=random --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// CHECK-NOT: FAILED
// CHECK-COUNT-2: equals the reference, bit for bit
// PTX: griddepcontrol.wait;
// PTX-NOT: ld.global
// PTX: ld.global.b32
// PTX-NOT: bra
// PTX-COUNT-4: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX: st.global

!x = tensor<?x256xbf16>
#all = affine_map<(i, j) -> (i, j)>
func.func @gate(%g: !x {fp4.dims = ["M", ""]}, %u: !x {fp4.dims = ["M", ""]}, %amax: tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %c0 = arith.constant 0 : index
  %height = tensor.dim %g, %c0 : !x
  %empty = tensor.empty(%height) : !x
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%g, %u : !x, !x) outs(%empty : !x) {
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %f = arith.extf %a : bf16 to f32
    %w = arith.extf %b : bf16 to f32
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %f : f32
    %exp = math.exp %minus : f32
    %below = arith.addf %exp, %one : f32
    %glu = arith.divf %f, %below : f32
    %product = arith.mulf %glu, %w : f32
    %rounded = arith.truncf %product : f32 to bf16
    linalg.yield %rounded : bf16
  } -> !x
  %q, %s = fp4.quantize %y amax %amax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, pdl = behind_loads>} : (!x, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
