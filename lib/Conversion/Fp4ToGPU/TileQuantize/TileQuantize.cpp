//===- TileQuantize.cpp - Quantizing tiles of a matrix -----------------------===//
//
// The kernel that TileQuantize.h describes: its operands, its launch, and the order of its
// steps.
//
//===----------------------------------------------------------------------===//
#include "TileQuantize/TileQuantize.h"

#include "GroupBands.h"
#include "HostDivisor.h"
#include "Lowering.h"
#include "TileQuantize/WarpTransform.h"

#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

namespace {

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isTiled(Value scales) { return scales && scaleLayout(rankedType(scales)).has_value(); }

/// The device pointers of one output.
struct Output {
  Value data, scales, amax;
};

/// One output in the kernel. A twin without arithmetic has no quantizer.
struct Side {
  std::optional<SideQuantizer> quantizer;
  OutputWriter writer;
  Value amax;
  Int32 firstBlock; ///< first block of the group
  Value rowAmaxes;  ///< pointer to the amax of each row of the output; null where it has one amax
  Extent rows;      ///< rows of the output
  std::optional<ScaleTable> table; ///< table of factors, where blocks are quantized together

  /// Takes the amax of this row for what follows. Rows that do not exist have the last one's.
  void chooseRow(ImplicitLocOpBuilder &b, Int32 row) {
    if (!rowAmaxes)
      return;
    amax = load(b, b.getF32Type(), address(b, rowAmaxes, minimum(row, rows.in(b) - 1), 4), 4);
    if (quantizer)
      quantizer->setTensorAmax(amax);
  }

  BlockPlace place(Int32 row, Int32 block) { return {row, block - firstBlock, /*index=*/{}}; }

  /// Quantizes the elements of blocks of the output that share a scale.
  BlockQuantizer::Block quantize(ImplicitLocOpBuilder &b, const TilePlan &plan,
                                 ArrayRef<Value> words, ArrayRef<BlockPlace> places,
                                 Value blockAmax, BlockQuantizer::FoldErrors fold = {}) {
    if (!quantizer)
      return mixBits(b, words, amax, plan.codeWords() * static_cast<int64_t>(places.size()));
    return quantizer->quantize(words, places, blockAmax, fold);
  }
  /// Quantizes a block of a column; if two columns share `words`, that of the low (0) or high (1)
  /// halves.
  BlockQuantizer::Block quantizeColumn(ImplicitLocOpBuilder &b, const TilePlan &plan,
                                       ArrayRef<Value> words, unsigned half, Int32 row, Int32 block,
                                       Value blockAmax) {
    if (!quantizer || plan.columnsPerWord() == 1)
      return quantize(b, plan, words, place(row, block), blockAmax);
    return quantizer->quantizeColumn(words, half, place(row, block), blockAmax);
  }
};

class TileQuantizeKernel {
public:
  TileQuantizeKernel(QuantizeOp op, LoweringContext &context)
      : op(op), kernel(op, "quantize", context), b(kernel.body()), s(b, context.target),
        type(rankedType(op.getInput())),
        plan{type.getElementTypeBitWidth() / 8, op.getBlockSize(),
             hasPackedData(op.getFormat()) ? 4 : 8, op.hasSquareBlocks()},
        rows{type.getDimSize(0)}, columns{type.getDimSize(1)}, noArithmetic(context.noArithmetic),
        transforms(transformsOnTensorCore(op) && !noArithmetic),
        rowsTogether(context.plan.ctasPerSm.value_or(1) > 3 ? 1 : 2) {
    if (op.getOffsets())
      bands.emplace(op, op.getOffsets(), rows.size, context);
    if (rowsTogether == 1 || (op.getRng() && isStaticAndRagged()))
      s.saveRegisters();
  }

