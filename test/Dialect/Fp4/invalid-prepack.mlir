// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Prepacked weights, and GEMMs without scales of one side. The first operation of a case is legal,
// the second differs from it in what the constraint is about.

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @elements(%q: !data, %s: !scales, %bad: tensor<256x128xbf16>) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> !packed
  // prepack (C1)
  // expected-error @+2 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<256x128xbf16>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %1 = fp4.prepack %bad scaled %s {format = #fp4.format<nvfp4>} : (tensor<256x128xbf16>, !scales) -> !packed
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x4xf8E8M0FNU>
!packed = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
func.func @format(%q: !data, %s: !scales) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<mxfp4>} : (!data, !scales) -> !packed
  // prepack (C2)
  // expected-error @+2 {{attribute 'format' must have elements of 4 bits, but got mxfp8_e4m3}}
  // expected-note @+1 {{other weights stay as fp4.quantize gives them}}
  %1 = fp4.prepack %q scaled %s {format = #fp4.format<mxfp8_e4m3>} : (!data, !scales) -> !packed
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @blocks(%q: tensor<192x112xf4E2M1FN>, %s: tensor<192x7xf8E4M3FN>,
                  %odd: tensor<192x120xf4E2M1FN>) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>}
      : (tensor<192x112xf4E2M1FN>, tensor<192x7xf8E4M3FN>) -> !packed
  // prepack (C3)
  // expected-error @+2 {{operand 'data' must have a dimension 1 that is a multiple of 16, but got 120}}
  // expected-note @+1 {{a block of format nvfp4 has 16 elements of the contraction axis; pad that axis with zeros}}
  %1 = fp4.prepack %odd scaled %s {format = #fp4.format<nvfp4>}
      : (tensor<192x120xf4E2M1FN>, tensor<192x7xf8E4M3FN>) -> !packed
  return
}

// -----

