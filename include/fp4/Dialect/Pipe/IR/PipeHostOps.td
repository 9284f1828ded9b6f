//===- PipeHostOps.td - Arguments and sizes on the host ------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEHOSTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEHOSTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_ViewOp : Pipe_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "memory of a device buffer as another type";
  let description = [{
    No byte moves, and no instruction does more than compute an address. The two types say what the
    memory becomes.

    - A buffer becomes the argument of a kernel. The shape of the buffer follows from the logical
      type: `RxC` elements row-major; `R x pitch x i8` for fp4; `RxBxi8` for linear scales;
      `ceil(R/128) x ceil(B/4) x 512 x i8` for `tiled_128x4` scales. (C107)
    - The bytes of a buffer from `offset` on become a row-major buffer, whose dynamic size, if there
      is one, is `rows`. (C128)
    - An argument gets the sizes that its type leaves open as numbers, beside all that are static.
      Rows, or rows of scale tiles, are `pitch` bytes apart. Operations that read and write
      through the result take its other sizes from here. For accesses of 16 bytes, `pitch` is a
      multiple of 16, and dynamic columns take whole units of 16 bytes; scales are stored in smaller
      pieces. (C490)
    - An argument becomes a raw pointer, for kernels that access memory with their own vectors.

    Example:
    ```mlir
    %v = pipe.view %x offset 2048 : memref<8x16x64xbf16> -> memref<16x64xbf16>
    %g = pipe.view %d : memref<?x512xbf16> -> !pipe.global<?x512xbf16>
    %y = pipe.view %s columns %n pitch %b : !pipe.global<?x?xbf16> -> !pipe.global<?x?xbf16>
    %address = pipe.view %g : !pipe.global<?x512xbf16> -> !llvm.ptr<1>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnyMemRef, Pipe_GlobalType]>:$source,
                       DefaultValuedAttr<I64Attr, "0">:$offset,
                       Optional<AnyTypeOf<[Index, I32]>>:$rows, Optional<I32>:$columns,
                       Optional<I64>:$pitch);
  let results =
      (outs AnyTypeOf<[AnyMemRef, Pipe_GlobalType, LLVM_PointerInAddressSpace<1>]>:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source, CArg<"int64_t", "0">:$offset,
                   CArg<"::mlir::Value", "{}">:$rows), [{
      build($_builder, $_state, result, source, uint64_t(offset), rows, /*columns=*/{}, /*pitch=*/{});
    }]>
  ];
  let assemblyFormat = [{
    $source (`offset` $offset^)? (`rows` $rows^)? (`columns` $columns^)? (`pitch` $pitch^)?
    attr-dict `:` custom<ViewedType>(type($source), type($rows), ref($rows))
    `->` qualified(type($result))
  }];
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

    A box of one plane of a buffer of two dimensions with R rows is of R + 1 planes of R rows. Plane p
    ends with row p: its row i is row p - R + i of the buffer. A box of a list of some rows, which
    ends anywhere in the buffer, thus loads zeros behind the end of its list. No row in front of the
    buffer may be loaded. Planes are a row apart and begin R rows in front of the buffer.

    A map of layout `rows_P_mod_4` is two or four maps, each of the rows with one number modulo 2 or
    4; the pitch of the buffer is P elements modulo 4. A map without rows is that of row 0.

    The host has checked columns that are a value: the pitch of the buffer is a multiple of 16 bytes,
    and for a map that adds padding K is a multiple of 128 and the pitch one of 32 bytes.

    Example:
    ```mlir
    %map = pipe.make_tensor_map %q columns 272
        : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    %lists = pipe.make_tensor_map %v columns 512
        : memref<?x512xbf16> -> !pipe.tensor_map<1x128x64xbf16, swizzle_128B>
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
  let extraClassDeclaration = [{
    /// Returns true where planes are the lists of rows that end with each row of a matrix.
    bool isOfLists();
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
