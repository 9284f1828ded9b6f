//===- RowElements.cpp - The values that a row kernel computes ------------===//
#include "Rows/RowElements.h"

#include "ElementwiseEmitter.h"
#include "Reduce/GridMax.h"
#include "Rowwise/RowBlocks.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Fp4/IR/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunk = RowTeam::kChunk, kLanesAtOnce = 2;
/// The widest access.
constexpr int64_t kAccessBytes = 16;
/// Words up to which columns of the last loop are kept, too: loads do not begin behind the sums.
constexpr int64_t kFewWords = 24;
/// Bytes of the number of a row that is gathered (InputRows::table).
constexpr int64_t kRowNumberBytes = 8;
/// Words of a thread, of chunks that a step of a loop loads together.
constexpr int64_t kWordsOfStep = 32;

int64_t bytesOf(RankedTensorType type) { return type.getElementTypeBitWidth() / 8; }

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns true when a thread with both halves of a row loads less. Only a warp can sum halves.
bool gainsFromHalves(Operation *op, int64_t columns) {
  if (!op)
    return false;
  SmallVector<Operation *> steps;
  llvm::append_range(steps, prologuesOf(op));
  steps.push_back(op);
  auto quantize = dyn_cast<QuantizeOp>(op);
  bool reduces = llvm::any_of(steps, isRowReduction) || isa<AmaxOp>(op) ||
                 (quantize && (amaxOfRows(quantize) || quantize.hasF32Scales()));
  if (reduces && columns > 2 * kWarp * kChunk)
    return false;
  return llvm::any_of(steps, [&](Operation *step) {
    auto generic = dyn_cast<linalg::LinalgOp>(step);
    return generic && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
             AffineExpr column = indexPairOf(generic, input).column;
             return column && isIndexedByExpressions(generic, input) &&
                    (readsOtherHalf(column, columns, kChunk) || repeatsInHalves(column, columns));
           });
  });
}

} // namespace

KernelBuilder fp4::makeRowKernel(Operation *op, StringRef kind, LoweringContext &context) {
  KernelBuilder kernel(op, kind, context);
  kernel.standAlone();
  return kernel;
}

//===----------------------------------------------------------------------===//
// Steps and sources
//===----------------------------------------------------------------------===//

RowElements::RowElements(KernelBuilder &kernel, Operation *op, Value rows, int64_t columns,
                         int64_t chunks, bool noArithmetic)
    : kernel(kernel), b(kernel.body()),
      rowTeam(kernel, columns, chunks, rows, gainsFromHalves(op, columns)),
      noArithmetic(noArithmetic) {
  if (op) {
    steps = prologuesOf(op);
    before = topKOf(op);
  }
  for (linalg::GenericOp step : steps)
    addStep(step);
  if (auto generic = dyn_cast_if_present<linalg::GenericOp>(op))
    addStep(generic);
  else if (op)
    for (Value operand : isa<TopKOp>(op) ? op->getOperands() : op->getOperands().take_front())
      addSource({operand, /*hasRows=*/true, /*hasColumns=*/true});
  // Two halves of a row are kept as one chunk is: lanes fold them together.
  bool isPair = rowTeam.hasHalves() && rowTeam.chunksPerThread() == 2;
  kept = isPair || keepsRow(wordsOfThread(/*ofRowsAlone=*/true),
                            rowTeam.chunksPerThread() * rowTeam.rowsOfThread());
  keepsColumns = kept && (rowTeam.rowsOfThread() > 1 ||
                          wordsOfThread(/*ofRowsAlone=*/false) <= kFewWords);
  prefetch();
  if (!kept)
    loadTogether();
  else if (streamsRows(op))
    policy = kernel.policyOfLoads(rows, bytesOfRows(),
                                  op && isRowReduction(op) ? Eviction::First : Eviction::Last);
}

