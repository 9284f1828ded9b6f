//===- RowQuantizer.cpp - Codes and scales of a row kernel ----------------===//
#include "Rows/RowQuantizer.h"

#include "Reduce/GridMax.h"
#include "Rows/RowAmax.h"
#include "SideQuantizer.h"

#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunk = RowTeam::kChunk;
/// Chunks of a thread that are quantized together.
constexpr int64_t kTogether = 2;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool hasTiledScales(QuantizeOp op) { return scaleLayout(typeOf(op.getScales())).has_value(); }

int64_t codeBits(QuantizeOp op) { return hasPackedData(op.getFormat()) ? 4 : 8; }

} // namespace

int64_t RowQuantizer::chunksOf(QuantizeOp op) {
  int64_t columns = typeOf(op.getInput()).getDimSize(1), chunks = llvm::divideCeil(columns, kChunk);
  if (op.hasF32Scales())
    return op.getBlock() && op.getBlock()->back() != 128 ? chunks : llvm::alignTo(chunks, 8);
  int64_t perBlock = op.getBlockSize() / kChunk;
  return llvm::alignTo(chunks, perBlock * (hasTiledScales(op) ? hw::scaleBlockColumns : 1));
}

Value RowQuantizer::paddedRows(QuantizeOp op, ImplicitLocOpBuilder &host, Value rows) {
  if (!hasTiledScales(op))
    return rows;
  Value tile = constIndex(host, hw::scaleBlockRows);
  return arith::MulIOp::create(host, arith::CeilDivUIOp::create(host, rows, tile), tile);
}

RowQuantizer::RowQuantizer(QuantizeOp op, KernelBuilder &kernel, RowElements &row,
                           const LoweringContext &context, Value rows, Value amax)
    : op(op), kernel(kernel), b(kernel.body()), row(row), strip{{kernel, row}, {}},
      input(op.getInput()), s(b, context.target), element(typeOf(op.getInput()).getElementType()),
      noArithmetic(context.noArithmetic), rows(rows) {
  s.clampRandom();
  if (op.hasF32Scales())
    ofTensor = {s.constant(0)};
  if (amax && !op.getPerRow()) { // under way while the row is reduced
    RowTeam &team = row.team();
    kernel.prefetch(amax, /*bytes=*/4,
                    arith::AndIOp::create(b, team.paddedRow() < 1, team.lane() < 1));
    ofTensor = {load(b, b.getF32Type(), amax, 4)};
  } else {
    amaxes = amax;
  }
  if (op.getRng() && !noArithmetic)
    random.emplace(
        b, kernel.input(op.getRng()),
        randomSideOf(op, /*columnwise=*/false, constI32(b, chunksOfRow(row.team().columns()))));
}

bool RowQuantizer::isOfWholeRows() const {
  QuantizeOp quantize = op;
  return quantize.hasF32Scales() && quantize.getBlock() && quantize.getBlock()->back() != 128;
}

int64_t RowQuantizer::lanesOfBlock() const {
  QuantizeOp quantize = op;
  return quantize.hasF32Scales() ? 8 : quantize.getBlockSize() / kChunk;
}

Value RowQuantizer::larger(Value x, Value y) {
  return quantizer().keepsNaN() ? s.maximumOrNaN(x, y) : s.maximumNumber(x, y);
}

void RowQuantizer::beginRow() {
  if (skipsPadding()) {
    ofMatrix = scf::IfOp::create(b, row.team().isRow(), /*withElseRegion=*/true);
    b.setInsertionPointToStart(ofMatrix.thenBlock());
  }
  strip.turns.take();
}

bool RowQuantizer::skipsPadding() const {
  return shapeOf(QuantizeOp(op).getBlockSize()).paddedRows && row.team().isCta() && row.isKept();
}

Value RowQuantizer::hostCtas(Value hostRows) {
  return strip.turns.ctas(paddedRows(op, kernel.host(), hostRows));
}

/// The amaxes of rows are under way while these are reduced.
void RowQuantizer::loadAmaxes() {
  if (amaxes)
    row.team().forEachRow([&] {
      Value place = address(b, amaxes, row.team().row(), 4);
      ofTensor.push_back(load(b, b.getF32Type(), place, 4));
    });
}

void RowQuantizer::beginStrip(Value hostRows) {
  bool isTiled = hasTiledScales(op);
  strip.turns.begin({hostRows, isTiled, skipsPadding() ? rows : Value()}, [&] {
    beginTensor();
    return factors.table.has_value();
  });
  loadAmaxes();
  if (strip.turns.strip && isTiled)
    strip.scales.emplace(kernel, RowBlocks::countPerRow(shapeOf(op.getBlockSize())) /
                                     hw::scaleBlockColumns);
}

void RowQuantizer::endRow() {
  endMatrix();
  if (strip.turns.strip)
    strip.turns.strip->hoist(scales->base);
  strip.turns.end();
  if (strip.scales)
    strip.scales->store(scales->base, *strip.turns.strip);
}