  void emit() {
    Value hostRows = kernel.hostRows(op.getInput());
    ElementSource source(kernel, op.getInput(), noArithmetic);
    addOperands(hostRows);
    if (columns.isDynamic())
      setPitch(source.matrix());
    Tile tile = findTile(source);
    Value amaxes[] = {readAmax(outputs[0]), readAmax(outputs[1])};
    SmallVector<Tile::Piece> pieces;
    for (int64_t pass = 0; pass < plan.loadPasses(); ++pass)
      pieces.push_back(tile.load(pass));
    // Values that depend on the tensor alone are computed while the loads are under way.
    makeSides(amaxes[0], amaxes[1]);
    makeTables(tile.threadIndex());
    allocateShared(tile);
    emitRows(tile, pieces);
    if (columnwise || isStaged(rowwise))
      NVVM::Barrier0Op::create(b);
    flushScales(rowwise, tile.threadIndex(), tile.firstRow(), tile.firstColumn());
    if (columnwise)
      sharesCodes() ? emitCodeColumns(tile)
      : transforms  ? emitTransformed(tile)
                    : emitColumns(tile);
    if (isStaged(columnwise))
      NVVM::Barrier0Op::create(b);
    flushScales(columnwise, tile.threadIndex(), tile.firstColumn(), tile.firstRow());
    kernel.launch(arith::MulIOp::create(kernel.host(), hostBands(hostRows), hostTilesPerRow()));
  }

private:
  /// Tests of rows and of columns take registers.
  bool isStaticAndRagged() {
    return !type.isDynamicDim(0) &&
           llvm::any_of(type.getShape(), [](int64_t size) { return size % TilePlan::rows != 0; });
  }

  /// Tiles of the kernel in a row of the matrix; they cover whole tiles of scales, whose padding is
  /// theirs to write.
  int64_t tilesPerRow() {
    int64_t tiles = llvm::divideCeil(columns.size, plan.columns());
    return coversScaleTiles() ? llvm::alignTo(tiles, TilePlan::rows / plan.columns()) : tiles;
  }
  bool coversScaleTiles() { return isTiled(op.getScales()) || isTiled(op.getColumnwiseScales()); }

  /// Tiles per row on the host, an index.
  Value hostTilesPerRow() {
    ImplicitLocOpBuilder &host = kernel.host();
    if (!columns.isDynamic())
      return constIndex(host, tilesPerRow());
    int64_t together = coversScaleTiles() ? TilePlan::rows / plan.columns() : 1;
    Value unit = constIndex(host, together * plan.columns());
    return arith::MulIOp::create(host, arith::CeilDivUIOp::create(host, hostColumns, unit),
                                 constIndex(host, together));
  }

  /// Rows follow one another, at multiples of the elements that columns are a multiple of.
  void setPitch(InputRows &input) {
    Value length = arith::ExtUIOp::create(b, b.getI64Type(), columns.value);
    input.pitch = arith::MulIOp::create(b, length, constI64(b, plan.elementBytes));
    input.unit = columns.divisor * plan.elementBytes;
  }

  void addOperands(Value hostRows) {
    auto input = [&](Value tensor) { return tensor ? kernel.input(tensor) : Value(); };
    Value amax = input(op.getAmax()), columnwiseAmax = input(op.getColumnwiseAmax());
    rng = input(op.getRng());
    hostColumns = kernel.hostColumns(op.getInput());
    Value blocksOfRow;
    if (hostColumns) {
      kernel.expectColumns("input", hostColumns, unitOfColumns(op));
      blocksOfRow = arith::DivUIOp::create(kernel.host(), hostColumns,
                                           constIndex(kernel.host(), plan.blockSize));
    }
    kernel.expectAmaxes("amax", op.getAmax(), op.hasRowwise() ? hostRows : hostColumns);
    kernel.expectAmaxes("columnwise_amax", op.getColumnwiseAmax(), hostColumns);
    if (op.hasRowwise())
      outputs[0] = {output(op.getData(), hostRows, hostColumns),
                    output(op.getScales(), hostRows, blocksOfRow), amax};
    if (op.hasColumnwise()) {
      kernel.expectMultiple(op.getInput(), hostRows, rowMultiple());
      Value blocks;
      if (rows.isDynamic())
        blocks = arith::CeilDivUIOp::create(kernel.host(), hostRows,
                                            constIndex(kernel.host(), plan.blockSize));
      outputs[1] = {kernel.output(op.getColumnwiseData(), hostColumns, hostRows),
                    kernel.output(op.getColumnwiseScales(), hostColumns, blocks),
                    columnwiseAmax ? columnwiseAmax : amax};
    }
    if (rows.isDynamic())
      rows = {ShapedType::kDynamic, kernel.scalar(hostRows), rowMultiple()};
    if (hostColumns)
      columns = {ShapedType::kDynamic, kernel.scalar(hostColumns), unitOfColumns(op)};
  }

