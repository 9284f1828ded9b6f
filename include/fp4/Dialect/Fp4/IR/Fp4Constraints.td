//===- Fp4Constraints.td - Rules of legal fp4 programs ----------------------===//
//
// The rules of operations and attributes, each with the label that its check and its test carry
// (lint/check_constraints.py compares the three places). docgen/write_reference.py makes
// docs/reference/constraints.md of this file. The subject is an operation or attribute of the
// dialect, or "operation" for a rule of every operation.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4CONSTRAINTS_TD
#define FP4_DIALECT_FP4_IR_FP4CONSTRAINTS_TD

// A subject, and its rules as a Markdown list.
class Fp4_Constraints<string about, string text> {
  string subject = about;
  string rules = text;
}

def : Fp4_Constraints<"operation", [{
  - (C1) An attribute without the prefix of a dialect is one of the operation.
  - (C200) A matrix, or a tensor of prepacked weights, has extents of at most 2^40.
}]>;

def : Fp4_Constraints<"scale_layout", [{
  - (C1) the elements are f8E4M3FN or f8E8M0FNU.
  - (C2) there are two dimensions.
}]>;

def : Fp4_Constraints<"weight_layout", [{
  - (C1) the elements are i8.
  - (C2) of three dimensions, rows and columns of tiles may be dynamic, and a tile has 4608 bytes
    (nvfp4), 4352 (mxfp4) or 8704 (mxfp4 for activations of e4m3, N/128 x K/128 tiles).
  - (C3) a tile of `wgmma_rows` has 8704 bytes.
}]>;

def : Fp4_Constraints<"recipe", [{
  - (C1) the name is the name of a recipe.
  - (C2) each decision is one that the recipe's format has, and its value is an enumerator of the
    decision or a number.
  - (C3) the decisions fit together: numbers are in range, no spelling reads an encode scale that
    the tensor rule does not define, a guard has a factor to bound, and an adaptive recipe has a
    tensor scale, no floor and a saturating cast.
}]>;

def : Fp4_Constraints<"target", [{
  - (C1) The name is a row of the target table, and `sms` is 0 to 65535.
  - (C2) The attribute is on a `builtin.module` and is a `#fp4.target`.
  - (C3) `device` is a product of the target.
}]>;

def : Fp4_Constraints<"route", [{
  - (C1) An axis is core, a, b, accumulate or orientation, each once. The value of an axis is one of
    the words that the table of routes has for the axis.
}]>;

def : Fp4_Constraints<"plan", [{
  - (C1) A plan has fields of its family only, each once.
  - (C2) Numbers are positive, and words are those that the field has. `tile` has 3 numbers in
    tile_gemm and 2 in tile_transform, `cluster` and `fallback` have 2, and `wave_cost` has 3.
  - (C3) The attribute is on an operation of the fp4 dialect or a linalg.generic, and is a
    `#fp4.plan`.
  - (C4) `fp4.row_plans` and `fp4.size_plans` are former spellings of `dispatch`.
  - (C5) `fp4.dispatch` has cases of rows or streams for ranges of m, one behind the other from 1 on,
    that end.
}]>;

def : Fp4_Constraints<"case", [{
  - (C1) a member is m, n, k, k_unit, split_k or any, each once.
  - (C2) a range begins at 1 or more and ends no earlier than it begins, `k_unit` is positive, and
    `split_k` is 1 to 32.
  - (C3) the plan is of family tile_gemm, and has `wave_cost` beside `k_unit`, or of reduce_rows,
    stream_blocks or stream_items with a range of m alone.
}]>;

def : Fp4_Constraints<"prologue", [{
  - (C1) the attribute is a unit attribute, "stored" or "beside", on a linalg.generic with one
    result: an elementwise operation that gives a matrix of f32, bf16 or f16 with static columns or
    a number for each row, or a reduction of rows. An operand has an element for each of the result,
    or of the matrix that is reduced. Or the attribute is a unit attribute on an `fp4.amax` with
    `per_row`, or an `fp4.top_k`.
}]>;

def : Fp4_Constraints<"launch_dependents", [{
  - (C1) `fp4.pdl` is a `#fp4.launch_dependents`, not `none`.
}]>;

def : Fp4_Constraints<"epilogue", [{
  - (C1) each step is the name of a step.
}]>;

