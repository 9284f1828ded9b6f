// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// stack_scales (C1)
func.func @stack_none(%s: tensor<4x2xf8E4M3FN>) {
  %0 = fp4.stack_scales %s : (tensor<4x2xf8E4M3FN>) -> tensor<4x2xf8E4M3FN>
  // expected-error @+2 {{expects at least one shard, but got none}}
  // expected-note @+1 {{leave the operation out}}
  %1 = "fp4.stack_scales"() : () -> tensor<4x2xf8E4M3FN>
  return
}

// -----

// stack_scales (C2)
func.func @stack_elements(%ok: tensor<4x2xf8E4M3FN>, %bad: tensor<4x2xf4E2M1FN>) {
  %0 = fp4.stack_scales %ok, %ok : (tensor<4x2xf8E4M3FN>, tensor<4x2xf8E4M3FN>) -> tensor<8x2xf8E4M3FN>
  // expected-error @+2 {{operand 'shards[0]' must have elements of type f8E4M3FN or f8E8M0FNU, but got 'tensor<4x2xf4E2M1FN>'}}
  // expected-note @+1 {{fp4.quantize gives scales of these types}}
  %1 = fp4.stack_scales %bad, %bad : (tensor<4x2xf4E2M1FN>, tensor<4x2xf4E2M1FN>) -> tensor<8x2xf4E2M1FN>
  return
}

// -----

// stack_scales (C2)
func.func @stack_rows(%ok: tensor<4x2xf8E4M3FN>, %bad: tensor<?x2xf8E4M3FN>) {
  %0 = fp4.stack_scales %ok, %ok : (tensor<4x2xf8E4M3FN>, tensor<4x2xf8E4M3FN>) -> tensor<8x2xf8E4M3FN>
  // expected-error @+2 {{operand 'shards[1]' must have a static shape, but got 'tensor<?x2xf8E4M3FN>'}}
  // expected-note @+1 {{give each shard the static size that its rank has}}
  %1 = fp4.stack_scales %ok, %bad : (tensor<4x2xf8E4M3FN>, tensor<?x2xf8E4M3FN>) -> tensor<?x2xf8E4M3FN>
  return
}

// -----

// stack_scales (C3)
func.func @stack_columns(%s: tensor<4x2xf8E4M3FN>, %ok: tensor<8x2xf8E4M3FN>, %bad: tensor<4x3xf8E4M3FN>) {
  %0 = fp4.stack_scales %s, %ok : (tensor<4x2xf8E4M3FN>, tensor<8x2xf8E4M3FN>) -> tensor<12x2xf8E4M3FN>
  // expected-error @+1 {{operand 'shards[1]' must be 'tensor<4x2xf8E4M3FN>', but got 'tensor<4x3xf8E4M3FN>'}}
  %1 = fp4.stack_scales %s, %bad : (tensor<4x2xf8E4M3FN>, tensor<4x3xf8E4M3FN>) -> tensor<8x2xf8E4M3FN>
  return
}

// -----

// stack_scales (C3)
func.func @stack_layouts(%s: tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %bad: tensor<8x2xf8E4M3FN>) {
  %0 = fp4.stack_scales %s, %s : (tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+1 {{operand 'shards[1]' must be 'tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<8x2xf8E4M3FN>'}}
  %1 = fp4.stack_scales %s, %bad : (tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<8x2xf8E4M3FN>) -> tensor<12x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return
}

// -----

// stack_scales (C4)
func.func @stack_result(%s: tensor<100x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.stack_scales %s, %s : (tensor<100x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<100x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<200x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  // expected-error @+1 {{result 'result' must be 'tensor<200x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<256x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  %1 = fp4.stack_scales %s, %s : (tensor<100x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, tensor<100x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) -> tensor<256x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return
}

// -----

// interleave_shards (C1)
func.func @interleave_elements(%ok: tensor<8x2xf8E8M0FNU>, %bad: tensor<8x2xbf16>) {
  %0 = fp4.interleave_shards %ok {shards = 2 : i64} : tensor<8x2xf8E8M0FNU> -> tensor<4x4xf8E8M0FNU>
  // expected-error @+2 {{operand 'input' must have elements of type f4E2M1FN, f8E4M3FN or f8E8M0FNU, but got 'tensor<8x2xbf16>'}}
  // expected-note @+1 {{shards are of the codes and scales that fp4.quantize gives}}
  %1 = fp4.interleave_shards %bad {shards = 2 : i64} : tensor<8x2xbf16> -> tensor<4x4xbf16>
  return
}

// -----

// interleave_shards (C2)
func.func @interleave_layout(%ok: tensor<8x2xf8E4M3FN>, %bad: tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %0 = fp4.interleave_shards %ok {shards = 2 : i64} : tensor<8x2xf8E4M3FN> -> tensor<4x4xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must be row-major}}
  // expected-note @+1 {{insert fp4.unswizzle_scales}}
  %1 = fp4.interleave_shards %bad {shards = 2 : i64} : tensor<8x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  return
}

