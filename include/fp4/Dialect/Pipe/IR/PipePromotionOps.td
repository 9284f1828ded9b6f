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

def Pipe_ScalesOp
    : Pipe_EngineOp<"scales", "Threads",
                    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                     DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "scales of one scale block of k, for this thread's sums";
  let description = [{
    A scale of `a` is that of one row, a scale of `b` that of 128 columns of the result, each for
    one scale block of 128 elements of k, number `block` where they are.

    A vector is for the two rows r and r + 8 that a thread has of a fragment
    (`#pipe.distribution<wgmma>`): the scales of both, and then those of each scale block of columns.
    A number is for the row r of a TMEM lane: the fp32 product of its scale and that of its columns,
    rounded once to nearest even.

    In buffers, the rows are those from `row` on, and the columns those from `column` on. Rows and
    blocks that do not exist have the scale of the last one; `rows` defaults to the static rows of
    `a`. A vector has the scales of each scale block of columns that a tile of `columns` columns can
    reach into, and `column` is a multiple of these. For a number, the first column of warpgroup w
    is `column + w * columns`. PTX: ld.global.nc.

    In tiles, a column is a scale block of k. Warpgroup w has the rows of `a` from `row + 64 w` on. A
    row of `b` is a scale block of columns, or for a number belongs to one warpgroup of the role if
    there are several. In tiles of layout `rows_P_mod_4`, `from` are the numbers of the first rows of
    `a` and `b` and of the first scale block in their matrices, which say by how many columns the
    scales of a row lie behind `block`. PTX: ld.shared.

    Without `b`, `a` is a tile of the powers of prepacked weights: a row is a scale block of k, and a
    column a row of the weights. The scale of all columns is 1.

    Example:
    ```mlir
    %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
        : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
    %t = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k rows %m
        : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
    %u = pipe.scales %ta[128], %tb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32>
        -> vector<3xf32>
    %w = pipe.scales %tc[0], %td block %k from %m0, %n0, %k0
        : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<3xf32>
    %v = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Pipe_GlobalType, Pipe_SharedType]>:$a, Optional<I32>:$row,
                       OptionalAttr<I64Attr>:$first,
                       Optional<AnyTypeOf<[Pipe_GlobalType, Pipe_SharedType]>>:$b,
                       Optional<I32>:$column, OptionalAttr<I64Attr>:$columns, I32:$block,
                       Optional<I32>:$rows, Optional<I32>:$from_a, Optional<I32>:$from_b,
                       Optional<I32>:$from_block);
  let results = (outs Pipe_ScalesOfThread:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "::mlir::Value":$row,
                   "::mlir::Value":$b, "::mlir::Value":$column, "int64_t":$columns,
                   "::mlir::Value":$block, "::mlir::Value":$rows), [{
      build($_builder, $_state, result, a, row, ::mlir::IntegerAttr(), b, column,
            $_builder.getI64IntegerAttr(columns), block, rows, /*from_a=*/::mlir::Value(),
            /*from_b=*/::mlir::Value(), /*from_block=*/::mlir::Value());
    }]>,
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "int64_t":$first,
                   "::mlir::Value":$b, "::mlir::Value":$block, CArg<"::mlir::Value", "{}">:$fromA,
                   CArg<"::mlir::Value", "{}">:$fromB, CArg<"::mlir::Value", "{}">:$fromBlock), [{
      build($_builder, $_state, result, a, ::mlir::Value(), $_builder.getI64IntegerAttr(first), b,
            ::mlir::Value(), ::mlir::IntegerAttr(), block, ::mlir::Value(), fromA, fromB,
            fromBlock);
    }]>
  ];
  let assemblyFormat = [{
    $a `[` ($row^):(`` $first)? `]` (`,` $b^ (`[` $column^ `of` $columns `]`)?)? `block` $block
    (`rows` $rows^)? (`from` $from_a^ `,` $from_b `,` $from_block)? attr-dict
    `:` qualified(type($a)) (`,` qualified(type($b))^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = engineDecl # Pipe_ScalesDecl<"getResult">.decl # [{
    /// The scales are in tiles of shared memory, and not in buffers.
    bool isOfTiles() { return ::llvm::isa<SharedType>(getA().getType()); }
    GlobalType getBufferA() { return ::llvm::cast<GlobalType>(getA().getType()); }
    GlobalType getBufferB() { return ::llvm::cast<GlobalType>(getB().getType()); }
    SharedType getTileA() { return ::llvm::cast<SharedType>(getA().getType()); }
    SharedType getTileB() { return ::llvm::cast<SharedType>(getB().getType()); }
  }];
}

def Pipe_PromoteOp : Pipe_EngineOp<"promote", "Threads"> {
  let summary = "sums times their scales, added to an accumulator in fp32";
  let description = [{
    `acc[m, n] = fma(sums[m, n], scale, acc[m, n])`, where each operation rounds once, to nearest
    even. A vector of `scales` belongs to sums in a fragment of wgmma. `scale` then is the fp32 product
    of the scale of row m and that of the scale block of 128 columns in which column `column + n` of
    the result is, which are those of `pipe.scales` for the same column. With `complete` the
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
