// Plans that do not fit the operation or the target; the first operation of each case has one that does.
// RUN: fp4-opt %s -split-input-file -fp4-set-target -fp4-plan-kernels -verify-diagnostics

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @tile(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [128, n, k] with n = 64, 96, 128, 192 or 256 and k a multiple of 256, but got [128, 80, 256]}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 80, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{but got [64, 64, 256]}}
  // expected-note @+1 {{leave 'tile' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 64, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{but got [128, 64, 128]}}
  // expected-note @+1 {{leave 'tile' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @product(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // expected-error @+2 {{must have a plan whose 'ctas_per_sm' is 1, but got 2}}
  // expected-note @+1 {{leave 'ctas_per_sm' out}}
  %0 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, ctas_per_sm = 2>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'schedule' is a schedule such as #pipe.static_persistent<along_m>, but got "along_m"}}
  // expected-note @+1 {{leave 'schedule' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, schedule = "along_m">}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' is a #pipe.role_plan, but got #pipe.static_persistent<along_m>}}
  // expected-note @+1 {{leave 'roles' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.static_persistent<along_m>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engine scale_copy, but got #pipe.role_plan<load warps 5 to 6}}
  // expected-note @+1 {{leave 'roles' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor], epilogue warps 0 to 4 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @roles(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 0 to 1 drives [tma], mma warps 1 to 2 drives [tensor, scale_copy], epilogue warps 4 to 8 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engines tensor and scale_copy from one role, but got}}
  // expected-note @+1 {{leave 'roles' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 4 to 5 drives [tma], s warps 5 to 6 drives [scale_copy], m warps 6 to 7 drives [tensor], epilogue warps 0 to 4 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engines tma and tensor from two roles, but got}}
  // expected-note @+1 {{leave 'roles' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 4 to 5 drives [tma, tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' have at most 32 warps on sm_100a, but got}}
  // expected-note @+1 {{leave 'roles' out}}
  %4 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 4 to 5 drives [tma], mma warps 32 to 33 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engine threads with 4 warps from a multiple of 4, but got}}
  // expected-note @+1 {{leave 'roles' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 0 to 1 drives [tensor, scale_copy], epilogue warps 1 to 5 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>,
                       tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @split(%a: tensor<256x512xf4E2M1FN>, %s: tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is at most 256 deep, which split-K ranges are multiples of, but got [128, 64, 512]}}
  // expected-note @+1 {{leave 'tile' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 512]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>,
                       tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @stream(%a: tensor<256x512xf4E2M1FN>, %s: tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<stream_k = [3, 128, 64]>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [128, 64, k], as 'stream_k' says, but got [128, 128, 256]}}
  // expected-note @+1 {{leave 'tile' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<stream_k = [3, 128, 64]>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' is a pair or one CTA with 'stream_k', but got [2, 1]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {work = #fp4.work<stream_k = [3, 128, 64]>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], cluster = [2, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @clusters(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 4], tile = [256, 128, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is [128, n, k], or [256, n, k] of a pair, with n = 64, 96, 128, 192 or 256 and k a multiple of 256, but got [64, 128, 256]}}
  // expected-note @+1 {{leave 'tile' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [64, 128, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' fits in the memories of an SM of sm_100a, but got [128, 256, 1280], of 286720 bytes and 576 columns}}
  // expected-note @+1 {{leave 'tile' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [1, 2], tile = [128, 256, 1280]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // Shared memory alone has no room, then tensor memory alone.
  // expected-error @+2 {{but got [128, 128, 2048], of 311296 bytes and 512 columns}}
  // expected-note @+1 {{leave 'tile' out}}
  %bytes = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 2048]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{but got [256, 256, 1280], of 204800 bytes and 576 columns}}
  // expected-note @+1 {{leave 'tile' out}}
  %columns = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, tile = [256, 256, 1280]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' fits in the memories of an SM of sm_100a, but got [128, 128, 4611686018427387904]}}
  // expected-note @+1 {{leave 'tile' out}}
  %huge = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 4611686018427387904]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has an even number of CTAs along m, two for each pair, but got [1, 2]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [1, 2]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // 128 columns are 8 for each of 16 CTAs, and 64 are 4.
  %16 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], cluster = [16, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has CTAs along m that each load a multiple of 8 of the 64 columns of a tile, but got [16, 1]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %17 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], cluster = [16, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has powers of two, of at most 16 CTAs on sm_100a, but got [8, 4]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %4 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, cluster = [8, 4]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has powers of two, of at most 16 CTAs on sm_100a, but got [4611686018427387904, 4]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %6 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [4611686018427387904, 4]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'cluster' has powers of two, of at most 16 CTAs on sm_100a, but got [3, 1]}}
  // expected-note @+1 {{leave 'cluster' out}}
  %5 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, cluster = [3, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @fallback(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 4], fallback = [2, 2], tile = [256, 64, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'fallback' divides 'cluster', [2, 4], and has an even number of CTAs along m, but got [2, 3]}}
  // expected-note @+1 {{leave 'fallback' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 4], fallback = [2, 3]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'fallback' divides 'cluster', [2, 2], and has an even number of CTAs along m, but got [1, 1]}}
  // expected-note @+1 {{leave 'fallback' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 2], fallback = [1, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'fallback' is left out without 'pair', but got [2, 1]}}
  // expected-note @+1 {{leave 'fallback' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 2], fallback = [2, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'fallback' is left out with pairs of 128 rows, but got [2, 1]}}
  // expected-note @+1 {{leave 'fallback' out}}
  %5 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 2], fallback = [2, 1], tile = [128, 256, 256]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'fallback' is left out with a schedule that takes over tiles of others, but got [2, 1]}}
  // expected-note @+1 {{leave 'fallback' out}}
  %4 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, pair, cluster = [2, 2], fallback = [2, 1], schedule = #pipe.cluster_launch<along_m>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
