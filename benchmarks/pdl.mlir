// Programs of several kernels, to time with and without --pdl:
//   fp4-runner benchmarks/pdl.mlir --emit=so -o plain.so
//   fp4-runner benchmarks/pdl.mlir --pdl --emit=so -o overlapped.so
//   fp4-run plain.so --function linear --shape 64 --benchmark --json plain.json; fp4-run overlapped.so ...
// The row of the program counts, not those of its kernels.

#tiled = #fp4.scale_layout<tiled_128x4>

func.func @quantize(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>, tensor<f32>) {
  %a = fp4.amax %x : tensor<?x4096xbf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x4096xbf16>, tensor<f32>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>)
  return %q, %s, %a : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>, tensor<f32>
}

!lhs = !fp4.scaled<mxfp4, tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU, #tiled>>
!rhs = !fp4.scaled<mxfp4, tensor<4096x4096xf4E2M1FN>, tensor<4096x128xf8E8M0FNU, #tiled>>
// A layer whose weights and scales are prepared, in MXFP4: one quantizer, one GEMM.
func.func @layer(%x: tensor<?x4096xbf16>, %qw: tensor<4096x4096xf4E2M1FN>, %tw: tensor<4096x128xf8E8M0FNU, #tiled>) -> tensor<?x4096xbf16> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<?x4096xbf16>) -> (tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<?x128xf8E8M0FNU> -> tensor<?x128xf8E8M0FNU, #tiled>
  %q_scaled = fp4.scaled %q, %t : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %q_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}

!lhs2 = !fp4.scaled<mxfp4, tensor<1x4096xf4E2M1FN>, tensor<1x128xf8E8M0FNU, #tiled>>
// A quantizer of one row, and a GEMM with it by threads.
func.func @token(%x: tensor<1x4096xbf16>, %qw: tensor<4096x4096xf4E2M1FN>, %tw: tensor<4096x128xf8E8M0FNU, #tiled>) -> tensor<1x4096xbf16> {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<1x4096xbf16>) -> (tensor<1x4096xf4E2M1FN>, tensor<1x128xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s : tensor<1x128xf8E8M0FNU> -> tensor<1x128xf8E8M0FNU, #tiled>
  %q_scaled = fp4.scaled %q, %t : !lhs2
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %q_scaled, %qw_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs2, !rhs) -> tensor<1x4096xbf16>
  return %y : tensor<1x4096xbf16>
}
