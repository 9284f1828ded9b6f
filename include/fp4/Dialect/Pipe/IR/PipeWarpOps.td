//===- PipeWarpOps.td - Fragments of warps --------------------------------===//
//
// Few files need these ops: they have a header of their own (PipeWarps.h).
//
#ifndef FP4_DIALECT_PIPE_IR_PIPEWARPOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEWARPOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

def Pipe_WarpPlaceOp : Pipe_EngineOp<"warp_place", "Threads", [Pure]> {
  let summary = "place in a tile where the fragment of a warp begins";
  let description = [{
    The row and the column of a tile of `rows` x `columns`, as `pipe.mma` shares it out, that
    `pipe.fragment_factors` and `pipe.store_fragment` take for the first 16 rows of this warp. The
    two ops count 16 rows for each warp of the role before, so the row may be negative.

    Constraints: (C253) the fragment is of mma_sync; `rows` and `columns` are multiples of its rows
    and columns, and the role has a warp for each fragment of the tile.

    Example:
    ```mlir
    %r, %c = pipe.warp_place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
    ```
  }];
  let arguments = (ins Pipe_FragmentType:$accumulator, I64Attr:$rows, I64Attr:$columns);
  let results = (outs I32:$row, I32:$column);
  let assemblyFormat = [{
    $accumulator `in` $rows `by` $columns attr-dict `:` qualified(type($accumulator))
  }];
  let hasVerifier = 1;
}

def Pipe_ReadWarpFragmentOp : Pipe_EngineOp<"read_warp_fragment", "Threads"> {
  let summary = "elements of a thread of 16 rows of a fragment of its warp";
  let description = [{
    As `pipe.read_fragment`, of the 16 rows from `row` on: two elements of a row, and two of the row
    8 below, of every 8 columns from `column` on.

    Constraints: (C254) the fragment is of mma_sync; `row` is a multiple of 16, and `column` and the
    columns that the vector covers, two for each element, are multiples of 8, all within the
    fragment.

    Example:
    ```mlir
    %v = pipe.read_warp_fragment %acc[16, 32] : !pipe.fragment<32x64xf32, mma_sync> -> vector<16xf32>
    ```
  }];
  let arguments = (ins Pipe_FragmentType:$accumulator, I64Attr:$row, I64Attr:$column);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $accumulator `[` $row `,` $column `]` attr-dict
    `:` qualified(type($accumulator)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Rows of the fragments of all warps
//===----------------------------------------------------------------------===//

def Pipe_FragmentAmaxOp
    : Pipe_EngineOp<"fragment_amax", "Threads", [Pure, AttrSizedOperandSegments]> {
  let summary = "largest magnitude of this thread's elements of a fragment";
  let description = [{
    As `pipe.row_amax`, of elements in the order of `pipe.read_fragment` that `pipe.store_fragment`
    would store from (row, column) on: the largest `|value[i]|` of those whose row is below `rows`
    and whose column is below `columns`, or +0 where there is none, and `more` if that is larger. A
    NaN counts as 0. Without `rows` every row exists. With `transposed` the rows of the fragment are
    columns of the result, as in `pipe.store_fragment`.

    Constraints: (C570) the vector has a multiple of 4 elements.

    Example:
    ```mlir
    %m = pipe.fragment_amax %v[%row, %column] rows %rows of %columns and %n : vector<16xbf16>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [BF16, F16, F32]>:$value, I32:$row, I32:$column,
                       Optional<I32>:$rows, I32:$columns, Optional<F32>:$more,
                       UnitAttr:$transposed);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $value `[` $row `,` $column `]` (`rows` $rows^)? `of` $columns (`and` $more^)?
    (`transposed` $transposed^)? attr-dict
    `:` qualified(type($value))
  }];
  let hasVerifier = 1;
}

def Pipe_GatherRowsOp : Pipe_EngineOp<"gather_rows", "Threads"> {
  let summary = "a segment of one row for this thread, from the fragments of all warps";
  let description = [{
    The threads of the role exchange elements of 128 rows through shared memory. Vector i of
    `values` is in the order of `pipe.read_fragment`, of the columns from `column` on and of the
    rows that `pipe.store_fragment` would store from `row + 16 i` on; all warps together give every
    element of the 128 rows once. The thread of TMEM lane r gets n elements of row r: those of
    warpgroup w of the role from column `first` = w * n on.

    With `transposed` the rows of fragments are columns of the result, as in `pipe.store_fragment`:
    the one vector has elements of rows from `row` on, a multiple of 8, as many as it has columns of
    a fragment. A segment is a part of the 64 columns of a warpgroup, from `column` on, a multiple
    of 16: `first` is 64 w + `column`. If the fragments have R < 128 rows of the result, thread r
    has row r modulo R.

    Warpgroups get their elements one after the other, so that the place in shared memory, which the
    op has in the pipelined form, is `getStagedBytes` long: the segments of one. All threads of the
    role execute the op. PTX: stmatrix or st.shared, barrier, ld.shared.

    Constraints: (C571) the role has whole warpgroups; the segment has 32 or 64 elements, and as
    many come from the vectors, which have one type with a multiple of 16 elements; (C581)
    transposed, one vector of the type of the segment has 4, 8, 16, 32 or 64; (C572) the place is a
    multiple of 1024, is that of all such ops of the kernel, which are of one size and in one role.

    Example:
    ```mlir
    %s, %first = pipe.gather_rows %v[%row, %column] : vector<64xbf16> -> vector<64xbf16>
    ```
  }];
  let arguments = (ins Variadic<FixedVectorOfRankAndType<[1], [BF16, F16, F32]>>:$values, I32:$row,
                       I32:$column, UnitAttr:$transposed, OptionalAttr<I64Attr>:$place);
  let results = (outs FixedVectorOfRankAndType<[1], [BF16, F16, F32]>:$segment, I32:$first);
  let assemblyFormat = [{
    $values `[` $row `,` $column `]` (`transposed` $transposed^)? (`at` $place^)? attr-dict
    `:` qualified(type($values)) `->` qualified(type($segment))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// Rows of which the role has the elements, and bytes of a line of the widest swizzle.
    static constexpr int64_t kRows = 128, kLineBytes = 128;
    /// Bytes of shared memory: the segments of one warpgroup, in whole lines.
    int64_t getStagedBytes();
  }];
}

def Pipe_StoreFewScalesOp : Pipe_EngineOp<"store_few_scales", "Threads"> {
  let summary = "predicated store of a part of a word of this thread's scales";
  let description = [{
    As `pipe.store` to a `tiled_128x4` buffer, of 1 or 2 scales of a row, whose word other threads
    complete: the thread of TMEM lane r writes `dest[row + r, column + i] = value[i]`, and zero
    where rows only pad a scale tile. Whoever has the last column writes the zeros that pad its
    word. `column` is a multiple of the vector's elements.

    Constraints: (C573) the vector has 1 or 2 elements of the type of the buffer, which has layout
    tiled_128x4; `rows` is present when the buffer's rows are dynamic.

    Example:
    ```mlir
    pipe.store_few_scales %s2, %d[%m0, %b0] : vector<2xf8E8M0FNU>, !pipe.global<512x8xf8E8M0FNU, tiled_128x4>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [AnyFloat]>:$value, Pipe_GlobalType:$dest,
                       I32:$row, I32:$column, Optional<I32>:$rows);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` $column `]` (`rows` $rows^)? attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEWARPOPS_TD
