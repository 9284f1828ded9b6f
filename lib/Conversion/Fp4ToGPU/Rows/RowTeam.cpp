//===- RowTeam.cpp - The threads that have a row together -----------------===//
#include "Rows/RowTeam.h"

#include "Float32.h"
#include "Reduce/GridMax.h"

#include "fp4/Numerics/RowReduction.h"
#include "fp4/Plans/RowTeams.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using numerics::ElementOp;

static_assert(RowTeam::kChunk == kRowChunk &&
              RowTeam::kChunk * kWarp == numerics::kReductionSegment &&
              kWarp == numerics::kReductionSequence);

/// Returns true when halves of rows are whole chunks of as many threads as have one.
static bool fitHalves(int64_t columns, int64_t chunks, int64_t threads) {
  return chunks * RowTeam::kChunk == columns && chunks % 2 == 0 &&
         chunks / 2 % teamOfRow(chunks / 2, threads, /*ctas=*/1) == 0;
}

RowTeam::RowTeam(KernelBuilder &kernel, int64_t columns, int64_t chunks, Value rows, bool halves)
    : kernel(kernel), b(kernel.body()), numColumns(columns), ctas(kernel.ctasOfRow()),
      halves(halves && ctas == 1 && fitHalves(columns, chunks, kernel.numThreads())),
      threads(teamOfRow(this->halves ? chunks / 2 : chunks, kernel.numThreads(), ctas)),
      perThread(llvm::divideCeil(chunks, threads)), numRows(rows) {
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Int32 row(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  laneOfTeam = thread;
  if (teamsOfCta() > 1) {
    row = row * teamsOfCta() + thread / threads;
    laneOfTeam = thread % threads;
  } else if (ctas > 1) {
    laneOfTeam = row % ctas * kernel.numThreads() + thread;
    row = row / ctas;
  }
  Int32 first = row * kernel.rowsOfThread();
  for (int64_t i = 0; i < kernel.rowsOfThread(); ++i)
    places.push_back(placeOf(first + i));
}

RowTeam::Place RowTeam::placeOf(Int32 padded) {
  return {padded, minimum(padded, Int32(b, numRows) - 1), padded < Int32(b, numRows)};
}

void RowTeam::take(Int32 row, Int32 turn) {
  places = {placeOf(row)};
  this->turn = turn;
}

void RowTeam::withRow(Int32 row, llvm::function_ref<void()> body) {
  SmallVector<Place> mine = std::exchange(places, {placeOf(row)});
  body();
  places = mine;
}

void RowTeam::forEachRow(llvm::function_ref<void()> body) {
  for (selected = 0; selected < places.size(); ++selected)
    body();
  selected = 0;
}

void RowTeam::launch(Value hostRows) {
  ImplicitLocOpBuilder &host = kernel.host();
  if (ctas == 1)
    return kernel.launch(arith::CeilDivUIOp::create(
        host, hostRows, constIndex(host, teamsOfCta() * rowsOfThread())));
  Value size = constIndex(host, ctas), all = arith::MulIOp::create(host, hostRows, size);
  if (reductions)
    kernel.launchClusters(all, size);
  else // no CTA waits for another one
    kernel.launch(all);
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

RowTeam::Chunk RowTeam::chunk(Int32 number, int64_t index) {
  int64_t ofRow = llvm::divideCeil(numColumns, kChunk);
  Chunk chunk{.index = index, .number = number, .exists = {}, .isLast = {}};
  if (perThread * threads > ofRow)
    chunk.exists = number < ofRow;
  if (residue()) // chunks that do not exist read the last one
    chunk.isLast =
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, number, constI32(b, ofRow - 1));
  return chunk;
}

RowTeam::Chunk RowTeam::chunkOf(Int32 column) {
  int64_t last = llvm::divideCeil(numColumns, kChunk) - 1;
  Chunk found = chunk(minimum(column / kChunk, Int32(b, last)), 0);
  found.exists = {};
  found.isOther = true;
  return found;
}

void RowTeam::visitTogether(int64_t count, Prepare prepare) {
  perStep = count;
  perThread = llvm::alignTo(perThread, count);
  prepareStep = std::move(prepare);
}

void RowTeam::forEachChunk(bool unrolled, llvm::function_ref<void(const Chunk &)> body) {
  if (unrolled) {
    for (int64_t i = 0; i < perThread; ++i)
      body(halves ? chunkOfHalves(lane(), i, perThread) : chunk(lane() + i * threads, i));
    return;
  }
  int64_t parts = halves ? 2 : 1;
  Value end = constI32(b, perThread * threads / parts),
        step = constI32(b, perStep * threads / parts);
  kernel.forEachItem(lane(), end, step, {}, [&](Value first, ValueRange) {
    SmallVector<Chunk> chunks;
    for (int64_t i = 0; i < perStep; ++i)
      chunks.push_back(halves ? chunkOfHalves({b, first}, i, perStep)
                              : chunk(Int32(b, first) + i * threads, i));
    if (prepareStep)
      prepareStep(chunks);
    llvm::for_each(chunks, body);
    return SmallVector<Value>();
  });
}

bool RowTeam::isInWarp() const { return perThread == 1 && threads <= kWarp; }

/// Chunk `index` of `count`, of which the second half belongs to the second half of the row.
RowTeam::Chunk RowTeam::chunkOfHalves(Int32 first, int64_t index, int64_t count) {
  int64_t ofHalf = count / 2, half = numColumns / kChunk / 2;
  return chunk(first + index % ofHalf * threads + index / ofHalf * half, index);
}

std::optional<RowTeam::Chunk> RowTeam::otherHalf(const Chunk &chunk, bool unrolled) {
  if (!halves || chunk.isOther)
    return std::nullopt;
  int64_t ofHalf = (unrolled ? perThread : perStep) / 2, half = numColumns / kChunk / 2;
  bool isFirst = chunk.index < ofHalf;
  return this->chunk(isFirst ? chunk.number + half : chunk.number - half,
                     isFirst ? chunk.index + ofHalf : chunk.index - ofHalf);
}

Value RowTeam::wordOf(Value word, Int32 number) {
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  Int32 source = thread % kWarp / threads * threads + number;
  return valueOfLane(b, word, source);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Value combineTwo(ElementOp combination, Float32 x, Float32 y) {
  switch (combination) {
  case ElementOp::Multiply:
    return x * y;
  case ElementOp::Maximum:
    return maximum(x, y);
  case ElementOp::Minimum:
    return minimum(x, y);
  case ElementOp::MaximumNumber:
    return x.apply<LLVM::MaxNumOp>(y);
  case ElementOp::MinimumNumber:
    return x.apply<LLVM::MinNumOp>(y);
  default:
    return x + y;
  }
}

int64_t RowTeam::lanes() const { return std::min(threads, kWarp); }

Value RowTeam::exchanged(Value word, int64_t distance) { return valueOfPartner(b, word, distance); }

bool RowTeam::pairsPieces(int64_t bytes) const {
  return bytes % (2 * kPieceBytes) == 0 && numColumns % (2 * kChunk) == 0 && threads % 2 == 0;
}

SmallVector<SmallVector<Value>> RowTeam::exchangePieces(ArrayRef<Value> words) {
  constexpr size_t ofPiece = kPieceBytes / 4;
  Value isOdd = Int32(b, 0) < lane() % 2;
  SmallVector<SmallVector<Value>> ofEven, ofOdd;
  for (; !words.empty(); words = words.drop_front(2 * ofPiece)) {
    SmallVector<Value> first, second;
    for (auto [even, odd] :
         llvm::zip_equal(words.take_front(ofPiece), words.slice(ofPiece, ofPiece))) {
      Value sent = arith::SelectOp::create(b, isOdd, even, odd), got = exchanged(sent, 1);
      first.push_back(arith::SelectOp::create(b, isOdd, got, even));
      second.push_back(arith::SelectOp::create(b, isOdd, odd, got));
    }
    ofEven.push_back(first);
    ofOdd.push_back(second);
  }
  llvm::append_range(ofEven, ofOdd);
  return ofEven;
}

Value RowTeam::withAbsent(Value elements, const Chunk &chunk, Value absent) {
  if (chunk.isLast) {
    SmallVector<bool> isThere(kChunk);
    for (int64_t i = 0; i < kChunk; ++i)
      isThere[i] = i < residue();
    auto mask = VectorType::get(kChunk, b.getI1Type());
    Value there = arith::ConstantOp::create(
        b, cast<TypedAttr>(Attribute(DenseElementsAttr::get(mask, ArrayRef<bool>(isThere)))));
    Value cut = arith::SelectOp::create(b, there, elements, absent);
    elements = arith::SelectOp::create(b, chunk.isLast, cut, elements);
  }
  if (chunk.exists)
    elements = arith::SelectOp::create(b, chunk.exists, elements, absent);
  return elements;
}

/// The combination of the elements of a chunk.
Value RowTeam::foldChunk(ElementOp combination, Value elements) {
  for (int64_t count = kChunk / 2; count; count /= 2) {
    auto half = [&](int64_t first) -> Value {
      return vector::ExtractStridedSliceOp::create(b, elements, ArrayRef<int64_t>{first},
                                                   ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
    };
    elements = combineTwo(combination, {b, half(0)}, {b, half(count)});
  }
  return vector::ExtractOp::create(b, elements, 0);
}

/// The combination of what the lanes of a row have, in each of them.
Value RowTeam::foldLanes(ElementOp combination, Value folded) {
  for (int64_t distance = lanes() / 2; distance; distance /= 2)
    folded = combineTwo(combination, {b, folded}, {b, exchanged(folded, distance)});
  return folded;
}

/// The combination of both chunks of a thread, and then of those of its lanes.
Value RowTeam::foldHalves(ElementOp combination, llvm::function_ref<Value(const Chunk &)> foldOf) {
  Value folded;
  forEachChunk(/*unrolled=*/true, [&](const Chunk &chunk) {
    Value ofChunk = foldOf(chunk);
    folded = folded ? combineTwo(combination, {b, folded}, {b, ofChunk}) : ofChunk;
  });
  return foldLanes(combination, folded);
}

/// The combinations of several numbers over the lanes of a warp, a power of two of them: number i
/// of n in the lanes from i * 32 / n on. A lane passes on what its partner goes on with, and each
/// step halves the numbers, so that two take 6 exchanges in place of 10, and four 7 in place of 20.
Value RowTeam::foldLanesOf(ElementOp combination, ArrayRef<Value> folded) {
  SmallVector<Value> numbers(folded);
  Int32 lane = this->lane() % kWarp;
  for (int64_t distance = kWarp / 2; distance; distance /= 2) {
    size_t half = numbers.size() / 2;
    if (!half) {
      numbers = {combineTwo(combination, {b, numbers[0]}, {b, exchanged(numbers[0], distance)})};
      continue;
    }
    Value isUpper = Int32(b, 0) < lane / distance % 2;
    for (size_t i = 0; i < half; ++i) {
      Value lower = numbers[i], upper = numbers[i + half];
      Value own = arith::SelectOp::create(b, isUpper, upper, lower);
      Value sent = arith::SelectOp::create(b, isUpper, lower, upper);
      numbers[i] = combineTwo(combination, {b, own}, {b, exchanged(sent, distance)});
    }
    numbers.resize(half);
  }
  return numbers.front();
}

Value RowTeam::combineOne(ElementOp combination, float initial, const Chunk &chunk,
                          Value elements) {
  Float32 found(b, elements);
  Value present = withAbsent(found, chunk, like(found, numerics::identityOf(combination)));
  Value folded = foldChunk(combination, present);
  return combineTwo(combination, {b, constF32(b, initial)}, {b, folded});
}

int64_t RowTeam::wordsOfSegments() const {
  return int64_t(llvm::alignTo(uint64_t(perThread * threads / kWarp), 4));
}

/// Shared memory for the segments of this team's rows, all of them also where a CTA has a part of
/// the row.
Value RowTeam::placesOfSegments() {
  int64_t words = wordsOfSegments() * rowsOfThread();
  int64_t copies = turn ? 2 : 1; // threads may still read those of the row before
  Value segments =
      kernel.sharedWords(copies * words * teamsOfCta(), "segments_" + std::to_string(reductions++));
  if (turn)
    segments = address(b, segments, *turn % copies, 4 * words);
  if (ctas > 1 && reductions == 1)
    beginCluster();
  if (teamsOfCta() == 1)
    return segments;
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  return address(b, segments, thread / threads, 4 * words);
}

/// The part of `segments` that the selected row has.
Value RowTeam::segmentsOfRow(Value segments) {
  return selected ? advance(b, segments, int64_t(selected) * wordsOfSegments() * 4) : segments;
}

/// Waits until all CTAs of the cluster have begun. The kernel says so with its first instruction.
void RowTeam::beginCluster() {
  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  b.setInsertionPointToStart(b.getInsertionBlock());
  NVVM::ClusterArriveRelaxedOp::create(b, b.getUnitAttr());
  b.restoreInsertionPoint(here);
  NVVM::ClusterWaitOp::create(b, b.getUnitAttr());
}

/// Has a lane of the warp store the segment of its chunks, or a lane for each CTA of the cluster.
void RowTeam::storeSegment(Value segment, Value segments, const Chunk &chunk) {
  Value place = address(b, segments, chunk.number / kWarp, 4);
  Int32 number = lane() % kWarp;
  if (ctas > 1) {
    constexpr auto space = static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);
    place = NVVM::MapaOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), space), place,
                                 minimum(number, Int32(b, ctas - 1)));
  }
  emitWhen(b, number < ctas, [&] { store(b, segment, place, 4); });
}