  /// Allocates a result of rows. Rows of no group are zero, and the kernel does not know them.
  Value output(Value result, Value hostRows, Value hostColumns) {
    Value buffer = kernel.allocate(result, hostRows, hostColumns);
    if (bands && !op.getUnspecifiedRows() && !isTiled(result))
      clearRowsOfNoGroup(kernel, buffer);
    return kernel.pointer(buffer, rankedType(result));
  }

  /// Rows come in groups of so many where blocks or transforms of columns have no remainder.
  int64_t rowMultiple() {
    if (!op.hasColumnwise())
      return 1;
    int64_t block = numerics::isMX(blockFormat(op.getFormat())) ? plan.blockSize : 1;
    auto transform = op.getColumnwiseHadamard();
    return transform ? std::max(block, transform->getSize()) : block;
  }

  Value hostBands(Value hostRows) {
    ImplicitLocOpBuilder &host = kernel.host();
    if (groups || bands)
      return constIndex(host, groups ? groups->bands() : bands->count());
    return arith::CeilDivUIOp::create(host, hostRows, constIndex(host, TilePlan::rows));
  }

  /// The tile of this CTA, and the group that it is part of.
  Tile findTile(ElementSource &source) {
    Int32 index(b, kernel.ctaIndex());
    endRow = rows;
    if (columns.isDynamic()) {
      HostDivisor tiles(kernel, hostTilesPerRow());
      Int32 band = tiles.quotient(index);
      Int32 firstColumn = (index - band * tiles.divisor()) * plan.columns();
      return Tile(kernel, plan, source, rows, columns, band * TilePlan::rows, firstColumn);
    }
    Int32 band = index / tilesPerRow(), firstColumn = index % tilesPerRow() * plan.columns();
    if (bands)
      return findTileOfBand(source, band, firstColumn);
    if (!op.getGroups())
      return Tile(kernel, plan, source, rows, columns, band * TilePlan::rows, firstColumn);
    groups.emplace(*op.getGroups(), columns.size, plan.blockSize);
    group = groups->find(band);
    endRow = {ShapedType::kDynamic, group->endRow, groups->divisor()};
    Int32 firstRow = group->firstRow + (band - group->firstBand) * TilePlan::rows;
    return Tile(kernel, plan, source, endRow, columns, firstRow, firstColumn);
  }

  /// A band is a group of its own to what follows.
  Tile findTileOfBand(ElementSource &source, Int32 band, Int32 firstColumn) {
    bands->enter(kernel);
    GroupBands::Band found = bands->find(band);
    group = RowGroups::Group{found.group, found.firstRow, found.endRow, /*firstBand=*/band,
                             /*firstTile=*/Int32(b, int64_t(0))};
    endRow = {ShapedType::kDynamic, found.endRow};
    return Tile(kernel, plan, source, endRow, columns, found.firstRow, firstColumn);
  }

  /// One load where both outputs have one amax.
  Value readAmax(const Output &output) {
    if (!output.amax || op.getPerRow() || (&output != outputs && output.amax == outputs[0].amax))
      return {};
    Value pointer = group ? address(b, output.amax, group->index, 4) : output.amax;
    return load(b, b.getF32Type(), pointer, 4);
  }

  void makeSides(Value amax, Value columnwiseAmax) {
    if (op.hasRowwise())
      makeSide(rowwise, outputs[0], amax, rowShape(), Int32(b, 0));
    if (op.hasColumnwise()) {
      Int32 firstBlock = group ? group->firstRow / plan.blockSize : Int32(b, 0);
      makeSide(columnwise, outputs[1], columnwiseAmax ? columnwiseAmax : amax,
               columnShape(firstBlock), firstBlock);
    }
  }

