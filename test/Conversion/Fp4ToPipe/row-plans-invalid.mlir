// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -convert-fp4-to-pipe -verify-diagnostics

// A lowering takes complete plans of dynamic sizes.

func.func @incomplete(%x: tensor<?x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  // expected-error @+2 {{must have a complete plan before it is lowered, but 'route' is missing}}
  // expected-note @+1 {{run fp4-plan-kernels, which completes plans}}
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<?x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<?x256xbf16>
  return
}

// -----

func.func @known(%x: tensor<20x512xbf16>, %w: tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) {
  // expected-error @+2 {{must have dynamic m with a guard of it in 'dispatch'}}
  // expected-note @+1 {{fp4-plan-kernels takes the case that holds for a static size}}
  %0 = fp4.matmul %x, %w {dispatch = [#fp4.case<m = [1, 16] : tile_gemm>, #fp4.case<m = [17, ?] : tile_gemm>]}
      : (tensor<20x512xbf16>, tensor<2x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<20x256xbf16>
  return
}