/// Ends the branch for rows of the matrix. Rows that pad scales are the last of a strip, so that no
/// row behind them overwrites sums that threads still read.
void RowQuantizer::endMatrix() {
  if (!ofMatrix)
    return;
  scales->base.getDefiningOp()->moveBefore(ofMatrix); // both regions read the argument
  b.setInsertionPointToStart(ofMatrix.elseBlock());
  Value zero = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
  row.team().forEachChunk(/*unrolled=*/true,
                          [&](const Chunk &chunk) { storeScale(zero, chunk, row.ownRow()); });
  b.setInsertionPointAfter(ofMatrix);
}

/// Returns true when blocks have factors that follow from their scale and one amax that the program
/// is given, of rows whose threads meet at a barrier anyway.
bool RowQuantizer::looksFactorsUp() {
  RowTeam &team = row.team();
  bool isGiven = ofTensor.size() == 1 && op.getAmax() && !op.getPerRow() && !nanOfAmax;
  return isGiven && row.isKept() && team.isCta() && kernel.numThreads() >= ScaleTable::kEntries &&
         team.chunksPerThread() >= 4 &&
         quantizer().isQuick(element, random.has_value());
}

/// Rows of a strip have what follows from the tensor alone from before the loop.
void RowQuantizer::beginTensor() {
  if (noArithmetic || !quantizers.empty())
    return;
  quantizers.push_back(std::make_unique<BlockQuantizer>(s, b, op.getRecipe().getDecisions()));
  if (!looksFactorsUp()) {
    if (nanOfAmax || op.getPerRow())
      quantizers.clear();
    else
      quantizer().setTensorAmax(ofTensor.empty() ? Value() : ofTensor.front());
    return;
  }
  factors.table.emplace(s, b, kernel.sharedWords(ScaleTable::kWords, "factors"));
  quantizer().setTensorAmax(ofTensor.front()); // blocks that are exceptional need it
  Int32 thread = row.team().lane();
  emitWhen(b, thread < ScaleTable::kEntries, [&] {
    quantizer().fillTable(*factors.table, ofTensor.front(), thread, element, random.has_value());
  });
  factors.barriersBefore = row.team().barriers();
}

void RowQuantizer::begin() {
  if (noArithmetic)
    return;
  if (factors.table) {
    if (!strip.turns.strip && row.team().barriers() == factors.barriersBefore)
      NVVM::Barrier0Op::create(b);
    return quantizer().useTable(*factors.table);
  }
  if (nanOfAmax)
    ofTensor = emitAmaxesOfRows(row, s, input, *nanOfAmax);
  for (size_t i = quantizers.size(); i < std::max<size_t>(ofTensor.size(), 1); ++i) {
    quantizers.push_back(
        std::make_unique<BlockQuantizer>(s, b, op.getRecipe().getDecisions()));
    quantizers.back()->setTensorAmax(ofTensor.empty() ? Value() : ofTensor[i]);
  }
  if (isOfWholeRows())
    rowAmaxes = emitAmaxesOfRows(
        row, s, input, quantizer().keepsNaN() ? NanPolicy::Propagate : NanPolicy::Drop);
}

/// The amax of a block that several lanes have; null where one has it.
Value RowQuantizer::blockAmax(ArrayRef<Value> words) {
  if (isOfWholeRows())
    return rowAmaxes[row.team().selectedRow()];
  if (lanesOfBlock() == 1)
    return {};
  Value most = quantizer().amax(words, element);
  for (int64_t distance = lanesOfBlock() / 2; distance; distance /= 2)
    most = larger(most, valueOfPartner(b, most, distance));
  return op.hasF32Scales() ? s.fromBits(magnitudeBits(b, s, most)) : most;
}

void RowQuantizer::quantize(ArrayRef<Value> words, const Chunk &chunk) {
  if (noArithmetic) {
    Value number = ofTensor.empty() ? Value() : ofTensor.front(); // a load that the twin keeps
    BlockQuantizer::Block mixed = mixBits(b, words, number, kChunk * codeBits(op) / 32);
    if (op.hasF32Scales())
      mixed.scale = words.back();
    return storeBlock(mixed, chunk);
  }
  if (factors.table) {
    factors.waiting.push_back({SmallVector<Value>(words), chunk});
    if (int64_t(factors.waiting.size()) == kTogether ||
        chunk.index + 1 == row.team().chunksPerThread())
      quantizeTogether();
    return;
  }
  storeBlock(quantizer().quantize(words, element, blockAmax(words), /*fold=*/{}, drawnFor(chunk)),
             chunk);
}

SmallVector<Value> RowQuantizer::drawnFor(const Chunk &chunk) {
  SmallVector<Value> drawn;
  if (random)
    drawn = random->words(row.team().row(), chunk.number, kChunk);
  return drawn;
}

