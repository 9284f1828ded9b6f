//===- PipeRowOps.td - Rows of tiles in registers --------------------------===//
//
// Few files need these ops: they have a header of their own (PipeRows.h).
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEROWOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEROWOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_WriteOp : Pipe_EngineOp<
    "write", "Threads",
    [Pipe_NamedResults, DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "elements of threads into a fragment, or into tensor memory";
  let description = [{
    Replaces the columns of a fragment from column `first` on by those of the tile, as `pipe.read`
    reads them. No instruction moves data: registers of a thread stay its own. With `complete` the
    elements are computed here, and no later: what they are computed from is free behind the op.

    Without `first`, elements of `lanes` become operand A in tensor memory, two of 16 bits, four of
    f8E4M3FN or eight of f4E2M1FN in a column. PTX: tcgen05.st.sync.aligned.32x32b.xN.

    Example:
    ```mlir
    pipe.write %v, %sums[0]
        : tensor<64x128xf32, #pipe.distribution<wgmma>>, !pipe.fragment<64x128xf32, wgmma>
    %p = pipe.write %w : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.tmem<128x64xbf16>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[F32, F16, BF16, F8E4M3FN, F4E2M1FN]>:$value,
                       Optional<AnyTypeOf<[Pipe_FragmentType, Pipe_TmemType]>>:$dest,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$first,
                       UnitAttr:$complete);
  let results = (outs Optional<Pipe_TmemType>:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$fragment, "uint64_t":$first), [{
      build($_builder, $_state, /*result=*/::mlir::Type(), value, fragment,
            $_builder.getI64IntegerAttr(int64_t(first)));
    }]>,
    OpBuilder<(ins "::fp4::pipe::TmemType":$result, "::mlir::Value":$value), [{
      build($_builder, $_state, result, value, /*dest=*/::mlir::Value(), ::mlir::IntegerAttr());
    }]>
  ];
  let assemblyFormat = [{
    $value (`,` $dest^)? (`[` $first^ `]`)? (`complete` $complete^)? attr-dict
    `:` qualified(type($value)) (`,` qualified(type($dest))^)? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// The fragment; null where the elements go to tensor memory.
    ::fp4::pipe::FragmentType getFragmentType() {
      return getDest() ? ::llvm::dyn_cast<FragmentType>(getDest().getType()) : FragmentType();
    }
  }];
}

def Pipe_ReduceRowsOp : Pipe_EngineOp<"reduce_rows", "Threads", [Pure]> {
  let summary = "elements of each row combined";
  let description = [{
    `result[r, c] = combination of value[r, j]` over the columns j that are c modulo the columns of
    the result: all of them for a result of one column, which the four threads of the row then
    share, and those of a thread for a result of 8, which takes no exchange. A thread combines its
    elements in ascending columns; the threads of a row combine with the one 2 lanes away, and then
    with the one beside. A thread of `lanes` has a whole row: for one column it combines those eight
    by halves, c with c + 4, c + 2, c + 1. `maximum` of NaN is NaN. PTX: shfl.sync.bfly.

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

def Pipe_ScaleRowsOp : Pipe_EngineOp<"scale_rows", "Threads"> {
  let summary = "rows of sums in tensor memory multiplied where they must be";
  let description = [{
    `tile[r, c] = tile[r, c] * factors[r, 0]`, one fp32 product each. A warp whose rows all have the
    factor 1 leaves them as they are, without a read: in the online softmax most blocks of keys are
    such. One producer, attention, which rescales sums between MMAs. PTX: vote.sync.any, and
    tcgen05.ld, mul.rn.f32 and tcgen05.st in a branch of the warp, with tcgen05.wait::st at its end.

    Example:
    ```mlir
    pipe.scale_rows %sums by %f
        : !pipe.tmem<128x64xf32>, tensor<128x1xf32, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Pipe_TmemType:$tile, Pipe_DistributedOrRows<[F32]>:$factors);
  let assemblyFormat = [{
    $tile `by` $factors attr-dict `:` qualified(type($tile)) `,` qualified(type($factors))
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