module attributes {fp4.target = #fp4.target<sm_90a>} {
func.func @hopper(%a: tensor<256x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  // expected-error @+2 {{must have a plan without 'fallback', which route <core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal> does not read}}
  // expected-note @+1 {{fields that the route reads: route, tile, schedule}}
  %0 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, fallback = [2, 1]>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!sb = tensor<202x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<202x256xf4E2M1FN>, !sb>
func.func @stores(%a: tensor<256x256xf4E2M1FN>, %s: !s, %b: tensor<202x256xf4E2M1FN>, %sb: !sb) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {fp4.plan = #fp4.plan<tile_gemm, store = tma>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  %b_scaled = fp4.scaled %b, %sb : !rhs
  // expected-error @+2 {{must have a plan whose 'store' is direct for rows of a result that are no multiple of 16 bytes, but got tma for 404 bytes}}
  // expected-note @+1 {{leave 'store' out}}
  %1 = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, store = tma>}
      : (!operand, !rhs) -> tensor<256x202xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engine bulk_store, but got #pipe.role_plan<load warps 5 to 6}}
  // expected-note @+1 {{leave 'roles' out}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, store = tma, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  // expected-error @+2 {{must have a plan whose 'roles' drive the engines threads and bulk_store from two roles, but got #pipe.role_plan<load warps 5 to 6}}
  // expected-note @+1 {{leave 'roles' out}}
  %3 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, store = tma, roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads, bulk_store]>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return
}

// -----

func.func @family(%x: tensor<64x32xbf16>, %a: tensor<f32>) {
  %ok = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{has no kernel of family stream_items}}
  // expected-note @+1 {{it has kernels of: reduce_grid}}
  %0 = fp4.amax %x {fp4.plan = #fp4.plan<stream_items>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{has no kernel of family reduce_rows}}
  // expected-note @+1 {{it has kernels of: stream_blocks, tile_quantize}}
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<reduce_rows>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  return
}

// -----