/// Folds and stores what a thread has of its chunks, those of each row after the other. A lane
/// stores one segment, of several that are folded together.
void RowTeam::storeSegments(ElementOp combination, ArrayRef<Value> folded, Value segments) {
  Int32 lane = this->lane() % kWarp, warp = this->lane() / kWarp;
  int64_t first = 0;
  while (!folded.empty()) {
    size_t count = std::min<size_t>(llvm::bit_floor(folded.size()), kWarp);
    int64_t apart = kWarp / int64_t(count);
    Value segment = foldLanesOf(combination, folded.take_front(count));
    Int32 number = lane / apart + first;
    Int32 place = number / perThread * wordsOfSegments() + warp +
                  number % perThread * (threads / kWarp);
    emitWhen(b, lane % apart < 1, [&] { store(b, segment, address(b, segments, place, 4), 4); });
    folded = folded.drop_front(count);
    first += int64_t(count);
  }
}

void RowTeam::waitForSegments() {
  ++numBarriers;
  if (ctas == 1) {
    NVVM::Barrier0Op::create(b);
  } else {
    NVVM::ClusterArriveOp::create(b, b.getUnitAttr());
    NVVM::ClusterWaitOp::create(b, b.getUnitAttr());
  }
  if (behindBarrier)
    std::exchange(behindBarrier, nullptr)();
}

