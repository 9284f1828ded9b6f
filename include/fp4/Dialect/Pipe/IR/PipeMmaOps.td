//===- PipeMmaOps.td - MMAs, and the conversion of their operands ---------===//
//
// Few files need these ops: they have a header of their own (PipeMma.h).
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEMMAOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEMMAOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

//===----------------------------------------------------------------------===//
// Engine threads, or tensor where registers hold the result
//===----------------------------------------------------------------------===//

def Pipe_DequantizeTileOp
    : Pipe_Op<"dequantize", [AttrSizedOperandSegments, Pipe_EngineOpInterface, Pipe_NamedResults,
                             DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "quantized elements of an operand to floats that a tensor core multiplies";
  let description = [{
    `tile[n, k] = convert(source[n, k], scales[n, k / block])`, where the scales are an operand, or a
    part of prepacked weights (i8). `numerics::convertElement` is the definition of all conversions,
    which are exact. The type of the result says where the elements go.

    Into shared memory, scales of f8E4M3FN make f16 of value * scale * 2^-7, and scales of f8E8M0FNU
    bf16 of value * scale * 2^-4. The elements of a row have the order in which `pipe.mma`
    multiplies them with an A that threads convert (`include/fp4/ISA/FragmentLayout.h`). A thread
    converts half of a row at a time.

    Into tensor memory, elements are in ascending order, of the factors beside floats: with scales
    of f8E4M3FN value * scale * 2^-7, in f16 or bf16, and with scales of f8E8M0FNU value * scale *
    2^-4 in bf16. Thread r of a warpgroup of the role converts row r, and two or four warpgroups
    share the work. PTX: tcgen05.st.sync.aligned.32x32b. The source may also be a row of tiles of
    `#fp4.weight_layout<wgmma>` side by side along k. A thread then has the elements of its place in
    a fragment of wgmma, which is one of tcgen05.st.16x128b too: warp w of a warpgroup stores the
    two fragments of the TMEM lanes 32 w to 32 w + 31, those that it reaches. PTX:
    tcgen05.st.sync.aligned.16x128b.

    Into registers, every warpgroup of the role converts its 64 rows of a tile of
    `#fp4.weight_layout<wgmma>` for e4m3, and keeps them as wgmma has operand A there, with the power
    of two of each row.

    `existing` counts the parts of K that exist (default: all): blocks of four scales, or tiles of
    prepacked weights. Columns behind them have no meaning, and `pipe.mma` with the same number does
    not multiply them.

    Constraints: (C652) the tile is returned or filled, scales come with elements of 4 or 8 bits and
    not with prepacked weights, and registers take prepacked weights for e4m3 as the result, all of
    which exist; (C180) elements have rows of one panel: of 4 bits with layout swizzle_64B, or of 8
    bits beside scales of f8E8M0FNU with layout swizzle_128B. Their scales have layout tiled_128x4,
    one column per block, and enough rows. A tile in shared memory has the shape of the source, the
    element type that goes with the scales, and layout swizzle_128B; (C467) for tensor memory the
    elements have 4 bits and 128 rows, and the tile has the shape of the source, and elements of
    bf16, or of f16 with scales of f8E4M3FN; (C499) weights for tensor memory are linear, in rows of
    4608 bytes (nvfp4) or 4352 (mxfp4); the tile has 128 rows and 64 elements of K for each of them,
    of bf16, or with nvfp4 of f16. The role has one warpgroup, or several in turn; (C318) weights
    for registers are one row of 8704 bytes, and the role has two warpgroups.

    Example:
    ```mlir
    %w = pipe.dequantize %b scaled %sb : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
        !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x128xf16, swizzle_128B>
    %a = pipe.dequantize %p existing %n : !pipe.shared<2x4608xi8> -> !pipe.tmem<128x128xbf16>
    %r = pipe.dequantize %t : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$source, Optional<Pipe_SharedType>:$scales,
      Optional<I32>:$existing, Optional<AnyTypeOf<[Pipe_SharedType, Pipe_TmemType]>>:$dest);
  let results =
      (outs Optional<AnyTypeOf<[Pipe_SharedType, Pipe_TmemType, Pipe_FragmentType]>>:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
                                "::mlir::Value":$scales, "::mlir::Value":$existing),
                            [{
    build($_builder, $_state, result, source, scales, existing, /*dest=*/::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $source (`scaled` $scales^)? (`existing` $existing^)? (`into` $dest^)? attr-dict `:`
    custom<ScaledTypes>(type($source), type($scales), ref($scales))
    (`,` qualified(type($dest))^)? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The engine of the threads, or of the role that multiplies with what it holds.
    ::fp4::pipe::Engine getEngine();
    /// Type of what is filled, result or destination; null where neither is there.
    ::mlir::Type getFilledType() {
      ::mlir::Value filled = getDest() ? ::mlir::Value(getDest()) : ::mlir::Value(getResult());
      return filled ? filled.getType() : ::mlir::Type();
    }
    bool fillsTmem() { return ::llvm::isa_and_present<::fp4::pipe::TmemType>(getFilledType()); }
    bool fillsRegisters() {
      return ::llvm::isa_and_present<::fp4::pipe::FragmentType>(getFilledType());
    }
    /// Returns true when the source is prepacked weights, which have their scales.
    bool isPrepacked() { return getSource().getType().getElementType().isInteger(8); }
    /// Type of the scales, which are there.
    ::fp4::pipe::SharedType getScalesType() {
      return ::llvm::cast<::fp4::pipe::SharedType>(getScales().getType());
    }
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEMMAOPS_TD
