//===- PipePromotionOps.td - MMAs whose sums are promoted to fp32 ---------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEPROMOTIONOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEPROMOTIONOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

//===----------------------------------------------------------------------===//
// Engine threads
//===----------------------------------------------------------------------===//

/// The scales of a thread: a vector for the two rows that it has of a fragment of wgmma, or the
/// product of both scales for its TMEM lane.
def Pipe_ScalesOfThread : AnyTypeOf<[F32, FixedVectorOfRankAndType<[1], [F32]>]>;

class Pipe_ScalesDecl<string scales> {
  code decl = [{
    /// The sums that are scaled are in a fragment of wgmma, and not in tensor memory.
    bool isOfFragment() { return ::llvm::isa<::mlir::VectorType>(}] # scales # [{().getType()); }
  }];
}

def Pipe_BlockScalesOp : Pipe_EngineOp<"block_scales", "Threads", [Pure]> {
  let summary = "scales of one scale block of k, for this thread's sums";
  let description = [{
    A scale of `a` is that of one row, a scale of `b` that of 128 columns of the result, each for
    one scale block of 128 elements of k. Rows and blocks that do not exist have the scale of the
    last one; `rows` defaults to the static rows of `a`. PTX: ld.global.nc.

    A vector is for the two rows that a thread has of a fragment (`#pipe.distribution<wgmma>`):
    `a[row + r, block]` and `a[row + r + 8, block]`, then `b[column / 128 + i, block]` for each scale
    block of columns that a tile of `columns` columns can reach into; `column`, its first one, is a
    multiple of `columns`. A number is for the row of TMEM lane r: the fp32 product
    `a[row + r, block] * b[c / 128, block]`, rounded once to nearest even, for the first column
    c = `column + w * columns` of warpgroup w.

    Example:
    ```mlir
    %s = pipe.block_scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
        : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
    %t = pipe.block_scales %sa[%m0], %sb[%n0 of 64] block %k rows %m
        : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
    ```
  }];
  let arguments = (ins Pipe_GlobalType:$a, I32:$row, Pipe_GlobalType:$b, I32:$column,
                       I64Attr:$columns, I32:$block, Optional<I32>:$rows);
  let results = (outs Pipe_ScalesOfThread:$result);
  let assemblyFormat = [{
    $a `[` $row `]` `,` $b `[` $column `of` $columns `]` `block` $block (`rows` $rows^)? attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # Pipe_ScalesDecl<"getResult">.decl;
}

def Pipe_TileScalesOp : Pipe_EngineOp<"tile_scales", "Threads"> {
  let summary = "scales of one scale block of k, from tiles of scales, for this thread's sums";
  let description = [{
    The factors of `pipe.block_scales`, from tiles in shared memory: a column of both tiles is a
    scale block of k, a row of `a` is one of the tile whose sums they scale, and a row of `b` is a
    scale block of 128 columns of the result. PTX: ld.shared.

    A vector has `a[r, column]` and `a[r + 8, column]` of the rows of a thread, of which warpgroup w
    has those from `row + 64 w` on, then `b[i, column]` for each row of `b`. A number is for the row
    of TMEM lane r; each row of a `b` with several rows belongs to one warpgroup of the role.

    Example:
    ```mlir
    %s = pipe.tile_scales %sa[128], %sb column %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32>
        -> vector<3xf32>
    %t = pipe.tile_scales %rows[0], %sb column %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32>
        -> f32
    ```
  }];
  let arguments = (ins Pipe_SharedType:$a, I64Attr:$row, Pipe_SharedType:$b, I32:$column);
  let results = (outs Pipe_ScalesOfThread:$result);
  let assemblyFormat = [{
    $a `[` $row `]` `,` $b `column` $column attr-dict
    `:` qualified(type($a)) `,` qualified(type($b)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # Pipe_ScalesDecl<"getResult">.decl;
}

def Pipe_TilePowersOp : Pipe_EngineOp<"tile_powers", "Threads"> {
  let summary = "powers of prepacked weights, from a tile of them, that go with this thread's sums";
  let description = [{
    A row of the tile is a scale block of k, a column is a row of the tile of weights. A thread gets
    `powers[block, r]` and `powers[block, r + 8]` of its rows, and then 1 for its columns, for
    `pipe.promote`. Warpgroup w of the role has the rows from `64 w` on. PTX: ld.shared. One
    producer, weights that a kernel before has converted.

    Example:
    ```mlir
    %s = pipe.tile_powers %p block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
    ```
  }];
  let arguments = (ins Pipe_SharedType:$powers, I32:$block);
  let results = (outs FixedVectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = [{
    $powers `block` $block attr-dict `:` qualified(type($powers)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def Pipe_PromoteOp : Pipe_EngineOp<"promote", "Threads"> {
  let summary = "sums times their scales, added to an accumulator in fp32";
  let description = [{
    `acc[m, n] = fma(sums[m, n], scale, acc[m, n])`, where each operation rounds once, to nearest
    even. A vector of `scales` belongs to sums in a fragment of wgmma. `scale` then is the fp32 product
    of the scale of row m and that of the scale block of 128 columns in which column `column + n` of
    the result is, which are those of `pipe.block_scales` for the same column. With `complete` the
    sums are added here, and no later (`pipe-chain-mmas`).

    A number is the scale of a row of sums in tensor memory, of which warpgroup w adds the w-th part
    of the columns to its fragment of lanes. PTX: tcgen05.ld.sync.aligned.32x32b.xN,
    tcgen05.wait::ld, fma.rn.f32.

    Example:
    ```mlir
    pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x128xf32, wgmma>,
        !pipe.fragment<64x128xf32, wgmma>, vector<3xf32>
    pipe.promote %lanes, %tmem scaled %t : !pipe.fragment<128x64xf32, lanes>,
        !pipe.tmem<128x64xf32>, f32
    ```
  }];
  let arguments = (ins Pipe_FragmentType:$accumulator,
                       AnyTypeOf<[Pipe_FragmentType, Pipe_TmemType]>:$sums,
                       Pipe_ScalesOfThread:$scales, Optional<I32>:$column, UnitAttr:$complete);
  let assemblyFormat = [{
    $accumulator `,` $sums `scaled` $scales (`at` $column^)? (`complete` $complete^)? attr-dict
    `:` qualified(type($accumulator)) `,` qualified(type($sums)) `,` qualified(type($scales))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # Pipe_ScalesDecl<"getScales">.decl;
}

#endif // FP4_DIALECT_PIPE_IR_PIPEPROMOTIONOPS_TD
