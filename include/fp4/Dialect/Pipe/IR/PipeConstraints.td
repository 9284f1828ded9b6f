//===- PipeConstraints.td - Rules of legal kernels --------------------------===//
//
// The rules of kernels, each with the label that its check and its test carry
// (lint/check_constraints.py compares the three places). docgen/write_reference.py makes
// docs/reference/constraints.md of this file. The subject is a heading of that page.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPECONSTRAINTS_TD
#define FP4_DIALECT_PIPE_IR_PIPECONSTRAINTS_TD

// A subject, and its rules as a Markdown list.
class Pipe_Constraints<string about, string text> {
  string subject = about;
  string rules = text;
}

def : Pipe_Constraints<"Types", [{
  - (C101) the box of a `!pipe.tensor_map` has at most 256 rows; its row is a multiple of 16 bytes
    and not longer than the width of the swizzle.
  - (C666) a `!pipe.tensor_map` with planes has elements of whole bytes, no residue, and at most 256
    rows in all; its buffer has three dimensions, row-major, all but the first static, or is a
    matrix with a box of one plane.
  - (C471) a `!pipe.tensor_map` with a `residue` has a layout of rows of elements, and not of blocks
    of scales.
  - (C102) rows of a swizzled `!pipe.shared` tile are a multiple of the swizzle's width.
  - (C103) tiles of layout `tiled_128x4` are multiples of 128 rows and 4 columns of f8E4M3FN or
    f8E8M0FNU, or have 64 rows.
  - (C423) tiles of layout `halves_128x4` have 64, 128, 192 or 256 rows and else what (C103) says.
    The tiles are in shared memory, or in the tensor memory of a pair.
  - (C104) an accumulator has 128 rows of f32 and a legal N of the block-scaled instruction, 8 to
    256 in steps of 8. The accumulator of a pair of CTAs has 256 or 128 rows, and 16 to 256
    columns in steps of 16.
  - (C466) an operand in tensor memory has 128 rows of bf16, f16, f8E4M3FN or f4E2M1FN, and a multiple
    of 64 columns, and belongs to no pair.
  - (C105) a `!pipe.tmem` tile fits in the 512 columns of tensor memory.
  - (C158) a `!pipe.fragment` has elements of f32, or of `wgmma` f8E4M3FN, and a shape that its
    instruction makes. `wgmma` makes a multiple of 64 rows and 8 to 256 columns in steps of 8,
    `mma_sync` a multiple of 16 rows and of 8 columns. `lanes` have 128 rows and 16, 32, 64 or 128
    columns.
  - (C653) a tensor with a `#pipe.distribution` has the rows of one instruction, 64 of `wgmma` and 16
    of `mma_sync`, by 1 or a multiple of 8 columns, 128 rows of `lanes`, or of `columns` a multiple of 4
    rows by 32 columns.
  - (C670) tiles and boxes of layout `rows_P_mod_4` have a multiple of 4 columns of f32, and of 16
    rows for P = 2 or of 32 rows. Their map has no residue and no planes, and of each set of rows at
    most 256 rows and columns.
  - (C290) layout swizzle_128B_b4x16_p64 is for elements of f4E2M1FN, and layout
    swizzle_128B_b6x16_p32 for f6E2M3FN and f6E3M2FN. A box has 128 of them in a row.
  - (C106) the payload of a `!pipe.channel` lies in one memory.
}]>;

def : Pipe_Constraints<"Host operations", [{
  - (C107) `pipe.view` of a buffer as an argument: this is the device buffer of the logical type
    (`include/fp4/Dialect/Utils/BufferTypes.h`). A buffer with strides of its own is a
    `!pipe.global<?x?xT>`. A pointer, or another argument, is made of an argument.
  - (C139) `pipe.device_constant` has as many bytes as its buffer.
  - (C128) `pipe.view` of a buffer as another: both are row-major, and the result starts at a
    multiple of 32 bytes and ends within the source. Other views have no field of this one.
  - (C108) the row pitch of a buffer under `pipe.make_tensor_map` holds `columns` elements and is a
    multiple of 16 bytes, or is checked at run time by the entry point. Under a map of layout
    `rows_P_mod_4` the pitch is static, and P elements modulo 4. The buffer of a map of scales has
    rows of the 512-byte blocks that `columns` scales need. Columns are a number or a value, and not
    both.
  - (C491) the buffer of a `pipe.make_tensor_map` whose columns are a value is a row-major matrix
    with dynamic columns, of the elements of the map or of bytes of them, or has rows of 512-byte
    scale tiles. The layout of the map is not `rows_P_mod_4`.
  - (C292) with a map of one of the layouts of (C290), `columns` are a multiple of 128 and the row
    pitch is a multiple of 32 bytes.
}]>;