/// Asks for what the thread will load at places that it knows: elements of its rows, and in the
/// first thread of a row numbers of it, also those of the rows that it gathers. The first row asks
/// for columns.
void RowElements::prefetch() {
  auto prefetchNumber = [&](const Source &source, Value base, int64_t bytes) {
    Value isFirst = rowTeam.lane() < 1;
    Value mine = source.operand.hasRows ? rowTeam.isRow() : Value(rowTeam.paddedRow() < 1);
    kernel.prefetch(source.operand.hasRows ? address(b, base, rowIndexOf(source.operand), bytes)
                                           : base,
                    bytes, arith::AndIOp::create(b, isFirst, mine));
  };
  for (auto &[key, source] : sources) {
    if (!kernel.takesTurns() || !kept || (source.operand.column && !source.rows.table))
      continue;
    int64_t bytes = bytesOf(source.type);
    rowTeam.forEachRow([&, &source = source] {
      if (source.rows.table)
        return prefetchNumber(source, source.rows.table, kRowNumberBytes);
      if (!source.operand.hasColumns)
        return prefetchNumber(source, source.rows.base, bytes);
      Value mine = source.operand.hasRows ? rowTeam.isRow() : Value(rowTeam.paddedRow() < 1);
      rowTeam.forEachChunk(/*unrolled=*/true, [&](const Chunk &chunk) {
        kernel.prefetch(placeOf(source, chunk, 0), kChunk * bytes,
                        chunk.exists ? arith::AndIOp::create(b, mine, chunk.exists).getResult()
                                     : mine);
      });
    });
  }
}

/// Has loops over chunks load the rows of several chunks at once: as many as registers take, where
/// few chunks do not exist.
void RowElements::loadTogether() {
  int64_t ofThread = rowTeam.chunksPerThread();
  if (rowTeam.hasHalves())
    return visitTogether(/*count=*/2);
  int64_t count = kWordsOfStep * ofThread / wordsOfThread(/*ofRowsAlone=*/true);
  while (count > 1 && llvm::alignTo(ofThread, count) - ofThread > ofThread / 8)
    --count;
  visitTogether(std::max<int64_t>(count, 1));
}

void RowElements::visitTogether(int64_t count) {
  rowTeam.visitTogether(count, [this](ArrayRef<Chunk> chunks) {
    for (auto &[key, source] : sources)
      if (source.operand.hasColumns && source.operand.hasRows)
        source.kept = llvm::map_to_vector(
            chunks, [&, &source = source](const Chunk &chunk) { return load(source, chunk); });
  });
}

/// Drops what belongs to the chunks of one step.
void RowElements::forget() {
  computed.clear();
  if (!kept)
    for (auto &[key, source] : sources)
      source.kept.clear();
}

void RowElements::addStep(linalg::GenericOp op) {
  auto linalgOp = cast<linalg::LinalgOp>(op.getOperation());
  bool isOfNumbers = !isRowReduction(op) && isNumbersOfRows(op.getResult(0).getType());
  auto unlessLoop = [](AffineExpr index) {
    return isa_and_present<AffineDimExpr>(index) ? AffineExpr() : index;
  };
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto [row, column] = indexPairOf(linalgOp, input);
    Operand operand{input->get(), bool(row), !isOfNumbers && column, unlessLoop(row)};
    if (operand.hasColumns)
      operand.column = unlessLoop(column);
    operandsOf[op].push_back(operand);
    addSource(operand);
  }
  stepOf[op.getResult(0)] = op;
}

void RowElements::addSource(const Operand &operand) {
  if (stepOf.contains(operand.tensor) || (before && operand.tensor.getDefiningOp() == before))
    return;
  auto [it, isNew] = sources.insert({keyOf(operand), Source()});
  if (!isNew)
    return;
  Source &source = it->second;
  source.operand = operand;
  source.type = typeOf(operand.tensor);
  if ((operand.hasRows && operand.hasColumns) || gatherOf(operand.tensor))
    source.rows = kernel.inputRows(operand.tensor);
  else
    source.rows.base = kernel.input(operand.tensor);
}

RowElements::Key RowElements::keyOf(const Operand &operand) {
  MLIRContext *context = operand.tensor.getContext();
  SmallVector<AffineExpr> index;
  if (operand.hasRows)
    index.push_back(operand.row ? operand.row : getAffineDimExpr(0, context));
  if (operand.hasColumns)
    index.push_back(operand.column ? operand.column : getAffineDimExpr(1, context));
  return {operand.tensor, AffineMap::get(/*dimCount=*/2, /*symbolCount=*/0, index, context)};
}

/// Words of a thread of the sources that have elements of each row, or of all that have columns.
int64_t RowElements::wordsOfThread(bool ofRowsAlone) {
  int64_t words = 0;
  for (auto &[key, source] : sources)
    if (source.operand.hasColumns && (!ofRowsAlone || source.operand.hasRows)) {
      bool isOfOne = !source.operand.hasRows || isOfAllRows(source.operand);
      words += kChunk * bytesOf(source.type) / 4 * chunksOf(source.operand) *
               (isOfOne ? 1 : rowTeam.rowsOfThread());
    }
  return words;
}