  OutputWriter::Shape rowShape() {
    OutputWriter::Shape shape{
        endRow,        columns,       columns,
        plan.blockSize, plan.codeBits, isTiled(op.getScales()), std::nullopt};
    stageScales(shape, TilePlan::rows, plan.piecesPerRow(), "rowwise_scales");
    if (!group)
      return shape;
    int64_t blocks = llvm::divideCeil(columns.size, plan.blockSize);
    shape.tileOrigin = {group->firstBand *
                            static_cast<int64_t>(llvm::divideCeil(blocks, hw::scaleBlockColumns)),
                        group->firstRow, Int32(b, 0), Extent{blocks}};
    return shape;
  }

  OutputWriter::Shape columnShape(Int32 firstBlock) {
    OutputWriter::Shape shape{
        columns,        endRow,        rows,
        plan.blockSize, plan.codeBits, isTiled(op.getColumnwiseScales()), std::nullopt};
    stageScales(shape, plan.columns(), plan.blocksPerColumn(), "columnwise_scales");
    if (group)
      shape.tileOrigin = {
          group->firstTile, Int32(b, 0), firstBlock,
          Extent{ShapedType::kDynamic, (group->endRow - group->firstRow) / plan.blockSize}};
    return shape;
  }

  /// Gathers the scales of a CTA that has whole tiles of them.
  void stageScales(OutputWriter::Shape &shape, int64_t tileRows, int64_t blocks, StringRef name) {
    if (!shape.tiledScales || tileRows % hw::scaleBlockRows || blocks % hw::scaleBlockColumns)
      return;
    shape.stagedTiles = blocks / hw::scaleBlockColumns;
    shape.stage = kernel.sharedWords(OutputWriter::stageWords(shape.stagedTiles), name);
  }

  void makeSide(std::optional<Side> &side, const Output &output, Value amax,
                const OutputWriter::Shape &shape, Int32 firstBlock) {
    side.emplace(Side{std::nullopt, OutputWriter(b, output.data, output.scales, shape), amax,
                      firstBlock, op.getPerRow() ? output.amax : Value(), shape.rows,
                      /*table=*/std::nullopt});
    if (noArithmetic)
      return;
    bool isColumnwise = &side == &columnwise;
    Int32 length = shape.columns.in(b);
    Value firstGroup; // rows are counted through all matrices, columns are not
    if (isColumnwise && group && rng) {
      length = length - group->firstRow;
      Value before = arith::ExtUIOp::create(b, b.getI64Type(), group->firstRow / TilePlan::square);
      firstGroup = arith::MulIOp::create(b, before, constI64(b, columns.size));
    }
    side->quantizer.emplace(s, b, op, isColumnwise, amax, rng,
                            (length + (TilePlan::square - 1)) / TilePlan::square, firstGroup);
  }

  /// Threads compute an entry each of the tables that the outputs look factors up in.
  void makeTables(Int32 thread) {
    if (plan.squareBlocks || op.getPerRow() || noArithmetic)
      return;
    auto hasTable = [](const std::optional<Side> &side) {
      return side && side->quantizer->isQuick();
    };
    Side *first = hasTable(rowwise) ? &*rowwise : hasTable(columnwise) ? &*columnwise : nullptr;
    if (!first)
      return;
    bool twice = hasTable(columnwise) && first->amax != columnwise->amax;
    constexpr int64_t bytes = 4 * ScaleTable::kWords;
    Value tables = kernel.sharedWords((twice ? 2 : 1) * ScaleTable::kWords, "factors");
    Int32 number = thread / ScaleTable::kEntries;
    emitWhere(b, number < (twice ? 2 : 1), [&] {
      Value amax = first->amax;
      if (twice)
        amax = arith::SelectOp::create(b, number < 1, amax, columnwise->amax);
      ScaleTable table(s, b, address(b, tables, number, bytes));
      first->quantizer->fillTable(table, amax, thread % ScaleTable::kEntries);
    });
    if (hasTable(rowwise))
      rowwise->table.emplace(s, b, tables);
    if (hasTable(columnwise))
      columnwise->table.emplace(s, b, twice ? advance(b, tables, bytes) : tables);
    NVVM::Barrier0Op::create(b);
    for (std::optional<Side> *side : {&rowwise, &columnwise})
      if (hasTable(*side))
        (*side)->quantizer->useTable(*(*side)->table);
  }

