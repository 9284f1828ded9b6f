//===- PipeMatrixOps.td - Sizes and pitches that are numbers ---------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEMATRIXOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEMATRIXOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_ResultPitchOp : Pipe_Op<"result_pitch", [Pure]> {
  let summary = "bytes from one row of a strided result to the next";
  let description = [{
    Result `number` of the function has `fp4.strided` and rows of `bytes` bytes. The pitch is that
    of the memory of the caller, or where there is none that of rows which begin at multiples of 16
    bytes. One producer, results that the caller places.

    Example:
    ```mlir
    %pitch = pipe.result_pitch 0 of %bytes
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$number, Index:$bytes);
  let results = (outs Index:$pitch);
  let assemblyFormat = "$number `of` $bytes attr-dict";
}

#endif // FP4_DIALECT_PIPE_IR_PIPEMATRIXOPS_TD
