// Lanes that have a scale block of a gate together, or threads that have a row which is one: no bit depends on their number,
// also where rows pad a tile of scales, blocks have exceptional values, and lanes of a warp have blocks of two rows.
// RUN: fp4-runner %s --target=sm_90a --function=nvfp4 --shape=5 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fp4-runner %s --target=sm_90a --function=nvfp4 --shape=3 --dist=adversarial --seed=2 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fp4-runner %s --target=sm_100a --function=mxfp4 --shape=130 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: fp4-runner %s --target=sm_90a --function=rows --shape=5 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: fp4-runner %s --target=sm_90a --function=rows --shape=130 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: fp4-runner %s --target=sm_90a --function=bytes --shape=5 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,FOUR
// RUN: fp4-runner %s --target=sm_90a --function=row --shape=5 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,ROW,TWO
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=nvfp4_quantize_0 -o - | FileCheck %s --check-prefix=PTX
// RUN: fp4-runner %s --target=sm_90a --function=rows --emit=ptx --kernel=rows_quantize_0 -o - | FileCheck %s --check-prefix=APART
// CHECK: passed
// ROW: quantize_0 {{.*}}2 CTAs of 64 threads
// TWO-COUNT-2: equals the reference, bit for bit
// FOUR-COUNT-4: equals the reference, bit for bit
// A lane of two loads 8 elements of two matrices, which it has asked the L2 cache for beside the amax, and stores 4 bytes.
// Warps of rows that pad the matrix skip the elements; a warp that has lanes of two rows does not, because all of its lanes
// exchange values.
// PTX-NOT: ld.global
// PTX-COUNT-3: prefetch.global.L2
// PTX-NOT: {{prefetch|ld.global}}
// PTX: griddepcontrol.wait;
// PTX: bra
// PTX: ld.global.b32
// PTX-COUNT-2: ld.global.v4.b32
// PTX-NOT: ld.global
// PTX: griddepcontrol.launch_dependents;
// PTX-NOT: {{ld.global|st.global.v}}
// PTX: st.global.b32
// APART: griddepcontrol.wait;
// APART-NOT: bra
// APART: shfl.sync

!x = tensor<?x256xbf16>
!odd = tensor<?x384xbf16>
#tiled = #fp4.scale_layout<tiled_128x4>
#all = affine_map<(i, j) -> (i, j)>

func.func @nvfp4(%g: !x {fp4.dims = ["M", ""]}, %u: !x {fp4.dims = ["M", ""]}, %a: tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN, #tiled>) {
  %e = math.exp %g : !x
  %y = arith.mulf %e, %u : !x
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 2, pdl = behind_loads>} : (!x, tensor<f32>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<?x16xf8E4M3FN> -> tensor<?x16xf8E4M3FN, #tiled>
  return %q, %t : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN, #tiled>
}

func.func @mxfp4(%g: !x) -> (tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU, #tiled>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 96, lanes_per_block = 4, pdl = behind_loads>} : (!x) -> (tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<?x8xf8E8M0FNU> -> tensor<?x8xf8E8M0FNU, #tiled>
  return %q, %t : tensor<?x256xf4E2M1FN>, tensor<?x8xf8E8M0FNU, #tiled>
}

// Rows of 24 or 48 lanes, so that a warp has lanes of two of them.
func.func @rows(%g: !odd, %a: tensor<f32>) -> (tensor<?x384xf4E2M1FN>, tensor<?x24xf8E4M3FN, #tiled>, tensor<?x384xf4E2M1FN>, tensor<?x12xf8E8M0FNU>) {
  %y = math.exp %g : !odd
  %q, %s = fp4.quantize %y amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 2, pdl = behind_loads>} : (!odd, tensor<f32>) -> (tensor<?x384xf4E2M1FN>, tensor<?x24xf8E4M3FN>)
  %t = fp4.swizzle_scales %s : tensor<?x24xf8E4M3FN> -> tensor<?x24xf8E4M3FN, #tiled>
  %z = math.exp %g : !odd
  %p, %r = fp4.quantize %z {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, blocks_per_thread = 2, lanes_per_block = 2>} : (!odd) -> (tensor<?x384xf4E2M1FN>, tensor<?x12xf8E8M0FNU>)
  return %q, %t, %p, %r : tensor<?x384xf4E2M1FN>, tensor<?x24xf8E4M3FN, #tiled>, tensor<?x384xf4E2M1FN>, tensor<?x12xf8E8M0FNU>
}

func.func @bytes(%g: !x) -> (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU, #tiled>, tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 4, pdl = behind_loads>} : (!x) -> (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<?x8xf8E8M0FNU> -> tensor<?x8xf8E8M0FNU, #tiled>
  %z = math.exp %g : !x
  %p, %r = fp4.quantize %z {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_floor>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 1>} : (!x) -> (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>)
  return %q, %t, %p, %r : tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU, #tiled>, tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>
}

// 16 threads have a row of 256 elements, or 64 of which half have a chunk.
func.func @row(%g: !x) -> (tensor<?x256xf8E4M3FN>, tensor<?x1xf32>) {
  %y = math.exp %g : !x
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>,
      fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 16, pdl = behind_loads>} : (!x) -> (tensor<?x256xf8E4M3FN>, tensor<?x1xf32>)
  return %q, %s : tensor<?x256xf8E4M3FN>, tensor<?x1xf32>
}
