//===- PipeFragmentOps.td - MMAs with accumulators in registers -----------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeTileOps.td"

//===----------------------------------------------------------------------===//
// Conversions and rows of zeros
//===----------------------------------------------------------------------===//

def Pipe_ClearRowsOp : Pipe_EngineOp<"clear_rows", "Threads"> {
  let summary = "zeros in rows of a buffer that no tile writes";
  let description = [{
    `dest[r, c] = 0` for `begin <= r < end` and all columns c. The CTAs of the grid take the rows in
    turn, and the threads of the role pieces of a row. No other role waits for them. PTX:
    st.global.v4.

    Constraints: (C352) dest is a linear buffer of rank 2 with static columns, whose elements have
    whole bytes.

    Example:
    ```mlir
    pipe.clear_rows %y[%begin to %end] : !pipe.global<4096x512xbf16>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$dest, I32:$begin, I32:$end);
  let assemblyFormat = "$dest `[` $begin `to` $end `]` attr-dict `:` qualified(type($dest))";
  let hasVerifier = 1;
}

def Pipe_CheckGroupsOp : Pipe_EngineOp<"check_groups", "Threads"> {
  let summary = "reports rows of groups that decrease or are not there";
  let description = [{
    The rows of group g are those from `offsets[g]` to `offsets[g + 1]`, or with two numbers for
    each group those from `offsets[g][0]` to `offsets[g][1]`, numbers of 64 bits in two words. One
    thread of the grid compares them with `limit` and with the group before, and describes the first
    group that does not fit in `report`, which the host reads (fp4rt_group_report). No other role
    waits for the thread. PTX: ld.global, atom.cas, st.release.sys.

    Constraints: (C455) offsets are a linear buffer of i32 with two columns and two rows or more, or
    with four columns, and report is one of 8 x i64.

    Example:
    ```mlir
    pipe.check_groups %o limit 300 to %report : !pipe.global<5x2xi32>, !pipe.global<8xi64>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$offsets, I64Attr:$limit, Pipe_GlobalType:$report);
  let assemblyFormat = [{
    $offsets `limit` $limit `to` $report attr-dict
    `:` qualified(type($offsets)) `,` qualified(type($report))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

def Pipe_FragmentOp : Pipe_EngineOp<"fragment", "Threads", [Pipe_NamedResults]> {
  let summary = "accumulator in registers";
  let description = [{
    Every warpgroup of the role, or of mma_sync every warp, has a fragment of its own, which begins
    as zeros. Registers are not memory: the fragment stays in its role.

    Constraints: (C313) the elements are f32.

    Example:
    ```mlir
    %acc = pipe.fragment : !pipe.fragment<64x128xf32, wgmma>
    %sums = pipe.fragment : !pipe.fragment<128x64xf32, lanes>
    ```
  }];
  let results = (outs Pipe_FragmentType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Pipe_ReadFragmentOp : Pipe_EngineOp<"read_fragment", "Threads"> {
  let summary = "elements of a thread of some columns of a fragment";
  let description = [{
    A thread has two elements of one row and two of the row 8 below for every 8 columns from
    `column` on, in this order (`include/fp4/ISA/FragmentLayout.h`).

    Constraints: (C182) `column` and the columns that the vector covers, two for each element, are
    multiples of 8 within the fragment; the fragment has 64 rows.

    Example:
    ```mlir
    %v = pipe.read_fragment %acc[32] : !pipe.fragment<64x128xf32, wgmma> -> vector<16xf32>
    ```
  }];
  let arguments = (ins Pipe_FragmentType:$accumulator, I64Attr:$column);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $accumulator `[` $column `]` attr-dict
    `:` qualified(type($accumulator)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_FragmentFactorsOp : Pipe_EngineOp<"fragment_factors", "Threads", [Pure]> {
  let summary = "numbers for this thread's elements of a fragment";
  let description = [{
    As `pipe.load_factors`, in the order of `pipe.read_fragment`: what goes with the elements from
    (row, column) of the result on. A dimension of 1 is the same for every row, or every column.
    Rows and columns that do not exist have numbers of the last ones; `rows` defaults to the static
    rows of the buffer. With `transposed` the fragment has the columns of the result in its rows:
    row and column are still those of the result, and row is even, because the f32 numbers of two
    rows are one access where the static rows are even. With `one_row` everything is of row `row`,
    such as that of a group, which exists. PTX: ld.global.nc.

    Constraints: (C183) the buffer has two dimensions of the vector's element type; `rows` is
    present when its rows are dynamic; the vector has a multiple of 4 elements.

    Example:
    ```mlir
    %f = pipe.fragment_factors %p[%m0, %n0] : !pipe.global<1x512xf32> -> vector<16xf32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$global, I32:$row, I32:$column, Optional<I32>:$rows,
                       UnitAttr:$transposed, UnitAttr:$one_row);
  let results = (outs FixedVectorOfRankAndType<[1], [F32, BF16, F16]>:$result);
  let assemblyFormat = [{
    $global `[` $row `,` $column `]` (`rows` $rows^)? (`transposed` $transposed^)?
    (`one_row` $one_row^)? attr-dict
    `:` qualified(type($global)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_RowPowersOp : Pipe_EngineOp<"row_powers", "Threads", [Pure]> {
  let summary = "powers of two of the rows of prepacked weights for this thread's elements of a fragment";
  let description = [{
    In the order of `pipe.read_fragment`: the powers of two that the rows of tile `tile` have, where
    the tiles of `weights` are those of `#fp4.weight_layout<wgmma_rows>`, and the rows of the
    fragment are those of the tile. Elements of one row have the same power. A row that is NaN in
    that tile gives NaN. PTX: ld.global.nc.v2.

    Constraints: (C605) `weights` are i8, linear, in rows of 8704 bytes; the vector has a multiple
    of 4 elements.

    Example:
    ```mlir
    %p = pipe.row_powers %w[%tile] : !pipe.global<64x8704xi8> -> vector<16xf32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$weights, I32:$tile);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $weights `[` $tile `]` attr-dict `:` qualified(type($weights)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_StoreFragmentOp : Pipe_EngineOp<"store_fragment", "Threads"> {
  let summary = "predicated store of this thread's elements of a fragment";
  let description = [{
    Stores elements in the order of `pipe.read_fragment` to the rows and columns of `dest` from
    (row, column) on that exist; `row` is the first of the role's first warpgroup. `rows` defaults
    to the static rows of the buffer. Two neighbours are one access where the row pitch allows. With
    `transposed` the rows of the fragment are columns of `dest`, and `column` is that of the role's
    first warpgroup.

    With `staged` the threads of a warpgroup exchange their elements in shared memory, so that they
    store whole lines of 128 bytes. In the pipelined form the op has a place there, which is
    `getStagedBytes` long; all staged stores of a kernel have one place. PTX: stmatrix.trans,
    barrier.

    Constraints: (C184) the vector has a multiple of 4 elements of the buffer's type, which is f32,
    bf16, f16 or f8E4M3FN; `rows` is present when the buffer's rows are dynamic; (C333) a staged
    store is transposed, whole warpgroups execute it and not those warps alone that are the last to
    arrive, and the vector has a multiple of 8 elements of 16 bits, of a buffer with a multiple of 8
    columns.

    Example:
    ```mlir
    pipe.store_fragment %v, %d[%m0, %n0] : vector<16xbf16>, !pipe.global<512x512xbf16>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [F32, BF16, F16, F8E4M3FN]>:$value,
                       Pipe_GlobalType:$dest, I32:$row, I32:$column, Optional<I32>:$rows,
                       UnitAttr:$transposed, UnitAttr:$staged, OptionalAttr<I64Attr>:$place);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` $column `]` (`rows` $rows^)? (`transposed` $transposed^)?
    (`staged` $staged^)? (`at` $place^)? attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// Alignment of the place in shared memory: a line of the widest swizzle.
    static constexpr int64_t kStagedAlignment = 1024;
    /// Bytes of shared memory for all threads of the role; 0 where nothing is staged.
    int64_t getStagedBytes();
  }];
}

def Pipe_StageFragmentOp : Pipe_EngineOp<
    "stage_fragment", "Threads",
    [Pipe_NamedResults, DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "elements of a thread of a fragment into a tile of shared memory";
  let description = [{
    Warpgroup w of the role writes rows 64 w .. 64 w + 63 of a tile that `pipe.store_tile` copies to
    global memory; elements are in the order of `pipe.read_fragment`. PTX: stmatrix.x4.

    Constraints: (C325) the tile is returned or filled. The tile has 64 rows for each warpgroup of
    the role and two columns for each element of the vector, of 16 bits and of the same type; a row
    is as wide as the swizzle of the tile.

    Example:
    ```mlir
    %t = pipe.stage_fragment %v : vector<32xbf16> -> !pipe.shared<128x64xbf16, swizzle_128B>
    pipe.stage_fragment %v into %slot : vector<32xbf16>, !pipe.shared<128x64xbf16, swizzle_128B>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [BF16, F16]>:$value,
                       Optional<Pipe_SharedType>:$dest);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    $value (`into` $dest^)? attr-dict `:` qualified(type($value)) (`,` qualified(type($dest))^)?
    (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
}

def Pipe_LeaveFragmentOp : Pipe_EngineOp<"leave_fragment", "Threads"> {
  let summary = "elements of a thread into a workspace";
  let description = [{
    Stores the elements of every thread of the role to row `row` of a workspace: thread t of T has
    elements i to i + 3 at column (i / 4 * T + t) * 4 behind `column`. Only the same thread of
    another CTA can use them (`pipe.fetch_fragment`). PTX: st.global.v4.f32.

    Constraints: (C192) the buffer is f32 with two dimensions and the vector has a multiple of 4
    elements, which for all threads of a role fit in a row.

    Example:
    ```mlir
    pipe.leave_fragment %v, %parts[%row, 1024] : vector<16xf32>, !pipe.global<64x16384xf32>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [F32]>:$value, Pipe_GlobalType:$dest,
                       I32:$row, I64Attr:$column);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` $column `]` attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

def Pipe_FetchFragmentOp : Pipe_EngineOp<"fetch_fragment", "Threads"> {
  let summary = "elements that the same thread of another CTA left in a workspace";
  let description = [{
    The elements that `pipe.leave_fragment` stored at this row and column. A thread sees those of
    another CTA only after a `pipe.count_partial` that came after the store. PTX: ld.global.v4.f32.

    Constraints: (C192) as in `pipe.leave_fragment`.

    Example:
    ```mlir
    %v = pipe.fetch_fragment %parts[%row, 4096] : !pipe.global<64x16384xf32> -> vector<16xf32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$source, I32:$row, I64Attr:$column);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $source `[` $row `,` $column `]` attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEFRAGMENTOPS_TD