def : Pipe_Constraints<"Operations of any role", [{
  - (C490) `pipe.view` of an argument with sizes: the source has dynamic rows and columns, and the
    element type and layout of the result; `pitch` is present, `columns` when the columns of the result are dynamic, and `rows`
    only when its rows are.
  - (C492) where the columns of a buffer are dynamic that `pipe.fetch`, `pipe.store`,
    `pipe.load` or `pipe.scales` accesses, it is a `pipe.view` with a pitch.
  - (C170) `pipe.load_entry`: the table has one dimension, or two of which the vector is the
    second, 1, 2 or 4 columns; both have one element type of 32 bits. A buffer without dimensions
    gives its number, without an index.
  - (C171) `pipe.count_partial`: the counters are a buffer of i32 with 4 or 8 columns, one for each
    warp, and `parts` is a constant of at least 2, or a value, and not both.
  - (C172) `pipe.fetch` of what the kernel stores: `lanes` are `written`, and come from a column of
    a buffer of two dimensions of their element type, whose columns are a multiple of theirs. Other
    tiles have `first`.
  - (C260) `pipe.reduce` of fragments: they are f32 of wgmma with 64 rows, of one type, and `columns`
    are a multiple of 8 that divides their columns. There is no result.
  - (C261) `pipe.reduce`: the cluster has at least two CTAs along m, or two pairs where the
    accumulator belongs to a pair.
  - (C520) `pipe.reduce` of tensor memory: there is one accumulator, with 128 rows, or 256 of a pair.
  - (C522) `pipe.reduce` of tensor memory: the result is `lanes` with a multiple of 4 columns, at most
    128. The results of all CTAs, or pairs, have all columns of a warpgroup.
  - (C144) `pipe.fetch`: the result is of wgmma, mma_sync or lanes; the buffer has two
    dimensions of its element type; `rows` is present when its rows are dynamic. `in_bounds` comes
    with numbers that the kernel does not store, which are no powers of weights.
  - (C654) `pipe.elements`: one type is a vector, of the elements that one thread has of the tile
    that the other type is.
}]>;

