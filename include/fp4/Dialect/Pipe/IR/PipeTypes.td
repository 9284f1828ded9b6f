//===- PipeTypes.td - Buffers with hardware layout, and channels ----------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPETYPES_TD
#define FP4_DIALECT_PIPE_IR_PIPETYPES_TD

include "fp4/Dialect/Pipe/IR/PipeDialect.td"

class Pipe_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Pipe_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
  /// Members of types with a shape and a layout.
  code tileDecls = [{
    /// Rows of the tile (the M or N direction).
    int64_t getRows() const { return getShape()[0]; }
    /// Columns of the tile, in elements (the K direction, or N of an accumulator).
    int64_t getColumns() const { return getShape()[1]; }
    /// Scales of which each half of the rows has scale tiles of its own.
    bool isHalved() const { return isHalvedScales(getLayout()); }
    bool isScales() const { return isTiledScales(getLayout()) || isHalved(); }
    /// Scale tiles, one for each 128 rows or for each half of them, beside each other along m.
    int64_t getRowBlocks() const { return isHalved() ? 2 : (getRows() + 127) / 128; }
  }];
}

/// A shaped pipe type: `!pipe.<mnemonic><128x256xf4E2M1FN, swizzle_128B>`; `linear` is not printed.
class Pipe_TileType<string name, string typeMnemonic> : Pipe_Type<name, typeMnemonic> {
  let parameters = (ins
    ArrayRefParameter<"int64_t", "rows and columns, in elements">:$shape,
    "::mlir::Type":$elementType,
    "::fp4::pipe::Layout":$layout);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape,
        "::mlir::Type":$elementType, CArg<"Layout", "kLinear">:$layout), [{
      return $_get(elementType.getContext(), shape, elementType, layout);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Pipe_GlobalType : Pipe_TileType<"Global", "global"> {
  let summary = "typed pointer to a device buffer";
  let description = [{
    A row-major device buffer of a logical tensor, passed to a kernel as a pointer to global memory.
    Rank 0 (`!pipe.global<f32>`) is one scalar, rank 1 a vector such as the seed and offset of
    random numbers, rank 2 a matrix. Rows of `f4E2M1FN` hold two elements per byte (even column in
    the low nibble) with a pitch of the next multiple of 16 bytes. Dimension 0 may be dynamic, and
    so may dimension 1 of a buffer that no tile operation touches. With layout `tiled_128x4` the
    buffer holds scale factors in 512-byte scale tiles of 128 rows by 4 columns, scale tiles of one
    row of them contiguous, missing scales zero.

    Example: `!pipe.global<?x512xbf16>`, `!pipe.global<?x64xf8E4M3FN, tiled_128x4>`.
  }];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    bool isScales() const { return isTiledScales(getLayout()); }
    /// Bytes from one row to the next of a linear buffer.
    int64_t getRowPitch() const;
    /// 512-byte scale tiles per row of scale tiles of a tiled_128x4 buffer: ceil(columns / 4).
    int64_t getScaleBlockColumns() const {
      return hasDynamicColumns() ? ::mlir::ShapedType::kDynamic : (getShape()[1] + 3) / 4;
    }
    bool hasDynamicColumns() const {
      return getRank() > 1 && ::mlir::ShapedType::isDynamic(getShape()[1]);
    }
    /// Rows of 512-byte scale tiles, ceil(rows / 128), or ShapedType::kDynamic.
    int64_t getScaleBlockRows() const;
  }];
}

