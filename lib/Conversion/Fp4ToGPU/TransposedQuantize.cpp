//===- TransposedQuantize.cpp - Quantizing tiles of a matrix --------------===//
//
// The kernel that TransposedQuantize.h describes: its operands, its launch, and the order of its
// steps.
//
//===----------------------------------------------------------------------===//
#include "TransposedQuantize.h"

#include "Lowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

namespace {

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isTiled(Value scales) { return scales && scaleLayout(rankedType(scales)).has_value(); }

/// The device pointers of one output.
struct Output {
  Value data, scales;
};

/// One output in the kernel. A twin without arithmetic has no quantizer.
struct Side {
  std::optional<SideQuantizer> quantizer;
  OutputWriter writer;
  Value amax;

  /// Quantizes the elements of a block of the output.
  BlockQuantizer::Block quantize(ImplicitLocOpBuilder &b, const TilePlan &plan,
                                 ArrayRef<Value> words, Int32 row, Int32 block, Value blockAmax,
                                 BlockQuantizer::FoldErrors fold = {}) {
    if (!quantizer)
      return mixBits(b, words, amax, plan.blockSize);
    return quantizer->quantize(words, {row, block, /*index=*/{}}, blockAmax, fold);
  }
};

class TileQuantizeKernel {
public:
  TileQuantizeKernel(QuantizeOp op, LoweringContext &context)
      : op(op), kernel(op, "quantize", context.symbols), b(kernel.body()), s(b, context.target),
        type(rankedType(op.getInput())),
        plan{type.getElementTypeBitWidth() / 8, op.getBlockSize(), op.hasSquareBlocks()},
        rows{type.getDimSize(0)}, columns{type.getDimSize(1)}, target(context.target),
        noArithmetic(context.streams.noArithmetic) {}

  void emit() {
    kernel.setMinResidentBlocks(residentBlocks());
    Value hostRows = kernel.hostRows(op.getInput());
    Value input = kernel.input(op.getInput());
    makeSides(hostRows);
    Tile tile(kernel, plan, input, rows, columns.size, tilesPerRow());
    if (sharesCodes())
      codeTile.emplace(kernel, plan);
    else if (op.hasColumnwise())
      elementTile.emplace(kernel, tile);
    if (plan.squareBlocks && op.hasColumnwise())
      squares =
          kernel.sharedWords(TilePlan::rows / TilePlan::square * plan.piecesPerRow(), "squares");
    emitPieces(tile);
    if (op.hasColumnwise()) {
      NVVM::Barrier0Op::create(b);
      sharesCodes() ? emitCodeColumns(tile) : emitColumns(tile);
    }
    ImplicitLocOpBuilder &host = kernel.host();
    Value bands = arith::CeilDivUIOp::create(host, hostRows, constIndex(host, TilePlan::rows));
    kernel.launch(arith::MulIOp::create(host, bands, constIndex(host, tilesPerRow())));
  }

private:
  /// Of 256 threads with up to 80 registers; or 128 where each candidate scale keeps its codes, or
  /// where 32 elements are rounded stochastically in steps. Not told, ptxas spills to have 80.
  int32_t residentBlocks() {
    bool adaptive = op.getRecipe().resolve().adaptive != numerics::Adaptive::Off;
    bool longSteps = op.getRng() && plan.blockSize == 32 && !target.hasStochasticConvert;
    return adaptive || longSteps ? 2 : 3;
  }

  /// Tiles of the kernel in a row of the matrix; they cover whole tiles of scales, whose padding is
  /// theirs to write.
  int64_t tilesPerRow() {
    int64_t tiles = llvm::divideCeil(columns.size, plan.columns());
    bool tiled = isTiled(op.getScales()) || isTiled(op.getColumnwiseScales());
    return tiled ? llvm::alignTo(tiles, TilePlan::rows / plan.columns()) : tiles;
  }

