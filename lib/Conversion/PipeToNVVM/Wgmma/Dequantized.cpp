//===- Dequantized.cpp - MMAs of elements that threads convert -----------===//
//
// Operands that are converted have an order along K of their own (FragmentLayout.h): a thread of
// such an MMA has 16 bytes of a row of A, the codes of a quarter of the row, which are its
// elements of all instructions. With elements of 8 bits these are 32 bytes.
//
//   register   0          1          2          3
//   row        r          r + 8      r          r + 8      r = 16 w + l / 4
//   k          2 c, + 1   2 c, + 1   2 c + 8, + 1          c = l % 4
//
// dequantize into shared memory: a thread takes half of a row, half of each quarter, and writes the
// line of 128 bytes that they become. Neighbouring threads have neighbouring rows, and every other
// eight of them the other half: with the swizzles of both tiles, they touch all banks equally
// often.
//
// Beside a B whose elements follow one another, a thread takes from each 32 elements of a row of A
// the four pairs of two instructions in their place: the four threads of a row read the same 16
// bytes, or 32 of elements of 6 bits.
//
// PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async.
//
//===----------------------------------------------------------------------===//
#include "Wgmma/Wgmma.h"

#include "Common/MmaPattern.h"
#include "MmaSync/WarpColumns.h"

#include "HalfOperands.h"
#include "InlinePtx.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/SmemDescriptor.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Quarters of a row of a k tile, and groups of eight elements of each, which two instructions
/// have.
constexpr int64_t kQuarters = 4, kGroups = 4;

/// A k tile that is converted.
struct CodeTile {
  pipe::Layout layout;
  int64_t groupWords; ///< words of eight elements: one, or two of elements of 6 or 8 bits

  explicit CodeTile(pipe::SharedType type)
      : layout(type.getLayout()), groupWords(isByteElementType(type.getElementType()) ? 2 : 1) {}
  int64_t quarterBytes() const { return kGroups * groupWords * 4; }
  /// The words of `group`, out of words that repeat after `words`.
  ArrayRef<Value> wordsOf(ArrayRef<Value> words, int64_t group) const {
    return words.slice(group * groupWords % words.size(), groupWords);
  }
};
/// Columns of one instruction. ptxas refuses 256 columns where 512 threads leave 128 registers to
/// each.
constexpr int64_t kInstructionColumns = 128;

/// Makes the tables of `halves` in front of the loop over k tiles around `op`, so that they take no
/// registers in the epilogue.
void keepTables(ImplicitLocOpBuilder &b, HalfOperands &halves, Operation *op,
                const KernelState &state) {
  OpBuilder::InsertionGuard restore(b);
  if (auto loop = op->getParentOfType<scf::ForOp>())
    b.setInsertionPoint(loop);
  halves.keepTables(state.threadIndex);
}

/// Bytes of two words, chosen by the nibbles of `selector`.
Value pickBytes(ImplicitLocOpBuilder &b, Value low, Value high, Int32 selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, selector,
                                 NVVM::PermuteMode::DEFAULT);
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