def : Pipe_Constraints<"Tile operations", [{
  - (C109) `pipe.load`: the tile, or each of its panels, has the shape, element type and layout of
    the map's box. With `multicast`, this holds for the part that one CTA loads.
  - (C671) `pipe.load` of a tile of layout `rows_P_mod_4`: one CTA loads the tile.
  - (C472) `pipe.existing_rows`: the rows of the tensor are an argument of the kernel or a constant,
    and the box has at least one row.
  - (C651) `pipe.load`: a column comes with every source but a linear buffer, `multicast` is for maps,
    and `in_bounds` for buffers of scales.
  - (C473) `pipe.load`: a map with a residue, and only that, comes with existing rows. The rows are
    those of a `pipe.existing_rows` of as many rows as the box has. One CTA loads the tile.
  - (C424) `pipe.load` of a tile of layout halves_128x4: the map has boxes of one block of scales,
    128x4, and at most two CTAs load the tile, a half each.
  - (C110) `pipe.load`: the op returns a tile, or fills one of a channel that it signals.
  - (C111) `pipe.load` of scale tiles: source and tile have one element type, and the tile has whole
    row blocks. A tile of several row blocks needs a source with static rows.
  - (C112) `pipe.load` of scale tiles: `existing` is given where the source's static blocks of
    columns are not a multiple of the tile's.
  - (C129) `pipe.load` with `in_bounds`: the source's rows are static, and its row blocks a multiple
    of the tile's.
  - (C190) `pipe.load` of rows: source and tile are linear, of one element type of whole bytes, with
    rows of equal size.
  - (C313) `pipe.accumulator`: the elements are f32, and not scales.
  - (C113) `pipe.copy_scales`: source and result are the same tile of scales; `sets` is positive
    and comes with a first column, and `set` is one of them. A `copied` tile has a column and no
    blocks.
  - (C117) `pipe.read` of tensor memory: the result is `lanes` with 1, 2, 4, .. 128 columns, which
    divide those of the accumulator, or half of them where a pair has 128 rows. The first column is
    a value.
  - (C182) `pipe.read` of a fragment: the result has its distribution, and is within the fragment,
    from a multiple of 8 columns on, a number, and of mma_sync from a multiple of 16 rows on.
  - (C672) `pipe.stage` and `pipe.read` of f32 sums of wgmma: a linear tile has a row for 8 columns,
    with 4 elements of each thread of the role. A read begins at a multiple of 8 columns within it.
  - (C118) `pipe.store` of threads, at a column that is a value: the buffer has two dimensions of
    the elements of the value; `rows` is given where its rows are dynamic. `lanes` have 1, 2, 4, ..
    columns of f32, bf16, f16, f8E8M0FNU or the elements of a format, at least 16 bytes of f4E2M1FN,
    at most the 4 columns of a tiled_128x4 block.
  - (C200) `pipe.store` of `lanes` with `transposed`: elements have 8, 16 or 32 bits, and the buffer
    is linear.
  - (C184) `pipe.store` of wgmma or mma_sync: the buffer is linear, of f32, bf16, f16 or f8E4M3FN,
    and a value of one column is not transposed.
  - (C333) `pipe.store` with `staged`: the store is transposed, and whole warpgroups execute it. The
    value is of wgmma, with a multiple of 16 columns of 16 bits, and the buffer has a multiple of 8
    columns.
  - (C211) `pipe.fold_amax`: the destination is a scalar f32.
  - (C212) `pipe.transpose`: the value is `lanes` with 32 columns, one for each thread of a warp, and
    the result its `columns`.
  - (C213) `pipe.store` of `columns`: the store is transposed. A thread has 32 codes, 1 or 2
    scales of 8 bits, or an f32 scale that its warpgroup has in common. The buffer has static columns; dynamic rows are those of a
    `pipe.view`, or `rows` says them.
  - (C570) `pipe.amax`: the value is `lanes`, or of wgmma or mma_sync, which may be transposed.
  - (C160) `pipe.stage`: the tile is returned or filled.
  - (C325) `pipe.stage`: the value is `lanes`, or of wgmma with 16 bits or f8E4M3FN. The tile has
    the columns and elements of the value, its rows for each warpgroup of the role, of `lanes` one or
    two, and rows that are as wide as its swizzle, or of `lanes` without one a multiple of 16 bytes.
    A tile of scales has the shape and elements of `lanes`.
  - (C161) `pipe.store` of a tile in shared memory: it has the shape, element type and layout of the
    box of a map, and none of the fields of threads.
  - (C441) `pipe.store` with `halves`: it is a positive multiple of 16 bytes, and the tile
    has twice the rows of the box.
  - (C126) `pipe.hadamard_matrix`: the tile is 16x16 of bf16 with layout swizzle_32B, returned or
    filled; signs have 16 bits.
  - (C127) `pipe.quantize_blocks`: the value is `lanes` or `columns`. Elements of a thread are whole
    blocks of the recipe's format, or 64 `lanes` or 32 `columns` of a block of 128, with as many
    codes and one scale per block. There is an amax
    exactly for recipes with a tensor scale. Random words come with row, column and matrix, and need
    a recipe with one candidate scale.
}]>;

def : Pipe_Constraints<"Dequantization", [{
  - (C652) `pipe.dequantize`: the tile is returned or filled. Scales come with elements of 4 or 8
    bits, and not with prepacked weights (i8). Registers, and tensor memory, take prepacked weights,
    and shared memory does not. Registers are a result, of one tile that exists.
  - (C180) the data of `pipe.dequantize` and the operand A of a `pipe.mma` with scaled elements are
    f4E2M1FN with layout swizzle_64B, or with scales of f8E8M0FNU f8E4M3FN, f8E5M2, f6E2M3FN or
    f6E3M2FN, with layout swizzle_128B. Data are one panel wide. The scales
    have layout tiled_128x4, one column per block and enough rows. A tile in shared memory has the
    shape of the data, the 16-bit type that goes with the scales, and layout swizzle_128B.
  - (C467) `pipe.dequantize` of elements into tensor memory: the source has 128 rows of 4 or 6 bits,
    else as (C180) has it with its scales. The tile has the shape of the source and elements of
    bf16, or beside those of 4 bits f16.
  - (C499) `pipe.dequantize` of prepacked weights into tensor memory: the source is linear, in rows
    of 4608 bytes (nvfp4), 4352 (mxfp4) or 8704 (mxfp4 for e4m3). The tile has 128 rows and for each
    of these 64 elements of K, of bf16 or f16, or 128 of f8E4M3FN. The role has one warpgroup, or
    several in turn.
}]>;