void RowTeam::expectBarrier() {
  if (behindBarrier)
    waitForSegments();
}

Value RowTeam::loadSegment(Value segments, Int32 number) {
  return LLVM::LoadOp::create(b, b.getF32Type(), address(b, segments, number, 4), 4);
}

/// The combination of the segments of a row of more than 32: a lane has every 32nd of them.
Value RowTeam::meetLanes(ElementOp combination, Value segments) {
  int64_t count = llvm::divideCeil(numColumns, numerics::kReductionSegment);
  Int32 lane = this->lane() % kWarp, last(b, count - 1);
  Value sum;
  for (int64_t first = 0; first < count; first += kWarp) {
    Int32 number = lane + first;
    bool areAll = first + kWarp <= count;
    Value segment = loadSegment(segments, areAll ? number : minimum(number, last));
    if (!areAll)
      segment = arith::SelectOp::create(b, number < count, segment,
                                        constF32(b, numerics::identityOf(combination)));
    sum = sum ? combineTwo(combination, {b, sum}, {b, segment}) : segment;
  }
  for (int64_t distance = kWarp / 2; distance; distance /= 2)
    sum = combineTwo(combination, {b, sum}, {b, exchanged(sum, distance)});
  return sum;
}

/// The combination of `initial` and the segments of this team's row, which are in shared memory.
Value RowTeam::meet(ElementOp combination, float initial, Value segments) {
  int64_t count = llvm::divideCeil(numColumns, numerics::kReductionSegment);
  Value sum = constF32(b, initial);
  if (count > int64_t(numerics::kReductionSequence))
    return combineTwo(combination, {b, sum}, {b, meetLanes(combination, segments)});
  for (int64_t i = 0; i < count; ++i)
    sum = combineTwo(combination, {b, sum}, {b, loadSegment(segments, Int32(b, i))});
  return sum;
}

