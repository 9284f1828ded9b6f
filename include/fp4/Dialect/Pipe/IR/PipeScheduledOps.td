//===- PipeScheduledOps.td - Ops of the scheduled form --------------------===//
//
// Facts that the passes of phase `scheduled` write beside the attributes of other ops.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPESCHEDULEDOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPESCHEDULEDOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_StageOfOp : Pipe_Op<"stage_of", [Pure, SameOperandsAndResultType]> {
  let summary = "iteration of a channel whose stage and phase are known";
  let description = [{
    Returns `iteration`. The op that takes the result as its iteration uses `stage` and `phase` in
    place of two divisions: those of iteration `iteration + ahead`, which are its remainder modulo
    `depth`, and its quotient modulo 2, or the opposite phase with `opposite`. A loop carries them
    (`pipe-carry-stages`). `ahead` is `depth - distance` for a `pipe.await_release`, else 0.
    `pipe-verify-sync` computes the numbers and compares them.

    Example:
    ```mlir
    %at = pipe.stage_of %it at %stage, %phase of 3
    %before = pipe.stage_of %it ahead 1 at %stage2, %phase2 of 3 opposite
    ```
  }];
  let arguments = (ins I32:$iteration, I32:$stage, I32:$phase, I64Attr:$depth,
                       DefaultValuedAttr<I64Attr, "0">:$ahead, UnitAttr:$opposite);
  let results = (outs I32:$result);
  let assemblyFormat = [{
    $iteration (`ahead` $ahead^)? `at` $stage `,` $phase `of` $depth (`opposite` $opposite^)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Pipe_OpaqueOp : Pipe_Op<"opaque", [Pure, SameOperandsAndResultType]> {
  let summary = "number that LLVM cannot see through";
  let description = [{
    Returns `value`. LLVM does not know that, so that it computes what follows from the number where
    the number is used, and not once for several roles, or in front of a loop. PTX: an empty
    statement of inline assembly.

    Example:
    ```mlir
    %n = pipe.opaque %m
    ```
  }];
  let arguments = (ins I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$value attr-dict";
}

#endif // FP4_DIALECT_PIPE_IR_PIPESCHEDULEDOPS_TD
