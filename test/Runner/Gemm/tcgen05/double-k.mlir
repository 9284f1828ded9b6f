// GEMMs by instructions of the double K, on sm_107a: K = 128 of elements of 4 bits and K = 64 of 8 bits. Tiles of
// pairs, which begin within scale tiles, and of one CTA where scales are f32; K that ends within an instruction, whose last scale tile no
// block of K has; formats with scales of 16, 32 and 128 elements; M at run time; a cluster that multicasts; split-K;
// and a gate of two GEMMs that becomes FP8 with f32 scales.
// RUN: fp4-runner %s --target=sm_107a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=layer --shape 300 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=layer --shape 5 --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=wide --policy=random --seed=2 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=powers --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=cluster --policy=random --seed=3 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=bytes --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=bytes_pair --policy=random --seed=4 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=split --policy=random --seed=5 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=blocks --policy=delay --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=blocks_pair --policy=random --seed=6 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=gate --policy=random --seed=7 --check=strict | FileCheck %s --check-prefix=CODES
// CODES: passed
// CODES-COUNT-2: equals the reference, bit for bit
// CODES: hazards {{.*}}none (strict check)
// CHECK: passed
// CHECK: y {{.*}}equals the tcgen05 model, bit for bit, and the fp64 sum within its bound
// CHECK: hazards {{.*}}none (strict check)

!layer_lhs = !fp4.scaled<nvfp4, tensor<?x1040xf4E2M1FN>,
    tensor<?x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!layer_rhs = !fp4.scaled<nvfp4, tensor<200x1040xf4E2M1FN>,
    tensor<200x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @layer(%a: tensor<?x1040xf4E2M1FN>, %la: tensor<?x65xf8E4M3FN>, %b: tensor<200x1040xf4E2M1FN>, %lb: tensor<200x65xf8E4M3FN>) -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<?x65xf8E4M3FN> -> tensor<?x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<200x65xf8E4M3FN> -> tensor<200x65xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !layer_lhs
  %b_scaled = fp4.scaled %b, %sb : !layer_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 64, 256], cluster = [2, 1], pair>}
      : (!layer_lhs, !layer_rhs) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!wide_lhs = !fp4.scaled<nvfp4, tensor<260x1232xf4E2M1FN>,
    tensor<260x77xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!wide_rhs = !fp4.scaled<nvfp4, tensor<392x1232xf4E2M1FN>,
    tensor<392x77xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @wide(%a: tensor<260x1232xf4E2M1FN>, %la: tensor<260x77xf8E4M3FN>, %b: tensor<392x1232xf4E2M1FN>, %lb: tensor<392x77xf8E4M3FN>) -> (tensor<260x392xf32> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<260x77xf8E4M3FN> -> tensor<260x77xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<392x77xf8E4M3FN> -> tensor<392x77xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !wide_lhs
  %b_scaled = fp4.scaled %b, %sb : !wide_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 192, 256], cluster = [2, 1], pair>}
      : (!wide_lhs, !wide_rhs) -> tensor<260x392xf32>
  return %y : tensor<260x392xf32>
}

!powers_lhs = !fp4.scaled<mxfp4, tensor<256x864xf4E2M1FN>,
    tensor<256x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!powers_rhs = !fp4.scaled<mxfp4, tensor<320x864xf4E2M1FN>,
    tensor<320x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @powers(%a: tensor<256x864xf4E2M1FN>, %la: tensor<256x27xf8E8M0FNU>, %b: tensor<320x864xf4E2M1FN>, %lb: tensor<320x27xf8E8M0FNU>) -> (tensor<256x320xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<256x27xf8E8M0FNU> -> tensor<256x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<320x27xf8E8M0FNU> -> tensor<320x27xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !powers_lhs
  %b_scaled = fp4.scaled %b, %sb : !powers_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>}
      : (!powers_lhs, !powers_rhs) -> tensor<256x320xbf16>
  return %y : tensor<256x320xbf16>
}

!cluster_lhs = !fp4.scaled<nvfp4, tensor<300x832xf4E2M1FN>,
    tensor<300x52xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!cluster_rhs = !fp4.scaled<nvfp4, tensor<520x832xf4E2M1FN>,
    tensor<520x52xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @cluster(%a: tensor<300x832xf4E2M1FN>, %la: tensor<300x52xf8E4M3FN>, %b: tensor<520x832xf4E2M1FN>, %lb: tensor<520x52xf8E4M3FN>) -> (tensor<300x520xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<300x52xf8E4M3FN> -> tensor<300x52xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<520x52xf8E4M3FN> -> tensor<520x52xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !cluster_lhs
  %b_scaled = fp4.scaled %b, %sb : !cluster_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 256, 256], cluster = [2, 2], pair, store = tma>}
      : (!cluster_lhs, !cluster_rhs) -> tensor<300x520xbf16>
  return %y : tensor<300x520xbf16>
}

