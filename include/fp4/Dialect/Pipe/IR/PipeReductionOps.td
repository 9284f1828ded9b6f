//===- PipeReductionOps.td - Reductions of tiles among CTAs --------------------===//
//
// CTAs that compute parts of one output tile leave them in a workspace in global memory and arrive.
// The last one to arrive reads all parts in a fixed order, so that results do not depend on which
// one it is. CTAs of a cluster send them to each other's shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_CountPartialOp : Pipe_EngineOp<"count_partial", "Threads"> {
  let summary = "true for the last of several CTAs to arrive";
  let description = [{
    Counts in a number of `counters[index, *]`, 0 when a kernel begins, and is true for the last of
    `parts`, which makes it 0 again. The stores of the warps that arrived before are visible then.
    Every warp of the role counts in a number of its own, which the same warp of all CTAs shares.
    Nobody waits. The number of parts is a constant, or a value that is the same for all of them.
    PTX: atom.acq_rel.gpu.inc.

    Example:
    ```mlir
    %last = pipe.count_partial %counters[%tile] of 4 : !pipe.global<24x4xi32>
    %also = pipe.count_partial %counters[%tile] of %n : !pipe.global<24x4xi32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$counters, I32:$index, Optional<I32>:$dynamic_parts,
                       OptionalAttr<I64Attr>:$parts);
  let results = (outs I1:$last);
  let builders = [OpBuilder<(ins "::mlir::Value":$counters, "::mlir::Value":$index,
                                 "int64_t":$parts), [{
    build($_builder, $_state, counters, index, /*dynamic_parts=*/{},
          $_builder.getI64IntegerAttr(parts));
  }]>];
  let assemblyFormat = [{
    $counters `[` $index `]` `of` ($dynamic_parts^):($parts)? attr-dict
    `:` qualified(type($counters))
  }];
  let hasVerifier = 1;
}

def Pipe_ReduceOp : Pipe_EngineOp<
    "reduce", "Threads",
    [DeclareOpInterfaceMethods<Pipe_ClusterReductionOpInterface, ["getNumReducing"]>]> {
  let summary = "sums of the accumulators of the CTAs along m of a cluster";
  let description = [{
    Adds the accumulators that the S CTAs along m have, element by element in fp32, from the first
    CTA to the last. Columns are shared out among these CTAs. Every CTA sends the columns that other
    CTAs add to their shared memory, and waits for those of its own part. In the pipelined form the
    op has a place there, which is `getReductionBytes` long: room for the pieces of the other CTAs,
    then two barriers.

    Fragments are reduced where they are: of a CTA that has several, from its first to its last, into
    the first. Piece p, columns `p * columns` and the next ones, is added by the CTA at place p mod S
    along m, which then has the sums in its own pieces. With `maximum` it has the maxima of elements
    in place of their sums. With `rows`, the rows behind the first ones are unspecified, and warps
    that have no others take no part. PTX: st.shared::cluster, mbarrier.arrive.release.cluster.

    Sums of tensor memory are a result of W columns: the CTA at place p adds `p * W` and the next
    ones. Elements behind the last column are unspecified. If the role has several warpgroups, each
    has its part of the columns and shares these out. The two CTAs of a pair have one accumulator, so
    S is half of the CTAs along m, and a CTA exchanges with the CTAs that have its place in their
    pairs. PTX: tcgen05.ld, st.async.shared::cluster, mbarrier.arrive.

    Example:
    ```mlir
    pipe.reduce %acc by 8 at 98304 : !pipe.fragment<64x16xf32, wgmma>
    pipe.reduce maximum %m by 8 : !pipe.fragment<64x16xf32, wgmma>
    %sums = pipe.reduce %tmem at 98304
        : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Pipe_FragmentType, Pipe_TmemType]>>:$accumulators,
                       OptionalAttr<I64Attr>:$columns, UnitAttr:$maximum,
                       OptionalAttr<I64Attr>:$rows, OptionalAttr<I64Attr>:$place);
  let results = (outs Optional<Pipe_Distributed<[F32]>>:$sums);
  let assemblyFormat = [{
    (`maximum` $maximum^)? $accumulators (`by` $columns^)? (`rows` $rows^)? (`at` $place^)? attr-dict
    `:` qualified(type($accumulators)) (`->` qualified(type($sums))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// The accumulators are in tensor memory, and not in registers.
    bool isOfTmem() { return ::mlir::isa<TmemType>(getAccumulators().front().getType()); }
    TmemType getTmemType() { return ::mlir::cast<TmemType>(getAccumulators().front().getType()); }
    FragmentType getFragmentType() { return ::mlir::cast<FragmentType>(getAccumulators().front().getType()); }
    /// CTAs that reduce: those along m of a cluster, or of each place in a pair.
    int64_t getNumReduced();
    /// Pieces of a fragment, and most of them that a CTA adds.
    int64_t getNumPieces() { return getFragmentType().getShape()[1] / int64_t(*getColumns()); }
    int64_t getPiecesOfBlock();
    /// Columns of tensor memory that a warpgroup has; all, outside of a role.
    int64_t getColumnsOfGroup();
    /// Columns of tensor memory that a CTA adds.
    int64_t getWidth() { return getSums().getType().getDimSize(1); }
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEJOINOPS_TD
