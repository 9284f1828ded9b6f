// Plans of gates depend on their rows, where these are dynamic: the host launches the kernel of the case, which writes the
// same results. Gates whose launches overlap touch no memory before they have waited.
// RUN: fp4-runner %s --function=gate --target=sm_90a --shape=3 --seed=3 --check=strict | FileCheck %s --check-prefixes=CHECK,FEW,ELEMENTS
// RUN: fp4-runner %s --function=gate --target=sm_90a --shape=4 --policy=random --check=strict | FileCheck %s --check-prefixes=CHECK,SOME,ELEMENTS
// RUN: fp4-runner %s --function=gate --target=sm_100a --shape=10 --policy=lazy --check=strict | FileCheck %s --check-prefixes=CHECK,MANY,ELEMENTS
// RUN: fp4-runner %s --function=blocks --target=sm_90a --shape=3 --policy=random --check=strict | FileCheck %s --check-prefixes=CHECK,FEWBLOCKS,BLOCKS
// RUN: fp4-runner %s --function=blocks --target=sm_90a --shape=4 --check=strict | FileCheck %s --check-prefixes=CHECK,MANYBLOCKS,BLOCKS
// RUN: fp4-runner %s --function=proposed --target=sm_90a --shape=2 --check=strict | FileCheck %s --check-prefixes=CHECK,PROPOSED,BLOCKS
// RUN: fp4-runner %s --function=gate --target=sm_90a --emit=ptx --kernel=gate_elementwise_1 -o - | FileCheck %s --check-prefix=PTX
// RUN: fp4-runner %s --function=blocks --target=sm_90a --emit=ptx --kernel=blocks_quantize_1 -o - | FileCheck %s --check-prefix=LOADS
// CHECK-NOT: FAILED
// FEW: elementwise_1 {{.*}} of 64 threads
// SOME: elementwise_2 {{.*}} of 128 threads
// MANY: elementwise_0 {{.*}} of 32 threads
// ELEMENTS: 1 launched
// ELEMENTS: r0 {{.*}} equals the reference, bit for bit
// FEWBLOCKS: quantize_1 {{.*}} of 32 threads
// MANYBLOCKS: quantize_0 {{.*}} of 256 threads
// PROPOSED: quantize_1 {{.*}} of 64 threads
// BLOCKS: 1 launched
// BLOCKS: r0 {{.*}} equals the reference, bit for bit
// BLOCKS: r1 {{.*}} equals the reference, bit for bit
// ELEMENTS: hazards {{.*}}none
// BLOCKS: hazards {{.*}}none
// PTX-NOT: {{ld.global|launch_dependents}}
// PTX: griddepcontrol.wait;
// PTX-NOT: ld.global
// PTX: griddepcontrol.launch_dependents;
// PTX: ld.global
// PTX-NOT: griddepcontrol
// PTX: st.global
// LOADS-NOT: {{ld.global|launch_dependents}}
// LOADS: griddepcontrol.wait;
// LOADS: ld.global
// LOADS: griddepcontrol.launch_dependents;
// LOADS-NOT: {{griddepcontrol|ld.global}}
// LOADS: st.global

!x = tensor<?x160xbf16>
#all = affine_map<(i, j) -> (i, j)>
func.func @gate(%g: !x, %u: !x, %out: !x) -> !x {
  %y = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : !x, !x) outs(%out : !x)
      attrs = {fp4.dispatch = [#fp4.case<m = [1, 3] : stream_items, threads = 64, pdl = in_turn>, #fp4.case<m = [4, 9] : stream_items, threads = 128>],
               fp4.plan = #fp4.plan<stream_items, threads = 32>} {
  ^bb0(%v: bf16, %b: bf16, %o: bf16):
    %x = arith.extf %v : bf16 to f32
    %z = arith.extf %b : bf16 to f32
    %e = math.exp %x : f32
    %p = arith.mulf %e, %z : f32
    %r = arith.truncf %p : f32 to bf16
    linalg.yield %r : bf16
  } -> !x
  return %y : !x
}

func.func @blocks(%g: !x, %a: tensor<f32>) -> (tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.dispatch = [#fp4.case<m = [1, 3] : stream_blocks, threads = 32, pdl = behind_loads>], fp4.plan = #fp4.plan<stream_blocks, threads = 256>}
      : (!x, tensor<f32>) -> (tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<?x10xf8E4M3FN> -> tensor<?x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return %q, %t : tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

func.func @proposed(%g: !x, %a: tensor<f32>) -> (tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (!x, tensor<f32>) -> (tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN>)
  return %q, %s : tensor<?x160xf4E2M1FN>, tensor<?x10xf8E4M3FN>
}
