// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Plans by sizes (docs/reference/semantics.md). The first GEMM of each function verifies; the second differs in one place.

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// #fp4.plan (C495)
func.func @cost(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{attribute fp4.size_plans must have plans of family tile_gemm with 'wave_cost', but got [#fp4.plan<tile_gemm>]}}
  // expected-note @+1 {{--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N or K; or remove it and let the compiler plan}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// #fp4.plan (C506)
func.func @depth(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm, max_rows = 8, depth_unit = 128, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{attribute fp4.plan must have no 'depth_unit', but got #fp4.plan<tile_gemm, depth_unit = 128, wave_cost = [1, 2, 3]>}}
  // expected-note @+1 {{the plan is for all K; plans for multiples are those of fp4.size_plans}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, depth_unit = 128, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm, max_rows = 8, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

// #fp4.plan (C506)
func.func @few(%x: tensor<?x256xbf16>, %w: tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) {
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  // expected-error @+2 {{attribute fp4.row_plans must have no 'depth_unit', but got #fp4.plan<tile_gemm, max_rows = 16, depth_unit = 128>}}
  // expected-note @+1 {{the plan is for all K; plans for multiples are those of fp4.size_plans}}
  %1 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16, depth_unit = 128>]}
      : (tensor<?x256xbf16>, tensor<2x4x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// #fp4.plan (C495)
func.func @own(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{attribute fp4.size_plans must be beside an fp4.plan with 'wave_cost', but got [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]}}
  // expected-note @+1 {{--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N or K; or remove it and let the compiler plan}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm>,
       fp4.size_plans = [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

!c = tensor<?x?xf4E2M1FN>
!s = tensor<?x?xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<mxfp4, !c, !s>
// #fp4.plan (C495)
func.func @list(%a: !c, %s: !s) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %0 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>,
       fp4.size_plans = [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]}
      : (!operand, !operand) -> tensor<?x?xf32>
  // expected-error @+2 {{attribute fp4.size_plans must be a list of plans, but got []}}
  // expected-note @+1 {{--emit=mlir --compile-to=planned shows such plans of a matmul with dynamic N or K; or remove it and let the compiler plan}}
  %1 = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>, fp4.size_plans = []}
      : (!operand, !operand) -> tensor<?x?xf32>
  return
}

// -----

// #fp4.plan (C495)
func.func @operation(%x: tensor<?x256xbf16>) {
  %0 = fp4.amax %x : tensor<?x256xbf16> -> tensor<f32>
  // expected-error @+2 {{attribute fp4.size_plans must be on a fp4.matmul}}
  // expected-note @+1 {{remove it: only matmuls have plans for sizes}}
  %1 = fp4.amax %x {fp4.size_plans = [#fp4.plan<tile_gemm, wave_cost = [1, 2, 3]>]} : tensor<?x256xbf16> -> tensor<f32>
  return
}
