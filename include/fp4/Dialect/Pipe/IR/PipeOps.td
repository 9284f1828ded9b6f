//===- PipeOps.td - Operations of the pipe dialect ------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEOPS_TD

include "fp4/Dialect/Fp4/IR/Fp4Attrs.td"
include "fp4/Dialect/Pipe/IR/PipeTypes.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

/// Results print as %tile, %acc, %channel, ...: kernels are read more often than written.
def Pipe_NamedResults : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

/// An op that belongs to one warp role (see RoleOpInterface).
class Pipe_RoleOp<string mnemonic, string role, list<Trait> traits = []>
    : Pipe_Op<mnemonic, traits # [Pipe_RoleOpInterface]> {
  code roleDecl = "::fp4::pipe::Role getRole() { return ::fp4::pipe::Role::" # role # "; }\n";
  let extraClassDeclaration = roleDecl;
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

def Pipe_GlobalViewOp : Pipe_Op<"global_view", [Pure]> {
  let summary = "kernel argument for a device buffer";
  let description = [{
    The typed kernel pointer of a device buffer. The buffer's shape follows from the logical type:
    `RxC` elements row-major; `R x pitch x i8` for fp4; `RxBxi8` for linear scales;
    `ceil(R/128) x ceil(B/4) x 512 x i8` for `tiled_128x4` scales. (C107)

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
    elements per row; box, element type and swizzle are those of the result type. Elements beyond
    the rows of the buffer or beyond `columns` load as zero, whatever lies in the pitch.
    Counterpart: cuTensorMapEncodeTiled, rank 2, dims {columns, rows}, stride {pitch}. (C108) the
    pitch is a multiple of 16 bytes and holds `columns` elements.

    Example:
    ```mlir
    %map = pipe.make_tensor_map %q columns 272
        : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffer, I64Attr:$columns);
  let results = (outs Pipe_TensorMapType:$result);
  let assemblyFormat = [{
    $buffer `columns` $columns attr-dict
    `:` qualified(type($buffer)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_DeviceConstantOp : Pipe_Op<"device_constant", [Pure]> {
  let summary = "device buffer of bytes that the program carries";
  let description = [{
    The bytes are in device memory from the first time that a session needs them; nobody writes or
    frees the buffer. (C139) there are as many bytes as the buffer has.

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
    size, if there is one, is `rows`. No byte moves. (C128) both are row-major, `offset` is a
    multiple of 32, which is what kernels read at once, and static views end where `source` does or
    before.

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
    Where sizes are dynamic, what verifiers check otherwise is checked at run time: the program
    fails with "`what` must be `expected`, but got `found`" and the note. A check of a size against
    itself is erased.

    Example:
    ```mlir
    pipe.expect_size "blocks of rows of lhs_scales" %found is %expected
        {note = "quantize both operands of the product alike"}
    ```
  }];
  let arguments = (ins StrAttr:$what, Index:$found, Index:$expected, StrAttr:$note);
  let assemblyFormat = "$what $found `is` $expected attr-dict";
  let hasCanonicalizeMethod = 1;
}

//===----------------------------------------------------------------------===//
// Any role
//===----------------------------------------------------------------------===//

def Pipe_GlobalPtrOp : Pipe_Op<"global_ptr", [Pure]> {
  let summary = "raw pointer of a device buffer";
  let description = [{
    The address as an LLVM pointer, for kernels that access memory with their own vectors.

    Example:
    ```mlir
    %p = pipe.global_ptr %x : !pipe.global<?x1024xbf16>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$global);
  let results = (outs LLVM_PointerInAddressSpace<1>:$result);
  let assemblyFormat = "$global attr-dict `:` qualified(type($global))";
}

def Pipe_LoadScalarOp : Pipe_Op<"load_scalar", [Pure, InferTypeOpAdaptor]> {
  let summary = "scalar that is constant during the kernel";
  let description = [{
    `result = *global`. The scalar must not be written while the kernel runs, so every role that
    needs it may load it anew. PTX: ld.global.nc.

    Example:
    ```mlir
    %alpha = pipe.load_scalar %p : !pipe.global<f32>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$global);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$global attr-dict `:` qualified(type($global))";
  let hasVerifier = 1;
}

def Pipe_TileCoordOp : Pipe_Op<"tile_coord", [Pure]> {
  let summary = "coordinates of an output tile in the static schedule";
  let description = [{
    `m = tile mod num_m`, `n = tile / num_m`: consecutive tiles, which run at the same time on
    neighbouring multiprocessors, share their B tile in the L2 cache.

    Example:
    ```mlir
    %m, %n = pipe.tile_coord %tile in (%num_m, %num_n)
    ```
  }];
  let arguments = (ins I32:$tile, I32:$num_m, I32:$num_n);
  let results = (outs I32:$m, I32:$n);
  let assemblyFormat = "$tile `in` `(` $num_m `,` $num_n `)` attr-dict";
}

//===----------------------------------------------------------------------===//
// Load role
//===----------------------------------------------------------------------===//

def Pipe_LoadOp : Pipe_RoleOp<"load", "Load", [AttrSizedOperandSegments, Pipe_NamedResults]> {
  let summary = "TMA load of one box into shared memory";
  let description = [{
    Loads the box whose first element is (row, column) of the mapped matrix; elements outside of the
    matrix are zero. `column` counts elements and is a multiple of 16 bytes. A tile of several panels
    is as many boxes side by side. The sequential form returns the tile; the other forms fill a stage
    of a channel acquired by this role, and signal its full barrier with the bytes of the whole tile.
    PTX: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes, once per box.

    Constraints: (C109) the tile has the shape, element type and layout of the map, or its panels
    have; (C110) either the op returns a tile, or it has a destination and a channel.

    Example:
    ```mlir
    %t = pipe.load %a[%row, %k] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
        -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    pipe.load %a[%row, %k] into %slot signals %ab[%it]
        : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>,
          !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !channel
    ```
  }];
  let arguments = (ins Pipe_TensorMapType:$map, I32:$row, I32:$column,
                       Optional<Pipe_SharedType>:$dest, Optional<Pipe_ChannelType>:$channel,
                       Optional<I32>:$iteration);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    $map `[` $row `,` $column `]` (`into` $dest^ `signals` $channel)? (`[` $iteration^ `]`)?
    attr-dict `:` qualified(type($map)) (`,` qualified(type($dest))^ `,` qualified(type($channel)))?
    (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
}

def Pipe_LoadScalesOp : Pipe_RoleOp<"load_scales", "Load",
                                       [AttrSizedOperandSegments, Pipe_NamedResults]> {
  let summary = "bulk copy of a tile's scale factors into shared memory";
  let description = [{
    Copies the 512-byte blocks whose first is (row_block, column_block) of a `tiled_128x4` buffer,
    in units of 128 rows and of 4 scale columns. Per row of blocks of the tile it is one copy of
    `blocks` contiguous 512-byte blocks (default: all of the tile); a row of blocks beyond the
    buffer's last is replaced by the last. PTX: cp.async.bulk.shared::cta.global, once per row of
    blocks, `blocks * 512` bytes each.

    Constraints: (C110) as in `pipe.load`; (C111) source and tile have the same element type, and
    the source's rows are static when the tile has more than one row of blocks; (C112) `blocks` is
    present when the source's blocks of columns are not a multiple of the tile's.

    Example:
    ```mlir
    %s = pipe.load_scales %sfa[%m, %kb] blocks %n : !pipe.global<?x17xf8E4M3FN, tiled_128x4>
        -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$source, I32:$row_block, I32:$column_block,
                       Optional<I32>:$blocks, Optional<Pipe_SharedType>:$dest,
                       Optional<Pipe_ChannelType>:$channel, Optional<I32>:$iteration);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    $source `[` $row_block `,` $column_block `]` (`blocks` $blocks^)?
    (`into` $dest^ `signals` $channel)? (`[` $iteration^ `]`)?
    attr-dict `:` qualified(type($source))
    (`,` qualified(type($dest))^ `,` qualified(type($channel)))? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = roleDecl # [{
    /// Type of the tile that is filled, result or destination.
    ::fp4::pipe::SharedType getTileType();
  }];
}