func.func @threads(%x: tensor<64x32xbf16>, %a: tensor<f32>) {
  %ok = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 1024>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{must have a plan whose 'threads' are a power of two, but got 96}}
  // expected-note @+1 {{leave 'threads' out}}
  %0 = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 96>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{must have a plan whose 'threads' are a multiple of 32 up to 1024 on sm_100a, but got 2048}}
  // expected-note @+1 {{leave 'threads' out}}
  %1 = fp4.amax %x {per_row, fp4.plan = #fp4.plan<reduce_rows, threads = 2048>} : tensor<64x32xbf16> -> tensor<64xf32>
  // expected-error @+2 {{must have a plan whose 'threads' are a multiple of 32 up to 1024 on sm_100a, but got 100}}
  // expected-note @+1 {{leave 'threads' out}}
  %2 = fp4.amax %x {per_column, fp4.plan = #fp4.plan<stream_items, threads = 100>} : tensor<64x32xbf16> -> tensor<32xf32>
  // expected-error @+2 {{must have a plan whose 'items_per_thread' is 1, but got 2}}
  // expected-note @+1 {{leave 'items_per_thread' out}}
  %3 = fp4.hadamard %x {fp4.plan = #fp4.plan<stream_items, items_per_thread = 2>} : tensor<64x32xbf16> -> tensor<64x32xbf16>
  // expected-error @+2 {{must have a plan whose 'items_per_thread' is at most 65536, but got 65537}}
  // expected-note @+1 {{leave 'items_per_thread' out}}
  %4 = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, items_per_thread = 65537>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{must have a plan whose 'grid' is at most 1024, but got 9223372036854775807}}
  // expected-note @+1 {{leave 'grid' out}}
  %5 = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, grid = 9223372036854775807>} : tensor<64x32xbf16> -> tensor<f32>
  // expected-error @+2 {{must have a plan whose 'items_per_thread' is at most 65536, but got 9223372036854775807}}
  // expected-note @+1 {{leave 'items_per_thread' out}}
  %6 = fp4.amax %x {per_column, fp4.plan = #fp4.plan<stream_items, items_per_thread = 9223372036854775807>} : tensor<64x32xbf16> -> tensor<32xf32>
  return
}

// -----

// Lanes have a block together, or threads a row that is one.
func.func @lanes(%x: tensor<64x64xbf16>, %z: tensor<64x128xbf16>, %a: tensor<f32>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, lanes_per_block = 2>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'lanes_per_block' is a power of two up to 2, but got 4}}
  // expected-note @+1 {{leave 'lanes_per_block' out}}
  %q1, %s1 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, lanes_per_block = 4>}
      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'lanes_per_block' is a power of two up to 4, but got 3}}
  // expected-note @+1 {{leave 'lanes_per_block' out}}
  %q2, %s2 = fp4.quantize %z {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>, fp4.plan = #fp4.plan<stream_blocks, lanes_per_block = 3>}
      : (tensor<64x128xbf16>) -> (tensor<64x128xf4E2M1FN>, tensor<64x4xf8E8M0FNU>)
  return
}

// -----

func.func @threads_of_rows(%x: tensor<64x256xbf16>) {
  %y = math.exp %x : tensor<64x256xbf16>
  %q, %s = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>, fp4.plan = #fp4.plan<stream_blocks, threads = 64, lanes_per_block = 16>}
      : (tensor<64x256xbf16>) -> (tensor<64x256xf8E4M3FN>, tensor<64x1xf32>)
  // expected-error @+2 {{must have a plan whose 'lanes_per_block' are whole warps, or a part of one, and divide threads, but got 48}}
  // expected-note @+1 {{leave 'lanes_per_block' out}}
  %p, %t = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>, fp4.plan = #fp4.plan<stream_blocks, threads = 96, lanes_per_block = 48>}
      : (tensor<64x256xbf16>) -> (tensor<64x256xf8E4M3FN>, tensor<64x1xf32>)
  // expected-error @+2 {{must have a plan whose 'lanes_per_block' are whole warps, or a part of one, and divide threads, but got 64}}
  // expected-note @+1 {{leave 'lanes_per_block' out}}
  %r, %u = fp4.quantize %y {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>, block = array<i64: 1, 256>, fp4.plan = #fp4.plan<stream_blocks, threads = 96, lanes_per_block = 64>}
      : (tensor<64x256xbf16>) -> (tensor<64x256xf8E4M3FN>, tensor<64x1xf32>)
  return
}

// -----

func.func @quantizers(%x: tensor<64x32xbf16>, %a: tensor<f32>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, ctas_per_sm = 8>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'ctas_per_sm' is at most 8 for 256 threads on sm_100a, but got 9}}
  // expected-note @+1 {{leave 'ctas_per_sm' out}}
  %q1, %s1 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, ctas_per_sm = 9>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'blocks_per_thread' is at most 16, but got 17}}
  // expected-note @+1 {{leave 'blocks_per_thread' out}}
  %q5, %s5 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, blocks_per_thread = 17>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'lanes_per_block' is 1 for this operation, but got 2}}
  // expected-note @+1 {{leave 'lanes_per_block' out}}
  %q7, %s7 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, lanes_per_block = 2>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<64x32xf4E2M1FN>, tensor<64x2xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'strip' is at most 1, but got 2}}
  // expected-note @+1 {{leave 'strip' out}}
  %q6, %s6 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>,
      columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, fp4.plan = #fp4.plan<tile_transform, strip = 2>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'threads' are 256, but got 128}}
  // expected-note @+1 {{leave 'threads' out}}
  %q2, %s2 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>,
      fp4.plan = #fp4.plan<tile_quantize, threads = 128>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'tile' is [64, 128], but got [64, 64]}}
  // expected-note @+1 {{leave 'tile' out}}
  %q3, %s3 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>,
      columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, fp4.plan = #fp4.plan<tile_transform, tile = [64, 64]>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  // expected-error @+2 {{must have a plan whose 'ctas_per_sm' is at most 3 for 192 threads of 82 registers, but got 4}}
  // expected-note @+1 {{leave 'ctas_per_sm' out}}
  %q4, %s4 = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<columnwise>,
      columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>, fp4.plan = #fp4.plan<tile_transform, ctas_per_sm = 4>}
      : (tensor<64x32xbf16>, tensor<f32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>)
  return
}