def : Pipe_Constraints<"MMAs", [{
  - (C650) an atom (`include/fp4/ISA/MmaAtoms.h`) has the accumulator, the operands and the scales of
    a `pipe.mma` in their memories and of their elements, and reads the other fields that are there.
  - (C114) in tensor memory, with scales: A has 128 rows, B as many as the accumulator has columns.
    In a pair, each CTA has half of the rows of B, and of a pair with 128 rows 64 rows of A.
  - (C115) operands of f4E2M1FN with scales in tensor memory have equal K, a multiple of 64, and no
    padded layout, unless (C291) holds.
  - (C291) beside an operand of 6 or 8 bits (kind mxf8f6f4) with scales in tensor memory, both are
    f8E4M3FN, f8E5M2, f6E2M3FN or f6E3M2FN of layout swizzle_128B_b6x16_p32, or f4E2M1FN of layout
    swizzle_128B_b4x16_p64. K is equal, a multiple of 128, or 64 of elements of 8 bits, and scales
    are f8E8M0FNU.
  - (C311) with depth `k96` the accumulator has 256 rows of a pair, A and B are f4E2M1FN of layout
    swizzle_128B with a K that is a multiple of 768, and `b_scales` has as many rows as the
    accumulator has columns, in whole blocks of 128.
  - (C317) with depth `double` the accumulator has 128 rows of a CTA or 256 of a pair, and A and B
    are f4E2M1FN, or both f8E4M3FN or f8E5M2, of layout swizzle_128B with rows of a multiple of 128
    bytes. `b_scales` has as many rows as the accumulator has columns, in whole blocks of 128.
  - (C486) `part` is with depth `k96`: it names instructions that the tile has, and begins with a block of
    four scales.
  - (C116) scales in tensor memory have one element type, one scale column per 16 elements (or per
    32 with scales of f8E8M0FNU), and enough rows.
  - (C440) where a pair has 128 rows, and only there, the scales of B have layout halves_128x4. The
    scales have a row for each column of the accumulator and are read from the first on.
  - (C150) the accumulator and the scales in tensor memory all belong to a pair, or none of them
    does.
  - (C373) without scales, A and B in shared memory, and the accumulator in tensor memory: A and B
    have layout swizzle_128B and the same 16-bit floats and a multiple of 64 of K, or the same K of
    e4m3, of layout swizzle_128B or swizzle_64B. A has 128 rows. B has a row for each column of
    the accumulator, or for half of them where that belongs to a pair. The columns are a multiple of
    16.
  - (C468) beside A in tensor memory (C466), without scales, B has its elements and its K, and layout
    swizzle_128B, or of f8E4M3FN that is `transposed` swizzle_64B.
    The accumulator has 128 rows of no pair, and a column for each row of B, or for each column of B
    that is `transposed`.
  - (C220) for e4m3 in shared memory and an accumulator of warpgroups, this is an f32 fragment with
    64 rows. A and B have as many columns, a multiple of 128 in layout swizzle_128B, or else of 64
    in swizzle_64B. A has 64 rows for each warpgroup of the role, from `a_row` on, which is a
    multiple of 64; B has a row for each column of the accumulator.
  - (C181) beside scaled elements that threads convert, the accumulator is an f32 fragment of wgmma
    with 64 rows. A has 64 rows for each warpgroup of the role. B has the accumulator's columns, the
    K of A, a type that converted A can have (of 4 bits f16 or bf16), and layout swizzle_128B. A of
    8 bits goes without `in_order`.
  - (C191) beside prepacked weights, the accumulator is an f32 fragment of wgmma with 64 rows, and
    the role has two warpgroups, or three with `a_scale_row`, a `next` of A's type and more than 8
    columns. B has the accumulator's columns, layout swizzle_128B, and for each row of the weights
    64 elements of K, of bf16 or f16, or beside rows of 8704 bytes 128.
  - (C318) A in registers, and `pipe.dequantize` into registers: the role has two warpgroups. Weights
    are i8 and linear, one row of 8704 bytes, held as a fragment of 64 x 128 f8E4M3FN of wgmma. The
    accumulator is a fragment of wgmma of 64 x 256 f32, B is 256 x 128, with layout swizzle_128B,
    and `next` is there.
  - (C250) an accumulator of warps has 16 rows or a multiple of 32, and a multiple of 32 columns.
  - (C251) beside it, A and B have the same K, with rows of 64 or 128 bytes and the swizzle of that
    width. Their rows are multiples of the fragment's rows and columns, and the role has a warp for
    each fragment of the tile.
  - (C252) scales in shared memory beside it have layout tiled_128x4 and one element type, f8E4M3FN
    with a column for each 16 elements or f8E8M0FNU with one for each 32, which operands have where
    one is of 6 or 8 bits, and enough rows.
  - (C125) slices of A: A is swizzled, with a multiple of 16 rows and 128 columns; B has its type, a multiple of 16 rows, 16 columns and layout swizzle_32B; the
    accumulator has the columns of all slices.
}]>;