def Pipe_TensorMapType : Pipe_Type<"TensorMap", "tensor_map"> {
  let summary = "TMA descriptor that loads boxes of the given shape and swizzle";
  let description = [{
    A 128-byte tensor map, a grid constant of the kernel. Shape, element type and layout are those
    of the box it loads, so `pipe.load` through it yields `!pipe.shared` of the same parameters.
    Packed fp4 data use the map's element type UINT8, with coordinates in bytes; layout
    `swizzle_128B_b4x16_p64` has 16U4_ALIGN16B and `swizzle_128B_b6x16_p32` 16U6_ALIGN16B, whose
    buffer has four elements of 6 bits in 3 bytes, with coordinates in elements. A map of
    `tiled_128x4` scales loads whole scale tiles from a buffer of scale tiles, and one with 64 rows
    from a buffer with a scale tile for each 64 rows.

    A box of three dimensions has planes of rows, which lie one above the other in the tile:
    `!pipe.tensor_map<8x8x64xbf16, swizzle_128B>` loads a tile of 64 rows.

    A map with a `residue` is two tensor maps of one buffer, 256 bytes. The box of the second has as
    many rows as are left behind the last whole box of the buffer, and `pipe.load` takes it there: a
    GPU loads boxes more slowly where they reach beyond the rows that exist.

    A map of layout `rows_P_mod_4` is of f32 rows whose pitch is P elements modulo 4, by which TMA
    does not stride: two maps, or four, of 128 bytes each. Each is of every second, or fourth, row.

    Example: `!pipe.tensor_map<128x64xbf16, swizzle_128B, residue>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t", "planes, if any, rows and columns of the box, in elements">:$shape,
    "::mlir::Type":$elementType,
    "::fp4::pipe::Layout":$layout,
    "bool":$residue);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape,
        "::mlir::Type":$elementType, CArg<"Layout", "kLinear">:$layout,
        CArg<"bool", "false">:$residue), [{
      return $_get(elementType.getContext(), shape, elementType, layout, residue);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasPlanes() const { return getShape().size() == 3; }
    /// Rows of the tile that a box fills: of all its planes.
    int64_t getRows() const { return hasPlanes() ? getShape()[0] * getShape()[1] : getShape()[0]; }
    /// Columns of the box, in elements.
    int64_t getColumns() const { return getShape().back(); }
    bool isScales() const { return isTiledScales(getLayout()); }
    /// Scale tiles of a box of scales, one for each 128 rows, beside each other along m.
    int64_t getRowBlocks() const { return (getRows() + 127) / 128; }
    /// Tensor maps of 128 bytes, one behind the other.
    int64_t getMaps() const;
  }];
}

def Pipe_SharedType : Pipe_TileType<"Shared", "shared"> {
  let summary = "tile in shared memory";
  let description = [{
    A dense tile in shared memory. Data tiles are rows of `getInnerBytes()` bytes under a swizzle
    that acts on absolute shared addresses, so they start at a multiple of the pattern's repeat
    (1024, 512, 256 bytes for 128B, 64B, 32B). Rows wider than the swizzle are cut into panels of
    its width, all rows of one panel before the next: `!pipe.shared<64x128xbf16, swizzle_128B>` is
    two panels of 64 rows by 64 elements. `tiled_128x4` holds scale factors: rows/128 times
    columns/4 scale tiles, scale tile (i, j) at byte (i * columns/4 + j) * 512.
    `swizzle_128B_b4x16_p64` is `swizzle_128B` of rows in which 16 elements of 4 bits take 16 bytes,
    8 with data and 8 of padding, as the matrix instructions that have elements of every width want
    them, and `swizzle_128B_b6x16_p32` the same of elements of 6 bits, 12 bytes with data and 4 of
    padding. A `tiled_128x4` tile of 64 rows takes whole scale tiles, which nobody reads behind
    these rows. `halves_128x4` holds the scales of B for a pair with 128 rows: for each 4 columns
    the scale tile of the first half of the rows, then that of the second, each with 32, 64, 96 or
    128 rows. `rows_P_mod_4` has the rows of f32 scales by their place in the tile modulo 4, or for
    P = 2 modulo 2: all rows with remainder 0 first.

  }];
  let extraClassDeclaration = tileDecls # [{
    /// Size of the tile in bytes, with padding.
    int64_t getBytes() const;
    /// Bytes that a load of the whole tile completes on a barrier: those of the data.
    int64_t getLoadedBytes() const;
    /// Bytes of one row.
    int64_t getInnerBytes() const;
    /// Panels of the swizzle's width; 1 without a swizzle.
    int64_t getPanels() const;
    /// Required alignment in shared memory, in bytes.
    int64_t getAlignment() const;
  }];
}

def Pipe_TmemType : Pipe_Type<"Tmem", "tmem"> {
  let summary = "tile in tensor memory";
  let description = [{
    `!pipe.tmem<128x256xf32>` is an accumulator: row r in TMEM lane r, one 32-bit column per column.
    `!pipe.tmem<256x16xf8E4M3FN, tiled_128x4>` holds scale factors as tcgen05.mma reads them, every
    512-byte scale tile in 4 columns, the scale tiles of one k step adjacent: scale tile (i, j) of
    rows 128 i.. and scale columns 4 j.. is at column (j * rows/128 + i) * 4.

    `!pipe.tmem<128x128xbf16>` is operand A of `pipe.mma`: row r in TMEM lane r, two elements
    of a row in each column, or four of f8E4M3FN, or eight of f4E2M1FN.

    A tile of a `pair` lies in the tensor memory of both CTAs, at the same columns.
    `!pipe.tmem<256x256xf32, pair>` is one accumulator: the leader has rows 0 to 127, its peer the
    others. In `!pipe.tmem<128x256xf32, pair>` each CTA has 64 rows in 128 columns of tensor memory:
    TMEM lanes 0 to 63 have the first half of the columns of the accumulator, TMEM lanes 64 to 127
    the second. A tile of scales has the same shape in each CTA, and each CTA has its own. In layout
    `halves_128x4` TMEM lanes 0 to 63 have the scales of the first half of the rows of B, TMEM lanes
    64 to 127 those of the second, in 4 columns for each k step.

  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t", "rows and columns, in elements">:$shape,
    "::mlir::Type":$elementType,
    "::fp4::pipe::Layout":$layout,
    "bool":$pair);
  let builders = [
    TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<int64_t>":$shape,
        "::mlir::Type":$elementType, CArg<"Layout", "kLinear">:$layout,
        CArg<"bool", "false">:$pair), [{
      return $_get(elementType.getContext(), shape, elementType, layout, pair);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = tileDecls # [{
    /// Sums, and no scales or operand.
    bool isAccumulator() const { return !isScales() && getElementType().isF32(); }
    /// Operand A: 16-bit floats, e4m3 or e2m1.
    bool isOperand() const { return !isScales() && !getElementType().isF32(); }
    /// Rows of an accumulator that each CTA has.
    int64_t getRowsOfBlock() const { return getPair() && !isScales() ? getRows() / 2 : getRows(); }
    /// An accumulator of a pair with 128 rows, of which TMEM lanes have halves of the columns.
    bool isOfHalves() const { return !isScales() && getRowsOfBlock() == 64; }
    /// 32-bit tensor memory columns that the tile occupies.
    int64_t getTmemColumns() const;
  }];
}

def Pipe_FragmentType : Pipe_Type<"Fragment", "fragment"> {
  let summary = "accumulator in the registers of a warp or warpgroup";
  let description = [{
    The accumulator of an instruction that leaves it in registers. `wgmma` shares 64 rows among the
    128 threads of a warpgroup, `mma_sync` 16 rows among the 32 threads of a warp. The thread that
    has an element follows from `include/fp4/ISA/FragmentLayout.h`. A fragment of more rows is made
    by several instructions. `lanes` has the sums that threads add up from the 128 TMEM lanes:
    thread r of a warpgroup has row r. A fragment never leaves its threads: it is no payload of a
    channel. A fragment of f8E4M3FN has weights that a warpgroup holds as operand A
    (`pipe.dequantize`).

    Example: `!pipe.fragment<64x256xf32, wgmma>`, `!pipe.fragment<32x64xf32, mma_sync>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t", "rows and columns, in elements">:$shape,
                        "::mlir::Type":$elementType, "::fp4::pipe::FragmentKind":$kind);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Threads that share the fragment, and elements that each has.
    int64_t getNumThreads() const;
    int64_t getElementsPerThread() const;
  }];
}

def Pipe_ChannelType : Pipe_Type<"Channel", "channel"> {
  let summary = "pipe between two roles with a typed payload";
  let description = [{
    The payload is one or more tiles that are handed over together.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Type", "tiles of one stage">:$payload);
  let assemblyFormat = "`<` $payload `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True when the payload is in shared memory.
    bool isShared() const;
    /// Bytes of shared memory (shared payload) or tensor memory columns of one stage.
    int64_t getStageSize() const;
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPETYPES_TD