  void makeSides(Value hostRows) {
    auto input = [&](Value tensor) { return tensor ? kernel.input(tensor) : Value(); };
    Value amax = input(op.getAmax()), columnwiseAmax = input(op.getColumnwiseAmax());
    Value rng = input(op.getRng()), none;
    Output outputs[2];
    if (op.hasRowwise())
      outputs[0] = {kernel.output(op.getData(), hostRows), kernel.output(op.getScales(), hostRows)};
    if (op.hasColumnwise()) {
      int64_t group = op.getFormat() == Format::MXFP4 ? plan.blockSize : 1;
      if (auto transform = op.getColumnwiseHadamard())
        group = std::max(group, transform->getSize());
      kernel.expectMultiple(op.getInput(), hostRows, group);
      Value blocks;
      if (rows.isDynamic())
        blocks = arith::CeilDivUIOp::create(kernel.host(), hostRows,
                                            constIndex(kernel.host(), plan.blockSize));
      outputs[1] = {kernel.output(op.getColumnwiseData(), none, hostRows),
                    kernel.output(op.getColumnwiseScales(), none, blocks)};
    }
    if (rows.isDynamic())
      rows.value = kernel.scalar(hostRows);
    // One load where both outputs have one amax.
    auto read = [&](Value pointer) {
      return pointer ? load(b, b.getF32Type(), pointer, 4) : Value();
    };
    amax = read(amax);
    if (op.hasRowwise())
      makeSide(rowwise, outputs[0], amax, rng, rows, columns);
    if (op.hasColumnwise())
      makeSide(columnwise, outputs[1], columnwiseAmax ? read(columnwiseAmax) : amax, rng, columns,
               rows);
  }

  void makeSide(std::optional<Side> &side, const Output &output, Value amax, Value rng,
                Extent sideRows, Extent sideColumns) {
    bool isColumnwise = &side == &columnwise;
    bool tiled = isTiled(isColumnwise ? op.getColumnwiseScales() : op.getScales());
    OutputWriter writer(b, output.data, output.scales,
                        {sideRows, sideColumns, plan.blockSize, tiled});
    side.emplace(Side{std::nullopt, writer, amax});
    if (!noArithmetic)
      side->quantizer.emplace(s, b, op, isColumnwise, amax, rng,
                              (sideColumns.in(b) + (TilePlan::square - 1)) / TilePlan::square);
  }

  /// The column-wise codes are those of the rows.
  bool sharesCodes() {
    return plan.squareBlocks && op.hasColumnwise() && op.getRounding() == Rounding::NearestEven;
  }

  //===--- Steps 1 and 2: rows ---------------------------------------------===//

  /// All loads are issued before anything waits for one.
  void emitPieces(Tile &tile) {
    SmallVector<Tile::Piece> pieces;
    for (int64_t pass = 0; pass < plan.loadPasses(); ++pass)
      pieces.push_back(tile.load(pass));
    for (const Tile::Piece &piece : pieces) {
      if (elementTile)
        elementTile->share(piece);
      if (plan.squareBlocks)
        emitSquareRow(tile, piece);
      else
        emitRow(tile, piece);
    }
  }

  /// Codes and scale of a row-wise block; written where that is an output.
  BlockQuantizer::Block emitRow(Tile &tile, const Tile::Piece &piece, Value amax = {},
                                BlockQuantizer::FoldErrors fold = {}) {
    if (!rowwise && !codeTile)
      return {};
    Int32 row = tile.firstRow() + piece.row;
    Int32 block = tile.firstColumn() / plan.blockSize + piece.block;
    Side &side = rowwise ? *rowwise : *columnwise; // codes that the columns share are rounded alike
    BlockQuantizer::Block result = side.quantize(b, plan, piece.words, row, block, amax, fold);
    if (rowwise)
      rowwise->writer.write(row, block, result);
    return result;
  }

  /// One row of a square block. Its first row leaves to the columns what the block has in common.
  void emitSquareRow(Tile &tile, const Tile::Piece &piece) {
    std::optional<SideQuantizer> &quantizer = (rowwise ? rowwise : columnwise)->quantizer;
    Value common = quantizer ? squareAmax(quantizer->recipe(), piece) : s.constant(0);
    auto fold = [&](Value error) {
      if (Value hasRow = tile.hasRow(piece))
        error = arith::SelectOp::create(b, hasRow, error, s.constant(0));
      return foldRows(error,
                      [&](Value x, Value y) { return quantizer->recipe().combineErrors(x, y); });
    };
    BlockQuantizer::Block result = emitRow(tile, piece, common, fold);
    if (codeTile) {
      codeTile->share(piece.row, piece.block, result.codes);
      common = arith::ExtUIOp::create(b, b.getI32Type(), result.scale);
    }
    if (columnwise)
      emitWhere(b, piece.row % TilePlan::square < 1,
                [&] { store(b, common, squareAddress(piece.row, piece.block), 4); });
  }

  Value squareAmax(BlockQuantizer &recipe, const Tile::Piece &piece) {
    return foldRows(recipe.amax(piece.words, type.getElementType()), [&](Value x, Value y) {
      return recipe.keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
    });
  }