/// Converts a tile. Items are halves of rows: first one half of every row, and then the other.
struct LowerDequantizeShared : PipePattern<pipe::DequantizeTileOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::DequantizeTileOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<pipe::SharedType>(op.getFilledType()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    int64_t threads = state.roles.at(op).getNumThreads();
    int64_t items = op.getSource().getType().getRows() * 2, whole = items / threads * threads;
    Int32 thread = threadOfRole(b, op, state);
    if (whole)
      emitLoop(b, whole, threads,
               [&](Value first) { convertItem(b, op, adaptor, thread + Int32(b, first)); });
    Int32 last = thread + whole;
    if (whole < items)
      emitIf(b, last < items, [&] { convertItem(b, op, adaptor, last); });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void emitIf(ImplicitLocOpBuilder &b, Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  static void emitLoop(ImplicitLocOpBuilder &b, int64_t end, int64_t step,
                       llvm::function_ref<void(Value)> body) {
    auto constant = [&](int64_t value) { return constantI32(b, b.getLoc(), value); };
    auto loop = scf::ForOp::create(b, constant(0), constant(end), constant(step));
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  void convertItem(ImplicitLocOpBuilder &b, pipe::DequantizeTileOp op, OpAdaptor adaptor,
                   Int32 index) const {
    CodeTile tile(op.getSource().getType());
    HalfOperands halves(b, *state.target, op.getScalesType().getElementType(), {},
                        op.getSource().getType().getElementType());
    keepTables(b, halves, op, state);
    int64_t rows = op.getSource().getType().getRows();
    Int32 row = index % rows, half = (index / rows) ^ (row / 8 % 2);
    TileLine source(adaptor.getSource(), tile.layout, row);
    int64_t bytes = tile.quarterBytes();
    auto loadPairs =
        [&](int64_t word) { // a role of few registers has no room for four words of each row
          SmallVector<SmallVector<Value>> quarters;
          for (int64_t quarter = 0; quarter < kQuarters; ++quarter)
            quarters.push_back(loadSharedWords(
                b, source.at(half * (bytes / 2) ^ Int32(b, quarter * bytes + 4 * word)), 2));
          return quarters;
        };
    SmallVector<SmallVector<Value>> quarters = loadPairs(0);
    SmallVector<Value> factors =
        halves.factors(scalesOfQuarters(b, op, adaptor, row, half), kQuarters);
    Value panel = stridedPointer(b, b.getLoc(), adaptor.getDest(), half, rows * kLineBytes);
    TileLine line(panel, pipe::Layout::Swizzle128B, row);
    for (int64_t group : {0, 1}) {
      if (group && tile.groupWords == 2)
        quarters = loadPairs(2);
      SmallVector<SmallVector<Value>> pairs;
      for (int64_t quarter = 0; quarter < kQuarters; ++quarter)
        pairs.push_back(halves.convert(tile.wordsOf(quarters[quarter], group), factors[quarter]));
      for (int64_t i = 0; i < 4; ++i)
        store(b, line.at((4 * group + i) * 16),
              {pairs[0][i], pairs[1][i], pairs[2][i], pairs[3][i]});
    }
  }

  /// A word with the scales of the four quarters of a half of `row`.
  static Value scalesOfQuarters(ImplicitLocOpBuilder &b, pipe::DequantizeTileOp op,
                                OpAdaptor adaptor, Int32 row, Int32 half) {
    pipe::SharedType type = op.getScalesType();
    Value low = loadScaleWord(b, adaptor.getScales(), type, row, Int32(b, 0));
    if (type.getColumns() == kQuarters)
      return low;
    Value high = loadScaleWord(b, adaptor.getScales(), type, row,
                               existingBlock(adaptor.getExisting(), Int32(b, 1)));
    return pickBytes(b, low, high, half * 0x1111 + 0x6420);
  }

  static void store(ImplicitLocOpBuilder &b, Value pointer, ArrayRef<Value> pairs) {
    SmallVector<Value> words;
    for (Value pair : pairs)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    auto type = VectorType::get(4, b.getI32Type());
    LLVM::StoreOp::create(b, vector::FromElementsOp::create(b, type, words), pointer, 16);
  }
};

struct LowerWgmmaDequantized : MmaPattern<hw::MmaForm::WgmmaDequantized> {
  using MmaPattern::MmaPattern;

  LogicalResult lower(pipe::MmaOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    HalfOperands halves(b, *state.target, op.getAScalesAs<pipe::SharedType>().getElementType(),
                        op.getB().getType().getElementType(),
                        op.getAAs<pipe::SharedType>().getElementType());
    if (!op.getInOrder())
      keepTables(b, halves, op, state);
    PartOfA part =
        op.getInOrder() ? loadInOrder(b, op, adaptor, halves) : loadA(b, op, adaptor, halves);
    if (multipliesByWarps(*state.target))
      return multiplyByWarps(b, rewriter, op, adaptor, halves, part);
    WarpgroupMma product = mmaOf(b, op, adaptor);
    int64_t count = op.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread();
    SmallVector<Value> sums = loadElements(b, adaptor.getAccumulator(), 0, count);
    // Groups are converted while the tensor core multiplies the groups before.
    int64_t groups = op.getB().getType().getRows() > kInstructionColumns ? 1 : 2;
    CodeTile tile(op.getAAs<pipe::SharedType>());
    for (int64_t group = 0; group < kGroups; group += groups) {
      if (int64_t word = group * tile.groupWords; word && word % kLoadedWords == 0)
        loadCodes(b, op, adaptor, word, part);
      product.a.clear();
      for (int64_t i = group; i < group + groups; ++i)
        llvm::append_range(product.a, convertGroup(b, op, halves, part, i));
      product.bOffsets = instructionOffsets(op.getB().getType(), 2 * group, 2 * groups);
      product.pending = group + groups < kGroups || op.goesOn();
      sums = multiplyWarpgroup(b, sums, product);
      // Orders the reads of A before loads that follow, while the tensor core is busy.
      if (group * tile.groupWords == (tile.groupWords - 1) * kLoadedWords)
        emitProxyFence(b, op.getLoc());
      product.accumulate = arith::ConstantOp::create(b, b.getBoolAttr(true));
    }
    storeElements(b, adaptor.getAccumulator(), sums);
    finishMmaLoop(b, op, adaptor.getAccumulator());
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The part of A that a thread has: words of two rows which are 8 apart, and their factors, one
  /// for each instruction. A group has elements of two instructions.
  struct PartOfA {
    SmallVector<Value> codes[2], factors[2];
  };

  /// Words of a row that a load takes. Registers have no room for twice as many beside 128 sums.
  static constexpr int64_t kLoadedWords = 4;

  /// Words `word` and up of the two rows.
  void loadCodes(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor, int64_t word,
                 PartOfA &part) const {
    Int32 thread = threadOfRole(b, op, state), row = rowOfThread(thread);
    CodeTile tile(op.getAAs<pipe::SharedType>());
    if (op.getInOrder()) {
      Int32 place = placeOf(tile, thread);
      for (int64_t i : {0, 1})
        part.codes[i] =
            loadPlaces(b, TileLine(adaptor.getA(), tile.layout, row + 8 * i), place, word);
      return;
    }
    Int32 place = thread % kQuarters * tile.quarterBytes() ^ Int32(b, 4 * word);
    for (int64_t i : {0, 1}) {
      TileLine line(adaptor.getA(), tile.layout, row + 8 * i);
      part.codes[i] = loadSharedWords(b, line.at(place), kLoadedWords);
    }
  }

  /// The selector of the elements of a thread in two words in the order of memory: byte c of each,
  /// or pair c of their bytes.
  static Int32 placeOf(const CodeTile &tile, Int32 thread) {
    return tile.groupWords == 1 ? thread % kQuarters * 0x11 + 0x40
                                : thread % kQuarters * 0x22 + 0x10;
  }

  /// Loads words `word` and up of a row in the order of memory: those of eight elements have the
  /// four pairs that a thread has of 32 elements.
  static SmallVector<Value> loadPlaces(ImplicitLocOpBuilder &b, const TileLine &line,
                                       Int32 selector, int64_t word) {
    SmallVector<Value> places;
    for (int64_t at = 16 * word; at < 16 * (word + kLoadedWords); at += 16) {
      SmallVector<Value> words = loadSharedWords(b, line.at(at), 4);
      Value low = pickBytes(b, words[0], words[1], selector);
      Value high = pickBytes(b, words[2], words[3], selector);
      places.push_back(pickBytes(b, low, high, Int32(b, int64_t(0x5410))));
    }
    return places;
  }

  PartOfA loadA(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                HalfOperands &halves) const {
    Int32 thread = threadOfRole(b, op, state);
    Int32 row = rowOfThread(thread);
    Int32 quarter = thread % kQuarters;
    PartOfA part;
    loadCodes(b, op, adaptor, 0, part);
    pipe::SharedType type = op.getAScalesAs<pipe::SharedType>();
    int64_t perQuarter = type.getColumns() / kQuarters; // one scale or two
    Int32 place = quarter * perQuarter, block = place / pipe::kScaleBlockColumns;
    if (perQuarter > 1)
      block = existingBlock(adaptor.getExisting(), block);
    Value upper = loadScaleWord(b, adaptor.getAScales(), type, row, block);
    Value lower = loadScaleWord(b, adaptor.getAScales(), type, row + 8, block);
    // Factors of the upper row, and then of the lower row.
    Int32 selector = place % pipe::kScaleBlockColumns * (perQuarter > 1 ? 0x1111 : 0x11) +
                     (perQuarter > 1 ? 0x5410 : 0x40);
    SmallVector<Value> factors =
        halves.factors(pickBytes(b, upper, lower, selector), 2 * perQuarter);
    for (int64_t i : {0, 1})
      for (int64_t group = 0; group < kGroups; ++group)
        part.factors[i].append(2, factors[i * perQuarter + group * perQuarter / kGroups]);
    return part;
  }

  /// Loads the words of A in the order of memory.
  PartOfA loadInOrder(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor,
                      HalfOperands &halves) const {
    Int32 thread = threadOfRole(b, op, state), row = rowOfThread(thread);
    CodeTile tile(op.getAAs<pipe::SharedType>());
    Int32 place = placeOf(tile, thread);
    pipe::SharedType type = op.getAScalesAs<pipe::SharedType>();
    int64_t perScale = halves.blockSize() / pipe::kDenseMmaK;
    PartOfA part;
    for (int64_t half : {0, 1}) {
      part.codes[half] = loadPlaces(b, TileLine(adaptor.getA(), tile.layout, row + 8 * half), place,
                                    /*word=*/0);
      for (int64_t block = 0; block < type.getColumns() / pipe::kScaleBlockColumns; ++block) {
        Int32 existing =
            block ? existingBlock(adaptor.getExisting(), Int32(b, block)) : Int32(b, block);
        Value scales = loadScaleWord(b, adaptor.getAScales(), type, row + 8 * half, existing);
        for (Value factor : halves.factors(scales))
          part.factors[half].append(size_t(perScale), factor);
      }
    }
    return part;
  }

  /// Registers of A of two instructions.
  static SmallVector<Value> convertGroup(ImplicitLocOpBuilder &b, pipe::MmaOp op,
                                         HalfOperands &halves, const PartOfA &part, int64_t group) {
    CodeTile tile(op.getAAs<pipe::SharedType>());
    SmallVector<Value> pairs[2]; // of the upper row and of the lower one
    for (int64_t half : {0, 1}) {
      ArrayRef<Value> codes = tile.wordsOf(part.codes[half], group);
      Value factor = part.factors[half][2 * group];
      pairs[half] = op.getInOrder()
                        ? halves.convertInOrder(codes, factor, part.factors[half][2 * group + 1])
                        : halves.convert(codes, factor);
    }
    SmallVector<Value> registers;
    for (int64_t i = 0; i < 4; ++i)
      for (Value pair : {pairs[0][i], pairs[1][i]})
        registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), pair));
    return registers;
  }

  /// Multiplies one group after the other, each of two instructions of K. `part` has the first
  /// words.
  LogicalResult multiplyByWarps(ImplicitLocOpBuilder &b, ConversionPatternRewriter &rewriter,
                                pipe::MmaOp op, OpAdaptor adaptor, HalfOperands &halves,
                                PartOfA &part) const {
    CodeTile tile(op.getAAs<pipe::SharedType>());
    WarpColumns columns(b, adaptor.getB(), op.getB().getType());
    SmallVector<Value> sums =
        loadAccumulator(b, op.getAccumulatorAs<pipe::FragmentType>(), adaptor.getAccumulator(),
                        adaptor.getAccumulate(), /*isFirst=*/true);
    for (int64_t group = 0; group < kGroups; ++group) {
      if (int64_t word = group * tile.groupWords; word && word % kLoadedWords == 0)
        loadCodes(b, op, adaptor, word, part);
      columns.multiplyAll(convertGroup(b, op, halves, part, group), 2 * group, sums);
    }
    emitProxyFence(b, op.getLoc()); // earlier reads, before loads that follow
    storeElements(b, adaptor.getAccumulator(), sums);
    rewriter.eraseOp(op);
    return success();
  }

  static WarpgroupMma mmaOf(ImplicitLocOpBuilder &b, pipe::MmaOp op, OpAdaptor adaptor) {
    WarpgroupMma product;
    product.element = op.getB().getType().getElementType();
    product.columns = std::min(op.getB().getType().getRows(), kInstructionColumns);
    product.accumulate = accumulateOrFalse(b, b.getLoc(), adaptor.getAccumulate());
    product.b = uniformDescriptor(b, adaptor.getB());
    product.isUniform = true;
    return product;
  }
};

} // namespace

void fp4::populateDequantizedPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                      const KernelState &state) {
  patterns.add<LowerDequantizeShared, LowerWgmmaDequantized>(converter, patterns.getContext(),
                                                             state);
}