/// Chunks that a thread loads. One with both halves of a row has what one reads of the other.
int64_t RowElements::chunksOf(const Operand &operand) {
  int64_t chunks = rowTeam.chunksPerThread(), columns = rowTeam.columns();
  if (!rowTeam.hasHalves() || !operand.column)
    return chunks;
  if (readsOtherHalf(operand.column, columns, kChunk))
    return 0;
  return repeatsInHalves(operand.column, columns) ? chunks / 2 : chunks;
}

RowElements::Source &RowElements::sourceOf(const Operand &operand) {
  return sources.find(keyOf(operand))->second;
}

void RowElements::begin(Value hostRows, llvm::function_ref<void()> meanwhile) {
  for (linalg::GenericOp step : steps)
    if (isStored(step))
      stored.push_back({step, kernel.output(step.getResult(0), hostRows)});
  for (auto &[key, source] : sources)
    if (source.rows.table)
      forEachRowOf(source, [&, &source = source] { findGathered(source); });
  keepWords();
  for (auto &[key, source] : sources)
    if (!source.operand.hasColumns)
      rowTeam.forEachRow([&, &source = source] { loadNumber(source); });
  if (noArithmetic)
    return;
  meanwhile();
  for (linalg::GenericOp step : steps)
    if (isRowReduction(step) || isNumbersOfRows(step.getResult(0).getType()))
      numbers[step.getResult(0)] = computeNumbers(step);
}

/// Loads what registers keep: the chunks of each row, and columns once for all rows.
void RowElements::keepWords() {
  for (auto &[key, source] : sources) {
    if (!source.operand.hasColumns || !(source.operand.hasRows ? kept : keepsColumns) ||
        !source.kept.empty() || source.shared || isOfOwnHalves(source.operand))
      continue;
    auto keep = [&, &source = source](const Chunk &chunk) {
      source.kept.push_back(load(source, chunk));
    };
    if (source.operand.hasRows && !isOfAllRows(source.operand))
      forEachChunk(keep);
    else
      rowTeam.forEachChunk(kept, keep);
  }
}

/// Loads the number of the selected row, or of the tensor.
void RowElements::loadNumber(Source &source) {
  const Operand &operand = source.operand;
  Value from = source.rows.table ? rowOf(source) : source.rows.base;
  if (operand.hasRows && !source.rows.table)
    from = address(b, from, rowIndexOf(operand), bytesOf(source.type));
  Value loaded = fp4::load(b, source.type.getElementType(), from, bytesOf(source.type));
  loaded = unlessNegative(source, loaded);
  if (source.type.getElementType().isInteger()) {
    source.numbers.push_back(arith::BitcastOp::create(b, b.getF32Type(), loaded));
    return;
  }
  auto one = VectorType::get(1, source.type.getElementType());
  Value wide = widenToF32(b, vector::BroadcastOp::create(b, one, loaded));
  source.numbers.push_back(vector::ExtractOp::create(b, wide, 0));
}

