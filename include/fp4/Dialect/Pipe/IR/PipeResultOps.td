//===- PipeResultOps.td - Tiles in the registers of threads ---------------===//
//
// Threads of an epilogue read sums, load what goes with them, and store what they make of them. A
// tile in registers is a tensor with a #pipe.distribution.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_ReadOp : Pipe_EngineOp<"read", "Threads"> {
  let summary = "columns of an accumulator";
  let description = [{
    Reads as many columns as the result has, from column `column` of tensor memory on, or from
    column `first` of a fragment, and of mma_sync from row `row`. The result has the distribution of
    the fragment, or `lanes` of tensor memory. Staged sums are those of the same thread
    of another role. In a pair with 128 rows, TMEM lane r has
    `acc[r mod 64, r / 64 * columns/2 + column + i]` of the CTA's rows (`pipe.place`). PTX:
    of tensor memory tcgen05.ld.sync.aligned.32x32b.xN, then wait::ld.

    Example:
    ```mlir
    %v = pipe.read %acc[%c]
        : !pipe.tmem<128x256xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_TmemType, Pipe_FragmentType, Pipe_SharedType]>:$accumulator,
                       Optional<I32>:$column, OptionalAttr<I64Attr>:$first,
                       DefaultValuedAttr<I64Attr, "0">:$row);
  let results = (outs Pipe_Distributed<[F32]>:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$accumulator, "::mlir::Value":$column), [{
      build($_builder, $_state, result, accumulator, column, ::mlir::IntegerAttr(),
            /*row=*/uint64_t(0));
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$fragment, "int64_t":$first,
                   "int64_t":$row), [{
      build($_builder, $_state, result, fragment, ::mlir::Value(),
            $_builder.getI64IntegerAttr(first), uint64_t(row));
    }]>
  ];
  let assemblyFormat = [{
    $accumulator `[` ($column^):(`` $first)? `]` (`row` $row^)? attr-dict
    `:` qualified(type($accumulator)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_PlaceOp : Pipe_EngineOp<"place", "Threads", [Pure]> {
  let summary = "place in a tile where what this thread has of its accumulator begins";
  let description = [{
    The row and the column of the tile that are added to those of the tile in the result, before
    `pipe.fetch` and `pipe.store` take them.

    A fragment of mma_sync is one of a tile of `rows` x `columns`, as `pipe.mma` shares it out
    among warps. The other ops count 16 rows for each warp of the role before, so the row may be
    negative. Warpgroup w of the role has the columns of the tile from w times those of its fragment
    of lanes on, or of an accumulator in tensor memory the w-th of equal parts. In a pair with 128
    rows, threads of TMEM lanes 64 to 127 have the rows of TMEM lanes 0 to 63, 64 before their own,
    and the second half of the columns. A thread that has gathered row r mod R of a fragment of wgmma
    with R < 128 columns (`pipe.gather_rows`) has a row before its own too, as r is.

    Example:
    ```mlir
    %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
    %zero, %column = pipe.place %sums : !pipe.fragment<128x64xf32, lanes>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_FragmentType, Pipe_TmemType]>:$accumulator,
                       OptionalAttr<I64Attr>:$rows, OptionalAttr<I64Attr>:$columns);
  let results = (outs I32:$row, I32:$column);
  let builders = [OpBuilder<(ins "::mlir::Value":$accumulator), [{
    build($_builder, $_state, $_builder.getI32Type(), $_builder.getI32Type(), accumulator,
          ::mlir::IntegerAttr(), ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $accumulator (`in` $rows^ `by` $columns)? attr-dict `:` qualified(type($accumulator))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// The accumulator is a fragment of wgmma whose columns are rows that threads have gathered.
    bool isOfFewRows();
  }];
}

def Pipe_FetchOp
    : Pipe_EngineOp<"fetch", "Threads",
                    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                     DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "numbers of a buffer for the elements that threads have of a tile";
  let description = [{
    `result[r, c] = global[row + r, column + c]`, which goes with element (r, c) of the tile from
    (row, column) of the result of a GEMM on. With `transposed` the rows of the tile are columns of
    the result, `result[r, c] = global[row + c, column + r]`. A dimension of 1 is the same for every
    row, or every column. Rows and columns that do not exist have the number of the last one; `rows`
    defaults to the static rows of the buffer. With `one_row` all elements are of row `row`, such as
    a group's. With `in_bounds` all rows and columns exist, and none is compared with the size of the
    buffer.

    Warpgroups of `wgmma`, and warps of `mma_sync`, have the rows behind those of the warpgroups and
    warps before, as in `pipe.store`. `column` is a multiple of the columns of a tile of `lanes`, and
    `row` is even for a transposed one of `wgmma`, because the f32 numbers of two rows are one access
    where the static rows are even. PTX: ld.global.nc.

    Prepacked weights, tiles of `#fp4.weight_layout<wgmma_rows>`, have a power of two for each row.
    `[%tile]` gives those of a tile, whose rows are those of the fragments of the role, or TMEM lanes,
    and `[%tile, %first] rows %behind` those of three warpgroups, from row 0 or 64 on. A row that is
    NaN gives NaN. PTX: ld.global.nc.v2, of a TMEM lane ld.global.nc.

    Numbers that this kernel stores, or the same thread of another CTA, are visible only behind a
    `pipe.count_partial` that came after the store. Such numbers are `written` `lanes`, all of which
    exist, or of a workspace, at the column `first` where `pipe.store` left the tile. PTX: ld.global.

    Example:
    ```mlir
    %f = pipe.fetch %p[%m0, %n0] rows %m
        : !pipe.global<?x1xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$global, I32:$row, Optional<I32>:$column,
                       OptionalAttr<I64Attr>:$first, Optional<I32>:$rows, UnitAttr:$transposed,
                       UnitAttr:$one_row, UnitAttr:$in_bounds, UnitAttr:$written);
  let results = (outs Pipe_Distributed<[F32, BF16, F16]>:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$global, "::mlir::Value":$row,
                   "::mlir::Value":$column, "::mlir::Value":$rows, "bool":$transposed,
                   "bool":$one_row), [{
      build($_builder, $_state, result, global, row, column, ::mlir::IntegerAttr(), rows,
            transposed, one_row, /*in_bounds=*/false, /*written=*/false);
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$weights, "::mlir::Value":$tile), [{
      build($_builder, $_state, result, weights, tile, ::mlir::Value(), ::mlir::Value(),
            /*transposed=*/false, /*one_row=*/false);
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$stored, "::mlir::Value":$row,
                   "::mlir::Value":$column, "::mlir::IntegerAttr":$first), [{
      build($_builder, $_state, result, stored, row, column, first, ::mlir::Value(),
            /*transposed=*/false, /*one_row=*/false, /*in_bounds=*/false, /*written=*/!first);
    }]>
  ];
  let assemblyFormat = [{
    $global `[` $row (`,` $column^)? `]` (`first` $first^)? (`rows` $rows^)?
    (`transposed` $transposed^)? (`one_row` $one_row^)? (`in_bounds` $in_bounds^)?
    (`written` $written^)? attr-dict
    `:` qualified(type($global)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// The kernel writes the buffer.
    bool isOfKernel() { return getWritten() || getFirst(); }
  }];
}

def Pipe_StoreOp : Pipe_Op<"store", [AttrSizedOperandSegments, Pipe_EngineOpInterface]> {
  let summary = "a tile in registers or in shared memory to global memory";
  let description = [{
    The type of the value says who stores: threads what they have of a tile, or TMA a tile of shared
    memory, `bulk_store`.

    **Elements of threads.** `dest[row + r, column + c] = value[r, c]` where the row is below `rows`
    and the column is one of dest; with `transposed`, `dest[row + c, column + r] = value[r, c]`. `rows` defaults to the static
    rows of the buffer. Warpgroups of `wgmma`, and warps of `mma_sync`, have the rows behind those of
    the warpgroups and warps of the role before, 64 and 16 each.

    Accesses of `lanes` are as wide as the row pitch is aligned, 16 bytes at most, 32 where the
    target has them; packed fp4 may fill the bytes between the last column and the pitch. `column`,
    or `row` of a transposed store, is a multiple of the columns of the tile. In a `tiled_128x4`
    buffer of scales, what only pads a scale tile is written with zero: rows and columns by a tile of
    4 columns, rows by one of 1 or 2, whose word other threads complete. The thread with the last column
    writes the zeros that pad its word. A tile of `columns` writes columns that pad, and no rows.

    With `heads = [T, H, E]` the rows of the value are heads of tokens: row r is head r mod T of row
    `row + r div T` of dest, E columns behind the head before it, and is stored if r mod T < H. One
    thread of a row stores a value of one column.

    Two neighbours of `wgmma` or `mma_sync` are one access where the row pitch allows. With `staged`
    the threads of a warpgroup exchange their elements in shared memory, so that they store whole
    lines of 128 bytes. In the pipelined form the op has a place there, which is `getStagedBytes`
    long; all staged stores of a kernel have one place. PTX: stmatrix.trans, barrier.

    The buffer is a workspace where the column is a number, `first`: only the same thread of another
    CTA uses what this one stores (`pipe.fetch`). Thread t of T has elements i to i + 3 at column
    (i / 4 * T + t) * 4 behind `first`. PTX: st.global.v4.f32.

    **A tile of shared memory** goes to the box of a tensor map whose first element is (row, column)
    of the mapped matrix; elements outside of the matrix are not written. `column` counts elements
    and is a multiple of 16 bytes. The threads that filled the tile have executed fence.proxy.async
    before they handed it over, and the release of the stage waits until the copy has read it. With
    `halves` the tile is two boxes: the first half of its rows goes to (row, column), the second to
    (row, column + halves). PTX: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.

    Example:
    ```mlir
    pipe.store %v, %d[%m0, %n0] rows %m
        : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
    pipe.store %codes, %q[%n0, %m0] transposed
        : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
    pipe.store %t, %y[%row, %column] : !pipe.shared<128x64xbf16, swizzle_128B>,
        !pipe.tensor_map<128x64xbf16, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_DistributedOrRows<[AnyFloat]>, Pipe_SharedType]>:$value,
                       AnyTypeOf<[Pipe_GlobalType, Pipe_TensorMapType]>:$dest, I32:$row,
                       Optional<I32>:$column, OptionalAttr<I64Attr>:$first, Optional<I32>:$rows,
                       OptionalAttr<DenseI64ArrayAttr>:$heads, UnitAttr:$transposed,
                       UnitAttr:$staged, OptionalAttr<I64Attr>:$halves,
                       OptionalAttr<I64Attr>:$place);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$dest,
                                 "::mlir::Value":$row, "::mlir::Value":$column,
                                 "::mlir::Value":$rows, CArg<"bool", "false">:$transposed,
                                 CArg<"bool", "false">:$staged), [{
    build($_builder, $_state, value, dest, row, column, ::mlir::IntegerAttr(), rows,
          ::mlir::DenseI64ArrayAttr(), transposed, staged, ::mlir::IntegerAttr(),
          ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $value `,` $dest `[` $row `,` ($column^):($first)? `]` (`rows` $rows^)? (`heads` `=` $heads^)?
    (`transposed` $transposed^)? (`staged` $staged^)? (`halves` $halves^)? (`at` $place^)? attr-dict
    `:` qualified(type($value)) `,` qualified(type($dest))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The engine of the threads that have the elements, or of copies of tiles.
    ::fp4::pipe::Engine getEngine();
    /// The tile in shared memory; null where threads have the elements.
    SharedType getTileType() { return ::llvm::dyn_cast<SharedType>(getValue().getType()); }
    TensorMapType getMapType() { return ::llvm::cast<TensorMapType>(getDest().getType()); }
    /// The buffer, and the elements of threads that go there.
    GlobalType getBufferType() { return ::llvm::cast<GlobalType>(getDest().getType()); }
    ::mlir::RankedTensorType getElementsType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getValue().getType());
    }
    /// Alignment of the place in shared memory: a line of the widest swizzle.
    static constexpr int64_t kStagedAlignment = 1024;
    /// Bytes of shared memory for all threads of the role; 0 where nothing is staged.
    int64_t getStagedBytes();
    /// The elements of one thread.
    ::mlir::VectorType getThreadType() { return vectorOfThread(getValue().getType()); }
    /// Threads store elements that they have by `kind` to rows and columns of a matrix.
    bool isOf(FragmentKind kind) {
      auto distribution = distributionOf(getValue().getType());
      return distribution && distribution.getKind() == kind && !getFirst();
    }
    /// The elements are a part of an accumulator of an instruction.
    bool isOfFragment();
    /// Threads have rows or columns, some of which may not exist.
    bool isOfLines();
    /// A thread has a part of a word of scales.
    bool isOfPartialWord();
  }];
}

