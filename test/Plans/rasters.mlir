// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// Tiles that run at a time load the fewest bytes: 132 tiles of 128 x 256 are 8 rows of tiles with 256 bytes for each
// element of K, and 16 columns of tiles with 144.

!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @weights
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<panels<16>>
func.func @weights(%x: tensor<4096x8192xbf16>, %p: !w) -> tensor<4096x8192xbf16> {
  %y = fp4.matmul %x, %p : (tensor<4096x8192xbf16>, !w) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}

// Eight rows of tiles are all there are.
// CHECK-LABEL: @eight_rows
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_m>
func.func @eight_rows(%x: tensor<1024x8192xbf16>, %p: !w) -> tensor<1024x8192xbf16> {
  %y = fp4.matmul %x, %p : (tensor<1024x8192xbf16>, !w) -> tensor<1024x8192xbf16>
  return %y : tensor<1024x8192xbf16>
}

// -----

// Sixteen columns of tiles are all there are.
!w = tensor<32x112x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @sixteen_columns
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_n>
func.func @sixteen_columns(%x: tensor<4096x7168xbf16>, %p: !w) -> tensor<4096x4096xbf16> {
  %y = fp4.matmul %x, %p : (tensor<4096x7168xbf16>, !w) -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}

// The L2 cache keeps the weights of 4096 x 1024. Along n, activations come from memory once.
!few = tensor<32x16x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @kept
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_n>
func.func @kept(%x: tensor<16384x1024xbf16>, %p: !few) -> tensor<16384x4096xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (tensor<16384x1024xbf16>, !few) -> tensor<16384x4096xbf16>
  return %y : tensor<16384x4096xbf16>
}

// -----

// A wave of twelve rows of tiles is eleven columns. In panels of sixteen it would reach into two.
!w = tensor<232x128x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @twelve_rows
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_m>
func.func @twelve_rows(%x: tensor<1536x8192xbf16>, %p: !w) -> tensor<1536x29696xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (tensor<1536x8192xbf16>, !w) -> tensor<1536x29696xbf16>
  return %y : tensor<1536x29696xbf16>
}

// -----

// Panels of sixteen would leave one of seventeen columns alone.
!w = tensor<34x128x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @seventeen_columns
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_n>
func.func @seventeen_columns(%x: tensor<4096x8192xbf16>, %p: !w) -> tensor<4096x4352xbf16> {
  %y = fp4.matmul %x, %p {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (tensor<4096x8192xbf16>, !w) -> tensor<4096x4352xbf16>
  return %y : tensor<4096x4352xbf16>
}

// If nobody knows the rows, no tile is chosen that fills the waves of so many.
// CHECK-LABEL: @any_rows
// CHECK: #fp4.case<m = [257, ?] : tile_gemm, route = {{<[^>]*>}}, tile = [128, 128, 128]
func.func @any_rows(%x: tensor<?x8192xbf16>, %p: !w) -> tensor<?x4352xbf16> {
  %y = fp4.matmul %x, %p : (tensor<?x8192xbf16>, !w) -> tensor<?x4352xbf16>
  return %y : tensor<?x4352xbf16>
}

// -----

// Nobody knows how many columns there are.
!x = tensor<4096x8192xf4E2M1FN>
!s = tensor<4096x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!b = tensor<?x8192xf4E2M1FN>
!t = tensor<?x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, !x, !s>
!rhs = !fp4.scaled<nvfp4, !b, !t>
// CHECK-LABEL: @any_columns
// CHECK: tile = [256, 128, 128], schedule = #pipe.static_persistent<panels<4>>
func.func @any_columns(%a: !x, %sa: !s, %b: !b, %sb: !t) -> tensor<4096x?xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x?xbf16>
  return %y : tensor<4096x?xbf16>
}

// -----

// The two operands have scales, and the lhs is pre-dequantized.
!x = tensor<8192x8192xf4E2M1FN>
!s = tensor<8192x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, !x, !s>
// CHECK-LABEL: @converted
// CHECK: tile = [256, 128, 128], schedule = #pipe.static_persistent<panels<16>>
func.func @converted(%a: !x, %sa: !s, %b: !x, %sb: !s) -> tensor<8192x8192xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !operand
  %b_scaled = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %a_scaled, %b_scaled : (!operand, !operand) -> tensor<8192x8192xbf16>
  return %y : tensor<8192x8192xbf16>
}

// -----

// Rows of activations in e4m3 have half of the bytes.
!w = tensor<64x64x8704xi8, #fp4.weight_layout<wgmma_rows>>
// CHECK-LABEL: @bytes
// CHECK: tile = [256, 128, 128], schedule = #pipe.static_persistent<panels<16>>
func.func @bytes(%x: tensor<4096x8192xf8E4M3FN>, %p: !w) -> tensor<4096x8192xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<4096x8192xf8E4M3FN>, !w) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}

// -----

!lhs = !fp4.scaled<fp8_block128, tensor<4096x16384xf8E4M3FN>, tensor<4096x128xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<7168x16384xf8E4M3FN>, tensor<56x128xf32>>
// CHECK-LABEL: @fp8
// CHECK: tile = [128, 160, 128], store = tma, schedule = #pipe.static_persistent<panels<8>>
func.func @fp8(%a: tensor<4096x16384xf8E4M3FN>, %sa: tensor<4096x128xf32>, %b: tensor<7168x16384xf8E4M3FN>, %sb: tensor<56x128xf32>) -> tensor<4096x7168xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<4096x7168xbf16>
  return %y : tensor<4096x7168xbf16>
}

!lhs2 = !fp4.scaled<fp8_block128, tensor<4096x1536xf8E4M3FN>, tensor<4096x12xf32>>
!rhs2 = !fp4.scaled<fp8_block128, tensor<24576x1536xf8E4M3FN>, tensor<192x12xf32>>
// The L2 cache keeps 4096 x 1536 activations.
// CHECK-LABEL: @fp8_kept
// CHECK: tile = [128, 192, 128], store = tma, schedule = #pipe.static_persistent<along_m>
func.func @fp8_kept(%a: tensor<4096x1536xf8E4M3FN>, %sa: tensor<4096x12xf32>, %b: tensor<24576x1536xf8E4M3FN>, %sb: tensor<192x12xf32>) -> tensor<4096x24576xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<4096x24576xbf16>
  return %y : tensor<4096x24576xbf16>
}