SmallVector<Value> RowTeam::combine(ElementOp combination, float initial, bool unrolled,
                                    llvm::function_ref<Value(const Chunk &)> elements) {
  float identity = numerics::identityOf(combination);
  auto foldOf = [&](const Chunk &chunk) {
    Float32 found(b, elements(chunk));
    return foldChunk(combination, withAbsent(found, chunk, like(found, identity)));
  };
  bool isOneSegment = isInWarp() || halves, areTogether = !isOneSegment && unrolled && ctas == 1;
  Value segments = isOneSegment ? Value() : placesOfSegments();
  SmallVector<Value> folded, combined;
  forEachRow([&] {
    if (halves) // which lanes would fold first
      return folded.push_back(foldHalves(combination, foldOf));
    forEachChunk(unrolled, [&](const Chunk &chunk) {
      Value ofChunk = foldOf(chunk);
      if (areTogether || isOneSegment)
        folded.push_back(areTogether ? ofChunk : foldLanes(combination, ofChunk));
      else
        storeSegment(foldLanes(combination, ofChunk), segmentsOfRow(segments), chunk);
    });
  });
  if (areTogether)
    storeSegments(combination, folded, segments);
  if (!isOneSegment)
    waitForSegments();
  forEachRow([&] {
    combined.push_back(isOneSegment ? combineTwo(combination, {b, constF32(b, initial)},
                                                 {b, folded[selected]})
                                    : meet(combination, initial, segmentsOfRow(segments)));
  });
  return combined;
}