//===----------------------------------------------------------------------===//
// Mma role
//===----------------------------------------------------------------------===//

def Pipe_AccumulatorOp : Pipe_RoleOp<"accumulator", "Mma", [Pipe_NamedResults]> {
  let summary = "accumulator of one output tile, sequential form";
  let description = [{
    A tile of tensor memory with undefined contents; the first `pipe.mma` on it does not accumulate.

    Example:
    ```mlir
    %acc = pipe.accumulator : !pipe.tmem<128x256xf32>
    ```
  }];
  let results = (outs Pipe_TmemType:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
}

def Pipe_CopyScalesOp : Pipe_RoleOp<"copy_scales", "Mma", [Pipe_NamedResults]> {
  let summary = "scale factors from shared to tensor memory";
  let description = [{
    Copies `blocks` 512-byte blocks (default all) of every row of blocks to the tile of tensor
    memory that it returns. A later `pipe.mma` of the same thread comes after it without a wait; an
    earlier one does not come before it, so the pipelined form has `sets` tiles side by side, the
    first `at` a column of the kernel's allocation. Iteration i of the channel that the source is a
    stage of uses tile i mod `sets` (default 1). With a set per stage, whoever has the stage again
    knows that the products which read the set are complete; with fewer a `pipe.await_release` comes
    before the copy. PTX: tcgen05.cp.cta_group::1.32x128b.warpx4, once per 512-byte block.

    Constraints: (C113) the tiles have the same shape and element type; `sets` is positive and comes
    with `at`.

    Example:
    ```mlir
    %t = pipe.copy_scales %s blocks %n at 256 sets 4 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
        -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$source, Optional<I32>:$blocks,
                       OptionalAttr<I64Attr>:$tmem_column, OptionalAttr<I64Attr>:$sets);
  let results = (outs Pipe_TmemType:$result);
  let assemblyFormat = [{
    $source (`blocks` $blocks^)? (`at` $tmem_column^)? (`sets` $sets^)? attr-dict
    `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = roleDecl # [{
    /// Columns of all sets.
    int64_t getAllColumns() { return getSets().value_or(1) * getType().getTmemColumns(); }
  }];
}

def Pipe_MmaOp : Pipe_RoleOp<"mma", "Mma", [AttrSizedOperandSegments]> {
  let summary = "block-scaled matrix multiply of one k tile";
  let description = [{
    `acc[m, n] = (accumulate ? acc[m, n] : 0)
                 + sum over k of a[m, k] * sa[m, k / block] * b[n, k] * sb[n + r, k / block]`
    for k below `64 * steps` (default: the tile's K), with block = K / scale columns of the tile, 16
    (nvfp4: f8E4M3FN scales) or 32 (mxfp4: f8E8M0FNU scales), and r = `b_scale_row` (default 0), a
    multiple of 32: the row of the scale tile that belongs to row 0 of B. Every step is one
    instruction; the first takes `accumulate`, later ones accumulate.
    PTX: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 or .block32.

    Constraints: (C114) A has 128 rows; accumulator and B agree in N, one of 8..256 in steps of 8;
    (C115) A and B are f4E2M1FN, of the same K, a multiple of 64; (C116) both scale tiles have the
    element type of one format and the columns its block implies, and enough rows.

    Example:
    ```mlir
    pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more steps %n
        : !pipe.tmem<128x128xf32>,
          !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>,
          !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    ```
  }];
  let arguments = (ins Pipe_TmemType:$accumulator, Pipe_SharedType:$a, Pipe_TmemType:$a_scales,
                       Pipe_SharedType:$b, Pipe_TmemType:$b_scales, Optional<I32>:$b_scale_row,
                       I1:$accumulate, Optional<I32>:$steps);
  let assemblyFormat = [{
    $accumulator `,` $a `scaled` $a_scales `,` $b `scaled` $b_scales
    (`from` $b_scale_row^)? `accumulate` $accumulate (`steps` $steps^)? attr-dict `:`
    qualified(type($accumulator)) `,` qualified(type($a)) `,` qualified(type($a_scales)) `,`
    qualified(type($b)) `,` qualified(type($b_scales))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = roleDecl # [{
    /// Elements of k that share one scale factor: 16 or 32.
    int64_t getBlockSize();
    /// K = 64 instructions of a whole tile.
    int64_t getMaxSteps();
  }];
}

def Pipe_MmaBlockwiseOp : Pipe_RoleOp<"mma_blockwise", "Mma"> {
  let summary = "every 16 rows of a tile, transposed, times one small matrix";
  let description = [{
    `acc[c, n * s + j] = sum over i of a[16 * s + i, c] * b[j, i]` for every slice `s` of 16 rows of
    A and the `n` rows of B, with i below 16. What was in the accumulator is overwritten. A row-major
    tile that TMA loaded is read as it lies: its columns become the rows of the accumulator ("MN-major"
    operand), B is K-major. Products of bf16 or f16 are exact and their sum is fp32. One instruction
    per slice. PTX: tcgen05.mma.cta_group::1.kind::f16.

    Constraints: (C125) A is bf16 or f16, a multiple of 16 rows and 128 columns, in panels of its
    swizzle; B has the same element type, a multiple of 16 rows, 16 columns and layout swizzle_32B;
    the accumulator has the columns of all slices.

    Example:
    ```mlir
    pipe.mma_blockwise %acc, %x, %h : !pipe.tmem<128x64xf32>,
        !pipe.shared<64x128xbf16, swizzle_128B>, !pipe.shared<16x16xbf16, swizzle_32B>
    ```
  }];
  let arguments = (ins Pipe_TmemType:$accumulator, Pipe_SharedType:$a, Pipe_SharedType:$b);
  let assemblyFormat = [{
    $accumulator `,` $a `,` $b attr-dict `:` qualified(type($accumulator)) `,`
    qualified(type($a)) `,` qualified(type($b))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = roleDecl # [{
    /// Slices of 16 rows of A.
    int64_t getSlices();
  }];
}

//===----------------------------------------------------------------------===//
// Epilogue role
//===----------------------------------------------------------------------===//

def Pipe_HadamardMatrixOp : Pipe_RoleOp<"hadamard_matrix", "Epilogue", [Pipe_NamedResults]> {
  let summary = "the matrix of a random Hadamard transform in shared memory";
  let description = [{
    `tile[j, i] = s[i] * (-1)^popcount(i & j) / 4` with `s[i] = -1` where bit i of `signs` is set,
    else 1: as B of `pipe.mma_blockwise` it transforms 16 values as `fp4.hadamard` does. The entries,
    1/4 and -1/4, are exact in bf16. Every thread writes two of them. The sequential form returns the
    tile; the other forms fill a tile of a channel acquired by this role.

    Constraints: (C126) the tile is 16x16 of bf16 with layout swizzle_32B, returned or filled;
    `signs` has 16 bits.

    Example:
    ```mlir
    %h = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
    pipe.hadamard_matrix signs 55272 into %slot : !pipe.shared<16x16xbf16, swizzle_32B>
    ```
  }];
  let arguments = (ins I64Attr:$signs, Optional<Pipe_SharedType>:$dest);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    `signs` $signs (`into` $dest^ `:` qualified(type($dest)))? attr-dict
    (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
}

def Pipe_ReadOp : Pipe_RoleOp<"read", "Epilogue"> {
  let summary = "accumulator columns of this thread's row";
  let description = [{
    The thread of accumulator lane r (r = thread index within the four epilogue warps) gets
    `acc[r, column + i]`, i = 0, 1, ... PTX: tcgen05.ld.sync.aligned.32x32b.xN, then wait::ld.

    Constraints: (C117) the vector has 1, 2, 4, .. 128 elements of the accumulator's element type
    and divides its columns.

    Example:
    ```mlir
    %v = pipe.read %acc[%c] : !pipe.tmem<128x256xf32> -> vector<32xf32>
    ```
  }];
  let arguments = (ins Pipe_TmemType:$accumulator, I32:$column);
  let results = (outs FixedVectorOfRankAndType<[1], [AnyFloat]>:$result);
  let assemblyFormat = [{
    $accumulator `[` $column `]` attr-dict
    `:` qualified(type($accumulator)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_QuantizeBlocksOp : Pipe_RoleOp<"quantize_blocks", "Epilogue",
                                        [AttrSizedOperandSegments, Pure]> {
  let summary = "this thread's row segment to fp4 codes and block scales";
  let description = [{
    The blocks of 16 (nvfp4) or 32 (mxfp4) consecutive elements, quantized as `recipe` says, with
    `amax` that of the tensor: what `fp4.quantize` does to them. With `random`, rounding is stochastic
    with the bits that `philox` gives the elements (row + r, column + i) of an output of `matrix` rows
    and columns, r the thread's accumulator lane; `columnwise` says that this output is the transposed
    input.

    Constraints: (C127) a multiple of the block's elements, as many codes, one scale of the recipe's
    format per block; amax exactly for recipes with a tensor scale; `random` comes with `matrix` and
    with a recipe of one candidate scale.

    Example:
    ```mlir
    %codes, %bytes = pipe.quantize_blocks %v amax %a random %rng[%row, %column] of [512, 8192]
        {recipe = #fp4.recipe<transformer_engine>, columnwise}
        : vector<64xbf16>, !pipe.global<2xi64> -> vector<64xf4E2M1FN>, vector<4xf8E4M3FN>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [BF16, F32]>:$value, Optional<F32>:$amax,
                       Optional<Pipe_GlobalType>:$rng, Optional<I32>:$row, Optional<I32>:$column,
                       OptionalAttr<DenseI64ArrayAttr>:$matrix, Fp4_RecipeAttr:$recipe,
                       DefaultValuedAttr<Fp4_PhiloxAttr, "::fp4::Philox::Element">:$philox,
                       UnitAttr:$columnwise);
  let results = (outs FixedVectorOfRankAndType<[1], [AnyFloat]>:$codes,
                      FixedVectorOfRankAndType<[1], [AnyFloat]>:$scales);
  let assemblyFormat = [{
    $value (`amax` $amax^)? (`random` $rng^ `[` $row `,` $column `]` `of` $matrix)? attr-dict
    `:` qualified(type($value)) (`,` qualified(type($rng))^)?
    `->` qualified(type($codes)) `,` qualified(type($scales))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = roleDecl # [{
    /// Elements that share a scale.
    int64_t getBlockSize();
  }];
}

def Pipe_StoreOp : Pipe_RoleOp<"store", "Epilogue"> {
  let summary = "predicated store of this thread's row segment";
  let description = [{
    The thread of accumulator lane r writes `dest[row + r, column + i] = value[i]` where
    `row + r < rows` and `column + i <` the columns of dest. `rows` defaults to the static rows
    of the buffer. Accesses are as wide as the row pitch is aligned, 16 bytes at most, 32 where the
    target has them; packed fp4 may fill the bytes between the last column and the pitch. `column` is
    a multiple of the vector's elements. In a `tiled_128x4` buffer of scales, rows and columns that
    only pad a block are written with zero.

    Constraints: (C118) the vector has 1, 2, 4, .. elements of the buffer's element type, 32 or more
    of f4E2M1FN, 4 of a tiled_128x4 buffer; `rows` is present when the buffer's rows are dynamic.

    Example:
    ```mlir
    pipe.store %v, %d[%m0, %n0] rows %m : vector<32xbf16>, !pipe.global<?x512xbf16>
    ```
  }];
  let arguments = (ins FixedVectorOfRankAndType<[1], [AnyFloat]>:$value, Pipe_GlobalType:$dest,
                       I32:$row, I32:$column, Optional<I32>:$rows);
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` $column `]` (`rows` $rows^)? attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Roles and channels (specialized and pipelined forms)
//===----------------------------------------------------------------------===//

def Pipe_RoleRegionOp : Pipe_Op<"role", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "code of one warp role";
  let description = [{
    The region runs on the warps from `first_warp` to, not including, `end_warp` of the block. Load
    and mma roles have one warp, whose elected thread runs the region; an epilogue has four, from a
    multiple of four, since a warp reads the tensor memory lanes of its index modulo 4. The roles of
    a kernel run concurrently and meet only in channels.

    Constraints: (C119) parent is a gpu.func; warp counts as above; (C120) every op within that has
    a role has this one.

    Example:
    ```mlir
    pipe.role epilogue warps 0 to 4 {
      %acc = pipe.consumer_wait %accs : !accs
      %v = pipe.read %acc[%c] : !pipe.tmem<128x128xf32> -> vector<32xf32>
      pipe.consumer_release %accs : !accs
    }
    ```
  }];
  let arguments = (ins Pipe_RoleAttr:$role, I32Attr:$first_warp, I32Attr:$end_warp);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$role `warps` $first_warp `to` $end_warp attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getNumThreads() { return 32 * int64_t(getEndWarp() - getFirstWarp()); }
  }];
}

def Pipe_ChannelOp : Pipe_Op<"channel", [Pipe_NamedResults]> {
  let summary = "channel between two roles";
  let description = [{
    A full and an empty barrier per stage, with the stages' tiles. The agents say who completes each
    side: `tma` (bytes that the loads announce), `mma` (tcgen05.commit) or `threads(n)` (n
    arrivals). One arrival completes a side of `tma` or `mma`.

    The pipelined form adds `depth` and the places of stage 0: `payload` has one byte offset in
    shared memory, or one tensor memory column, per tile, and stage s follows at s times the tile's
    size; `barriers` is the byte offset of full[0..depth) followed by empty[0..depth), 8 bytes each.

    Constraints: (C121) depth, payload and barriers come together, one place per tile; places are
    aligned as the tiles require, barriers to 8 bytes; (C122) a shared payload is produced by tma or
    threads.

    Example:
    ```mlir
    %ab = pipe.channel from tma to mma : !channel
    %acc = pipe.channel from mma to threads(128) depth 2 payload [0] barriers 163904
        : !pipe.channel<!pipe.tmem<128x128xf32>>
    ```
  }];
  let arguments = (ins Pipe_AgentAttr:$producer, DefaultValuedAttr<I32Attr, "1">:$producer_arrivals,
                       Pipe_AgentAttr:$consumer, DefaultValuedAttr<I32Attr, "1">:$consumer_arrivals,
                       OptionalAttr<I32Attr>:$depth, OptionalAttr<DenseI64ArrayAttr>:$payload,
                       OptionalAttr<I64Attr>:$barriers);
  let results = (outs Pipe_ChannelType:$result);
  let assemblyFormat = [{
    `from` custom<Agent>($producer, $producer_arrivals)
    `to` custom<Agent>($consumer, $consumer_arrivals)
    (`depth` $depth^)? (`payload` $payload^)? (`barriers` $barriers^)?
    attr-dict `:` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isPipelined() { return getDepth().has_value(); }
  }];
}

/// An op on a channel: `%ab` in the specialized form, `%ab[%it]` in the pipelined one.
class Pipe_ChannelUserOp<string mnemonic, list<Trait> traits = []> : Pipe_Op<mnemonic, traits> {
  let arguments = (ins Pipe_ChannelType:$channel, Optional<I32>:$iteration);
  let assemblyFormat = "$channel (`[` $iteration^ `]`)? attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

class Pipe_ChannelSlotsOp<string mnemonic>
    : Pipe_ChannelUserOp<mnemonic, [InferTypeOpAdaptor, Pipe_NamedResults]> {
  let results = (outs Variadic<AnyType>:$slots);
}

def Pipe_ProducerAcquireOp : Pipe_ChannelSlotsOp<"producer_acquire"> {
  let summary = "wait until a stage is empty";
  let description = [{
    Waits until the consumers have released stage `it mod depth` (the first `depth` waits pass at
    once) and returns its tiles. The barrier's parity to wait for is `((it / depth) mod 2) xor 1`.
    (C123) An iteration is given exactly when the channel has a depth. PTX: mbarrier.try_wait.parity
    on empty.

    Example:
    ```mlir
    %a, %b = pipe.producer_acquire %ab[%it] : !channel
    ```
  }];
}

def Pipe_ExpectTxOp : Pipe_Op<"expect_tx"> {
  let summary = "announce the bytes of a stage";
  let description = [{
    One arrival on the full barrier of stage `it mod depth` that adds `bytes` to what the loads
    signalling this stage must complete. Comes before those loads; the sum of their bytes equals
    `bytes`. PTX: mbarrier.arrive.expect_tx.

    Constraints: (C124) the channel's producer is tma.

    Example:
    ```mlir
    pipe.expect_tx %ab[%it], %bytes : !channel
    ```
  }];
  let arguments = (ins Pipe_ChannelType:$channel, I32:$iteration, I32:$bytes);
  let assemblyFormat =
      "$channel `[` $iteration `]` `,` $bytes attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

def Pipe_ProducerCommitOp : Pipe_ChannelUserOp<"producer_commit"> {
  let summary = "hand the stage to the consumers";
  let description = [{
    Ends the producer's access to the acquired tiles. Producer `mma`: tcgen05.commit on full, when
    all earlier tensor core work of this thread is done; `threads`: fence and arrive; `tma`: the
    loads' bytes complete the barrier, nothing is emitted. (C123)

    Example:
    ```mlir
    pipe.producer_commit %ab[%it] : !channel
    ```
  }];
}

def Pipe_ConsumerWaitOp : Pipe_ChannelSlotsOp<"consumer_wait"> {
  let summary = "wait until a stage is full";
  let description = [{
    Waits for the phase `(it / depth) mod 2` of the full barrier of stage `it mod depth` and returns
    its tiles. A tensor memory payload needs tcgen05.fence::after_thread_sync behind it, as does a
    shared payload read by tcgen05. (C123) PTX: mbarrier.try_wait.parity on full.

    Example:
    ```mlir
    %a, %b = pipe.consumer_wait %ab[%it] : !channel
    ```
  }];
}

def Pipe_ConsumerReleaseOp : Pipe_ChannelUserOp<"consumer_release"> {
  let summary = "hand the stage back to the producer";
  let description = [{
    Ends the consumer's access to the tiles. Consumer `mma`: tcgen05.commit on empty; `threads`:
    tcgen05.fence::before_thread_sync for a tensor memory payload, then one arrival per thread.
    Nothing where the channel's stages are filled once, since nobody waits for them. (C123)

    Example:
    ```mlir
    pipe.consumer_release %ab[%it] : !channel
    ```
  }];
}

def Pipe_AwaitReleaseOp : Pipe_Op<"await_release"> {
  let summary = "wait until the consumer's own release is complete";
  let description = [{
    The consumer waits for its release of the stage that it took `distance` iterations ago: what was
    issued before it is done. At once where there was none. The release of an mma role is complete
    when its products are; they run behind the role's thread, which waits here only if it is more than
    `distance` stages ahead. PTX: mbarrier.try_wait.parity on the empty barrier of stage
    `(it - distance) mod depth`.

    Constraints: (C138) the channel has a depth, which `distance`, at least 1, is below.

    Example:
    ```mlir
    pipe.await_release %ab[%it] distance 2 : !channel
    ```
  }];
  let arguments = (ins Pipe_ChannelType:$channel, I32:$iteration, I64Attr:$distance);
  let assemblyFormat =
      "$channel `[` $iteration `]` `distance` $distance attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEOPS_TD