  void allocateShared(Tile &tile) {
    if (sharesCodes())
      codeTile.emplace(kernel, s, plan);
    else if (op.hasColumnwise())
      elementTile.emplace(kernel, tile, transforms);
    if (plan.squareBlocks && op.hasColumnwise())
      squares =
          kernel.sharedWords(TilePlan::rows / TilePlan::square * plan.piecesPerRow(), "squares");
  }

  /// The column-wise codes are those of the rows.
  bool sharesCodes() {
    return plan.squareBlocks && op.hasColumnwise() && op.getRounding() == Rounding::NearestEven;
  }

  //===--- Steps 1 and 2: rows ---------------------------------------------===//

  void emitRows(Tile &tile, ArrayRef<Tile::Piece> pieces) {
    if (elementTile)
      for (const Tile::Piece &piece : pieces)
        elementTile->share(piece);
    if (plan.squareBlocks)
      return emitSquare(tile, pieces);
    if (rowwise && rowwise->table)
      return emitQuickRows(tile, pieces);
    for (const Tile::Piece &piece : pieces)
      if (rowwise)
        writeRow(tile, piece, quantizeRows(*rowwise, tile, piece));
  }

  /// Quantizes as many blocks at a time as there are registers for.
  void emitQuickRows(Tile &tile, ArrayRef<Tile::Piece> pieces) {
    for (; !pieces.empty(); pieces = pieces.drop_front(std::min(pieces.size(), rowsTogether))) {
      SmallVector<SmallVector<Value>> words;
      SmallVector<BlockPlace> places;
      for (const Tile::Piece &piece : pieces.take_front(rowsTogether)) {
        words.push_back(piece.words);
        places.push_back(rowwise->place(rowOf(tile, piece), blockOf(tile, piece)));
      }
      auto blocks = rowwise->quantizer->quantizeTogether(words, places, *rowwise->table);
      for (auto [piece, block] : llvm::zip(pieces, blocks))
        writeRow(tile, piece, block);
    }
  }

  /// Codes and scale of a row-wise block, or of rows of a square block.
  BlockQuantizer::Block quantizeRows(Side &side, Tile &tile, ArrayRef<Tile::Piece> pieces,
                                     Value amax = {}, BlockQuantizer::FoldErrors fold = {}) {
    SmallVector<Value> words;
    SmallVector<BlockPlace> places;
    for (const Tile::Piece &piece : pieces) {
      words.append(piece.words);
      places.push_back(side.place(rowOf(tile, piece), blockOf(tile, piece)));
    }
    side.chooseRow(b, rowOf(tile, pieces.front()));
    return side.quantize(b, plan, words, places, amax, fold);
  }

  void writeRow(Tile &tile, const Tile::Piece &piece, const BlockQuantizer::Block &block) {
    rowwise->writer.write(rowOf(tile, piece), blockOf(tile, piece), block);
  }

  Int32 rowOf(Tile &tile, const Tile::Piece &piece) { return tile.firstRow() + piece.row; }
  Int32 blockOf(Tile &tile, const Tile::Piece &piece) {
    return tile.firstColumn() / plan.blockSize + piece.block;
  }

  /// The thread's rows of a square block.
  void emitSquare(Tile &tile, ArrayRef<Tile::Piece> pieces) {
    Side &side = rowwise ? *rowwise : *columnwise; // codes that the columns share are rounded alike
    Value common = side.quantizer ? squareAmax(side.quantizer->recipe(), pieces) : s.constant(0);
    if (rowwise || codeTile) {
      auto fold = [&](ArrayRef<Value> errors) { return foldErrors(side, tile, pieces, errors); };
      BlockQuantizer::Block result = quantizeRows(side, tile, pieces, common, fold);
      shareSquare(tile, pieces, result);
      if (codeTile)
        common = arith::ExtUIOp::create(b, b.getI32Type(), result.scale);
    }
    // The first row leaves to the columns what the block has in common.
    if (columnwise)
      emitWhere(b, pieces[0].row % TilePlan::square < 1,
                [&] { store(b, common, squareAddress(pieces[0].row, pieces[0].block), 4); });
  }