// -----

// interleave_shards (C2)
func.func @interleave_rows(%ok: tensor<8x2xf8E4M3FN>, %bad: tensor<?x2xf8E4M3FN>) {
  %0 = fp4.interleave_shards %ok {shards = 2 : i64} : tensor<8x2xf8E4M3FN> -> tensor<4x4xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must have a static shape, but got 'tensor<?x2xf8E4M3FN>'}}
  // expected-note @+1 {{give each shard the static size that its rank has}}
  %1 = fp4.interleave_shards %bad {shards = 2 : i64} : tensor<?x2xf8E4M3FN> -> tensor<?x4xf8E4M3FN>
  return
}

// -----

// interleave_shards (C3)
func.func @interleave_none(%x: tensor<8x2xf4E2M1FN>) {
  %0 = fp4.interleave_shards %x {shards = 1 : i64} : tensor<8x2xf4E2M1FN> -> tensor<8x2xf4E2M1FN>
  // expected-error @+2 {{attribute 'shards' must be at least 1 and leave the columns countable, but got 0}}
  // expected-note @+1 {{write the number of ranks whose shards are stacked in the input}}
  %1 = fp4.interleave_shards %x {shards = 0 : i64} : tensor<8x2xf4E2M1FN> -> tensor<8x2xf4E2M1FN>
  return
}

// -----

// interleave_shards (C3)
func.func @interleave_many(%x: tensor<0x4xf4E2M1FN>) {
  %0 = fp4.interleave_shards %x {shards = 3 : i64} : tensor<0x4xf4E2M1FN> -> tensor<0x12xf4E2M1FN>
  // expected-error @+2 {{attribute 'shards' must be at least 1 and leave the columns countable, but got 4611686018427387904}}
  // expected-note @+1 {{write the number of ranks whose shards are stacked in the input}}
  %1 = fp4.interleave_shards %x {shards = 4611686018427387904 : i64} : tensor<0x4xf4E2M1FN> -> tensor<0x4xf4E2M1FN>
  return
}

// -----

// interleave_shards (C3)
func.func @interleave_multiple(%x: tensor<8x2xf4E2M1FN>) {
  %0 = fp4.interleave_shards %x {shards = 4 : i64} : tensor<8x2xf4E2M1FN> -> tensor<2x8xf4E2M1FN>
  // expected-error @+2 {{operand 'input' must have a dimension 0 that is a multiple of 3, but got 8}}
  // expected-note @+1 {{every shard has as many rows: they are those of one matrix}}
  %1 = fp4.interleave_shards %x {shards = 3 : i64} : tensor<8x2xf4E2M1FN> -> tensor<2x6xf4E2M1FN>
  return
}

// -----

// interleave_shards (C4)
func.func @interleave_odd(%ok: tensor<8x3xf8E4M3FN>, %bad: tensor<8x3xf4E2M1FN>) {
  %0 = fp4.interleave_shards %ok {shards = 2 : i64} : tensor<8x3xf8E4M3FN> -> tensor<4x6xf8E4M3FN>
  // expected-error @+2 {{operand 'input' must have a dimension 1 that is a multiple of 2, but got 3}}
  // expected-note @+1 {{two elements share a byte, and bytes are moved}}
  %1 = fp4.interleave_shards %bad {shards = 2 : i64} : tensor<8x3xf4E2M1FN> -> tensor<4x6xf4E2M1FN>
  return
}

// -----

// interleave_shards (C5)
func.func @interleave_result(%x: tensor<8x2xf4E2M1FN>) {
  %0 = fp4.interleave_shards %x {shards = 2 : i64} : tensor<8x2xf4E2M1FN> -> tensor<4x4xf4E2M1FN>
  // expected-error @+1 {{result 'result' must be 'tensor<4x4xf4E2M1FN>', but got 'tensor<2x8xf4E2M1FN>'}}
  %1 = fp4.interleave_shards %x {shards = 2 : i64} : tensor<8x2xf4E2M1FN> -> tensor<2x8xf4E2M1FN>
  return
}

// -----

!ok = tensor<1099511627776x2xf8E4M3FN>
!large = tensor<9223372036854775807x2xf8E4M3FN>
// operation (C200)
func.func @stack_extents(%ok: !ok, %s: !large) {
  %0 = fp4.stack_scales %ok, %ok : (!ok, !ok) -> tensor<2199023255552x2xf8E4M3FN>
  // expected-error @+2 {{operand 'shards[0]' must have extents of at most 1099511627776, but got}}
  // expected-note @+1 {{cut the matrix into several}}
  %1 = fp4.stack_scales %s, %s : (!large, !large) -> tensor<2x4xf8E4M3FN>
  return
}