!data = tensor<260x128xf4E2M1FN>
!scales = tensor<260x8xf8E4M3FN>
func.func @groups(%q: !data, %s: !scales) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>, groups = 2}
      : (!data, !scales) -> tensor<4x2x4608xi8, #fp4.weight_layout<wgmma>>
  // prepack (C3)
  // expected-error @+2 {{operand 'data' must be a static matrix with equally many rows for each of 3 groups, but got 'tensor<260x128xf4E2M1FN>'}}
  // expected-note @+1 {{'groups' is the number of matrices that are stacked along dimension 0; pad those that are smaller with zeros}}
  %1 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>, groups = 3}
      : (!data, !scales) -> tensor<3x2x4608xi8, #fp4.weight_layout<wgmma>>
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @depth(%x: tensor<?x112xbf16>, %bad: tensor<?x64xbf16>, %p: !packed) {
  %0 = fp4.matmul %x, %p : (tensor<?x112xbf16>, !packed) -> tensor<?x200xbf16>
  // matmul (C2)
  // expected-error @+2 {{operand 'lhs' must have 65 to 128 columns, which end in the last tiles of 'rhs', but got 'tensor<?x64xbf16>'}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K, and fp4.prepack makes ceil(K/64) tiles of a row}}
  %1 = fp4.matmul %bad, %p : (tensor<?x64xbf16>, !packed) -> tensor<?x200xbf16>
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @columns(%x: tensor<?x128xbf16>, %p: !packed) {
  %0 = fp4.matmul %x, %p : (tensor<?x128xbf16>, !packed) -> tensor<?x129xbf16>
  // matmul (C10)
  // expected-error @+2 {{result 'result' must have 129 to 256 columns, which end in the last tiles of 'rhs', but got 'tensor<?x128xbf16>'}}
  // expected-note @+1 {{result is M x N, and fp4.prepack makes ceil(N/128) rows of tiles of N x K weights, or of those of each group}}
  %1 = fp4.matmul %x, %p : (tensor<?x128xbf16>, !packed) -> tensor<?x128xbf16>
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN>
!tiled = tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @layout(%q: !data, %s: !scales, %t: !tiled) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> !packed
  // prepack (C4)
  // expected-error @+2 {{operand 'scales' must be row-major, but got}}
  // expected-note @+1 {{insert fp4.unswizzle_scales}}
  %1 = fp4.prepack %q scaled %t {format = #fp4.format<nvfp4>} : (!data, !tiled) -> !packed
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @result(%q: !data, %s: !scales) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> !packed
  // prepack (C5)
  // expected-error @+2 {{result 'result' must be 'tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>', but got}}
  // expected-note @+1 {{a tile for 16-bit floats has 128 rows and 64 columns of weights}}
  %1 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @unpacked(%p: !packed, %bytes: tensor<2x2x4608xi8>) {
  %0:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (!data, !scales)
  // unprepack (C1)
  // expected-error @+2 {{operand 'input' must be prepacked weights of nvfp4, or have scales, but got 'tensor<2x2x4608xi8>'}}
  // expected-note @+1 {{fp4.prepack makes a tensor of #fp4.weight_layout<wgmma>}}
  %1:2 = fp4.unprepack %bytes {format = #fp4.format<nvfp4>} : (tensor<2x2x4608xi8>) -> (!data, !scales)
  return
}

// -----

!scales = tensor<256x8xf8E4M3FN>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @unpacked_data(%p: !packed) {
  %0:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (tensor<256x128xf4E2M1FN>, !scales)
  // unprepack (C2)
  // expected-error @+2 {{result 'data' must end within the last of the 2 x 2 tiles of 'input', but got 'tensor<128x256xf4E2M1FN>'}}
  // expected-note @+1 {{fp4.prepack makes 1 x 4 tiles of such data}}
  %1:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (tensor<128x256xf4E2M1FN>, !scales)
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @unpacked_scales(%p: !packed) {
  %0:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (!data, tensor<256x8xf8E4M3FN>)
  // unprepack (C3)
  // expected-error @+1 {{result 'scales' must be 'tensor<256x8xf8E4M3FN>', but got 'tensor<256x4xf8E8M0FNU>'}}
  %1:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (!data, tensor<256x4xf8E8M0FNU>)
  return
}

// -----

func.func private @encoding_ok(tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>)
// weight_layout (C1)
// expected-error @+2 {{weight layout #fp4.weight_layout<wgmma> expects elements of type i8, but got 'f32'}}
// expected-note @+1 {{fp4.prepack gives bytes of codes and scales in one tensor of i8}}
func.func private @encoding(tensor<2x2x4608xf32, #fp4.weight_layout<wgmma>>)

// -----

func.func private @encoding_ok(tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>)
// weight_layout (C2)
// expected-error @+2 {{expects rows and columns of tiles of 4608, 4352 or 8704 bytes, but got [2, 2, 4096]}}
// expected-note @+1 {{fp4.prepack gives such a tensor: N / 128 x K / 64 tiles, or K / 128 beside activations of f8E4M3FN}}
func.func private @encoding(tensor<2x2x4096xi8, #fp4.weight_layout<wgmma>>)

// -----

!weights = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<nvfp4, !weights, !scales>
func.func @floats(%x: tensor<?x128xbf16>, %bad: tensor<?x128xf32>, %w: !weights, %s: !scales) {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %0 = fp4.matmul %x, %w_scaled : (tensor<?x128xbf16>, !rhs) -> tensor<?x256xbf16>
  // matmul (C17)
  // expected-error @+2 {{operand 'lhs' must have elements of type bf16, f16 or f8E4M3FN where it has no scales, but got 'tensor<?x128xf32>'}}
  // expected-note @+1 {{convert lhs to bf16, or quantize it and pass fp4.scaled of its data and scales}}
  %1 = fp4.matmul %bad, %w_scaled : (tensor<?x128xf32>, !rhs) -> tensor<?x256xbf16>
  return
}

// -----

!weights = tensor<256x128xf6E2M3FN>
!scales = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp6_e2m3, !weights, !scales>
func.func @exponents(%x: tensor<?x128xbf16>, %bad: tensor<?x128xf16>, %w: !weights, %s: !scales) {
  %w_scaled = fp4.scaled %w, %s : !rhs
  %0 = fp4.matmul %x, %w_scaled : (tensor<?x128xbf16>, !rhs) -> tensor<?x256xbf16>
  // matmul (C17)
  // expected-error @+2 {{operand 'lhs' must have elements of type bf16 beside a rhs of mxfp6_e2m3, but got 'tensor<?x128xf16>'}}
  // expected-note @+1 {{only weights of 4 bits become f16: convert lhs to bf16}}
  %1 = fp4.matmul %bad, %w_scaled : (tensor<?x128xf16>, !rhs) -> tensor<?x256xbf16>
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
!tiled = tensor<128x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<128x128xf4E2M1FN>, !tiled>
func.func @scaled_lhs(%q: tensor<128x128xf4E2M1FN>, %s: !tiled, %p: !packed) {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %0 = fp4.matmul %q_scaled, %p : (!lhs, !packed) -> tensor<128x256xbf16>
  // matmul (C16)
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<256x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<128x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{the list has the tiles of all groups, each padded to 128 rows and 4 blocks}}
  %1 = fp4.matmul %q_scaled, %p {work = #fp4.work<groups = [128]>}
      : (!lhs, !packed) -> tensor<128x256xbf16>
  return
}

// -----

!bytes = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
!packed = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
!tiled = tensor<128x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<mxfp4, tensor<128x128xf4E2M1FN>, !tiled>
func.func @scaled_lhs_of_bytes(%q: tensor<128x128xf4E2M1FN>, %s: !tiled, %p: !packed, %bad: !bytes) {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %0 = fp4.matmul %q_scaled, %p : (!lhs, !packed) -> tensor<128x256xbf16>
  // matmul (C321)
  // expected-error @+2 {{operand 'lhs' must have elements of type f8E4M3FN beside weights in tiles of 8704 bytes, but got 'tensor<128x128xf4E2M1FN>'}}
  // expected-note @+1 {{fp4.prepack gives mxfp4 weights in tiles of 4352 bytes for bf16}}
  %1 = fp4.matmul %q_scaled, %bad : (!lhs, !bytes) -> tensor<128x256xbf16>
  return
}

// -----

!packed = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
!weights = tensor<256x128xf4E2M1FN>
!scales = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !weights, !scales>
func.func @gates(%x: tensor<8x128xbf16>, %p: !packed, %w: !weights, %s: !scales) {
  %0 = fp4.matmul %x, %p with %p epilogue() {
  ^bb0(%a: f32, %b: f32):
    %y = arith.mulf %a, %b : f32
    fp4.yield %y : f32
  } : (tensor<8x128xbf16>, !packed, !packed) -> tensor<8x256xf32>
  %w_scaled = fp4.scaled %w, %s : !rhs
  %1 = fp4.matmul %x, %w_scaled with %w_scaled epilogue() {
  ^bb0(%a: f32, %b: f32):
    %y = arith.mulf %a, %b : f32
    fp4.yield %y : f32
  } : (tensor<8x128xbf16>, !rhs, !rhs) -> tensor<8x256xf32>
  return
}

// -----

!packed = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
!lhs = !fp4.scaled<mxfp4, tensor<8x128xf4E2M1FN>, tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @codes(%x: tensor<8x128xbf16>, %c: tensor<8x128xf4E2M1FN>, %s: tensor<8x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %p: !packed) {
  %q = fp4.scaled %c, %s : !lhs
  // N ends within the last tiles, as columns of codes say.
  %twin, %scales = fp4.matmul %x, %p epilogue() {
  ^bb0(%a: f32):
    %code, %scale = fp4.epilogue_quantize %a {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (tensor<8x128xbf16>, !packed) -> (tensor<8x224xf4E2M1FN>, tensor<8x7xf8E8M0FNU>)
  %0, %1 = fp4.matmul %q, %p epilogue() {
  ^bb0(%a: f32):
    %code, %scale = fp4.epilogue_quantize %a {recipe = #fp4.recipe<ocp_floor>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!lhs, !packed) -> (tensor<8x256xf4E2M1FN>, tensor<8x8xf8E8M0FNU>)
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @prepacked(%x: tensor<?x128xbf16>, %p: !packed, %w: tensor<256x128xf4E2M1FN>) {
  %0 = fp4.matmul %x, %p : (tensor<?x128xbf16>, !packed) -> tensor<?x256xbf16>
  // matmul (C18)
  // expected-error @+2 {{operand 'rhs' must be prepacked weights of nvfp4, or have scales, but got 'tensor<256x128xf4E2M1FN>'}}
  // expected-note @+1 {{fp4.prepack makes a tensor of #fp4.weight_layout<wgmma>}}
  %1 = fp4.matmul %x, %w : (tensor<?x128xbf16>, tensor<256x128xf4E2M1FN>) -> tensor<?x256xbf16>
  return
}

// -----

func.func @powers_of_rows(%p: tensor<2x2x8704xi8, #fp4.weight_layout<wgmma_rows>>) {
  %0:2 = fp4.unprepack %p {format = #fp4.format<mxfp4>}
      : (tensor<2x2x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> (tensor<256x256xf4E2M1FN>, tensor<256x8xf8E8M0FNU>)
  return
}
// weight_layout (C3)
// expected-error @+2 {{weight layout #fp4.weight_layout<wgmma_rows> expects tiles of 8704 bytes, but got 4352}}
// expected-note @+1 {{only weights for activations of f8E4M3FN have powers of two of their rows}}
func.func @no_powers(%p: tensor<2x2x4352xi8, #fp4.weight_layout<wgmma_rows>>) {
  return
}

// -----

!rows = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma_rows>>
!tiles = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
func.func @fast(%x: tensor<8x128xf8E4M3FN>, %p: !rows, %q: !tiles) {
  %0 = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<8x128xf8E4M3FN>, !rows) -> tensor<8x256xf32>
  // Without it the sums are promoted, whatever powers rows have.
  %1 = fp4.matmul %x, %p : (tensor<8x128xf8E4M3FN>, !rows) -> tensor<8x256xf32>
  // matmul (C606)
  // expected-error @+2 {{operand 'rhs' must have the layout #fp4.weight_layout<wgmma_rows> for arithmetic fast_accumulation}}
  // expected-note @+1 {{give the result of fp4.prepack this layout, so that rows of weights have one power of two}}
  %2 = fp4.matmul %x, %q {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<8x128xf8E4M3FN>, !tiles) -> tensor<8x256xf32>
  return
}

// -----

!packed = tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
func.func @fast_floats(%x: tensor<8x128xbf16>, %p: !packed) {
  %0 = fp4.matmul %x, %p : (tensor<8x128xbf16>, !packed) -> tensor<8x256xf32>
  // matmul (C190)
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of 16-bit floats and a prepacked rhs of nvfp4 with arithmetic fast_accumulation}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: bf16 and f16 without scales and prepacked weights (nvfp4, mxfp4)}}
  %1 = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<8x128xbf16>, !packed) -> tensor<8x256xf32>
  return
}

// -----

!ok = tensor<1099511627776x1x4608xi8, #fp4.weight_layout<wgmma>>
!large = tensor<144115188075855872x1x4608xi8, #fp4.weight_layout<wgmma>>
// operation (C200)
func.func @extents(%ok: !ok, %bad: !large) {
  %0:2 = fp4.unprepack %ok {format = #fp4.format<nvfp4>} : (!ok) -> (tensor<140737488355328x64xf4E2M1FN>, tensor<140737488355328x4xf8E4M3FN>)
  // expected-error @+2 {{operand 'input' must have extents of at most 1099511627776, but got}}
  // expected-note @+1 {{cut the matrix into several}}
  %1:2 = fp4.unprepack %bad {format = #fp4.format<nvfp4>} : (!large) -> (tensor<0x64xf4E2M1FN>, tensor<0x4xf8E4M3FN>)
  return
}

// -----

!packed = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
!halves = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
func.func @bytes(%x: tensor<?x128xf8E4M3FN>, %p: !packed, %bad: !halves) {
  %0 = fp4.matmul %x, %p : (tensor<?x128xf8E4M3FN>, !packed) -> tensor<?x256xbf16>
  // matmul (C321)
  // expected-error @+2 {{operand 'rhs' must be mxfp4 weights that are prepacked in tiles of 8704 bytes beside a lhs of f8E4M3FN without scales, but got 'tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>'}}
  // expected-note @+1 {{fp4.prepack gives tensor<N/128 x K/128 x 8704 x i8, #fp4.weight_layout<wgmma>>, or make lhs fp4.scaled of mxfp8_e4m3}}
  %1 = fp4.matmul %x, %bad : (tensor<?x128xf8E4M3FN>, !halves) -> tensor<?x256xbf16>
  return
}

// -----

!weights = tensor<256x128xf4E2M1FN>
!powers = tensor<256x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
!scales = tensor<256x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!rhs = !fp4.scaled<mxfp4, !weights, !powers>
!rhs2 = !fp4.scaled<nvfp4, !weights, !scales>
func.func @byte_formats(%x: tensor<?x128xf8E4M3FN>, %w: !weights, %p: !powers, %s: !scales) {
  %w_scaled = fp4.scaled %w, %p : !rhs
  %0 = fp4.matmul %x, %w_scaled : (tensor<?x128xf8E4M3FN>, !rhs) -> tensor<?x256xbf16>
  %w_scaled2 = fp4.scaled %w, %s : !rhs2
  // matmul (C190)
  // expected-error @+2 {{expects a GEMM that a route has, but no route multiplies a lhs of f8E4M3FN without scales and a rhs of nvfp4}}
  // expected-note @+1 {{nearest operands that routes multiply, of one format or of two of OCP MX: elements of 4 bits with scales (nvfp4, mxfp4); bf16 and f16 without scales and weights with scales (nvfp4, mxfp4); f8E4M3FN without scales and weights with scales (mxfp4)}}
  %1 = fp4.matmul %x, %w_scaled2 : (tensor<?x128xf8E4M3FN>, !rhs2) -> tensor<?x256xbf16>
  return
}

// -----

!halves = tensor<2x2x4352xi8, #fp4.weight_layout<wgmma>>
!bytes = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
func.func @halves(%x: tensor<?x128xbf16>, %ok: !halves, %bad: !bytes) {
  %0 = fp4.matmul %x, %ok : (tensor<?x128xbf16>, !halves) -> tensor<?x256xbf16>
  // matmul (C321)
  // expected-error @+2 {{operand 'lhs' must have elements of type f8E4M3FN beside weights in tiles of 8704 bytes, but got 'tensor<?x128xbf16>'}}
  // expected-note @+1 {{fp4.prepack gives mxfp4 weights in tiles of 4352 bytes for bf16}}
  %1 = fp4.matmul %x, %bad : (tensor<?x128xbf16>, !bytes) -> tensor<?x256xbf16>
  return
}

// -----

!data = tensor<256x192xf4E2M1FN>
!scales = tensor<256x6xf8E8M0FNU>
func.func @byte_columns(%q: !data, %s: !scales) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<mxfp4>} : (!data, !scales) -> tensor<2x2x8704xi8, #fp4.weight_layout<wgmma>>
  // prepack (C5)
  // expected-error @+2 {{result 'result' must be 'tensor<2x2x8704xi8, #fp4.weight_layout<wgmma>>', but got}}
  // expected-note @+1 {{a tile for e4m3 has 128 rows and 128 columns of weights}}
  %1 = fp4.prepack %q scaled %s {format = #fp4.format<mxfp4>} : (!data, !scales) -> tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
  return
}

// -----

!data = tensor<256x128xf4E2M1FN>
!scales = tensor<256x8xf8E4M3FN>
func.func @byte_format(%q: !data, %s: !scales) {
  %0 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> tensor<2x2x4608xi8, #fp4.weight_layout<wgmma>>
  // prepack (C322)
  // expected-error @+2 {{attribute 'format' must be mxfp4 for tiles of 8704 bytes, but got nvfp4}}
  // expected-note @+1 {{weights of nvfp4 have tiles of 4608 bytes}}
  %1 = fp4.prepack %q scaled %s {format = #fp4.format<nvfp4>} : (!data, !scales) -> tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
  return
}

// -----

!packed = tensor<2x1x8704xi8, #fp4.weight_layout<wgmma>>
!scales = tensor<256x4xf8E8M0FNU>
func.func @unpacked_bytes(%p: !packed) {
  %0:2 = fp4.unprepack %p {format = #fp4.format<mxfp4>} : (!packed) -> (tensor<256x128xf4E2M1FN>, !scales)
  // unprepack (C1)
  // expected-error @+2 {{operand 'input' must be prepacked weights of nvfp4, or have scales, but got}}
  // expected-note @+1 {{fp4.prepack makes a tensor of #fp4.weight_layout<wgmma>}}
  %1:2 = fp4.unprepack %p {format = #fp4.format<nvfp4>} : (!packed) -> (tensor<256x128xf4E2M1FN>, tensor<256x8xf8E4M3FN>)
  return
}