!bytes_lhs = !fp4.scaled<mxfp8_e4m3, tensor<140x416xf8E4M3FN>,
    tensor<140x13xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!bytes_rhs = !fp4.scaled<mxfp8_e4m3, tensor<200x416xf8E4M3FN>,
    tensor<200x13xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @bytes(%a: tensor<140x416xf8E4M3FN>, %la: tensor<140x13xf8E8M0FNU>, %b: tensor<200x416xf8E4M3FN>, %lb: tensor<200x13xf8E8M0FNU>) -> (tensor<140x200xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<140x13xf8E8M0FNU> -> tensor<140x13xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<200x13xf8E8M0FNU> -> tensor<200x13xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !bytes_lhs
  %b_scaled = fp4.scaled %b, %sb : !bytes_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], cluster = [2, 1], pair>}
      : (!bytes_lhs, !bytes_rhs) -> tensor<140x200xbf16>
  return %y : tensor<140x200xbf16>
}

!bytes_pair_lhs = !fp4.scaled<mxfp8_e5m2, tensor<260x544xf8E5M2>,
    tensor<260x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!bytes_pair_rhs = !fp4.scaled<mxfp8_e5m2, tensor<192x544xf8E5M2>,
    tensor<192x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @bytes_pair(%a: tensor<260x544xf8E5M2>, %la: tensor<260x17xf8E8M0FNU>, %b: tensor<192x544xf8E5M2>, %lb: tensor<192x17xf8E8M0FNU>) -> (tensor<260x192xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<260x17xf8E8M0FNU> -> tensor<260x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<192x17xf8E8M0FNU> -> tensor<192x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !bytes_pair_lhs
  %b_scaled = fp4.scaled %b, %sb : !bytes_pair_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 64, 128], cluster = [2, 1], pair>}
      : (!bytes_pair_lhs, !bytes_pair_rhs) -> tensor<260x192xbf16>
  return %y : tensor<260x192xbf16>
}

!split_lhs = !fp4.scaled<nvfp4, tensor<128x1088xf4E2M1FN>,
    tensor<128x68xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!split_rhs = !fp4.scaled<nvfp4, tensor<128x1088xf4E2M1FN>,
    tensor<128x68xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @split(%a: tensor<128x1088xf4E2M1FN>, %la: tensor<128x68xf8E4M3FN>, %b: tensor<128x1088xf4E2M1FN>, %lb: tensor<128x68xf8E4M3FN>) -> (tensor<128x128xbf16> {fp4.name = "y"}) {
  %sa = fp4.swizzle_scales %la : tensor<128x68xf8E4M3FN> -> tensor<128x68xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %sb = fp4.swizzle_scales %lb : tensor<128x68xf8E4M3FN> -> tensor<128x68xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %a_scaled = fp4.scaled %a, %sa : !split_lhs
  %b_scaled = fp4.scaled %b, %sb : !split_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       work = #fp4.work<split_k = 2>}
      : (!split_lhs, !split_rhs) -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}

!blocks_lhs = !fp4.scaled<fp8_block128, tensor<130x400xf8E4M3FN>, tensor<130x4xf32>>
!blocks_rhs = !fp4.scaled<fp8_block128, tensor<136x400xf8E4M3FN>, tensor<2x4xf32>>
func.func @blocks(%a: tensor<130x400xf8E4M3FN>, %sa: tensor<130x4xf32>, %b: tensor<136x400xf8E4M3FN>, %sb: tensor<2x4xf32>) -> (tensor<130x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !blocks_lhs
  %b_scaled = fp4.scaled %b, %sb : !blocks_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>}
      : (!blocks_lhs, !blocks_rhs) -> tensor<130x136xbf16>
  return %y : tensor<130x136xbf16>
}

!blocks_pair_lhs = !fp4.scaled<fp8_block128, tensor<270x512xf8E4M3FN>, tensor<270x4xf32>>
!blocks_pair_rhs = !fp4.scaled<fp8_block128, tensor<136x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @blocks_pair(%a: tensor<270x512xf8E4M3FN>, %sa: tensor<270x4xf32>, %b: tensor<136x512xf8E4M3FN>, %sb: tensor<2x4xf32>) -> (tensor<270x136xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !blocks_pair_lhs
  %b_scaled = fp4.scaled %b, %sb : !blocks_pair_rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>,
       fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], cluster = [2, 1], pair>}
      : (!blocks_pair_lhs, !blocks_pair_rhs) -> tensor<270x136xbf16>
  return %y : tensor<270x136xbf16>
}

!gate_lhs = !fp4.scaled<fp8_block128, tensor<150x512xf8E4M3FN>, tensor<150x4xf32>>
!gate_rhs = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @gate(%x: tensor<150x512xf8E4M3FN>, %sx: tensor<150x4xf32>, %qw: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>, %qv: tensor<256x512xf8E4M3FN>, %sv: tensor<2x4xf32>)
    -> (tensor<150x256xf8E4M3FN>, tensor<150x2xf32>) {
  %a = fp4.scaled %x, %sx : !gate_lhs
  %w = fp4.scaled %qw, %sw : !gate_rhs
  %v = fp4.scaled %qv, %sv : !gate_rhs
  %q, %s = fp4.matmul %a, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %y = arith.mulf %sum, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {arithmetic = #fp4.matmul_arithmetic<tensor_core_double_k>} : (!gate_lhs, !gate_rhs, !gate_rhs) -> (tensor<150x256xf8E4M3FN>, tensor<150x2xf32>)
  return %q, %s : tensor<150x256xf8E4M3FN>, tensor<150x2xf32>
}