def : Pipe_Constraints<"Products in registers", [{
  - (C352) `pipe.clear_rows`: the destination is a linear buffer of rank 2 with static columns,
    whose elements have whole bytes.
  - (C455) `pipe.check_groups`: offsets are a linear buffer of i32 with two columns and two rows
    or more, or with four columns; the report is a buffer of 8 x i64.
  - (C605) `pipe.fetch` of weights: these are i8, linear, in rows of 8704 bytes. A column and
    `rows` go together, of three warpgroups. The result is of wgmma or lanes.
  - (C192) `pipe.store` to a column that is a number, and `pipe.fetch` with `first`: the buffer is
    f32 with two dimensions. The tile is of wgmma or mma_sync. The elements of all threads of the
    role fit in a row from `column` on, a multiple of 4.
}]>;

def : Pipe_Constraints<"Rows of tiles in registers", [{
  - (C660) an MMA of 16-bit floats that wgmma executes without scales: the accumulator has 64 rows.
    A in shared memory has 64 rows for each warpgroup of the role, and A in registers is of wgmma.
    A and B are of one type. Factors, a number of each row, come with `accumulate`. B has layout
    swizzle_128B, a row for each column of the
    accumulator and the columns of A, or with `transposed` a row for each column of A and a multiple
    of 64 columns, those of the accumulator from `b[column]`, a multiple of 64, on. The columns of A
    are a multiple of 16, of 32 in shared memory. Columns that are no multiple of 64 have
    swizzle_64B. Beside A rounded to f8E4M3FN, whose columns are a multiple of 32, B is not
    transposed, and has layout swizzle_128B, or swizzle_64B where its columns are no multiple of
    128.
  - (C677) `pipe.transpose_tile`: the tile is returned or filled. The source has elements of 8 bits,
    in panels of swizzle_64B or swizzle_128B, a multiple of 32 rows, and from a multiple of 16 on a
    column for each row of the tile, whose rows are a multiple of 16, in panels likewise.
  - (C661) `pipe.write`: the tile has the distribution and the rows of the fragment, and lies within
    it, from a multiple of 8 columns on.
  - (C673) `pipe.write` into tensor memory: the value is `lanes` of a power of two of columns, with
    the shape and elements of an operand A, which the op returns or fills.
  - (C674) a channel with `pipe.kept` has one tile of tensor memory and one stage, in its CTA, that
    the tensor core fills for one consumer.
  - (C675) `pipe.scale_rows`: the tile is an accumulator in tensor memory of a multiple of 32
    columns, and the factors are f32, one for each of its rows, of `lanes`.
  - (C676) `pipe.kept` has no value, at a channel, or at an accumulator of a ring in tensor memory.
  - (C662) `pipe.reduce_rows`: the tiles are f32 of one distribution, and not columns of threads, of a
    multiple of 8 columns to 1 or 8.
  - (C663) `pipe.broadcast_rows`: the value has 1 column, and the result its distribution and
    elements.
  - (C665) `pipe.ring` is a string at an operation that makes a tile, in a kernel without roles.
  - (C667) a `pipe.load` has a plane exactly if its map has planes, and boxes below the first only of
    a map of elements without residue, which one CTA loads.
  - (C668) `heads` of a `pipe.store` are [T, H, E] of a tile of wgmma or lanes that is not
    transposed: T a power of two up to 64, 1 <= H <= T, E a multiple of 8, or of 1 for one column,
    and of lanes a multiple of the columns.
  - (C669) `rows` of a `pipe.reduce` are 1 to 64, of a role of one warpgroup.
  - (C664) `pipe.element_index`: i32 of wgmma or lanes.
}]>;

def : Pipe_Constraints<"Products in the registers of warps", [{
  - (C253) `pipe.place`: a tile comes with a fragment of mma_sync, and only with that. The tile
    consists of whole fragments, and the role has a warp for each of them.
}]>;

