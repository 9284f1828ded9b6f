//===- PipeResultOps.td - Results that epilogues derive -------------------===//
//
// A thread of an epilogue has a segment of one row of the result in registers. The ops of this file
// find the largest magnitude of all of them, and exchange elements within a warp so that a thread
// has a segment of a column.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_RowAmaxOp : Pipe_EngineOp<"row_amax", "Threads", [Pure, AttrSizedOperandSegments]> {
  let summary = "largest magnitude of this thread's row segment";
  let description = [{
    The thread of TMEM lane r gets the largest `|value[i]|` of the elements that exist, those with
    `row + r < rows` and `column + i < columns`, or +0 where there is none, and `more` if that is
    larger. A NaN counts as 0. Without `rows` every row exists.

    Columns that are no constant are whole units of 16 bytes, and `column` is a multiple of these.

    Example:
    ```mlir
    %m = pipe.row_amax %v[%row, %column] rows %rows of %columns and %n : vector<32xbf16>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [BF16, F16, F32]>:$value, I32:$row, I32:$column,
                       Optional<I32>:$rows, I32:$columns, Optional<F32>:$more);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $value `[` $row `,` $column `]` (`rows` $rows^)? `of` $columns (`and` $more^)? attr-dict
    `:` qualified(type($value))
  }];
}

def Pipe_FoldAmaxOp : Pipe_EngineOp<"fold_amax", "Threads"> {
  let summary = "a scalar becomes at least what the threads have";
  let description = [{
    `dest = max(dest, value)` for the value of every thread. Values and the scalar are not negative
    and no NaN, so that their bits are ordered as they are. Nobody may read the scalar in this
    kernel. PTX: redux.sync.max.u32 and, by one thread of each warp, red.global.max.u32.

    Constraints: (C211) the destination is a scalar f32.

    Example:
    ```mlir
    pipe.fold_amax %m, %amax : !pipe.global<f32>
    ```
  }];
  let arguments = (ins F32:$value, Pipe_GlobalType:$dest);
  let assemblyFormat = "$value `,` $dest attr-dict `:` qualified(type($dest))";
  let hasVerifier = 1;
}

def Pipe_TransposeOp : Pipe_EngineOp<"transpose", "Threads", [SameOperandsAndResultType]> {
  let summary = "the rows of a warp as columns";
  let description = [{
    The 32 threads of a warp have 32 elements each: the thread of lane l has row l of a square. The
    thread gets column l: `result[i]` of lane l is `value[l]` of lane i. All threads of the warp
    execute it. PTX: shfl.sync.bfly.

    Constraints: (C212) the vector has 32 elements.

    Example:
    ```mlir
    %t = pipe.transpose %v : vector<32xbf16>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [BF16, F16, F32]>:$value);
  let results = (outs FixedVectorOfRankAndType<[1], [BF16, F16, F32]>:$result);
  let assemblyFormat = "$value attr-dict `:` qualified(type($value))";
  let hasVerifier = 1;
}

def Pipe_StoreColumnOp : Pipe_EngineOp<"store_column", "Threads"> {
  let summary = "predicated store of what this thread made of a column";
  let description = [{
    Stores the codes or scales that a thread made of its column of the result (see
    `pipe.transpose`), as a segment of a row of `dest`. The thread of lane l of warp w writes
    `dest[row + l, column + w * n + i] = value[i]` for the n elements of the vector, where the
    element exists. Columns that only pad a scale tile of a `tiled_128x4` buffer are written with
    zero, and its rows that do so are not written.

    Constraints: (C213) the vector has 32 codes of f4E2M1FN, or 1 or 2 scales of 8 bits, of the
    element type of the buffer, which has two dimensions and static columns; dynamic rows are those
    of a `pipe.matrix`.

    Example:
    ```mlir
    pipe.store_column %codes, %q[%n0, %m0] : vector<32xf4E2M1FN>, !pipe.global<512x256xf4E2M1FN>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [AnyFloat]>:$value, Pipe_GlobalType:$dest,
                       I32:$row, I32:$column);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` $column `]` attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD
