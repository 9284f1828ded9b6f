//===- PipeMatrixOps.td - Sizes and pitches that are numbers ---------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEMATRIXOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEMATRIXOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_MatrixOp : Pipe_Op<"matrix", [Pure, AttrSizedOperandSegments]> {
  let summary = "device buffer whose sizes the kernel gets as numbers";
  let description = [{
    The same buffer as `global`, of a type with all sizes that are static. The rows of the buffer,
    or its rows of scale tiles, are `pitch` bytes apart. Operations that read and write through the
    result take its other sizes from here. For stores of 16 bytes of elements or more at a time,
    `pitch` is a multiple of 16, and dynamic columns take whole units of 16 bytes. Scales are stored
    in smaller pieces, and may have any columns. One producer, GEMMs of sizes that only the call
    knows.

    Example:
    ```mlir
    %y = pipe.matrix %g columns %n pitch %p : !pipe.global<?x?xbf16> -> !pipe.global<?x?xbf16>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$global, Optional<I32>:$rows, Optional<I32>:$columns,
                       I64:$pitch);
  let results = (outs Pipe_GlobalType:$result);
  let assemblyFormat = [{
    $global (`rows` $rows^)? (`columns` $columns^)? `pitch` $pitch attr-dict
    `:` qualified(type($global)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

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
