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

def Pipe_MakeMatrixMapOp : Pipe_Op<"make_matrix_map", [Pure]> {
  let summary = "TMA descriptor of a device buffer with columns that the host knows when it runs";
  let description = [{
    `pipe.make_tensor_map` of a buffer whose columns are dynamic: `columns` logical elements of each
    row exist. The host has checked that the pitch of the buffer is a multiple of 16 bytes.

    For a map that adds padding, the host has checked that K is a multiple of 128 and the pitch a
    multiple of 32 bytes. One producer, GEMMs whose columns only the call knows.

    Example:
    ```mlir
    %map = pipe.make_matrix_map %q columns %k
        : memref<?x?xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffer, Index:$columns);
  let results = (outs Pipe_TensorMapType:$result);
  let assemblyFormat = [{
    $buffer `columns` $columns attr-dict
    `:` qualified(type($buffer)) `->` qualified(type($result))
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