def : Fp4_Constraints<"function", [{
  - (C1) `fp4.name` is a string.
  - (C2) `fp4.dims` is an array of one string for each dimension.
  - (C3) the names of the arguments differ, and so do the names of the results.
  - (C476) `fp4.strided` is a unit attribute.
  - (C477) the argument, or result, has two or three dimensions, elements of bf16, f16, f32, 4, 6
    or 8 bits, and no encoding. The last dimension is static, but for a result whose elements do
    not have 4 bits.
  - (C493) the result is a matrix.
}]>;

def : Fp4_Constraints<"amax", [{
  - (C1) `input` has elements of type bf16, f16 or f32.
  - (C2) `input` is a matrix.
  - (C3) `amax` is a scalar, a `tensor<Gxf32>` for G groups, with `per_row` a `tensor<Mxf32>`, or
    with `per_column` a `tensor<Kxf32>`.
  - (C4) `groups` are numbers of rows, at least one, none negative, that add up to the static rows
    of `input`.
  - (C5) `groups` or `offsets`, `per_row` and `per_column` exclude each other.
  - (C496) the columns are static beside `groups` and `offsets`.
  - (C610) `offsets` are as for `fp4.matmul`, with static rows of `input`. At most one
    of `groups` and `offsets` is present.
}]>;

def : Fp4_Constraints<"attention", [{
  - (C1) `query`, `key` and `value` have 4 static, positive dimensions, or with offsets 3, of which
    the tokens may be dynamic.
  - (C2) the elements of `query` are bf16 or f16, and `key` and `value` have the same, or both f8E4M3FN,
    or both f4E2M1FN with scales. Or all three have f8E4M3FN, or the elements of (C19).
  - (C3) the batches of all, the elements of a head of `query` and `key`, and the tokens and heads of
    `key` and `value` agree. With `pages`, `key` and `value` have pages in place of batches. A bf16
    or f16 `query` may have a multiple of the batches of `key`.
  - (C4) the heads of `query` are a multiple of those of `key`.
  - (C5) `scale` is finite and positive.
  - (C6) `result` has the type of `query`, with the elements of a head of `value`, and bf16 in place
    of f8E4M3FN, or the element of the epilogue region.
  - (C7) `lengths` has an i32 for each batch, and `pages` a row of i32 for each batch.
  - (C8) `pages` come with `lengths`.
  - (C9) `key_scales` and `value_scales` come together, with quantized keys, and have a scale for
    each block: 16 elements of f4E2M1FN with f8E4M3FN, or 32 elements of a bf16 query with f8E8M0FNU.
  - (C10) `key_factors` and `value_factors` come together, with quantized keys, and have one f32, or
    one for each head of `key`. With a query of f8E4M3FN they may be a row for each batch.
  - (C11) `softcap` is finite and positive.
  - (C12) `window` is positive, and comes with `causal`.
  - (C13) `sinks` have an f32 for each head of `query`.
  - (C14) `lse` has an f32 for each batch, token and head of `query`.
  - (C15) `query_offsets` have two i32 or more, and come with `pages`, or with as many `key_offsets`,
    which come without `lengths`, `pages` and quantized keys.
  - (C16) `slopes` have an f32 for each head of `query`.
  - (C17) `heads_first` comes with `pages`.
  - (C19) `block_scales` have layout tiled_128x4. `query` and `key` are MXFP8 or NVFP4, `value`
    f8E4M3FN or as they are, without `pages`, offsets and `latent`.
  - (C18) `latent` is from 1 to the elements of a head of `key`, which is `value` too, of the query's
    type.
  - (C20) an epilogue region is as (C12), (C43) and (C44) of `matmul` say, of scalar inputs, without
    amax and columns.
  - (C21) rows of `quantized` have whole blocks.
}]>;

def : Fp4_Constraints<"attention_backward", [{
  - (C1) `query`, `key` and `value` have 4 static, positive dimensions, or packed 3, of which the
    first may be dynamic.
  - (C2) all elements are bf16, or f16.
  - (C3) `key` has the batches and elements of a head of `query`, `value` the batches, tokens and
    heads of `key`.
  - (C4) the heads of `query` are a multiple of those of `key`.
  - (C5) `scale` is finite and positive.
  - (C6) `output` has the shape of `query`, with heads of `value`.
  - (C7) `lse` has an f32 for each token and head of `query`.
  - (C8) `window` is positive, and comes with `causal`.
  - (C9) `softcap` is finite and positive.
  - (C10) `query_offsets` and `key_offsets` are i32 of one size, 2 or more.
}]>;