/// Quantizes the chunks that wait. One branch for all of them leaves more to do between two.
void RowQuantizer::quantizeTogether() {
  SmallVector<BlockElements> blocks;
  SmallVector<Value> drawn;
  for (const Waiting &one : factors.waiting) {
    blocks.push_back(BlockElements::finite(s, one.words, element));
    llvm::append_range(drawn, drawnFor(one.chunk));
  }
  SmallVector<BlockQuantizer::Block> results =
      quantizer().quantizeTogether(blocks, *factors.table, drawn);
  for (auto [result, one] : llvm::zip_equal(results, factors.waiting))
    storeBlock(result, one.chunk);
  factors.waiting.clear();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Codes are placed by chunks, and scales by blocks.
RowBlocks::Shape RowQuantizer::shapeOf(int64_t blockSize) const {
  QuantizeOp quantize = op;
  RankedTensorType type = typeOf(quantize.getInput());
  bool isTiled = hasTiledScales(quantize);
  bool isRagged = type.isDynamicDim(0) || type.getDimSize(0) % hw::scaleBlockRows != 0;
  RowBlocks::Shape shape{type.getDimSize(1), blockSize, type.getElementTypeBitWidth() / 8,
                         codeBits(quantize), isTiled,   isTiled && isRagged};
  shape.namesRows = true;
  shape.tileBlocks = hw::scaleBlockColumns * (quantize.getBlockSize() / blockSize);
  return shape;
}

/// The place of block number `block` of the row, which begins with `chunk`.
RowBlocks::Position RowQuantizer::positionOf(const RowBlocks::Shape &shape, const Chunk &chunk,
                                             Int32 block, const RowElements::ResultRow &to) {
  int64_t perRow = RowBlocks::countPerRow(shape);
  int64_t ofMatrix = llvm::divideCeil(shape.columns, shape.blockSize);
  RowTeam &team = row.team();
  RowBlocks::Position at;
  at.paddedRow = team.paddedRow();
  at.row = to.number;
  at.paddedColumn = block;
  at.column = minimum(block, Int32(b, ofMatrix - 1));
  at.index = to.number * perRow + Int32(b, at.column);
  Value isInRow = block < perRow, isColumn = block < ofMatrix;
  if (!shape.tiledScales) {
    at.isMine = arith::AndIOp::create(b, to.exists, isInRow);
    return at;
  }
  Int32 all = (Int32(b, rows) + (hw::scaleBlockRows - 1)) / hw::scaleBlockRows * hw::scaleBlockRows;
  at.isMine = arith::AndIOp::create(b, team.paddedRow() < all, isInRow);
  at.isMatrix = arith::AndIOp::create(b, to.exists, isColumn);
  return at;
}

void RowQuantizer::storeBlock(const BlockQuantizer::Block &block, const Chunk &chunk) {
  const RowElements::ResultRow &ofData = row.selectedOf(data->rows);
  if (op.hasF32Scales()) {
    Value exists = ofData.exists;
    if (chunk.exists)
      exists = arith::AndIOp::create(b, exists, chunk.exists);
    Value line = address(b, data->base, ofData.number, row.team().columns());
    emitWhen(b, exists,
             [&] { storeValues(b, block.codes, address(b, line, chunk.number, kChunk)); });
    return storeF32Scale(block.scale, chunk);
  }
  RowBlocks::Shape ofCodes = shapeOf(kChunk);
  RowBlocks::Position at = positionOf(ofCodes, chunk, chunk.number, ofData);
  RowBlocks(b, ofCodes, rows).storeCodes(data->base, at, block.codes);
  storeScale(block.scale, chunk, row.selectedOf(scales->rows));
}

void RowQuantizer::storeScale(Value scale, const Chunk &chunk, const RowElements::ResultRow &to) {
  RowBlocks::Shape shape = shapeOf(op.getBlockSize());
  RowBlocks::Position at = positionOf(shape, chunk, chunk.number / lanesOfBlock(), to);
  if (lanesOfBlock() > 1)
    at.isMine = arith::AndIOp::create(b, at.isMine, chunk.number % lanesOfBlock() < 1);
  if (!strip.scales)
    return RowBlocks(b, shape, rows).storeScale(scales->base, at, scale);
  if (at.isMatrix) {
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(b.getI8Type(), 0));
    scale = arith::SelectOp::create(b, at.isMatrix, scale, zero);
  }
  emitWhen(b, at.isMine,
           [&] { strip.scales->leave(scale, strip.turns.strip->turn(), {b, at.paddedColumn}); });
}

void RowQuantizer::storeF32Scale(Value bits, const Chunk &chunk) {
  int64_t blocks = isOfWholeRows() ? 1 : llvm::divideCeil(row.team().columns(), 128);
  Value isFirst = isOfWholeRows() ? chunk.number < 1 : chunk.number % lanesOfBlock() < 1;
  const RowElements::ResultRow &to = row.selectedOf(scales->rows);
  Value exists = arith::AndIOp::create(b, to.exists, isFirst);
  if (chunk.exists)
    exists = arith::AndIOp::create(b, exists, chunk.exists);
  Value line = address(b, scales->base, to.number, blocks * 4);
  Int32 block = isOfWholeRows() ? Int32(b, 0) : chunk.number / lanesOfBlock();
  emitWhen(b, exists, [&] { store(b, bits, address(b, line, block, 4), 4); });
}