def : Pipe_Constraints<"Rows of the fragments of all warps", [{
  - (C571) `pipe.gather_rows`: the role has whole warpgroups, from a multiple of 4 warps on. The
    values are tiles of wgmma or mma_sync of one type, with a multiple of 32 columns. The segment is
    `lanes` of 32 or 64 columns, as many as a thread has elements of all values.
  - (C581) transposed, `pipe.gather_rows` has one value of 8, 16, 32, 64 or 128 columns of the
    elements of the segment, `lanes` of 32 or 64 columns.
}]>;

def : Pipe_Constraints<"Products promoted to fp32", [{
  - (C221) `pipe.scales` of buffers: both have two dimensions of f32 and as many columns, one for
    each block of k; the rows of `b` are static, and `rows` is present when those of `a` are
    dynamic. Row and column are values. Beside a vector, `columns` are a multiple of 8 up to 256,
    and the vector has two elements, and one for each block of 128 columns that a tile of `columns`
    columns can reach into.
  - (C375) `pipe.scales` of buffers that gives a number: `columns` divide 128.
  - (C324) `pipe.scales` of tiles: both are of f32 without a swizzle and have as many columns, one
    for each block of k. The row is a number. Beside a vector, A has 64 rows for each warpgroup of
    the role, from the row on, which is a multiple of 64, and the vector has two elements, and one
    for each row of `b`. If both are of layout `rows_P_mod_4`, and only then, `from` has three
    operands, their first rows and block. The vector may then have fewer scales of `b`, and no number
    is given.
  - (C376) `pipe.scales` of tiles that gives a number: A has 128 rows from row 0 on. B has one row,
    or one for each warpgroup of the role.
  - (C341) `pipe.scales` of powers alone: the tile is of f32 without a swizzle and has 64 columns for
    each warpgroup of the role. The vector has three elements.
  - (C222) `pipe.promote` by a vector: accumulator and sums are f32 fragments of wgmma with 64 rows
    and one type. The scales are as many as in (C221) for their columns.
  - (C377) `pipe.promote` by a number: the accumulator is a fragment of lanes. The sums are in tensor
    memory, and have its columns for each warpgroup of the role.
}]>;

def : Pipe_Constraints<"Sums of lanes, promoted to fp32", [{
  - (C374) `pipe.place` of another accumulator: a fragment of wgmma has 8, 16, 32 or 64 columns. An
    accumulator in tensor memory has columns that the warpgroups of the role divide, and one
    warpgroup in a pair with 128 rows.
}]>;

def : Pipe_Constraints<"Weights that become floats in tensor memory", [{
}]>;

def : Pipe_Constraints<"Roles and channels", [{
  - (C119) a `#pipe.role` has a name, at least one warp and at least one engine, each engine once.
    The warps are among 64. A role without `threads`, and one that drives `tma`,
    `scale_copy` or `work_queue`, has one warp; one that drives `tensor` and `scale_copy` and
    nothing else may have two. The registers are 0 or a multiple of 8 from 24 to 256. A `pipe.role`
    is in the body of a `gpu.func`. A role whose threads access tensor memory has four warps, of
    which the first is a multiple of four, or eight where they all do so by `pipe.promote`,
    `pipe.read` or `pipe.reduce`, or eight or sixteen by `pipe.dequantize`.
  - (C497) a role `in_turn` has several whole warpgroups. With `stages` it drives `threads` and
    nothing else, and a side of a channel has 128 arrivals; with `products` it drives `tensor` too.
  - (C498) the ends of channels of a role `in_turn stages` are directly in loops with step 1. In the
    pipelined form these carry numbers of stages and nothing else, and the depth of each channel is
    a multiple of the role's warpgroups. MMAs of a role `in_turn products` multiply 16-bit floats by
    wgmma, and are in loops alone.
  - (C120) the role around an op drives the engine of the op.
  - (C142) a `#pipe.role_plan` names each role once, and no two roles share a warp, or an engine unless
    one of them is `auxiliary`.
  - (C631) a role that is `auxiliary` drives `threads`, and at most `tensor` beside.
  - (C656) `pipe.role` of an operation is the name of a role, and stands at an operation of an
    engine in a kernel that has no roles yet.
  - (C143) where a role asks for registers, the four warps of each of its warpgroups exist and ask
    for the same number.
  - (C121) depth, payload and barriers of a channel are given together, with one aligned place per
    tile.
  - (C122) tma fills shared memory, tensor fills tensor memory, and threads fill either; tma
    consumes nothing. The threads of a role that runs on all of them complete what its engines
    fill and use.
  - (C163) `bulk_store` is the one consumer of its channel, with one arrival, and threads fill the
    shared memory that it copies.
  - (C162) a role that stores a tile of shared memory drives no `threads`, and takes the tile from a
    channel.
  - (C123) a channel op names an iteration exactly when the channel has a depth.
  - (C124) `pipe.expect_tx` belongs to a channel that tma fills.
  - (C159) a channel has one aligned `stride` per tile. The stride is smaller than the tile only
    where two stages of one tile in tensor memory overlap, in less than half of the tile.
  - (C157) a `partial` `pipe.consumer_release` is by threads, of a channel whose stages overlap. The
    operation stands once between the wait and the release of a stage. The code behind it reads only
    columns that no other stage has: of stage 0 those before the stride, of stage 1 those that stage
    0 does not have. Reads are at places that are constants, that are counted by a loop with constant bounds,
    or that follow from the lowest bit of a counter of turns. The loop over work is directly in the
    role, carries such a counter from 0 on and adds 1, and the role takes one stage of the channel
    in each turn.
  - (C138) the distance of `pipe.await_release` is at least 1 and less than the depth of its
    channel.
  - (C156) `pipe.max_stages` and `pipe.max_accumulators` of a `gpu.func`, are positive numbers of
    type i64.
}]>;

