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
    2^-4 in bf16, of 6 bits value * scale. Thread r of a warpgroup of the role converts row r, and two or four warpgroups
    share the work. PTX: tcgen05.st.sync.aligned.32x32b. The source may also be a row of tiles of
    `#fp4.weight_layout<wgmma>` side by side along k. A thread then has the elements of its place in
    a fragment of wgmma, which is one of tcgen05.st.16x128b too: warp w of a warpgroup stores the
    two fragments of the TMEM lanes 32 w to 32 w + 31, those that it reaches. PTX:
    tcgen05.st.sync.aligned.16x128b. Tiles for e4m3 become e4m3 without the powers of their rows.

    Into registers, every warpgroup of the role converts its 64 rows of a tile of
    `#fp4.weight_layout<wgmma>` for e4m3, and keeps them as wgmma has operand A there, with the power
    of two of each row.

    `existing` counts the parts of K that exist (default: all): blocks of four scales, or tiles of
    prepacked weights. Columns behind them have no meaning, and `pipe.mma` with the same number does
    not multiply them.

    Example:
    ```mlir
    %w = pipe.dequantize %b scaled %sb : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
        !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x128xf16, swizzle_128B>
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

def Pipe_TransposeTileOp : Pipe_EngineOp<
    "transpose_tile", "Threads",
    [Pipe_NamedResults, DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "columns of a tile of 8-bit elements as rows of an operand B";
  let description = [{
    `tile[e, 16 * i + 4 * c + 2 * h + j] = source[16 * i + 8 * h + 2 * c + j, first + e]` with c
    below 4, h and j below 2: a row of the tile has a column of the source. Elements of K are in the
    order in which a fragment of wgmma, rounded to 8 bits, is operand A (`pipe.mma`). Each warp of
    the role takes 32 rows of 16 columns at a time. One producer, `fp4.attention` of 8 bits. PTX:
    ldmatrix.x4.trans, prmt, stmatrix.x4.

    Example:
    ```mlir
    %t = pipe.transpose_tile %v : !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
        -> !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$source, DefaultValuedAttr<I64Attr, "0">:$first,
                       Optional<Pipe_SharedType>:$dest);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    $source (`[` $first^ `]`)? (`into` $dest^)? attr-dict `:` qualified(type($source))
    (`,` qualified(type($dest))^)? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// Type of the tile, which is returned or filled.
    ::fp4::pipe::SharedType getTileType() {
      ::mlir::Value tile = getDest() ? ::mlir::Value(getDest()) : ::mlir::Value(getResult());
      return ::llvm::cast<::fp4::pipe::SharedType>(tile.getType());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Engine tensor
//===----------------------------------------------------------------------===//

def Pipe_MmaOp : Pipe_EngineOp<"mma", "Tensor", [AttrSizedOperandSegments]> {
  let summary = "matrix multiply of one k tile";
  let description = [{
    `acc[m, n] = (accumulate ? acc[m, n] : 0) + sum over k of a[m, k] * sa[m + p, k / block] *
    b[n, k] * sb[n + q, k / block]`. An operand without scales has scales of 1, and an MMA without
    `accumulate` overwrites the accumulator. With `times(f)` the accumulator's row m is first
    multiplied by f[m], an f32. The **atom** is the row of
    `include/fp4/ISA/MmaAtoms.h` that the types fit: an instruction, and the memories of its
    operands. The other fields are those that the atom reads.

    - p = `a_scale_row`, q = `b_scale_row` (default 0), multiples of 32: the rows of the scale tiles
      that belong to row 0 of A and of B.
    - `existing`: K counts to the end of the parts that exist (default: all). The parts are
      instructions of tcgen05 with scales, tiles of 64 elements of A in tensor memory, tiles of
      prepacked weights, or else blocks of four scales.
    - `depth`: the K of instructions, which bits of their descriptor say. `k96`: 48 bytes of a row,
      which may begin in one panel and end in the next, and 6 or 3 scales, which may begin in one
      block of scales and end in the next. `part = array<i64: f, n>` are the n instructions of the
      tile from the f-th on: the scale tiles are theirs alone, and the first of them takes
      `accumulate`. `double`: 64 bytes of a row, and twice as many scales.
    - `a[row]`: warpgroup w of the role has the rows of A from `row + 64 w` on.
    - `in_order`: instructions take elements of K in ascending order, where B is as it is in memory.
      Without it they have the order that `pipe.dequantize` gives B
      (`include/fp4/ISA/FragmentLayout.h`).
    - `without_powers`: rows of prepacked weights for e4m3 have one power in all tiles, by which
      `pipe.fetch` multiplies later. Instructions add to the accumulator, which holds 13
      fraction bits.
    - `transposed`: B has a row for each element of K, as TMA loads rows of tokens, and columns of
      the accumulator, with `b[column]` those from `column` on.
    - `next`: the tile of prepacked weights that A has when the op ends; of three warpgroups, the
      tiles with the rows behind A's, whose first row is `a_scale_row`, 0 or 64.
    - `chain` (`pipe-chain-mmas`, `pipe-defer-releases`): the sums replace those of the MMA before,
      which somebody reads (`replaces`); or the MMA begins together with the following one
      (`leads`), which has begun then (`follows`); or the accumulator is complete when another MMA
      of the same B ends that follows (`until_mma`), or when the MMAs of the next iteration do
      (`until_iteration`). Without it the accumulator is complete when the op ends.
    - `fencing`: earlier reads of shared memory are fenced while the MMA runs (`pipe-elide-sync`).

    **Tensor memory, with scales.** Block = K / scale columns of the tile, 16 (scales of f8E4M3FN or
    f8E8M0FNU) or 32 (f8E8M0FNU). PTX: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
    or .block32, and for elements of 8 bits, or of 4 and 8, kind::mxf8f6f4.block_scale.block32. The
    accumulator of a pair takes rows of A and of B from both CTAs: those of the leader first. Each
    CTA has its half of the rows of A with their scales, its half of the rows of B, and the scales
    of all rows of B, which for an accumulator of 128 rows lie in halves. PTX: cta_group::2.

    **Tensor memory, without scales.** The sums are those of kind f8f6f4 or f16
    (docs/reference/numerics.md). PTX: tcgen05.mma.kind::f8f6f4, and kind::f16 with A in shared or
    in tensor memory.

    **Tensor memory, slices of 16 rows.** A is the transpose of what TMA loads: `acc[c, n * s + j] =
    sum over i of a[16 * s + i, c] * b[j, i]` for every slice `s` of 16 rows of A and the `n` rows of
    B, with i below 16. Products of bf16 or f16 are exact and their sum is fp32. One instruction per
    slice. PTX: tcgen05.mma.cta_group::1.kind::f16.

    **Registers of warpgroups.** Warpgroup w of the role has rows 64 w .. 64 w + 63 of A. The tensor
    core of sm_90a keeps 14 bits of a sum of e4m3 (docs/reference/numerics.md), so `pipe.promote`
    adds the sums of a k tile to an accumulator of fp32. A from scaled elements or from prepacked
    weights is converted in registers as `pipe.dequantize` converts. With scales of f8E4M3FN, B may
    also be bf16: then A becomes bf16 too, with the same factor 2^-7. Elements of 6 bits, a byte
    each, become bf16 of value * scale. Prepacked weights are the tiles of
    `#fp4.weight_layout<wgmma>` in the rows of A, side by side along K; tiles for e4m3 have 128
    elements of K and a power of two for each row, and the accumulator takes `fma(sum of the tile,
    power, acc)` for every tile in ascending order. PTX: wgmma.mma_async.m64nNk16 or .m64nNk32 with
    A in shared memory or in registers; without wgmma, mma.sync.m16n8k16.

    **Registers of warpgroups, 16-bit floats as they are.** A is in shared memory, or in the
    registers of its threads, rounded from the sums of an earlier MMA. PTX:
    wgmma.mma_async.m64nNk16. A rounded to f8E4M3FN meets a B whose elements of K are in the order
    of `pipe.transpose_tile`. PTX: wgmma.mma_async.m64nNk32.

    **Registers of warps.** Fragments of all warps of the role make up the tile, those below each
    other first. The
    accumulator is complete when the op ends, and the tiles have been read. PTX: ldmatrix, and
    mma.sync.m16n8k64.kind::mxf4nvf4.block_scale with .scale_vec::4X.ue4m3 or .scale_vec::2X.ue8m0;
    of 8 bits, mma.sync.m16n8k32.kind::mxf8f6f4.block_scale with .scale_vec::1X.ue8m0.

    Example:
    ```mlir
    pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more existing %n
        : !pipe.tmem<128x128xf32>,
          !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>,
          !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    pipe.mma %sums, %e[128], %f chain replaces : !pipe.fragment<64x128xf32, wgmma>,
        !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
    pipe.mma %out, %p, %v accumulate %more transposed : !pipe.fragment<64x64xf32, wgmma>,
        tensor<64x128xbf16, #pipe.distribution<wgmma>>, !pipe.shared<128x64xbf16, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_TmemType, Pipe_FragmentType]>:$accumulator,
      AnyTypeOf<[Pipe_SharedType, Pipe_TmemType, Pipe_FragmentType,
                 Pipe_Distributed<[BF16, F16, F8E4M3FN]>]>:$a,
      Optional<AnyTypeOf<[Pipe_SharedType, Pipe_TmemType]>>:$a_scales, Optional<I32>:$a_scale_row,
      Pipe_SharedType:$b, Optional<AnyTypeOf<[Pipe_SharedType, Pipe_TmemType]>>:$b_scales,
      Optional<I32>:$b_scale_row, Optional<I1>:$accumulate, Optional<I32>:$existing,
      Optional<Pipe_SharedType>:$next, Optional<Pipe_DistributedOrRows<[F32]>>:$factors,
      DefaultValuedAttr<I64Attr, "0">:$a_row,
      DefaultValuedAttr<I64Attr, "0">:$b_column,
      DefaultValuedAttr<Pipe_MmaDepthAttr, "::fp4::pipe::MmaDepth::Single">:$k_depth,
      OptionalAttr<DenseI64ArrayAttr>:$part, UnitAttr:$in_order, UnitAttr:$without_powers,
      UnitAttr:$transposed,
      DefaultValuedAttr<Pipe_MmaChainAttr, "::fp4::pipe::MmaChain::Alone">:$chain,
      UnitAttr:$fencing);
  let builders =
      [OpBuilder<(ins "::mlir::Value":$accumulator, "::mlir::Value":$a, "::mlir::Value":$b), [{
      ::mlir::Value none;
      build($_builder, $_state, accumulator, a, none, none, b, none, none, none, none);
    }]>,
       OpBuilder<(ins "::mlir::Value":$accumulator, "::mlir::Value":$a, "::mlir::Value":$a_scales,
                     "::mlir::Value":$a_scale_row, "::mlir::Value":$b, "::mlir::Value":$b_scales,
                     "::mlir::Value":$b_scale_row, "::mlir::Value":$accumulate,
                     "::mlir::Value":$existing),
                 [{
      build($_builder, $_state, accumulator, a, a_scales, a_scale_row, b, b_scales, b_scale_row,
            accumulate, existing, /*next=*/::mlir::Value(), /*factors=*/::mlir::Value(),
            /*a_row=*/uint64_t(0), /*b_column=*/uint64_t(0),
            MmaDepth::Single, /*part=*/::mlir::DenseI64ArrayAttr(), /*in_order=*/false, /*without_powers=*/false,
            /*transposed=*/false,
            MmaChain::Alone, /*fencing=*/false);
    }]>];
  // PipeBytecode.cpp reads bytecode of the first release, which lacks an attribute.
  let useCustomPropertiesEncoding = 1;
  let assemblyFormat = [{
    $accumulator `,` $a (`[` $a_row^ `]`)? (`scaled` $a_scales^)? (`from` $a_scale_row^)? `,`
    $b (`[` $b_column^ `]`)? (`scaled` $b_scales^)? (`from` $b_scale_row^)? (`accumulate` $accumulate^)?
    (`times` `(` $factors^ `:` type($factors) `)`)? (`existing` $existing^)? (`next` $next^)? (`depth` `` $k_depth^)? (`in_order` $in_order^)?
    (`without_powers` $without_powers^)? (`transposed` $transposed^)? (`chain` `` $chain^)?
    (`fencing` $fencing^)? attr-dict `:` qualified(type($accumulator)) `,`
    custom<ScaledTypes>(type($a), type($a_scales), ref($a_scales)) `,`
    custom<ScaledTypes>(type($b), type($b_scales), ref($b_scales))
    (`,` qualified(type($next))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl#[{
    /// The atom that the types fit; null where none does, in an op that is not verified.
    const ::fp4::hw::MmaAtom *getAtom();
    ::fp4::hw::MmaForm getForm() { return getAtom()->form; }
    template <typename T> T getAccumulatorAs() {
      return ::llvm::cast<T>(getAccumulator().getType());
    }
    template <typename T> T getAAs() { return ::llvm::cast<T>(getA().getType()); }
    template <typename T> T getAScalesAs() { return ::llvm::cast<T>(getAScales().getType()); }
    template <typename T> T getBScalesAs() { return ::llvm::cast<T>(getBScales().getType()); }
    /// Elements of k that share one scale factor of tcgen05: 16 or 32.
    int64_t getBlockSize();
    /// Elements of k of one instruction.
    ::fp4::hw::MmaDepth getHwDepth() { return ::fp4::hw::MmaDepth(getKDepth()); }
    int64_t getStepK() {
      return ::fp4::hw::mmaK(getAtom()->kind, /*sparse=*/false, getHwDepth());
    }
    /// Instructions with scales, and the first of them: those of a whole tile, or of its part.
    int64_t getMaxSteps();
    int64_t getFirstStep() { return getPart() ? (*getPart())[0] : 0; }
    /// Elements of k that they multiply.
    int64_t getScaledK() { return getMaxSteps() * getStepK(); }
    /// Returns true when the tensor core goes on behind the op, until a later one awaits it.
    bool goesOn() {
      return getChain() == ::fp4::pipe::MmaChain::UntilMma ||
             getChain() == ::fp4::pipe::MmaChain::UntilIteration;
    }
    /// Returns true when A is prepacked weights for e4m3.
    bool hasByteTiles();
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEMMAOPS_TD
