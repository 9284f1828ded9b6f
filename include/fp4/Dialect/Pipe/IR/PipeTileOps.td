//===- PipeTileOps.td - Ops on tiles inside of a kernel ------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPETILEOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPETILEOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

//===----------------------------------------------------------------------===//
// Any role
//===----------------------------------------------------------------------===//

def Pipe_LoadEntryOp : Pipe_Op<"load_entry", [Pure]> {
  let summary = "numbers that are constant during the kernel";
  let description = [{
    `result[i] = table[index, i]`, or `table[index]` where the table has one dimension, or the number
    of a buffer without dimensions. Every role that needs the numbers may load them anew. With
    `of_warp` all lanes load the same row, and keep its numbers in registers of the warp
    (`pipe-elect-threads`). PTX: ld.global.nc.

    Example:
    ```mlir
    %e = pipe.load_entry %tiles[%m] : !pipe.global<24x4xi32> -> vector<4xi32>
    %alpha = pipe.load_entry %p : !pipe.global<f32> -> f32
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$table, Optional<I32>:$index, UnitAttr:$of_warp);
  let results =
      (outs AnyTypeOf<[AnyFloat, AnyInteger, FixedVectorOfRankAndType<[1], [I32, F32]>]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$scalar), [{
    build($_builder, $_state, result, scalar, /*index=*/::mlir::Value());
  }]>];
  let assemblyFormat = [{
    $table (`[` $index^ `]`)? (`of_warp` $of_warp^)? attr-dict
    `:` qualified(type($table)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_ExistingRowsOp : Pipe_Op<"existing_rows", [Pure]> {
  let summary = "rows of a box that its tensor has";
  let description = [{
    Counts the existing rows of a box of `box` rows at `row` of a tensor with `rows` rows. A box
    behind the last row has all of its rows, which load as zeros. `row` is a multiple of `box`. One
    producer, boxes of maps with a residue.

    Example:
    ```mlir
    %exist = pipe.existing_rows %rows from %row of 128
    ```
  }];
  let arguments = (ins I32:$rows, I32:$row, I64Attr:$box);
  let results = (outs I32:$result);
  let assemblyFormat = "$rows `from` $row `of` $box attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Engine tma
//===----------------------------------------------------------------------===//

def Pipe_LoadOp
    : Pipe_EngineOp<"load", "Tma",
                    [AttrSizedOperandSegments, Pipe_NamedResults, Pipe_ChannelOpInterface,
                     DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "copy of a tile from global into shared memory";
  let description = [{
    The type of the source says how the tile is loaded. The sequential form returns the tile. The
    other forms fill a stage of a channel acquired by this role, and signal its full barrier with
    the bytes of the tile.

    A tensor map loads the box whose first element is (row, column) of the mapped matrix; elements
    outside of the matrix are zero. `column` counts elements and is a multiple of 16 bytes. A tile
    of several panels is as many boxes side by side. A map of planes loads from `plane` on, and
    `below` gives the rows of boxes that lie below the first one in the tile (pages of a cache). A
    tile of 64 rows of scales begins at a
    multiple of 64 rows, each with a scale tile. A tile of `halves_128x4` is a box of one scale tile
    for each half of its rows and each 4 columns. A map with a residue (the type says `residue`)
    loads and counts only the `existing` rows of the box. Other rows of the tile keep zeros, or rows
    of a tile before. A tile of `rows_P_mod_4` is a box of each of its maps, from any row on, with the 16
    bytes of each row that contain the element of `column`. PTX:
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes, once per box.

    A buffer of `tiled_128x4` scales gives its 512-byte scale tiles from (row, column) on, which
    count 128 rows and 4 scale columns. Each row of scale tiles is one copy of `existing` contiguous
    scale tiles (default: all of the tile, whose columns then exist); a row of scale tiles beyond
    the buffer's last is replaced by the last. With `in_bounds` no tile reaches beyond it: `row` is
    a multiple of the tile's rows of scale tiles. PTX: cp.async.bulk.shared::cta.global, once per
    row of tiles, `existing * 512` bytes.

    A linear buffer gives `existing` rows (default: all of the tile) from `row` on, which lie
    together. PTX: cp.async.bulk.shared::cta.global.

    With `multicast`, the CTAs of the cluster along a direction need the same tile and load it
    together. Each loads a part, and sends it to all: parts have equally many rows, or of scales
    equally many scale tiles, of one row of scale tiles where there are more parts than such rows.
    Every CTA gets the whole tile, and its barrier the bytes of the whole tile. The direction
    `pairs` means the CTAs along m that have the same place in their pairs, which need the same half
    of B. PTX: .multicast::cluster. If the pair's tensor core uses the stage, the loads of both CTAs
    signal the barrier of the leader. PTX: .cta_group::2.

    Example:
    ```mlir
    %t = pipe.load %a[%row, %k] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
        -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    %s = pipe.load %sfa[%m, %kb] existing %n : !pipe.global<?x17xf8E4M3FN, tiled_128x4>
        -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    %q = pipe.load %qs[%head, %k] plane %token : !pipe.tensor_map<8x8x64xbf16, swizzle_128B>
        -> !pipe.shared<64x64xbf16, swizzle_128B>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_TensorMapType, Pipe_GlobalType]>:$source, I32:$row,
      Optional<I32>:$column, Optional<I32>:$plane, Variadic<I32>:$below, Optional<I32>:$existing,
      Optional<Pipe_SharedType>:$dest, Optional<Pipe_ChannelType>:$channel,
      Optional<I32>:$iteration,
      OptionalAttr<Pipe_DirectionAttr>:$multicast, UnitAttr:$in_bounds);
  let results = (outs Optional<Pipe_SharedType>:$result);
  let builders = [OpBuilder<
      (ins "::fp4::pipe::SharedType":$result, "::mlir::Value":$source, "::mlir::Value":$row,
          "::mlir::Value":$column, "::mlir::Value":$existing,
          CArg<"::fp4::pipe::DirectionAttr", "{}">:$multicast, CArg<"bool", "false">:$in_bounds),
      [{
    build($_builder, $_state, result, source, row, column, /*plane=*/::mlir::Value(),
          /*below=*/::mlir::ValueRange(), existing, /*dest=*/::mlir::Value(),
          /*channel=*/::mlir::Value(), /*iteration=*/::mlir::Value(), multicast, in_bounds);
  }]>];
  let extraClassDeclaration = engineDecl#Pipe_ChannelUse<"Fill">.useDecl#[{
    /// Type of the tile that is filled, result or destination.
    ::fp4::pipe::SharedType getTileType() {
      return ::llvm::cast<::fp4::pipe::SharedType>(
          (getDest() ? ::mlir::Value(getDest()) : ::mlir::Value(getResult())).getType());
    }
    /// Type of the map; null where the source is a buffer.
    ::fp4::pipe::TensorMapType getMapType() {
      return ::llvm::dyn_cast<::fp4::pipe::TensorMapType>(getSource().getType());
    }
    /// Type of the buffer; null where the source is a map.
    ::fp4::pipe::GlobalType getBufferType() {
      return ::llvm::dyn_cast<::fp4::pipe::GlobalType>(getSource().getType());
    }
    /// Returns true when the source is a linear buffer.
    bool loadsRows() { return getBufferType() && !getBufferType().isScales(); }
    ::std::optional<::fp4::pipe::Direction> getMulticastDirection() { return getMulticast(); }
    bool canSignalLeader() { return bool(getMapType()); }
    /// Parts of the tile that different CTAs load: 1 without multicast.
    int64_t getParts();
    /// Parts along the rows: all, or for scales at most as many as rows of scale tiles.
    int64_t getRowParts(int64_t parts);
  }];
  let assemblyFormat = [{
    $source `[` $row (`,` $column^)? `]` (`plane` $plane^)? (`below` `(` $below^ `)`)?
    (`existing` $existing^)? (`multicast` `` $multicast^)?
    (`into` $dest^ `signals` $channel)? (`[` $iteration^ `]`)?
    attr-dict `:` qualified(type($source))
    (`,` qualified(type($dest))^ `,` qualified(type($channel)))? (`->` qualified(type($result))^)?
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Engines tensor and scale_copy
//===----------------------------------------------------------------------===//

def Pipe_AccumulatorOp
    : Pipe_Op<"accumulator", [Pipe_EngineOpInterface, Pipe_NamedResults]> {
  let summary = "accumulator of one output tile";
  let description = [{
    The type says where the sums are. A tile of tensor memory, which only the sequential form makes,
    has undefined contents: the first `pipe.mma` on it does not accumulate. A fragment begins as
    zeros. Every warpgroup of the role, or of mma_sync every warp, has a fragment of its own.
    Registers are not memory: the fragment stays in its role.

    Example:
    ```mlir
    %tmem = pipe.accumulator : !pipe.tmem<128x256xf32>
    %acc = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
    ```
  }];
  let results = (outs AnyTypeOf<[Pipe_TmemType, Pipe_FragmentType]>:$result);
  let assemblyFormat = "attr-dict `:` qualified(type($result))";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The engine of the tensor core, or of the threads that have a fragment.
    ::fp4::pipe::Engine getEngine();
    /// The type of a fragment; null of a tile in tensor memory.
    ::fp4::pipe::FragmentType getFragmentType() {
      return ::llvm::dyn_cast<::fp4::pipe::FragmentType>(getType());
    }
  }];
}