  /// The rows' codes, to where they are outputs and to where the columns look for them.
  void shareSquare(Tile &tile, ArrayRef<Tile::Piece> pieces, const BlockQuantizer::Block &square) {
    size_t perRow = square.codes.size() / pieces.size();
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      SmallVector<Value> codes(ArrayRef(square.codes).slice(i * perRow, perRow));
      if (rowwise)
        writeRow(tile, piece, {codes, square.scale});
      if (codeTile)
        codeTile->share(piece.row, piece.block, codes);
    }
  }

  Value squareAmax(BlockQuantizer &recipe, ArrayRef<Tile::Piece> pieces) {
    SmallVector<Value> words;
    for (const Tile::Piece &piece : pieces)
      words.append(piece.words);
    return foldLanes(recipe.amax(words, type.getElementType()), [&](Value x, Value y) {
      return recipe.keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
    });
  }

  /// Folds the errors of all rows of a square block in the order of lib/Numerics: rows 8 apart
  /// first, then 4, 2 and 1. Rows that are far apart are in one thread.
  Value foldErrors(Side &side, Tile &tile, ArrayRef<Tile::Piece> pieces, ArrayRef<Value> errors) {
    auto combine = [&](Value x, Value y) { return side.quantizer->recipe().combineErrors(x, y); };
    SmallVector<Value> rest(errors);
    for (auto [error, piece] : llvm::zip_equal(rest, pieces))
      if (Value hasRow = tile.hasRow(piece))
        error = arith::SelectOp::create(b, hasRow, error, s.constant(0));
    for (; rest.size() > 1; rest.truncate(rest.size() / 2))
      for (size_t i = 0; i < rest.size() / 2; ++i)
        rest[i] = combine(rest[i], rest[i + rest.size() / 2]);
    return foldLanes(rest[0], combine);
  }

  /// Folds a value of each of the lanes that have rows of one square block.
  Value foldLanes(Value value, function_ref<Value(Value, Value)> combine) {
    for (int64_t stride = TilePlan::warp / 2; stride >= plan.piecesPerRow(); stride /= 2)
      value = combine(value, valueOfPartner(b, value, stride));
    return value;
  }

  /// The word of shared memory that belongs to a square block.
  Value squareAddress(Int32 row, Int32 block) {
    return address(b, squares, row / TilePlan::square * plan.piecesPerRow() + block, 4);
  }

  //===--- Steps 3 and 4: columns ------------------------------------------===//

  void emitColumns(Tile &tile) {
    int64_t blocks = plan.blocksPerColumn(), wordsPerPass = kTileQuantizeThreads / blocks;
    for (int64_t pass = 0; pass < plan.columnPasses(); ++pass) {
      Int32 block = tile.threadIndex() % blocks;
      Int32 word = tile.threadIndex() / blocks + pass * wordsPerPass;
      SmallVector<Value> words = elementTile->column(word, block * plan.blockSize, plan.blockSize);
      if (columnwise->table && plan.columnsPerWord() == 2)
        emitQuickColumns(tile, word * 2, block, words);
      else
        for (unsigned half = 0; half < plan.columnsPerWord(); ++half)
          emitColumn(tile, word * plan.columnsPerWord() + half, block, words, half);
    }
  }

  void emitQuickColumns(Tile &tile, Int32 column, Int32 block, ArrayRef<Value> words) {
    Int32 row = tile.firstColumn() + column, place = tile.firstRow() / plan.blockSize + block;
    BlockPlace places[] = {columnwise->place(row, place), columnwise->place(row + 1, place)};
    auto blocks = columnwise->quantizer->quantizeColumns(words, places, *columnwise->table);
    for (int64_t half : {0, 1})
      columnwise->writer.write(row + half, place, blocks[half]);
  }