void RowElements::forEachChunk(llvm::function_ref<void(const Chunk &)> body) {
  rowTeam.forEachRow([&] {
    rowTeam.forEachChunk(kept, [&](const Chunk &chunk) {
      computed.clear();
      body(chunk);
    });
  });
  forget();
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Int32 RowElements::rowIndexOf(const Operand &operand) {
  return operand.row ? emitIndex(operand.row, rowTeam.row()) : rowTeam.row();
}

/// The address of the selected row of a source.
Value RowElements::rowOf(const Source &source) {
  return source.places.empty() ? placeOfRow(source) : source.places[placeOfSelected(source)];
}

Value RowElements::placeOfRow(const Source &source) {
  return source.operand.hasRows ? source.rows.at(b, rowIndexOf(source.operand)) : source.rows.base;
}

/// The place of an element of a chunk. Chunks that do not exist read the last one of the row.
Value RowElements::placeOf(const Source &source, const Chunk &chunk, int64_t element) {
  Value row = rowOf(source);
  Int32 number = chunk.number;
  if (chunk.exists)
    number = minimum(number, Int32(b, llvm::divideCeil(rowTeam.columns(), kChunk) - 1));
  Value first = address(b, row, number, kChunk * bytesOf(source.type));
  return advance(b, first, element * bytesOf(source.type));
}

/// An only row begins where memory does, others at multiples of their bytes or of a pitch.
IndexedRow RowElements::indexedRowOf(const Source &source) {
  int64_t bytes = bytesOf(source.type), unit = kAccessBytes;
  if (source.operand.hasRows)
    unit = std::gcd(source.type.getShape().back() * bytes, source.rows.widestAccess(kAccessBytes));
  return {source.operand.column, bytes, unit};
}

/// The words of a chunk, in accesses that its row is a multiple of. An access behind the end of the
/// row reads the beginning of the chunk instead.
SmallVector<Value> RowElements::load(const Source &source, const Chunk &chunk) {
  SmallVector<Value> words = loadRow(source, chunk);
  for (Value &word : words)
    word = unlessNegative(source, word);
  return words;
}

SmallVector<Value> RowElements::loadRow(const Source &source, const Chunk &chunk) {
  int64_t bytes = bytesOf(source.type), all = kChunk * bytes;
  if (source.operand.column)
    return loadIndexed(rowTeam, rowOf(source), indexedRowOf(source), chunk);
  int64_t access = std::gcd(rowTeam.columns() * bytes, source.rows.widestAccess(kAccessBytes));
  if (!rowTeam.residue())
    return loadWords(b, placeOf(source, chunk, 0), all / 4, access,
                     isKeptRow(source) ? policy : Value());
  SmallVector<Value> words;
  Value start = placeOf(source, chunk, 0), half;
  for (int64_t byte = 0; byte < all; byte += access) {
    Value from = advance(b, start, byte);
    if (byte >= rowTeam.residue() * bytes)
      from = arith::SelectOp::create(b, chunk.isLast, start, from);
    if (access >= 4) {
      llvm::append_range(words, loadWords(b, from, access / 4, access));
      continue;
    }
    Value loaded = arith::ExtUIOp::create(b, b.getI32Type(), fp4::load(b, b.getI16Type(), from, 2));
    if (half)
      words.push_back(arith::OrIOp::create(
          b, half, arith::ShLIOp::create(b, loaded, constI32(b, 16)).getResult()));
    half = half ? Value() : loaded;
  }
  return words;
}

SmallVector<Value> RowElements::load(const Operand &operand, const Chunk &chunk) {
  Source &source = sourceOf(operand);
  if (source.kept.empty() || chunk.isOther)
    return load(source, chunk);
  bool isOfRow = kept && source.operand.hasRows && !isOfAllRows(source.operand);
  int64_t before = isOfRow ? int64_t(rowTeam.selectedRow()) * rowTeam.chunksPerThread() : 0;
  return source.kept[size_t(before + chunk.index)];
}

/// The elements of a tensor in memory, as f32.
Value RowElements::loadElements(const Operand &operand, const Chunk &chunk) {
  if (Source &source = sourceOf(operand); source.shared && !chunk.isOther)
    return loadShared(source, chunk);
  if (isOfOwnHalves(operand)) {
    std::optional<ChunkWindow> window = chunkWindowOf(operand.column, rowTeam.columns(), kChunk);
    std::optional<Chunk> half = halfOf(operand, chunk);
    return inLaneOrder(b, loadElements({operand.tensor, true, true}, half.value_or(chunk)),
                       *window);
  }
  SmallVector<Value> words = load(operand, chunk);
  if (operand.column)
    return widenToF32(b, fp4::elementsOf(rowTeam, words, typeOf(operand.tensor).getElementType(),
                                         indexedRowOf(sourceOf(operand))));
  return widened(words, typeOf(operand.tensor));
}

//===----------------------------------------------------------------------===//
// Elements and numbers
//===----------------------------------------------------------------------===//

Value RowElements::argument(const Operand &operand, const Chunk &chunk) {
  if (!operand.hasColumns)
    return vector::BroadcastOp::create(b, VectorType::get(kChunk, b.getF32Type()),
                                       argumentOfNumber(operand));
  if (!stepOf.contains(operand.tensor) && !given.contains(operand.tensor))
    return loadElements(operand, chunk);
  return operand.column ? computeIndexed(operand, chunk) : widened(operand.tensor, chunk);
}

/// The elements of a step, whose pairs are widened from words.
Value RowElements::widened(Value tensor, const Chunk &chunk) {
  Value found = elements(tensor, chunk);
  auto wide = found.getDefiningOp<arith::ExtFOp>();
  return wide ? widenToF32(b, wide.getIn()) : found;
}

/// Elements of a step at other columns: those of whole chunks, which another lane has or the thread
/// computes again, or of the same one in another order.
Value RowElements::computeIndexed(const Operand &operand, const Chunk &chunk) {
  std::optional<ChunkWindow> window = chunkWindowOf(operand.column, rowTeam.columns(), kChunk);
  if (window->isOwn)
    return inLaneOrder(b, widened(operand.tensor, chunk), *window);
  Int32 number = firstColumn(operand.column, *window, chunk.number) / kChunk;
  if (chunk.exists) // a chunk that does not exist finds one that does
    number = minimum(number, Int32(b, rowTeam.columns() / kChunk - 1));
  if (std::optional<Chunk> half = halfOf(operand, chunk)) {
    auto ofThis = std::exchange(computed, decltype(computed)());
    Value found = widened(operand.tensor, *half);
    computed = std::move(ofThis);
    return inLaneOrder(b, found, *window);
  }
  if (rowTeam.isInWarp() && !chunk.isOther)
    return inLaneOrder(b, fromLane(operand.tensor, chunk, number), *window);
  Chunk other{.index = 0, .number = number, .exists = {}, .isLast = {}, .isOther = true};
  return inLaneOrder(b, widened(operand.tensor, other), *window);
}

/// The other chunk of this thread where an operand reads that.
std::optional<RowElements::Chunk> RowElements::halfOf(const Operand &operand, const Chunk &chunk) {
  bool isHalf = operand.column && readsOtherHalf(operand.column, rowTeam.columns(), kChunk);
  return isHalf ? rowTeam.otherHalf(chunk, kept) : std::nullopt;
}

/// The elements of a step that the lane with chunk `number` has, in the words of the step's type.
Value RowElements::fromLane(Value tensor, const Chunk &chunk, Int32 number) {
  RankedTensorType type = typeOf(tensor);
  SmallVector<Value> words = packed(elements(tensor, chunk), type);
  for (Value &word : words)
    word = rowTeam.wordOf(word, number);
  return widened(words, type);
}

/// The elements of a chunk that are packed in words, as f32.
Value RowElements::widened(ValueRange words, RankedTensorType type) {
  auto bits = VectorType::get(int64_t(words.size()), b.getI32Type());
  Value vector = vector::FromElementsOp::create(b, bits, words);
  auto elements = VectorType::get(kChunk, type.getElementType());
  return widenToF32(b, vector::BitCastOp::create(b, elements, vector));
}

/// The loops that the body of `op` may read, for each element of a chunk.
SmallVector<Value> RowElements::loopsOf(linalg::GenericOp op, const Chunk &chunk) {
  if (loopsReadBy(*op.getBody()).empty())
    return {};
  auto type = VectorType::get(kChunk, b.getI32Type());
  Value row = vector::BroadcastOp::create(b, type, Value(rowTeam.row()));
  Value first = vector::BroadcastOp::create(b, type, Value(chunk.number * kChunk));
  Value lanes = arith::ConstantOp::create(
      b, DenseIntElementsAttr::get(type, llvm::to_vector(llvm::seq<int32_t>(0, kChunk))));
  return {row, arith::AddIOp::create(b, first, lanes)};
}

Value RowElements::argumentOfNumber(const Operand &operand) {
  return stepOf.contains(operand.tensor) ? number(operand.tensor)
                                         : sourceOf(operand).numbers[rowTeam.selectedRow()];
}

Value RowElements::number(Value tensor) {
  return numbers.find(tensor)->second[rowTeam.selectedRow()];
}

SmallVector<Value> RowElements::results(linalg::GenericOp op, const Chunk &chunk) {
  SmallVector<Value> arguments;
  for (const Operand &operand : operandsOf[op])
    arguments.push_back(argument(operand, chunk));
  Block &body = *op.getBody();
  return emitQuickElementwise(b, body, arguments, elementwiseResults(body), body.getTerminator(),
                              kLanesAtOnce, loopsOf(op, chunk));
}

Value RowElements::elements(Value tensor, const Chunk &chunk) {
  if (Value known = given.lookup(tensor))
    return known;
  auto step = stepOf.find(tensor);
  if (step == stepOf.end())
    return loadElements({tensor, /*hasRows=*/true, /*hasColumns=*/true}, chunk);
  if (chunk.isOther)
    return results(step->second, chunk).front();
  if (Value known = computed.lookup(tensor))
    return known;
  Value value = results(step->second, chunk).front();
  computed[tensor] = value;
  return value;
}

/// An elementwise operation on numbers of rows, for the selected row.
Value RowElements::computeNumber(linalg::GenericOp op) {
  SmallVector<Value> arguments;
  for (const Operand &operand : operandsOf[op])
    arguments.push_back(vector::BroadcastOp::create(b, VectorType::get(1, b.getF32Type()),
                                                    argumentOfNumber(operand)));
  Value result = emitElementwise(b, *op.getBody(), arguments, kLanesAtOnce).front();
  return vector::ExtractOp::create(b, result, 0);
}

/// A reduction of rows, or an elementwise operation on numbers of rows: a number for each row.
SmallVector<Value> RowElements::computeNumbers(linalg::GenericOp op) {
  Block &body = *op.getBody();
  SmallVector<Value> ofRows;
  if (!isRowReduction(op)) {
    rowTeam.forEachRow([&] { ofRows.push_back(computeNumber(op)); });
    return ofRows;
  }
  Value element = combinedElementOf(op);
  auto elementsOf = [&](const Chunk &chunk) -> Value {
    SmallVector<Value> arguments;
    for (const Operand &operand : operandsOf[op])
      arguments.push_back(argument(operand, chunk));
    return emitQuickElementwise(b, body, arguments, element, combiningOpOf(op), kLanesAtOnce,
                                loopsOf(op, chunk))
        .front();
  };
  OpOperand *selected = given.empty() ? selectedColumnOf(op) : nullptr;
  if (!selected)
    return combine(combinationOf(op), initialOf(op), elementsOf);
  // A row is not folded for one of its elements, and threads do not wait for each other.
  rowTeam.forEachRow([&] {
    Value number = argumentOfNumber(operandsOf[op][selected->getOperandNumber()]);
    Chunk chunk = rowTeam.chunkOf({b, arith::BitcastOp::create(b, b.getI32Type(), number)});
    ofRows.push_back(
        rowTeam.combineOne(combinationOf(op), initialOf(op), chunk, elementsOf(chunk)));
  });
  return ofRows;
}

SmallVector<Value> RowElements::combine(numerics::ElementOp combination, float initial,
                                        llvm::function_ref<Value(const Chunk &)> elementsOf) {
  auto ofChunk = [&](const Chunk &chunk) {
    computed.clear();
    return elementsOf(chunk);
  };
  SmallVector<Value> ofRows = rowTeam.combine(combination, initial, kept, ofChunk);
  forget();
  return ofRows;
}

SmallVector<Value> RowElements::largest(llvm::function_ref<Value(const Chunk &)> magnitudesOf) {
  SmallVector<Value> ofRows = rowTeam.largest(kept, [&](const Chunk &chunk) {
    computed.clear();
    return magnitudesOf(chunk);
  });
  forget();
  return ofRows;
}

SmallVector<Value> RowElements::reduce(linalg::GenericOp op) {
  if (noArithmetic)
    return SmallVector<Value>(size_t(rowTeam.rowsOfThread()), mixedNumber());
  return computeNumbers(op);
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Makes elements behind the end of the row zero.
void RowElements::clearBehindRow(MutableArrayRef<Value> words, int64_t perWord,
                                 const Chunk &chunk) {
  for (auto [i, word] : llvm::enumerate(words)) {
    int64_t left = rowTeam.residue() - int64_t(i) * perWord;
    if (chunk.isLast && left < perWord) {
      int64_t mask = left <= 0 ? 0 : (int64_t(1) << (32 / perWord * left)) - 1;
      Value cut = arith::AndIOp::create(b, word, constI32(b, mask));
      word = arith::SelectOp::create(b, chunk.isLast, cut, word);
    }
    if (chunk.exists)
      word = arith::SelectOp::create(b, chunk.exists, word, constI32(b, 0));
  }
}

/// Words in which every bit that is loaded takes part: those of a twin without arithmetic.
SmallVector<Value> RowElements::packed(Value vector, RankedTensorType type) {
  if (type.getElementType().isInteger())
    return packedWords(b, vector);
  Value narrow = narrowTo(b, vector, type.getElementType());
  if (bytesOf(type) == 1) // memory has bytes
    narrow = vector::BitCastOp::create(b, VectorType::get(kChunk, b.getI8Type()), narrow);
  return packedWords(b, narrow);
}

SmallVector<Value> RowElements::words(Value tensor, const Chunk &chunk) {
  RankedTensorType type = typeOf(tensor);
  SmallVector<Value> words =
      noArithmetic ? mixed(type, chunk)
      : stepOf.contains(tensor)
          ? packed(elements(tensor, chunk), type)
          : load(Operand{tensor, /*hasRows=*/true, /*hasColumns=*/true}, chunk);
  clearBehindRow(words, 4 / bytesOf(type), chunk);
  return words;
}
