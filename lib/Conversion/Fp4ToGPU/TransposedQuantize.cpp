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

/// The device pointers of one output and of its amax.
struct SideOperands {
  Value data, scales, amax;
  bool tiledScales;
};

/// One output in the kernel.
struct Side {
  Side(Scalars &s, ImplicitLocOpBuilder &b, const numerics::Recipe &recipe,
       const SideOperands &operands, Value amax, const OutputWriter::Shape &shape)
      : quantizer(s, b, recipe), writer(b, operands.data, operands.scales, shape) {
    quantizer.setTensorAmax(amax);
  }

  BlockQuantizer quantizer;
  OutputWriter writer;
};

class TileQuantizeKernel {
public:
  TileQuantizeKernel(QuantizeOp op, LoweringContext &context)
      : op(op), kernel(op, "quantize", context.symbols), b(kernel.body()), s(b, context.target),
        type(rankedType(op.getInput())),
        plan{type.getElementTypeBitWidth() / 8, op.getBlockSize(), op.hasSquareBlocks()},
        rows{type.getDimSize(0)}, columns{type.getDimSize(1)} {}

  void emit() {
    Value hostRows = kernel.hostRows(op.getInput());
    Value input = kernel.input(op.getInput());
    addOperands(hostRows);
    makeSides();
    Tile tile(kernel, plan, input, rows, columns.size, tilesPerRow());
    if (plan.squareBlocks && op.hasColumnwise())
      squares =
          kernel.sharedWords(TilePlan::rows / TilePlan::square * plan.piecesPerRow(), "squares");
    if (sharesCodes())
      codeTile.emplace(kernel, plan);
    else if (op.hasColumnwise())
      elementTile.emplace(kernel, tile);
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
  /// Tiles of the kernel in a row of the matrix; they cover whole tiles of scales, whose padding is
  /// theirs to write.
  int64_t tilesPerRow() {
    int64_t tiles = llvm::divideCeil(columns.size, plan.columns());
    bool tiled = isTiled(op.getScales()) || isTiled(op.getColumnwiseScales());
    return tiled ? llvm::alignTo(tiles, TilePlan::rows / plan.columns()) : tiles;
  }

  void addOperands(Value hostRows) {
    auto input = [&](Value tensor) { return tensor ? kernel.input(tensor) : Value(); };
    Value amax = input(op.getAmax()), columnwiseAmax = input(op.getColumnwiseAmax());
    if (op.hasRowwise())
      rowwiseOperands = {kernel.output(op.getData(), hostRows),
                         kernel.output(op.getScales(), hostRows), amax, isTiled(op.getScales())};
    if (op.hasColumnwise()) {
      Value data = op.getColumnwiseData(), scales = op.getColumnwiseScales(), none;
      Value blocks;
      if (rows.isDynamic())
        blocks = arith::CeilDivUIOp::create(kernel.host(), hostRows,
                                            constIndex(kernel.host(), plan.blockSize));
      columnwiseOperands = {kernel.output(data, none, hostRows),
                            kernel.output(scales, none, blocks),
                            columnwiseAmax ? columnwiseAmax : amax, isTiled(scales)};
    }
    if (rows.isDynamic())
      rows.value = kernel.scalar(hostRows);
  }

  void makeSides() {
    numerics::Recipe recipe = op.getRecipe().resolve();
    Value pointer, amax;
    auto make = [&](std::optional<Side> &side, const SideOperands &operands, Extent sideRows,
                    Extent sideColumns) {
      if (operands.amax && operands.amax != pointer) // one load where both sides have one amax
        amax = load(b, b.getF32Type(), pointer = operands.amax, 4);
      side.emplace(
          s, b, recipe, operands, amax,
          OutputWriter::Shape{sideRows, sideColumns, plan.blockSize, operands.tiledScales});
    };
    if (op.hasRowwise())
      make(rowwise, rowwiseOperands, rows, columns);
    if (op.hasColumnwise())
      make(columnwise, columnwiseOperands, columns, rows);
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
      else if (rowwise)
        writeRow(tile, piece, rowwise->quantizer.quantize(piece.words, type.getElementType()));
    }
  }

  void writeRow(Tile &tile, const Tile::Piece &piece, const BlockQuantizer::Block &result) {
    rowwise->writer.write(tile.firstRow() + piece.row,
                          tile.firstColumn() / plan.blockSize + piece.block, result);
  }

  /// One row of a square block. Its first row leaves to the columns what the block has in common.
  void emitSquareRow(Tile &tile, const Tile::Piece &piece) {
    BlockQuantizer &quantizer = rowwise ? rowwise->quantizer : columnwise->quantizer;
    Value amax =
        foldRows(quantizer.amax(piece.words, type.getElementType()), [&](Value x, Value y) {
          return quantizer.keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
        });
    Value common = amax;
    if (rowwise || codeTile) {
      BlockQuantizer::Block result =
          quantizer.quantize(piece.words, type.getElementType(), amax, [&](Value error) {
            if (Value hasRow = tile.hasRow(piece))
              error = arith::SelectOp::create(b, hasRow, error, s.constant(0));
            return foldRows(error, [&](Value x, Value y) { return quantizer.combineErrors(x, y); });
          });
      if (rowwise)
        writeRow(tile, piece, result);
      if (codeTile) {
        codeTile->share(piece.row, piece.block, result.codes);
        common = arith::ExtUIOp::create(b, b.getI32Type(), result.scale);
      }
    }
    if (columnwise)
      emitWhere(b, piece.row % TilePlan::square < 1,
                [&] { store(b, common, squareAddress(piece.row, piece.block), 4); });
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

  void writeColumn(Tile &tile, Int32 column, Int32 block, const BlockQuantizer::Block &result) {
    columnwise->writer.write(tile.firstColumn() + column, tile.firstRow() / plan.blockSize + block,
                             result);
  }

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
    writeColumn(tile, column, block,
                columnwise->quantizer.quantize(words, type.getElementType(), amax));
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
        writeColumn(tile, column + static_cast<int64_t>(i), block,
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
  SideOperands rowwiseOperands, columnwiseOperands;
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