def Pipe_CopyScalesOp : Pipe_Op<
    "copy_scales", [Pipe_EngineOpInterface, Pipe_NamedResults,
                    DeclareOpInterfaceMethods<Pipe_TmemTileOpInterface, ["fillsTile"]>]> {
  let summary = "scale factors from shared to tensor memory";
  let description = [{
    Copies `blocks` 512-byte scale tiles (default all) of every row of scale tiles to the tile of
    tensor memory that it returns. A later `pipe.mma` of the same thread comes after it without a
    wait; an earlier one is not ordered before it. For a tile of a pair, each CTA's scales go from
    its shared memory to its tensor memory. The pipelined form therefore has `sets` tiles side by
    side, the first `at` a column of the allocation. Iteration i of the source's channel uses tile i
    mod `sets` (default 1), which is `set` where that is known. With fewer sets than stages a
    `pipe.await_release` precedes the copy. PTX: tcgen05.cp.cta_group::1 (::2 for a pair),
    .32x128b.warpx4, once per 512-byte scale tile; of layout halves_128x4 .64x128b.warpx2::01_23,
    once for both halves.

    A tile that is `copied` has been filled by a warp of its own (`pipe-split-warps`): the op names
    it for the warp that multiplies, without an instruction.

    Example:
    ```mlir
    %t = pipe.copy_scales %s blocks %n at 256 sets 4 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
        -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$source, Optional<I32>:$blocks,
                       OptionalAttr<I64Attr>:$tmem_column, OptionalAttr<I64Attr>:$sets,
                       OptionalAttr<I64Attr>:$set, UnitAttr:$copied);
  let results = (outs Pipe_TmemType:$result);
  let assemblyFormat = [{
    $source (`blocks` $blocks^)? (`at` $tmem_column^)? (`sets` $sets^ (`set` $set^)?)?
    (`copied` $copied^)? attr-dict `:` qualified(type($source)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The engine that copies, or of a tile that is there the one that multiplies.
    ::fp4::pipe::Engine getEngine();
  }];
}

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

def Pipe_HadamardMatrixOp : Pipe_EngineOp<
    "hadamard_matrix", "Threads",
    [Pipe_NamedResults, DeclareOpInterfaceMethods<Pipe_StageFillerOpInterface>]> {
  let summary = "the matrix of a random Hadamard transform in shared memory";
  let description = [{
    `tile[j, i] = s[i] * (-1)^popcount(i & j) / 4` with `s[i] = -1` where bit i of `signs` is set,
    else 1: as B of `pipe.mma` it transforms 16 values as `fp4.hadamard` does. The
    entries, 1/4 and -1/4, are exact in bf16. Every thread writes two of them. One producer, kernels
    whose transform runs on the tensor core.

    Example:
    ```mlir
    %h = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
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

#endif // FP4_DIALECT_PIPE_IR_PIPETILEOPS_TD
