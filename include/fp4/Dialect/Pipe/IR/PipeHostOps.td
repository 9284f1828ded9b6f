//===- PipeHostOps.td - Arguments and sizes on the host ------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEHOSTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEHOSTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_GlobalViewOp : Pipe_Op<"global_view", [Pure]> {
  let summary = "kernel argument for a device buffer";
  let description = [{
    The buffer's shape follows from the logical type: `RxC` elements row-major; `R x pitch x i8` for
    fp4; `RxBxi8` for linear scales; `ceil(R/128) x ceil(B/4) x 512 x i8` for `tiled_128x4` scales.
    (C107)

    Example:
    ```mlir
    %g = pipe.global_view %d : memref<?x512xbf16> -> !pipe.global<?x512xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffer);
  let results = (outs Pipe_GlobalType:$result);
  let assemblyFormat =
      "$buffer attr-dict `:` qualified(type($buffer)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

def Pipe_MakeTensorMapOp : Pipe_Op<"make_tensor_map", [Pure]> {
  let summary = "TMA descriptor of a device buffer";
  let description = [{
    A tensor map over the rows of `buffer` (for fp4: `R x pitch x i8`) with `columns` logical
    elements per row, a number or a value; box, element type and swizzle are those of the result
    type. Elements beyond
    the rows of the buffer or beyond `columns` load as zero, whatever lies in the pitch.
    Counterpart: cuTensorMapEncodeTiled, rank 2, dims {columns, rows}, stride {pitch}. (C108)

    A box of planes is of a buffer of three dimensions, row-major: elements beyond the rows of a
    plane load as zero too. Rank 3, dims {columns, rows, planes}.

    The host has checked columns that are a value: the pitch of the buffer is a multiple of 16 bytes,
    and for a map that adds padding K is a multiple of 128 and the pitch one of 32 bytes.

    Example:
    ```mlir
    %map = pipe.make_tensor_map %q columns 272
        : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    %any = pipe.make_tensor_map %p columns %k
        : memref<?x?xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffer, Optional<Index>:$dynamic_columns,
                       OptionalAttr<I64Attr>:$columns);
  let results = (outs Pipe_TensorMapType:$result);
  let assemblyFormat = [{
    $buffer `columns` ($dynamic_columns^):($columns)? attr-dict
    `:` qualified(type($buffer)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_DeviceConstantOp : Pipe_Op<"device_constant", [Pure]> {
  let summary = "device buffer of bytes that the program carries";
  let description = [{
    The bytes are in device memory from the first time that a session needs them. The buffer must
    not be written or freed. (C139)

    Example:
    ```mlir
    %w = pipe.device_constant dense<[1, 2, 3, 4]> : tensor<4xi8> -> memref<2xbf16>
    ```
  }];
  let arguments = (ins ElementsAttr:$bytes);
  let results = (outs AnyStaticShapeMemRef:$buffer);
  let assemblyFormat = "$bytes attr-dict `->` type($buffer)";
  let hasVerifier = 1;
}

def Pipe_BufferViewOp : Pipe_Op<"buffer_view", [Pure]> {
  let summary = "some contiguous bytes of a device buffer as another";
  let description = [{
    The bytes of `source` from `offset` on as a row-major buffer of the result's type, whose dynamic
    size, if there is one, is `rows`. No byte moves. (C128)

    Example:
    ```mlir
    %v = pipe.buffer_view %x offset 2048 : memref<8x16x64xbf16> -> memref<16x64xbf16>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, I64Attr:$offset, Optional<Index>:$rows);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = [{
    $source `offset` $offset (`rows` $rows^)? attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_ExpectSizeOp : Pipe_Op<"expect_size"> {
  let summary = "a size that must hold when the host program runs";
  let description = [{
    The program fails with "`what` must be `expected`, but got `found`" and the note.

    Example:
    ```mlir
    pipe.expect_size "rows of scale tiles of lhs_scales" %found is %expected
        {note = "quantize both operands of the matmul alike"}
    ```
  }];
  let arguments = (ins StrAttr:$what, Index:$found, Index:$expected, StrAttr:$note);
  let assemblyFormat = "$what $found `is` $expected attr-dict";
  let hasCanonicalizeMethod = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEHOSTOPS_TD