def : Pipe_Constraints<"Clusters and pairs", [{
  - (C147) a cluster has at least one CTA along m and n, one along z, and no more than the target
    runs: sixteen with tcgen05 or wgmma, and eight elsewhere. The grid that the kernel or one of
    its launches names is a multiple of it.
  - (C148) tiles of a pair need a target with pairs and a cluster with an even number of CTAs
    along m. All tensor memory of such a kernel belongs to pairs.
  - (C149) a role that drives the tensor cores of pairs runs on the leader only, and
    drives `tensor` and `scale_copy` and no other engine.
  - (C151) `pipe.load` with `multicast`: the cluster has several CTAs in this direction, or
    several pairs along m with `multicast pairs`, and each loads a part of the tile that is
    aligned as a tile is, or as many blocks of scales, side by side.
  - (C445) `pipe.fallback_cluster` divides the cluster along m and along n.
  - (C446) the kernel has pairs, and `pipe.fallback_cluster` an even number of CTAs along m.
  - (C447) beside `pipe.fallback_cluster` the kernel requests no work while it runs, and reduces no
    fragments or TMEM lanes.
  - (C448) the target has preferred clusters.
}]>;

def : Pipe_Constraints<"Work", [{
  - (C145) `pipe.for_each_work` yields as many values as it carries.
  - (C146) in `#pipe.static_persistent`, only the raster `panels` has a width, 1 to 2^31 - 1.
  - (C300) in `#pipe.cluster_launch`, only the raster `panels` has a width, 1 to 2^31 - 1. The
    depth is 1 to 8 responses.
  - (C301) `pipe.request_work` without an iteration is directly in a `pipe.for_each_work` whose
    schedule shares out work while the kernel runs, and alone there.
  - (C302) `pipe.next_work` is in a `pipe.role`.
}]>;