def Pipe_StageOp : Pipe_EngineOp<
    "stage", "Threads",
    [Pipe_NamedResults, DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "elements of threads into a tile of shared memory";
  let description = [{
    `tile[R w + r, c] = value[r, c]` for warpgroup w of the role and the R rows of the value: the
    threads together fill a tile that `pipe.store` copies to global memory. PTX: st.shared.v4
    of `lanes`, stmatrix.x4 of `wgmma`.

    Row i of f32 sums of wgmma, for `pipe.read`, has elements 4 i to 4 i + 3 of each thread.

    Example:
    ```mlir
    %t = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>>
        -> !pipe.shared<128x64xbf16, swizzle_128B>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[AnyFloat]>:$value, Optional<Pipe_SharedType>:$dest);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let assemblyFormat = [{
    $value (`into` $dest^)? attr-dict `:` qualified(type($value)) (`,` qualified(type($dest))^)?
    (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// The tile is a part of an accumulator of an instruction.
    bool isOfFragment() { return distributionOf(getValue().getType()).isFragment(); }
    /// The tile is sums in the order of threads, which another role reads.
    bool isOfSums() { return isOfFragment() && getValue().getType().getElementType().isF32(); }
  }];
}

//===----------------------------------------------------------------------===//
// Results that epilogues derive
//===----------------------------------------------------------------------===//

def Pipe_QuantizeBlocksOp : Pipe_EngineOp<"quantize_blocks", "Threads",
                                        [AttrSizedOperandSegments, Pure]> {
  let summary = "elements of threads to codes and block scales";
  let description = [{
    Quantizes blocks of 16 (nvfp4), 32 (OCP MX) or 128 (fp8_block128) consecutive elements of each
    thread, of rows of `lanes` or of columns of `columns`, as `fp4.quantize` does, with
    `recipe` and the tensor's `amax`. With `random`, rounding is stochastic with the bits that
    `philox` gives the elements (row + r, column + i) of an output of `matrix` rows and columns; r
    is the TMEM lane of the thread. `columnwise` says that this output is the transposed input.
    With `resident`, registers keep the codes and scales and not the elements.

    Several threads may have parts of one block of 128: 64 `lanes` each the two threads of one row
    in warpgroups 2 i and 2 i + 1 of the role, and 32 `columns` each the four threads of one lane
    number in a warpgroup. The threads exchange maxima through shared memory, from `place` on in the
    pipelined form, and each gets the scale of the block. All threads of the role execute the op.

    Example:
    ```mlir
    %codes, %bytes = pipe.quantize_blocks %v amax %a random %rng[%row, %column] of [512, 8192]
        {recipe = #fp4.recipe<transformer_engine>, columnwise}
        : tensor<128x64xbf16, #pipe.distribution<lanes>>, !pipe.global<2xi64>
        -> tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>,
           tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[BF16, F16, F32]>:$value, Optional<F32>:$amax,
                       Optional<Pipe_GlobalType>:$rng, Optional<I32>:$row, Optional<I32>:$column,
                       OptionalAttr<DenseI64ArrayAttr>:$matrix, Fp4_RecipeAttr:$recipe,
                       DefaultValuedAttr<Fp4_PhiloxAttr, "::fp4::Philox::Element">:$philox,
                       UnitAttr:$columnwise, UnitAttr:$resident, OptionalAttr<I64Attr>:$place);
  let results = (outs Pipe_Distributed<[AnyFloat]>:$codes, Pipe_Distributed<[AnyFloat]>:$scales);
  let assemblyFormat = [{
    $value (`amax` $amax^)? (`random` $rng^ `[` $row `,` $column `]` `of` $matrix)?
    (`at` $place^)? attr-dict
    `:` qualified(type($value)) (`,` qualified(type($rng))^)?
    `->` qualified(type($codes)) `,` qualified(type($scales))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # [{
    /// Elements that share a scale.
    int64_t getBlockSize();
    /// Threads that have parts of one block, 1 where a thread has whole ones; and the distance from
    /// one of these threads to the next.
    int64_t getBlockThreads();
    int64_t getThreadStride();
    /// Bytes of shared memory for a maximum of each thread of the role; 0 for whole blocks.
    int64_t getStagedBytes();
    /// The types of codes and scales of `value`, whole blocks of `recipe`.
    static ::std::pair<::mlir::RankedTensorType, ::mlir::RankedTensorType>
    resultTypes(::mlir::RankedTensorType value, RecipeAttr recipe);
  }];
}

def Pipe_AmaxOp : Pipe_EngineOp<"amax", "Threads", [Pure, AttrSizedOperandSegments]> {
  let summary = "largest magnitude of the elements that a thread has of a tile";
  let description = [{
    Each thread gets the largest `|value[r, c]|` of its elements that exist: those that `pipe.store`
    would store from (row, column) on in rows below `rows` and columns below `columns`, or +0 where
    there is none, and `more` if that is larger. A NaN counts as 0. Without `rows` every row exists.
    With `transposed` the rows of the tile are columns of the result.

    Columns of `lanes` that are no constant are whole units of 16 bytes, and `column` is a multiple
    of these.

    Example:
    ```mlir
    %m = pipe.amax %v[%row, %column] rows %rows of %columns and %n
        : tensor<128x32xbf16, #pipe.distribution<lanes>>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[BF16, F16, F32]>:$value, I32:$row, I32:$column,
                       Optional<I32>:$rows, I32:$columns, Optional<F32>:$more,
                       UnitAttr:$transposed);
  let results = (outs F32:$result);
  let assemblyFormat = [{
    $value `[` $row `,` $column `]` (`rows` $rows^)? `of` $columns (`and` $more^)?
    (`transposed` $transposed^)? attr-dict `:` qualified(type($value))
  }];
  let hasVerifier = 1;
}

def Pipe_FoldAmaxOp : Pipe_EngineOp<"fold_amax", "Threads"> {
  let summary = "a scalar becomes at least what the threads have";
  let description = [{
    `dest = max(dest, value)` for the value of every thread. Values and the scalar are not negative
    and no NaN, so that their bits are ordered as they are. Nobody may read the scalar in this
    kernel. PTX: redux.sync.max.u32 and, by one thread of each warp, red.global.max.u32.

    Example:
    ```mlir
    pipe.fold_amax %m, %amax : !pipe.global<f32>
    ```
  }];
  let arguments = (ins F32:$value, Pipe_GlobalType:$dest);
  let assemblyFormat = "$value `,` $dest attr-dict `:` qualified(type($dest))";
  let hasVerifier = 1;
}

def Pipe_TransposeOp : Pipe_EngineOp<"transpose", "Threads"> {
  let summary = "the rows of a warp as columns";
  let description = [{
    The threads of a warp exchange the rows of a tile for its columns: the thread of lane l had row
    l of the 32 rows of the warp, and gets column l. All threads of the warp execute it.
    PTX: shfl.sync.bfly.

    Example:
    ```mlir
    %t = pipe.transpose %v : tensor<128x32xbf16, #pipe.distribution<lanes>>
        -> tensor<128x32xbf16, #pipe.distribution<columns>>
    ```
  }];
  let arguments = (ins Pipe_Distributed<[BF16, F16, F32]>:$value);
  let results = (outs Pipe_Distributed<[BF16, F16, F32]>:$result);
  let assemblyFormat = [{
    $value attr-dict `:` qualified(type($value)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Registers of a thread
//===----------------------------------------------------------------------===//

/// A tile, or the elements that one thread has of it.
def Pipe_TileOrVector : AnyTypeOf<[Pipe_DistributedOrRows<[AnyFloat, I32]>,
                                   FixedVectorOfRankAndType<[1], [AnyFloat, I32]>]>;

def Pipe_ElementsOp : Pipe_Op<"elements", [Pure]> {
  let summary = "a tile as the vector of a thread's elements, or the tile of such vectors";
  let description = [{
    The vector is the registers of a thread, for code that names them one by one, such as inline
    assembly. The types say which of the two is there already. No instruction.

    Example:
    ```mlir
    %v = pipe.elements %t : tensor<64x32xf32, #pipe.distribution<wgmma>> -> vector<16xf32>
    %u = pipe.elements %v : vector<16xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
    ```
  }];
  let arguments = (ins Pipe_TileOrVector:$source);
  let results = (outs Pipe_TileOrVector:$result);
  let assemblyFormat = [{
    $source attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPERESULTOPS_TD