  /// Each warp takes the columns that it has transformed; 8 lanes have the blocks of one.
  void emitTransformed(Tile &tile) {
    Int32 thread = tile.threadIndex();
    auto mask = static_cast<uint16_t>(op.getColumnwiseHadamard()->getSignMask());
    emitWarpTransform(s, b, *elementTile, thread, mask);
    int64_t blocks = plan.blocksPerColumn(), atOnce = TilePlan::warp / blocks;
    Int32 block = thread % blocks, place = tile.firstRow() / plan.blockSize + block;
    Int32 first = thread / TilePlan::warp * kWarpTransform + thread % TilePlan::warp / blocks;
    const int64_t step = columnwise->table ? static_cast<int64_t>(rowsTogether) : 1;
    for (int64_t column = 0; column < kWarpTransform; column += atOnce * step) {
      SmallVector<SmallVector<Value>> words;
      SmallVector<BlockPlace> places;
      for (int64_t i = 0; i < step; ++i) {
        Int32 mine = first + (column + i * atOnce);
        words.push_back(elementTile->transformedBlock(mine, block));
        places.push_back(columnwise->place(tile.firstColumn() + mine, place));
      }
      auto quantized = quantizeTransformed(words, places);
      for (auto [at, result] : llvm::zip_equal(places, quantized))
        columnwise->writer.write(Int32(b, at.row), place, result);
    }
  }

  /// Blocks of the columnwise output, the packed elements of each in `words`.
  SmallVector<BlockQuantizer::Block> quantizeTransformed(ArrayRef<SmallVector<Value>> words,
                                                         ArrayRef<BlockPlace> places) {
    if (columnwise->table)
      return columnwise->quantizer->quantizeTogether(words, places, *columnwise->table);
    columnwise->chooseRow(b, Int32(b, places[0].row));
    return {columnwise->quantizer->quantize(words[0], places[0])};
  }

  void emitColumn(Tile &tile, Int32 column, Int32 block, ArrayRef<Value> words, unsigned half) {
    Value amax;
    if (plan.squareBlocks)
      amax = LLVM::LoadOp::create(
          b, b.getF32Type(), squareAddress(block * plan.blockSize, column / TilePlan::square), 4);
    Int32 row = tile.firstColumn() + column, place = tile.firstRow() / plan.blockSize + block;
    columnwise->chooseRow(b, row);
    columnwise->writer.write(row, place,
                             columnwise->quantizeColumn(b, plan, words, half, row, place, amax));
  }

  /// Square blocks: what the rows chose, transposed.
  void emitCodeColumns(Tile &tile) {
    int64_t blocks = plan.blocksPerColumn(), groups = plan.columns() / CodeTile::width;
    Value takesPart;
    if (groups * blocks < kTileQuantizeThreads)
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

  //===--- The scales that were gathered -----------------------------------===//

  bool isStaged(const std::optional<Side> &side) { return side && side->writer.flushThreads() > 0; }

  /// Stores staged scales. The scales of rows can leave while columns are quantized. `row` and
  /// `element` are where the tile begins in the output.
  void flushScales(std::optional<Side> &side, Int32 thread, Int32 row, Int32 element) {
    if (isStaged(side))
      emitWhere(b, thread < side->writer.flushThreads(),
                [&] { side->writer.flush(thread, row, element / plan.blockSize); });
  }

  QuantizeOp op;
  KernelBuilder kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  RankedTensorType type;
  TilePlan plan;
  Extent rows, columns; ///< extents of the input
  Value hostColumns;    ///< an index; null where they are static
  std::optional<RowGroups> groups;
  std::optional<GroupBands> bands; ///< bands of groups that only the device knows
  std::optional<RowGroups::Group> group; ///< group of the tile
  Extent endRow;                         ///< end of the group
  Output outputs[2];                     ///< row-wise, column-wise
  Value rng;
  bool noArithmetic;
  bool transforms;     ///< true when the tensor core computes the transform
  size_t rowsTogether; ///< row-wise blocks that are quantized together, as registers allow
  std::optional<Side> rowwise, columnwise;
  std::optional<ElementTile> elementTile;
  std::optional<CodeTile> codeTile;
  Value squares; ///< scale of each square block in shared memory, or its amax as f32
};

} // namespace

LogicalResult fp4::lowerTileQuantize(QuantizeOp op, LoweringContext &context) {
  TileQuantizeKernel(op, context).emit();
  return success();
}
