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

//===----------------------------------------------------------------------===//
// Rows of the fragments of all warps
//===----------------------------------------------------------------------===//

def Pipe_GatherRowsOp : Pipe_EngineOp<"gather_rows", "Threads"> {
  let summary = "a segment of one row for this thread, from the fragments of all warps";
  let description = [{
    The threads of the role exchange elements of 128 rows through shared memory. Tile i of `values`
    has the columns from `column` on and the rows that `pipe.store` would store from `row + 16 i` on;
    all warps together give every element of the 128 rows once. The thread of TMEM lane r gets n
    elements of row r: those of warpgroup w of the role from column `first` = w * n on.

    With `transposed` the rows of tiles are columns of the result, as in `pipe.store`: the one tile
    has elements of rows from `row` on, a multiple of 8, as many as it has columns. A segment is a
    part of the 64 columns of a warpgroup, from `column` on, a multiple of 16: `first` is
    64 w + `column`. If the tiles have R < 128 rows of the result, thread r has row r modulo R.

    Warpgroups get their elements one after the other, so that the place in shared memory, which the
    op has in the pipelined form, is `getStagedBytes` long: the segments of one. All threads of the
    role execute the op. PTX: stmatrix or st.shared, barrier, ld.shared.

    Example:
    ```mlir
    %s, %first = pipe.gather_rows %v[%row, %column]
        : tensor<64x128xbf16, #pipe.distribution<wgmma>>
        -> tensor<128x64xbf16, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Variadic<Pipe_Distributed<[BF16, F16, F32]>>:$values, I32:$row,
                       I32:$column, UnitAttr:$transposed, OptionalAttr<I64Attr>:$place);
  let results = (outs Pipe_Distributed<[BF16, F16, F32]>:$segment, I32:$first);
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

#endif // FP4_DIALECT_PIPE_IR_PIPEWARPOPS_TD