  /// Folds a value of each of the 16 rows of a square block, which lanes 2 * row + block % 2 of a
  /// warp hold, in the order of lib/Numerics: rows 8 apart first.
  Value foldRows(Value value, function_ref<Value(Value, Value)> combine) {
    for (int64_t stride = TilePlan::warp / 2; stride > 1; stride /= 2)
      value = combine(value, NVVM::ShflOp::create(b, value.getType(), s.integer(-1), value,
                                                  s.integer(stride), s.integer(TilePlan::warp - 1),
                                                  NVVM::ShflKind::bfly,
                                                  /*return_value_and_is_valid=*/UnitAttr()));
    return value;
  }

  /// The word of shared memory that belongs to a square block.
  Value squareAddress(Int32 row, Int32 block) {
    return address(b, squares, row / TilePlan::square * plan.piecesPerRow() + block, 4);
  }

  //===--- Steps 3 and 4: columns ------------------------------------------===//

  void emitColumns(Tile &tile) {
    int64_t blocks = plan.blocksPerColumn(), wordsPerPass = kThreads / blocks;
    for (int64_t pass = 0; pass < plan.columnPasses(); ++pass) {
      Int32 block = tile.threadIndex() % blocks;
      Int32 word = tile.threadIndex() / blocks + pass * wordsPerPass;
      SmallVector<Value> words = elementTile->column(word, block * plan.blockSize, plan.blockSize);
      if (plan.columnsPerWord() == 1) {
        emitColumn(tile, word, block, words);
        continue;
      }
      for (int64_t half = 0; half < 2; ++half)
        emitColumn(tile, word * 2 + half, block, halves(words, half));
    }
  }

  /// The low (0) or high (1) halves of `words`, two to a word.
  SmallVector<Value> halves(ArrayRef<Value> words, int64_t half) {
    Value selector = s.integer(half ? 0x7632 : 0x5410);
    SmallVector<Value> packed;
    for (size_t i = 0; i < words.size(); i += 2)
      packed.push_back(NVVM::PermuteOp::create(b, b.getI32Type(), words[i], words[i + 1], selector,
                                               NVVM::PermuteMode::DEFAULT));
    return packed;
  }

  void emitColumn(Tile &tile, Int32 column, Int32 block, ArrayRef<Value> words) {
    Value amax;
    if (plan.squareBlocks)
      amax = LLVM::LoadOp::create(
          b, b.getF32Type(), squareAddress(block * plan.blockSize, column / TilePlan::square), 4);
    Int32 row = tile.firstColumn() + column, place = tile.firstRow() / plan.blockSize + block;
    columnwise->writer.write(row, place, columnwise->quantize(b, plan, words, row, place, amax));
  }

  /// Square blocks: what the rows chose, transposed.
  void emitCodeColumns(Tile &tile) {
    int64_t blocks = plan.blocksPerColumn(), groups = plan.columns() / CodeTile::width;
    Value takesPart;
    if (groups * blocks < kThreads)
      takesPart = tile.threadIndex() < groups * blocks;
    emitWhere(b, takesPart, [&] {
      Int32 block = tile.threadIndex() % blocks, group = tile.threadIndex() / blocks;
      Int32 row = block * plan.blockSize, column = group * CodeTile::width;
      Value scale =
          LLVM::LoadOp::create(b, b.getI32Type(), squareAddress(row, column / TilePlan::square), 4);
      scale = arith::TruncIOp::create(b, b.getI8Type(), scale);
      for (auto [i, codes] : llvm::enumerate(codeTile->columns(group, row)))
        columnwise->writer.write(tile.firstColumn() + column + static_cast<int64_t>(i),
                                 tile.firstRow() / plan.blockSize + block,
                                 {SmallVector<Value>(codes.begin(), codes.end()), scale});
    });
  }

  QuantizeOp op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  RankedTensorType type;
  TilePlan plan;
  Extent rows, columns; ///< of the input
  const hw::TargetModel &target;
  bool noArithmetic;
  std::optional<Side> rowwise, columnwise;
  std::optional<ElementTile> elementTile;
  std::optional<CodeTile> codeTile;
  Value squares; ///< in shared memory, of each square block: the scale, or the amax as f32
};

} // namespace

LogicalResult fp4::lowerTileQuantize(QuantizeOp op, LoweringContext &context) {
  TileQuantizeKernel(op, context).emit();
  return success();
}