// -----

!s = tensor<40x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!d = tensor<?x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<40x256xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !t>
!lhs2 = !fp4.scaled<nvfp4, tensor<?x256xf4E2M1FN>, !d>
func.func @swapped(%a: tensor<40x256xf4E2M1FN>, %s: !s, %b: tensor<256x256xf4E2M1FN>, %t: !t, %da: tensor<?x256xf4E2M1FN>, %d: !d) {
  %a_scaled = fp4.scaled %a, %s : !lhs
  %b_scaled = fp4.scaled %b, %t : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 32, 256]>}
      : (!lhs, !rhs) -> tensor<40x256xbf16>
  // expected-error @+2 {{must have a plan whose 'tile' is, with swapped operands, [128, n, k] with n = 8 or 16 for as many rows, 32 or 64, and k a multiple of 256, but got [128, 16, 256] for 40 rows}}
  // expected-note @+1 {{leave 'tile' out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 16, 256]>}
      : (!lhs, !rhs) -> tensor<40x256xbf16>
  // expected-error @+2 {{must have a plan without 'store', which route <core = tcgen05, a = as_is, b = as_is, accumulate = core, orientation = swapped> does not read}}
  // expected-note @+1 {{fields that the route reads: route, tile, cluster, reduction, epilogue_warps, mma_warps, schedule, roles, stages, accumulators, ctas_per_sm}}
  %2 = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, store = tma>}
      : (!lhs, !rhs) -> tensor<40x256xbf16>
  %da_scaled = fp4.scaled %da, %d : !lhs2
  // expected-error @+2 {{must have a plan whose 'route' has the orientation normal for dynamic rows, but got <core = tcgen05, a = as_is, b = as_is, accumulate = core, orientation = swapped>}}
  // expected-note @+1 {{leave 'route' out, and fp4-plan-kernels decides it}}
  %3 = fp4.matmul %da_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>>}
      : (!lhs2, !rhs) -> tensor<?x256xbf16>
  return
}

// -----

!s = tensor<8x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<8x256xf4E2M1FN>, !s>
func.func @dots(%a: tensor<8x256xf4E2M1FN>, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {arithmetic = #fp4.matmul_arithmetic<fma>, fp4.plan = #fp4.plan<gemv, threads = 64>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{must have a plan whose 'threads' are a multiple of 32 up to 1024 on sm_100a, but got 48}}
  // expected-note @+1 {{leave 'threads' out}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {arithmetic = #fp4.matmul_arithmetic<fma>, fp4.plan = #fp4.plan<gemv, threads = 48>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  // expected-error @+2 {{has no kernel of family tile_gemm}}
  // expected-note @+1 {{it has kernels of: gemv}}
  %2 = fp4.matmul %a_scaled, %a_scaled
      {arithmetic = #fp4.matmul_arithmetic<fma>, fp4.plan = #fp4.plan<tile_gemm>}
      : (!operand, !operand) -> tensor<8x8xbf16>
  return
}