def : Fp4_Constraints<"key_order", [{
  - (C1) `in_blocks` is a positive multiple of 16, and `growth` is from 0 to 64.
}]>;

def : Fp4_Constraints<"hadamard", [{
  - (C1) `input` has elements of type bf16.
  - (C2) `input` is a matrix.
  - (C3) `size` is 16, 32, 64 or 128.
  - (C4) `dimension` is 0 or 1.
  - (C5) that dimension is a multiple of `size`; dynamic rows are checked when the program runs.
  - (C6) `sign_mask` has no bit set at or above 16: groups of more than 16 repeat it.
  - (C7) `result` has the type of `input`.
  - (C8) of the attribute alone: `rounding = none` needs arithmetic butterfly.
}]>;

def : Fp4_Constraints<"hadamard_amax", [{
  - (C1) `input` has elements of type bf16.
  - (C2) `input` is a matrix.
  - (C3) `size` is 16, 32, 64 or 128.
  - (C4) `dimension` is 0 or 1.
  - (C5) that dimension is a multiple of `size`; dynamic rows are checked when the program runs.
  - (C6) `sign_mask` has no bit set at or above 16.
  - (C7) `before` and `after` are scalars, or `tensor<Gxf32>` for G groups.
  - (C8) `groups` are as for `fp4.amax`, and for `dimension` 0 multiples of `size`.
  - (C496) the columns are static beside `groups`.
}]>;

def : Fp4_Constraints<"quantize", [{
  - (C1) `input` has elements of type bf16, f16 or f32.
  - (C2) `input` is a matrix.
  - (C3) for the MX formats the contraction axis of each orientation is a multiple of 32; dynamic
    rows are checked when the program runs. Columnwise results of dynamic rows have dynamic columns.
  - (C4) `recipe` is one that `format` defines.
  - (C5) `amax` is a scalar, or a `tensor<Gxf32>` for G groups, present exactly for recipes with a
    tensor scale, which are those of nvfp4 except the one-level recipes. `per_row` needs one.
  - (C6) `rng` is a `tensor<2xi64>`, present exactly for stochastic rounding.
  - (C7) `block` is [1, 16] or [16, 16] for nvfp4, [1, 32] for the MX formats, and [1, 128], [128,
    128] or [1, K] for fp8_block128, whose scales are f32: ceil(M/128) x ceil(K/128) of square
    blocks, and M x 1 of whole rows.
  - (C8) each orientation has a data result of the format's data type, shaped like the
    (transposed) input, and a scale result of the format's scale type with one column per block,
    row-major or in layout `tiled_128x4`; with groups or offsets, the tiled layout is a list of
    tiles.
  - (C9) `columnwise_amax` has the type of `amax`, or with `per_row` is a `tensor<Kxf32>`.
    `columnwise_amax` is present only together with `amax` and for `outputs` both; without it
    `amax` holds for both orientations.
  - (C10) stochastic rounding is not for adaptive recipes, recipes with their own `ties` or sign of
    zero, and recipes with elements of more than 4 bits.
  - (C11) `hadamard` needs rowwise outputs and `columnwise_hadamard` needs columnwise outputs. The
    input then has elements of type bf16, and the contraction axis is a multiple of the size; for
    `columnwise_hadamard` each group is too. Dynamic rows are checked when the program runs.
  - (C12) `block` [16, 16] has no transform and no `columnwise_amax`.
  - (C13) `philox` transformer_engine needs stochastic rounding of nvfp4 blocks of 1 x 16, without
    groups or offsets.
  - (C14) `groups` are as for `fp4.amax`, and multiples of the block for columnwise outputs and
    for 16 x 16 blocks.
  - (C15) `per_row` needs blocks of one row and no groups or offsets. `amax` is then a
    `tensor<Mxf32>`, or for outputs columnwise a `tensor<Kxf32>`, K the columns of the input.
    Outputs both need `columnwise_amax` as well.
  - (C496) the columns are static beside `groups` and `offsets`, and for `philox`
    transformer_engine.
  - (C610) `offsets` are as for `fp4.amax`.
  - (C611) `offsets` go with outputs rowwise and blocks of one row. `unspecified_rows` goes with
    `offsets`.
  - (C50) in format `fp8_block128` the columns of `input` are a multiple of 16; dynamic ones are
    checked when the program runs.
  - (C51) there, outputs are rowwise, and `hadamard`, `groups`, `offsets` and `per_row` are
    absent.
}]>;