def : Pipe_Constraints<"Synchronization (`pipe-verify-sync`)", [{
  - (C130) a tile that a role uses comes from an acquire or wait of this role, or the role made
    it.
  - (C131) a stage is taken and handed over in one basic block, once each and in this order, with
    the uses of its tiles between.
  - (C132) a channel has one producer role and a consumer role for each consumer that it lists.
    The roles differ, and complete their ends as the channel says: with its engine and its number
    of arrivals. A stage that the tensor core of a pair uses has no other consumer.
  - (C133) the loops around all ends have the same bounds, and the branches have the same
    conditions.
  - (C134) the iteration counts the stages that the role has handed over: it starts at 0, is carried
    by every loop around, and advances by one with each commit or release, also from one output tile
    to the next.
  - (C135) a stage filled by tma announces its bytes once, before its loads, and announces exactly
    the bytes that the loads complete.
  - (C136) no role waits forever. The verifier runs the channel ops of all roles, with every loop
    one iteration longer than the deepest channel, and they must finish.
  - (C137) a set of scale columns is filled again only when the MMAs that read it are complete. Each
    stage of the channel that the scales come from has its own set, or a `pipe.await_release` comes
    before the copy with a distance of at most the number of sets. The MMAs that read a set come
    before the release of its stage. Copies of stages that a role takes one after the other in one
    basic block may have the same sets, in turns.
  - (C303) where the schedule of a kernel asks for work while it runs, every role has at most one
    `pipe.for_each_work`, directly in it, and all have one schedule. There is one
    `pipe.request_work`.
  - (C152) the coordinates of a load with `multicast` do not depend on the place of the CTA in this
    direction. With `multicast pairs` they may depend on the place of the CTA in its pair.
  - (C153) a channel has the scope `cluster` exactly when several CTAs share its barriers: a load
    multicasts into it, or the tensor core of a pair fills or uses its stages.
  - (C154) what the tensor core of a pair uses is loaded through tensor maps.
  - (C155) loops and branches around the ends of a channel of scope `cluster` do not depend on the
    place of the CTA. Around a channel without multicasts they may depend on the place of a pair:
    half of that along m, or a smaller part.
  - (C591) stages that loads with `multicast pairs` fill feed the tensor core of a pair.
  - (C449) in a kernel with `pipe.fallback_cluster`, stages that loads with `multicast` fill feed
    the tensor core of a pair.
}]>;

def : Pipe_Constraints<"Scheduled form", [{
  - (C620) a consumer `scale_copy` is beside a consumer `tensor` of a shared payload that tma
    produces, and the channel has empty barriers.
  - (C621) a `pipe.consumer_release` is by nobody behind a `partial` one of its stage, and nowhere
    else.
  - (C622) a folded `pipe.await_release` has distance 2, in a channel from tma to tensor, and one
    follows each wait of that channel.
  - (C623) the depth of `pipe.stage_of` is positive, and `ahead` is not negative and less.
  - (C625) an MMA with `chain leads` stands before one with `chain follows`, which has other sums,
    one with `chain until_mma` before another of the same B, and one with `chain until_iteration` in
    a loop.
  - (C626) a role that is `whole` has one warp and issues for engines alone. All lanes may execute
    its code: no op writes memory, takes work or asks which thread it is. A `pipe.load_entry` with
    `of_warp` is in such a role, or in front of all roles.
  - (C627) stages, phases and sets are those of their iterations.
  - (C628) an access to a tile that another one overwrites, or that overwrites it, comes behind an
    arrival of the other, with a fence where threads read what a copy overwrites. A tile that is
    read has been written in its iteration.
  - (C629) work of tcgen05 does not follow a wait that is `unfenced` before a wait with a fence.
  - (C632) a `pipe.consumer_release` by aligned_warps is of a stage that MMAs of warpgroups alone
    read, which end for all threads of a warp together.
  - (C630) the loops over work that `pipe-expand-work` makes (`pipe.work`) begin, end and go on by
    the same numbers in all roles.
}]>;

def : Pipe_Constraints<"Capacity (`pipe-verify-capacity`)", [{
  - (C140) tiles, barriers and the tensor memory slot have disjoint places within
    `pipe.shared_bytes`. Barriers of a channel are two of 8 bytes for each stage, or three and one
    more for all stages where a warp of its own copies scales. The target has that much shared
    memory for each of the CTAs that `nvvm.minctasm` keeps on an SM.
  - (C262) `pipe.reduce` has a place, a multiple of 16. The data that it receives and its barriers
    are one of the places of C140.
  - (C334) the staged `pipe.store` of a kernel have one place, a multiple of 1024, which
    is one of the places of C140. The stores have one role and one size, because each warpgroup of
    the role has its part of the place.
  - (C572) the `pipe.gather_rows` of a kernel have one place, a multiple of 1024, which is one of
    the places of C140. The operations have one role, whose barriers order them, and one size.
    Maxima that `pipe.quantize_blocks` exchanges have that place too, or one of their own.
  - (C141) tensor memory tiles have disjoint columns, except the two stages of one channel that
    overlap, within `pipe.tmem_columns`: 0 without such tiles, else a power of two from 32 to the
    number of columns of the target, which the CTAs of an SM share in the same way.
  - (C304) where the schedule asks for work, the target has cluster launch control. The attribute
    `pipe.work_ring` has a multiple of 16 and the number of responses of the schedule. The
    responses and their barriers lie there, and (C140) holds for them.
}]>;

#endif // FP4_DIALECT_PIPE_IR_PIPECONSTRAINTS_TD
