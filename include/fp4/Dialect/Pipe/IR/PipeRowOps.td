//===- PipeRowOps.td - Rows of tiles in registers --------------------------===//
//
// Few files need these ops: they have a header of their own (PipeRows.h).
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEROWOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEROWOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_WriteOp : Pipe_EngineOp<"write", "Threads"> {
  let summary = "elements of threads into a fragment";
  let description = [{
    Replaces the columns of a fragment from column `first` on by those of the tile, as `pipe.read`
    reads them. No instruction moves data: registers of a thread stay its own.

    Example:
    ```mlir
    pipe.write %v, %sums[0]
        : tensor<64x128xf32, #pipe.distribution<wgmma>>, !pipe.fragment<64x128xf32, wgmma>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[F32]>:$value, Pipe_FragmentType:$fragment,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$first);
  let assemblyFormat = [{
    $value `,` $fragment `[` $first `]` attr-dict
    `:` qualified(type($value)) `,` qualified(type($fragment))
  }];
  let hasVerifier = 1;
}

def Pipe_ReduceRowsOp : Pipe_EngineOp<"reduce_rows", "Threads", [Pure]> {
  let summary = "elements of each row combined";
  let description = [{
    `result[r, c] = combination of value[r, j]` over the columns j that are c modulo the columns of
    the result: all of them for a result of one column, which the four threads of the row then
    share, and those of a thread for a result of 8, which takes no exchange. A thread combines its
    elements in ascending columns; the threads of a row combine with the one 2 lanes away, and then
    with the one beside. `maximum` of NaN is NaN. PTX: shfl.sync.bfly.

    Example:
    ```mlir
    %m = pipe.reduce_rows maximum %v : tensor<64x128xf32, #pipe.distribution<wgmma>>
        -> tensor<64x1xf32, #pipe.distribution<wgmma>>
    ```
  }];
  let arguments = (ins Pipe_RowCombinationAttr:$combination, Pipe_Distributed<[F32]>:$value);
  let results = (outs Pipe_DistributedOrRows<[F32]>:$result);
  let assemblyFormat = [{
    `` $combination $value attr-dict `:` qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_BroadcastRowsOp : Pipe_EngineOp<"broadcast_rows", "Threads", [Pure]> {
  let summary = "number of each row for all elements of the row";
  let description = [{
    `result[r, c] = value[r, 0]`. No instruction moves data: each thread has the numbers of its
    rows. One producer, attention, where alone a number of a row meets a tile.

    Example:
    ```mlir
    %w = pipe.broadcast_rows %m : tensor<64x1xf32, #pipe.distribution<wgmma>>
        -> tensor<64x128xf32, #pipe.distribution<wgmma>>
    ```
  }];
  let arguments = (ins Pipe_DistributedOrRows<[AnyFloat]>:$value);
  let results = (outs Pipe_Distributed<[AnyFloat]>:$result);
  let assemblyFormat = [{
    $value attr-dict `:` qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_ElementIndexOp : Pipe_EngineOp<"element_index", "Threads", [Pure]> {
  let summary = "row or column of each element in the tile of its role";
  let description = [{
    `result[r, c] = r` for `dimension` 0, the rows of warpgroups before included, and `c` for 1, as
    `linalg.index` in a body.

    Example:
    ```mlir
    %row = pipe.element_index 0 : tensor<64x128xi32, #pipe.distribution<wgmma>>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<1>]>:$dimension);
  let results = (outs Pipe_DistributedOrRows<[I32]>:$result);
  let assemblyFormat = "$dimension attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEROWOPS_TD