def : Fp4_Constraints<"dequantize", [{
  - (C1) `data` is a matrix of the format's data type: f4E2M1FN, or f6E2M3FN, f6E3M2FN, f8E4M3FN,
    f8E5M2 for mxfp6 and mxfp8.
  - (C2) K is dynamic or, for the MX formats, a multiple of 32.
  - (C3) `scales` has the scale type of `format`.
  - (C4) `scales` is row-major.
  - (C5) `scales` is M x ceil(K/block).
  - (C6) `amax` is a scalar, or with `per_row` a `tensor<Mxf32>`, present exactly for recipes with
    a tensor scale.
  - (C7) `result` has elements of type bf16, f16 or f32.
  - (C8) `result` has the shape of `data`.
  - (C9) `recipe` is one that `format` defines.
  - (C50) the scales of `format` have 8 bits.
}]>;

def : Fp4_Constraints<"swizzle_scales", [{
  - (C1) `input` has elements of type f8E4M3FN or f8E8M0FNU.
  - (C2) `input` is a matrix.
  - (C3) `input` is row-major.
  - (C4) `result` has the type of `input` with layout `tiled_128x4`, or is the list of tiles.
  - (C496) the columns are static beside `offsets`.
  - (C610) `offsets` are as for `fp4.amax`.
}]>;

def : Fp4_Constraints<"unswizzle_scales", [{
  - (C1) `input` has elements of type f8E4M3FN or f8E8M0FNU.
  - (C2) `input` is a matrix.
  - (C3) `input` has layout `tiled_128x4`.
  - (C4) `result` has the type of `input` without a layout.
}]>;

def : Fp4_Constraints<"stack_scales", [{
  - (C1) there is at least one shard.
  - (C2) every shard is a static matrix with elements of type f8E4M3FN or f8E8M0FNU.
  - (C3) every shard has the element type, the layout and the number of columns of the first.
  - (C4) `result` has the rows of all shards, and their element type, layout and number of
    columns.
}]>;

def : Fp4_Constraints<"interleave_shards", [{
  - (C1) `input` has elements of type f4E2M1FN, f8E4M3FN or f8E8M0FNU.
  - (C2) `input` is a static, row-major matrix.
  - (C3) `shards` is at least 1, divides the rows of `input`, and the number of columns of the
    result does not overflow.
  - (C4) `input` has an even number of columns where its elements are f4E2M1FN.
  - (C5) `result` is R x `shards` * C, with the element type of `input`.
}]>;

def : Fp4_Constraints<"matmul_alpha", [{
  - (C1) `lhs_amax` and `rhs_amax` are scalars, a `tensor<Mxf32>` of the lhs, or a `tensor<Nxf32>`
    of the rhs.
  - (C2) `alpha` is a scalar, a `tensor<Mx1xf32>` for amaxes of the rows of the lhs, or a
    `tensor<1xNxf32>` for those of the rhs.
  - (C3) `lhs_recipe` and `rhs_recipe` are recipes of nvfp4 whose tensor scale derives from the
    amax, or is supplied and `alpha` reads it (`supplied_decode`: as the decode scale).
  - (C4) the decision `alpha` of both recipes is the same.
  - (C5) at most one of the operands has amaxes of its rows.
  - (C6) with `per_group` both operands are a `tensor<Gxf32>` of one size, and so is `alpha`.
}]>;

def : Fp4_Constraints<"scaled", [{
  - (C1) `data` has elements of the data type of the format.
  - (C2) `scales` has elements of the scale type of the format.
  - (C3) `scales` has layout `tiled_128x4`, unless the format is fp8_block128.
}]>;

def : Fp4_Constraints<"work", [{
  - (C1) a member is one of the table above, each once, and a list has at least one number.
  - (C2) `stream_k` goes with no `groups` and no `split_k` of more than 1, and `groups` with no
    `expected_rows` and no `unspecified_rows`.
  - (C3) factors of `split_k` are 1 to 32, and `expected_rows` is positive.
  - (C4) lists of `split_k`, and `split_rows`, are former spellings of cases of `dispatch`.
}]>;