/// The largest magnitude of the lanes of a row, in each of them.
Value RowTeam::largestOfLanes(Value magnitude) {
  if (lanes() == kWarp)
    return NVVM::ReduxOp::create(b, b.getI32Type(), magnitude, NVVM::ReduxKind::UMAX,
                                 constI32(b, -1));
  for (int64_t distance = lanes() / 2; distance; distance /= 2)
    magnitude = arith::MaxUIOp::create(b, magnitude, exchanged(magnitude, distance));
  return magnitude;
}

/// The largest of `count` segments: lanes behind the last one have it once more.
Value RowTeam::meetLargest(Value segments, int64_t count) {
  Int32 lane = this->lane() % kWarp, last(b, count - 1);
  Value found;
  for (int64_t first = 0; first < count; first += kWarp) {
    Int32 number = first + kWarp <= count ? lane + first : minimum(lane + first, last);
    Value segment = load(b, b.getI32Type(), address(b, segments, number, 4), 4);
    found = found ? arith::MaxUIOp::create(b, found, segment).getResult() : segment;
  }
  return largestOfLanes(found);
}

SmallVector<Value> RowTeam::largest(bool unrolled,
                                    llvm::function_ref<Value(const Chunk &)> magnitudes) {
  bool areTogether = unrolled && ctas == 1;
  bool isOneSegment = isInWarp() || (areTogether && threads <= kWarp); // all lanes have it
  Value segments = isOneSegment ? Value() : placesOfSegments();
  SmallVector<Value> found;
  forEachRow([&] {
    Value ofRow;
    forEachChunk(unrolled, [&](const Chunk &chunk) {
      Value magnitude = magnitudes(chunk);
      if (!areTogether)
        return storeSegment(largestOfLanes(magnitude), segmentsOfRow(segments), chunk);
      ofRow = ofRow ? arith::MaxUIOp::create(b, ofRow, magnitude).getResult() : magnitude;
    });
    if (areTogether)
      found.push_back(largestOfLanes(ofRow));
    if (areTogether && !isOneSegment)
      storeSegment(found.back(), segmentsOfRow(segments), chunk(lane(), 0));
  });
  if (isOneSegment)
    return found;
  waitForSegments();
  found.clear();
  int64_t all = llvm::divideCeil(numColumns, numerics::kReductionSegment);
  forEachRow([&] {
    found.push_back(meetLargest(segmentsOfRow(segments), areTogether ? threads / kWarp : all));
  });
  return found;
}
