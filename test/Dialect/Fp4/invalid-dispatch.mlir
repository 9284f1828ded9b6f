// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Plans by sizes (docs/concepts/plans.md). The first attribute, or matmul, of each case is legal; the second differs in
// one place.

module attributes {test.case = #fp4.case<m = [1, 16], split_k = 2 : tile_gemm>} {}
// case (C1)
// expected-error @+2 {{expects each member once, but got 'm' again}}
// expected-note @+1 {{leave one of them out}}
module attributes {test.case = #fp4.case<m = [1, 16], m = [1, 16] : tile_gemm>} {}

// -----

module attributes {test.case = #fp4.case<n = [129, ?] : tile_gemm>} {}
// case (C1)
// expected-error @+2 {{expects m, n, k, k_unit, split_k or any, but got rows}}
// expected-note @+1 {{write #fp4.case<m = [1, 16] : tile_gemm>, for example}}
module attributes {test.case = #fp4.case<rows = [1, 16] : tile_gemm>} {}

// -----

module attributes {test.case = #fp4.case<m = [17, 17] : tile_gemm>} {}
// case (C2)
// expected-error @+2 {{range 'm' must begin at 1 or more and end no earlier than it begins, but begins at 17}}
// expected-note @+1 {{write [1, 16] for 1 to 16, and [17, ?] for 17 and more}}
module attributes {test.case = #fp4.case<m = [17, 16] : tile_gemm>} {}

// -----

module attributes {test.case = #fp4.case<k_unit = 128 : tile_gemm, wave_cost = [1, 1, 1]>} {}
// case (C2)
// expected-error @+2 {{'k_unit' must be positive, but got 0}}
// expected-note @+1 {{leave it out: the case then holds for any K}}
module attributes {test.case = #fp4.case<k_unit = 0 : tile_gemm, wave_cost = [1, 1, 1]>} {}

// -----

module attributes {test.case = #fp4.case<split_k = 32 : tile_gemm>} {}
// case (C2)
// expected-error @+2 {{'split_k' must be 1 to 32, but got 33}}
// expected-note @+1 {{leave 'split_k' out for one part}}
module attributes {test.case = #fp4.case<split_k = 33 : tile_gemm>} {}

// -----

module attributes {test.case = #fp4.case<any : tile_gemm>} {}
// case (C3)
// expected-error @+2 {{a case must have a plan of family tile_gemm, or for a range of m of reduce_rows, stream_blocks or stream_items, but got gemv}}
// expected-note @+1 {{other families have one plan for all sizes: give it as fp4.plan}}
module attributes {test.case = #fp4.case<any : gemv>} {}

// -----

module attributes {test.case = #fp4.case<m = [1, 132] : reduce_rows, threads = 448>} {}
// case (C3)
// expected-error @+2 {{a case must have a plan of family tile_gemm, or for a range of m of reduce_rows, stream_blocks or stream_items, but got reduce_rows}}
// expected-note @+1 {{other families have one plan for all sizes: give it as fp4.plan}}
module attributes {test.case = #fp4.case<n = [1, 132] : reduce_rows, threads = 448>} {}

// -----

module attributes {test.case = #fp4.case<m = [1, 150] : stream_items, pdl = in_turn>, test.blocks = #fp4.case<m = [1, 150] : stream_blocks>} {}
// case (C3)
// expected-error @+2 {{a case must have a plan of family tile_gemm, or for a range of m of reduce_rows, stream_blocks or stream_items, but got tile_quantize}}
// expected-note @+1 {{other families have one plan for all sizes: give it as fp4.plan}}
module attributes {test.case = #fp4.case<m = [1, 150] : tile_quantize>} {}

// -----

// #fp4.plan (C5)
func.func @ends(%x: tensor<?x512xbf16>) {
  %0 = fp4.amax %x {per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>, #fp4.case<m = [17, 132] : reduce_rows>]} : tensor<?x512xbf16> -> tensor<?xf32>
  // expected-error @+2 {{attribute fp4.dispatch must be cases of family reduce_rows, stream_blocks or stream_items for ranges of m that end, but got}}
  // expected-note @+1 {{write fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 448>], and in fp4.plan the plan for more rows}}
  %1 = fp4.amax %x {per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>, #fp4.case<m = [17, ?] : reduce_rows>]} : tensor<?x512xbf16> -> tensor<?xf32>
  return
}

// -----

// #fp4.plan (C5)
func.func @gap(%x: tensor<?x512xbf16>) {
  %0 = fp4.amax %x {per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>, #fp4.case<m = [17, 132] : reduce_rows>]} : tensor<?x512xbf16> -> tensor<?xf32>
  // expected-error @+2 {{attribute fp4.dispatch must have ranges of m one behind the other, but one begins at 18 and not at 17}}
  // expected-note @+1 {{write fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows, threads = 448>], and in fp4.plan the plan for more rows}}
  %1 = fp4.amax %x {per_row, fp4.dispatch = [#fp4.case<m = [1, 16] : reduce_rows>, #fp4.case<m = [18, 132] : reduce_rows>]} : tensor<?x512xbf16> -> tensor<?xf32>
  return
}

// -----

module attributes {test.case = #fp4.case<k_unit = 128 : tile_gemm, wave_cost = [1, 1, 1]>} {}
// case (C3)
// expected-error @+2 {{expects 'wave_cost' in a plan beside 'k_unit', but got none}}
// expected-note @+1 {{a plan for multiples stands beside one for any K, and the cheaper runs}}
module attributes {test.case = #fp4.case<k_unit = 128 : tile_gemm>} {}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C640)
func.func @hole(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [17, ?] : tile_gemm>, #fp4.case<m = [1, 16] : tile_gemm>]}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{'dispatch' must have one case for all sizes, but got 0 for m = 17, n = 1, k = 1}}
  // expected-note @+1 {{let a guard begin where the one before ends: m = [1, 16], then m = [17, ?]}}
  %1 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [18, ?] : tile_gemm>]}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C640)
func.func @end(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{'dispatch' must have one case for all sizes, but got 0 for m = 65, n = 1, k = 1}}
  // expected-note @+1 {{let a guard begin where the one before ends}}
  %1 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [17, 64] : tile_gemm>]}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// matmul (C640)
func.func @overlap(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<n = [1, 512] : tile_gemm>, #fp4.case<m = [1, 64], n = [513, ?] : tile_gemm>, #fp4.case<m = [65, ?], n = [513, ?] : tile_gemm>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{'dispatch' must have one case for all sizes, but got 2 for m = 1, n = 512, k = 1}}
  // expected-note @+1 {{end one of the guards before the other begins, or give all plans 'wave_cost', and the cheapest runs}}
  %1 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<n = [1, 512] : tile_gemm>, #fp4.case<m = [1, 64], n = [512, ?] : tile_gemm>, #fp4.case<m = [65, ?], n = [513, ?] : tile_gemm>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// matmul (C640)
func.func @multiples(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<k_unit = 128 : tile_gemm, wave_cost = [1, 2, 3]>, #fp4.case<any : tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{'dispatch' must have a case for all sizes, but got 0 for m = 1, n = 1, k = 1}}
  // expected-note @+1 {{let a guard begin where the one before ends}}
  %1 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<k_unit = 128 : tile_gemm, wave_cost = [1, 2, 3]>, #fp4.case<k_unit = 64 : tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C641)
func.func @empty(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<any : tile_gemm>]} : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{'dispatch' must have 1 to 64 cases, but got 0}}
  // expected-note @+1 {{leave it out, and fp4-plan-kernels decides it}}
  %1 = fp4.matmul %x, %w {dispatch = []} : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C641)
func.func @both(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<any : tile_gemm>]} : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{expects no fp4.plan beside 'dispatch'}}
  // expected-note @+1 {{give the plan as the one of a case: #fp4.case<m = [17, ?] : tile_gemm>}}
  %1 = fp4.matmul %x, %w {dispatch = [#fp4.case<any : tile_gemm>], fp4.plan = #fp4.plan<tile_gemm>}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// matmul (C642)
func.func @cost(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<m = [1, 64] : tile_gemm, wave_cost = [1, 2, 3]>, #fp4.case<any : tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{'dispatch' must have 'wave_cost' in all plans or in none}}
  // expected-note @+1 {{--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N or K}}
  %1 = fp4.matmul %a_scaled, %a_scaled {dispatch = [#fp4.case<m = [1, 64] : tile_gemm, wave_cost = [1, 2, 3]>, #fp4.case<any : tile_gemm>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

!w = tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>
// matmul (C643)
func.func @split(%x: tensor<?x512xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16], split_k = 2 : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{expects 'split_k' in 'dispatch' only where all guards are ranges of m, and none in 'work'}}
  // expected-note @+1 {{give one 'split_k' for all sizes in 'work'}}
  %1 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16], split_k = 2 : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>], work = #fp4.work<split_k = 2>}
      : (tensor<?x512xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// #fp4.plan (C4)
func.func @rows(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must be spelled 'dispatch'}}
  // expected-note @+1 {{write dispatch = [#fp4.case<m = [1, 16] : tile_gemm, ..>, #fp4.case<m = [17, ?] : tile_gemm, ..>], the last with the plan of fp4.plan}}
  %1 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm>]} : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

!w = tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>
// #fp4.plan (C4)
func.func @sizes(%x: tensor<?x256xbf16>, %w: !w) {
  %0 = fp4.matmul %x, %w : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.size_plans must be spelled 'dispatch'}}
  // expected-note @+1 {{write dispatch = }}
  %1 = fp4.matmul %x, %w {fp4.size_plans = []} : (tensor<?x256xbf16>, !w) -> tensor<?x256xbf16>
  return
}

// -----

// #fp4.plan (C1)
// expected-error @+2 {{a plan of family tile_gemm has no field 'max_rows'}}
// expected-note @+1 {{'max_rows' is called 'm = [1, ..] of #fp4.case' now}}
module attributes {test.plan = #fp4.plan<tile_gemm, max_rows = 16>} {}

// -----

// #fp4.plan (C1)
// expected-error @+2 {{a plan of family tile_gemm has no field 'depth_unit'}}
// expected-note @+1 {{'depth_unit' is called 'k_unit of #fp4.case' now}}
module attributes {test.plan = #fp4.plan<tile_gemm, depth_unit = 128>} {}

// -----

!c = tensor<128x512xf4E2M1FN>
!s = tensor<128x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !c, !s>
// matmul (C643)
func.func @stream(%a: !c, %sa: !s, %b: !c, %sb: !s) {
  %x = fp4.scaled %a, %sa : !operand
  %w = fp4.scaled %b, %sb : !operand
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<split_k = 2 : tile_gemm>]} : (!operand, !operand) -> tensor<128x128xbf16>
  // expected-error @+2 {{expects neither 'stream_k' nor a policy of 'split_k' in 'work' beside 'split_k' in 'dispatch'}}
  // expected-note @+1 {{leave out the 'split_k' of the cases, or 'work'}}
  %1 = fp4.matmul %x, %w {work = #fp4.work<stream_k = [3, 128, 128]>, dispatch = [#fp4.case<split_k = 2 : tile_gemm>]} : (!operand, !operand) -> tensor<128x128xbf16>
  return
}