def : Fp4_Constraints<"matmul", [{
  - (C1) the data of `lhs` and `rhs` are matrices, unless (C18) says otherwise.
  - (C2) their K are equal; that of a prepacked rhs ends within its last tiles.
  - (C3) K is a multiple of the block.
  - (C4) an operand of type `!fp4.scaled` is the result of an `fp4.scaled`: functions and control
    flow hand on tensors.
  - (C6) the scales of `lhs` are M x K/block and those of `rhs` N x K/block.
  - (C7) `alpha` is a scalar, M x 1 with a factor for each row of the result, or 1 x N (N > 1)
    with one for each column.
  - (C8) N and K are static beside groups, `split_k` and `arithmetic`.
  - (C9) `result` has elements of type bf16, f16, f32 or f8E4M3FN.
  - (C323) a result of f8E4M3FN is the only one.
  - (C10) `result` is M x N, and N ends within the last tiles of a prepacked `rhs`.
  - (C12) an epilogue region takes an f32, a second one for a dual GEMM, and one number of each
    epilogue input. The element is a number of the result's type, f32, bf16 or f16, or of
    f8E4M3FN an f32 that the GEMM rounds or what `arith.truncf` gives. The region consists of the
    elementwise operations of semantics.md, and of those of (C44).
  - (C13) epilogue inputs come with an epilogue region. Inputs are f32, bf16 or f16, and scalars,
    M x 1, 1 x N or M x N. In a GEMM of G groups G x 1 x N has a row for each group, such as
    the bias of an expert, and G x 1 x 1 a number.
  - (C14) `split_k` is at most the number of slices of 256 elements in K.
  - (C640) for each size one case of `dispatch` without `k_unit` holds, or several with `wave_cost`.
  - (C641) `dispatch` has 1 to 64 cases, and no `fp4.plan` beside it.
  - (C642) all plans of `dispatch` have `wave_cost`, or none.
  - (C643) `split_k` in `dispatch` goes with guards of m alone, and neither `split_k` nor
    `stream_k` in `work`.
  - (C420) `stream_k` goes with static rows, no `offsets` and no `rhs2`.
  - (C421) `stream_k` has three numbers: workers, 1 to 65536, and rows and columns of a tile,
    multiples of 16, the columns at most 256. No tile has more than 32 ranges. The target has
    kernels with tiles of that size.
  - (C456) the parts of shared tiles of `stream_k` have at most 2^31 - 1 rows of four sums
    together, and so have the rows of `split_k`, whole tiles of up to 512 for each range, where M
    is static.
  - (C15) `groups` are as for `fp4.amax`. `offsets` is a `tensor<(G+1)xi64>` or a
    `tensor<Gx2xi64>` for G groups, at most 65536. Beside it the rows of `lhs` are static, unless
    `lhs` has no scales, or f32, and the elements are the only result. At most one of the two is
    present.
  - (C16) in a GEMM of G groups `rhs` has G * N rows, or, prepacked, G * ceil(N/128) rows of tiles.
    Scale operands that are tiled are lists of tiles, as `fp4.quantize` with `groups` writes them.
    With `offsets` the list of `lhs` has room for any groups, as `fp4.quantize` with `offsets` writes
    it: it has `(floor(M/128) + G) * ceil(K/block/4)` tiles, of which the first are used. `alpha`
    is a scalar or a `tensor<Gxf32>`, or beside a `lhs` without scales M x 1.
  - (C353) `expected_rows` goes with `offsets`, and is from 1 to the rows of `lhs`, or to 2^31 - 1
    where these are dynamic.
  - (C460) `unspecified_rows` goes with `offsets`.
  - (C30) `arithmetic` fma needs 1 to 8 static rows of `lhs`, or of each group of equal size.
    `arithmetic` fma goes with neither `split_k` nor `offsets`.
  - (C312) `arithmetic` tensor_core_k96 goes with no `split_k` of more than 1.
  - (C40) `rhs2` has the type of `rhs`. Then `alpha2` is present exactly if `alpha` is, and has its
    type; there are no steps of `epilogue`.
  - (C41) `rhs2`, `fp4.epilogue_quantize` and `fp4.epilogue_amax` need an epilogue region, no
    `stream_k` and a `split_k` of at most 1. `fp4.epilogue_amax` and columnwise outputs need no
    groups and no offsets.
  - (C42) for rowwise outputs of `fp4.epilogue_quantize` N is dynamic or a multiple of the block,
    and for columnwise outputs M is static and a multiple of the block.
  - (C43) `fp4.yield` gives a value for each result: the element where it is a result, then the
    results of `fp4.epilogue_quantize`, then that of `fp4.epilogue_amax`. Codes and scales are
    those of `fp4.quantize`, scales row-major or in layout `tiled_128x4`; the amax is a scalar.
    Tiled scales of groups are a list of tiles, as (C16) has that of `lhs`.
  - (C44) an epilogue region has at most one `fp4.epilogue_quantize` and one `fp4.epilogue_amax`,
    both of the element. The amax that quantizes is the last argument, which nothing else reads,
    and its input a `tensor<f32>`.
  - (C17) a `lhs` without scales has elements of type bf16, f16 beside weights of 4 bits, or f8E4M3FN
    (C321).
  - (C18) a `rhs` without scales is prepacked weights, of the format of a `lhs` with scales.
  - (C321) a `lhs` of f8E4M3FN without scales and prepacked mxfp4 weights in tiles of 8704 bytes
    come together.
  - (C606) `arithmetic` fast_accumulation needs weights of layout `wgmma_rows`.
  - (C190) `lhs`, `rhs`, their formats and `arithmetic` are a pair of
    [the table of routes](routes.md#the-pairs). Two different formats both have a scale of
    f8E8M0FNU for 32 elements. The pair has GEMMs with groups, `rhs2`, `stream_k` and results but
    the elements where the op has them.
  - (C191) K is a multiple of 128 where one operand has elements of 4 bits and the other of 6 or 8.
  - (C50) in format `fp8_block128` K is a multiple of 16.
  - (C51) there, the scales of `lhs` are M x ceil(K/128) and those of `rhs` ceil(N/128) x
    ceil(K/128), f32 and row-major; of G groups, those of `rhs` are (G * ceil(N/128)) x
    ceil(K/128).
}]>;

def : Fp4_Constraints<"epilogue_quantize", [{
  - (C1) `outputs` are rowwise for a recipe of fp8_block128.
  - (C2) `amax` is present exactly if the recipe has a tensor scale.
  - (C3) the results are a code and a scale of the recipe's format for each orientation.
  - (C4) `value` is f32, bf16 or f16.
}]>;

def : Fp4_Constraints<"epilogue_amax", [{
  - (C1) `value` is f32, bf16 or f16.
}]>;

def : Fp4_Constraints<"blockscaled_matmul", [{
  - (C1) `rhs_format` is absent beside a lhs without scales, `rhs2_scales` without `rhs2`, and
    `quantize_amax` and `quantize_outputs` without `quantize_recipe`. `groups` and `stream_k` have
    numbers. An epilogue region is one block that yields one value. `fp4.matmul` has the other
    rules.
}]>;

def : Fp4_Constraints<"prepack", [{
  - (C1) `data` is a matrix with elements of type f4E2M1FN.
  - (C2) the elements of `format` have 4 bits.
  - (C3) `data` is static, with whole scale blocks, and equally many rows for each of `groups`.
  - (C4) `scales` are row-major, N x K/block, and of the scale type of `format`.
  - (C5) `result` has the tiles of `data`, of 4608 (nvfp4), 4352 or 8704 (mxfp4, C322) bytes, the
    last also with `#fp4.weight_layout<wgmma_rows>`. Each of `groups` has ceil(N/128) rows of them.
  - (C322) tiles of 8704 bytes are of mxfp4.
}]>;

def : Fp4_Constraints<"unprepack", [{
  - (C1) `input` is prepacked weights of `format`.
  - (C2) `data` is a matrix of f4E2M1FN that has the tiles of `input` for `groups`.
  - (C3) `scales` is N x K/block with the scale type of `format`.
}]>;

def : Fp4_Constraints<"top_k", [{
  - (C1) `scores` and `weights` have elements of type bf16, f16 or f32.
  - (C2) `scores` is a matrix of 1 to 512 columns, and `weights` has its shape.
  - (C3) `k` is 1 to 16, and at most the number of columns.
  - (C4) `num_groups` is 1 to 32, and with more than one, groups have a power of two of columns, at
    least 2.
  - (C5) `top_groups` is 1 to `num_groups`, and so many groups have `k` columns.
  - (C6) `values` and `ids` are f32 and i32 of M x k.
}]>;

def : Fp4_Constraints<"expert_order", [{
  - (C1) `ids` is a matrix of i32 with at least one column.
  - (C2) `experts` is 1 to 512, `first` 0 to 2^31 - 1, and `multiple` 1 to 1024.
  - (C3) there are at most 1048576 ids.
  - (C4) `offsets` is i64 of `experts` + 1, `rows` of the shape of `ids`, and `tokens` i64 of M * k +
    `experts` * (`multiple` - 1).
}]>;

#endif // FP4_DIALECT_FP4_IR_FP4CONSTRAINTS_TD
