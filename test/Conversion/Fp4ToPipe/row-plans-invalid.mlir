// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -convert-fp4-to-pipe -verify-diagnostics

// A lowering takes complete small-M plans, of which one ends where split-K does.

func.func @incomplete(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  // expected-error @+2 {{must have a complete plan before it is lowered, but 'route' is missing}}
  // expected-note @+1 {{run fp4-plan-kernels, which completes plans}}
  %0 = fp4.matmul %x, %w {fp4.row_plans = [#fp4.plan<tile_gemm, max_rows = 16>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

#roles = #pipe.role_plan<load warps 8 to 9 drives [tma], math warps 0 to 8 drives [tensor, threads]>
func.func @ranges(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  // expected-error @+2 {{must have a plan in fp4.row_plans whose 'max_rows' is 16, as 'split_rows' says, but got none}}
  // expected-note @+1 {{fp4-plan-kernels adds it}}
  %0 = fp4.matmul %x, %w
      {work = #fp4.work<split_k = 2, split_rows = 16>,
       fp4.plan = #fp4.plan<tile_gemm, route = <core = wgmma, a = registers, b = as_is, accumulate = core, orientation = swapped>, tile = [16, 128, 256], schedule = #pipe.static_persistent<along_m>, roles = #roles, ctas_per_sm = 1>}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}
