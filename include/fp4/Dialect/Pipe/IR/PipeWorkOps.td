//===- PipeWorkOps.td - Work of a CTA -------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEWORKOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEWORKOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"
include "mlir/Interfaces/LoopLikeInterface.td"

def Pipe_YieldOp : Pipe_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["ForEachWorkOp"]>]> {
  let summary = "end of one piece of work";
  let description = [{
    Passes the values that `pipe.for_each_work` carries on to the next piece of work.
  }];
  let arguments = (ins Variadic<I32>:$values);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Pipe_ForEachWorkOp
    : Pipe_Op<"for_each_work",
              [RecursiveMemoryEffects, AutomaticAllocationScope,
               SingleBlockImplicitTerminator<"YieldOp">,
               DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
               DeclareOpInterfaceMethods<LoopLikeOpInterface,
                   ["getInitsMutable", "getLoopInductionVars", "getLoopResults",
                    "getRegionIterArgs", "getYieldedValuesMutable",
                    "replaceWithAdditionalYields"]>]> {
  let summary = "the output tiles of a CTA, one after the other";
  let description = [{
    Runs its region once for every output tile (m, n) of a grid of `num_m` by `num_n` tiles that
    `schedule` gives this CTA. Every tile of the grid belongs to exactly one CTA. All roles of a
    CTA, and all CTAs of a cluster, see the same tiles in the same order. `iter_args` carries values
    from one tile to the next, as in `scf.for`. One producer, the builder of all kernels on tiles.

    Example:
    ```mlir
    pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.static_persistent<along_m> {
      %row = arith.muli %m, %c128 : i32
      %column = arith.muli %n, %c128 : i32
    }
    ```
  }];
  let arguments = (ins I32:$num_m, I32:$num_n, Pipe_WorkScheduleAttr:$schedule,
                       Variadic<I32>:$init_args);
  let results = (outs Variadic<I32>:$results);
  let regions = (region SizedRegion<1>:$region);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$numM, "::mlir::Value":$numN,
                                 "WorkScheduleAttrInterface":$schedule,
                                 CArg<"::mlir::ValueRange", "{}">:$inits)>];
  let extraClassDeclaration = [{
    ::mlir::Value getM() { return getBody()->getArgument(0); }
    ::mlir::Value getN() { return getBody()->getArgument(1); }
  }];
}

def Pipe_RequestWorkOp : Pipe_EngineOp<"request_work", "WorkQueue"> {
  let summary = "ask for the tile after this one";
  let description = [{
    Asks the hardware for a cluster that has not started, whose tile becomes the next piece of work
    of this one. The answer arrives later in the ring of responses, `pipe.work_ring`, in every CTA
    of the cluster. The op waits until all roles have taken the response whose place it needs. With
    several CTAs, the first one asks; the others announce the 16 bytes that they get.

    `pipe-expand-work` gives the op its iteration.
    PTX: clusterlaunchcontrol.try_cancel, with .multicast::cluster::all for several CTAs. One
    producer, as of `pipe.next_work`.

    Example:
    ```mlir
    pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.cluster_launch<along_m> {
      pipe.request_work
    }
    ```
  }];
  let arguments = (ins Optional<I32>:$iteration);
  let assemblyFormat = "(`[` $iteration^ `]`)? attr-dict";
  let hasVerifier = 1;
}

def Pipe_NextWorkOp : Pipe_Op<"next_work"> {
  let summary = "take the response to a request for work";
  let description = [{
    Waits for response number `iteration` in the ring, reads it, and gives its place back. `more` is
    false where nothing was left. Else `block` is the index along x of the first CTA of the cluster
    whose work is taken over. Each role that works on tiles takes each response once. PTX:
    mbarrier.try_wait, ld.shared, clusterlaunchcontrol.query_cancel, fence.proxy.async,
    mbarrier.arrive. One producer, `#pipe.cluster_launch`: no other schedule asks the hardware for
    work.

    Example:
    ```mlir
    %more, %block = pipe.next_work[%it]
    ```
  }];
  let arguments = (ins I32:$iteration);
  let results = (outs I1:$more, I32:$block);
  let assemblyFormat = "`[` $iteration `]` attr-dict";
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEWORKOPS_TD
