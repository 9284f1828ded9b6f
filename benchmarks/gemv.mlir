// GEMV by threads (arithmetic fma); the three published GEMV shapes, and one square with 1 to 8
// rows. fp4-runner benchmarks/gemv.mlir --emit=so -o gemv.so; fp4-run gemv.so --function NAME --benchmark
// Look at the time of the kernel dots: programs of one matrix first tile its scales.

!lhs = !fp4.scaled<nvfp4, tensor<1x16384xf4E2M1FN>,
                   tensor<1x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<7168x16384xf4E2M1FN>,
                   tensor<7168x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @gemv_7168x16384(%a: tensor<1x16384xf4E2M1FN>, %b: tensor<7168x16384xf4E2M1FN>, %la: tensor<1x1024xf8E4M3FN>, %lb: tensor<7168x1024xf8E4M3FN>) -> tensor<1x7168xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<1x1024xf8E4M3FN> -> tensor<1x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<7168x1024xf8E4M3FN> -> tensor<7168x1024xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs, !rhs) -> tensor<1x7168xbf16>
  return %y : tensor<1x7168xbf16>
}

!lhs2 = !fp4.scaled<nvfp4, tensor<8x7168xf4E2M1FN>,
                    tensor<114688x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<nvfp4, tensor<32768x7168xf4E2M1FN>,
                    tensor<3670016x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @gemv_4096x7168x8(%a: tensor<8x7168xf4E2M1FN>, %b: tensor<32768x7168xf4E2M1FN>, %sa: tensor<114688x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %sb: tensor<3670016x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x4096xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [1, 1, 1, 1, 1, 1, 1, 1]>,
       arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs2, !rhs2) -> tensor<8x4096xbf16>
  return %y : tensor<8x4096xbf16>
}

!lhs3 = !fp4.scaled<nvfp4, tensor<4x2048xf4E2M1FN>,
                    tensor<16384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<nvfp4, tensor<28672x2048xf4E2M1FN>,
                    tensor<917504x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @gemv_7168x2048x4(%a: tensor<4x2048xf4E2M1FN>, %b: tensor<28672x2048xf4E2M1FN>, %sa: tensor<16384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %sb: tensor<917504x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<4x7168xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled
      {work = #fp4.work<groups = [1, 1, 1, 1]>, arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs3, !rhs3) -> tensor<4x7168xbf16>
  return %y : tensor<4x7168xbf16>
}

!lhs4 = !fp4.scaled<nvfp4, tensor<1x8192xf4E2M1FN>,
                    tensor<1x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs4 = !fp4.scaled<nvfp4, tensor<8192x8192xf4E2M1FN>,
                    tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @gemv_8192x8192(%a: tensor<1x8192xf4E2M1FN>, %b: tensor<8192x8192xf4E2M1FN>, %la: tensor<1x512xf8E4M3FN>, %lb: tensor<8192x512xf8E4M3FN>) -> tensor<1x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<1x512xf8E4M3FN> -> tensor<1x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs4
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs4, !rhs4) -> tensor<1x8192xbf16>
  return %y : tensor<1x8192xbf16>
}

!lhs5 = !fp4.scaled<nvfp4, tensor<2x8192xf4E2M1FN>,
                    tensor<2x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows2_8192x8192(%a: tensor<2x8192xf4E2M1FN>, %b: tensor<8192x8192xf4E2M1FN>, %la: tensor<2x512xf8E4M3FN>, %lb: tensor<8192x512xf8E4M3FN>) -> tensor<2x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<2x512xf8E4M3FN> -> tensor<2x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs5
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs5, !rhs4) -> tensor<2x8192xbf16>
  return %y : tensor<2x8192xbf16>
}

!lhs6 = !fp4.scaled<nvfp4, tensor<4x8192xf4E2M1FN>,
                    tensor<4x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows4_8192x8192(%a: tensor<4x8192xf4E2M1FN>, %b: tensor<8192x8192xf4E2M1FN>, %la: tensor<4x512xf8E4M3FN>, %lb: tensor<8192x512xf8E4M3FN>) -> tensor<4x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<4x512xf8E4M3FN> -> tensor<4x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs6
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs6, !rhs4) -> tensor<4x8192xbf16>
  return %y : tensor<4x8192xbf16>
}

!lhs7 = !fp4.scaled<nvfp4, tensor<8x8192xf4E2M1FN>,
                    tensor<8x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @rows8_8192x8192(%a: tensor<8x8192xf4E2M1FN>, %b: tensor<8192x8192xf4E2M1FN>, %la: tensor<8x512xf8E4M3FN>, %lb: tensor<8192x512xf8E4M3FN>) -> tensor<8x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<8x512xf8E4M3FN> -> tensor<8x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x512xf8E4M3FN> -> tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs7
  %b_scaled = fp4.scaled %b, %sb : !rhs4
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs7, !rhs4) -> tensor<8x8192xbf16>
  return %y : tensor<8x8192xbf16>
}

!lhs8 = !fp4.scaled<mxfp4, tensor<1x16384xf4E2M1FN>,
                    tensor<1x512xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs5 = !fp4.scaled<mxfp4, tensor<7168x16384xf4E2M1FN>,
                    tensor<7168x512xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @gemv_7168x16384_mxfp4(%a: tensor<1x16384xf4E2M1FN>, %b: tensor<7168x16384xf4E2M1FN>, %la: tensor<1x512xf8E8M0FNU>, %lb: tensor<7168x512xf8E8M0FNU>) -> tensor<1x7168xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<1x512xf8E8M0FNU> -> tensor<1x512xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<7168x512xf8E8M0FNU> -> tensor<7168x512xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs8
  %b_scaled = fp4.scaled %b, %sb : !rhs5
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs8, !rhs5) -> tensor<1x7168xbf16>
  return %y : tensor<1x7168xbf16>
}

!lhs9 = !fp4.scaled<mxfp4, tensor<8x8192xf4E2M1FN>,
                    tensor<8x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs6 = !fp4.scaled<mxfp4, tensor<8192x8192xf4E2M1FN>,
                    tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @rows8_8192x8192_mxfp4(%a: tensor<8x8192xf4E2M1FN>, %b: tensor<8192x8192xf4E2M1FN>, %la: tensor<8x256xf8E8M0FNU>, %lb: tensor<8192x256xf8E8M0FNU>) -> tensor<8x8192xbf16> {
  %sa = fp4.swizzle_scales %la : tensor<8x256xf8E8M0FNU> -> tensor<8x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<8192x256xf8E8M0FNU> -> tensor<8192x256xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !lhs9
  %b_scaled = fp4.scaled %b, %sb : !rhs6
  %y = fp4.matmul %a_scaled, %b_scaled {arithmetic = #fp4.matmul_arithmetic<fma>}
      : (!lhs9, !rhs6) -> tensor<8x8192xbf16>
  return %y : tensor<8x8192xbf16>
}
