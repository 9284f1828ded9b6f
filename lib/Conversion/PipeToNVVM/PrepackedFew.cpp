//===- PrepackedFew.cpp - Products of prepacked weights and few columns ---===//
//
// mma_prepacked with 8 columns. wgmma takes as long for them as for 32, and beside it the pipes
// that convert weights are slower by half (docs/Time.md). mma.sync.m16n8k16 has the same fragments:
// a warp of the warpgroup has its 16 rows of weights and of the accumulator, and takes B from
// shared memory with ldmatrix. It sums as wgmma does (fp4/Numerics/DenseMma.h).
//
// Everything is read before the first product; what follows needs the stage no more.
//
//===----------------------------------------------------------------------===//
#include "PrepackedTiles.h"
#include "SmallBuilders.h"
#include "TileLines.h"

using namespace mlir;
using namespace fp4;

namespace {

/// Elements of a thread of the accumulator.
constexpr int64_t kSums = 4;
/// Bytes of K that an ldmatrix.x4 reads of 8 rows: of two instructions.
constexpr int64_t kMatrixBytes = 64;
constexpr int64_t kSteps = hw::weightSteps;

/// Where the lanes of a warp find B, 8 rows of a tile under a swizzle of 128.
class ColumnsOfB {
public:
  ColumnsOfB(ImplicitLocOpBuilder &b, Value tile, pipe::SharedType type)
      : b(b), lane(b, NVVM::LaneIdOp::create(b, b.getI32Type())),
        line(tile, type.getLayout(), lane % kFewColumns) {}

  /// The registers of the steps of tile `number` of K, two each.
  SmallVector<Value> load(int64_t number) const {
    SmallVector<Value> registers;
    for (int64_t byte = 0; byte < kLineBytes; byte += kMatrixBytes) {
      Value first = line.at(lane / kFewColumns * 16 ^ Int32(b, byte));
      Value rows = offsetPointer(b, b.getLoc(), first, number * kFewColumns * kLineBytes);
      llvm::append_range(registers, loadMatrices(b, rows));
    }
    return registers;
  }

private:
  ImplicitLocOpBuilder &b;
  Int32 lane;
  TileLine line;
};

/// What a thread has of the operands and sums of a product.
struct Turn {
  Value accumulator;
  std::vector<PrepackedWords> words;       ///< of each tile
  std::vector<SmallVector<Value>> columns; ///< of each tile
  SmallVector<Value> sums;
};

/// `op` and the products behind it, of other sums, that take turns with it: then fewer instructions
/// wait for those before them. What may not exist is multiplied by itself.
SmallVector<pipe::MmaPrepackedOp> productsInTurns(pipe::MmaPrepackedOp op) {
  SmallVector<pipe::MmaPrepackedOp> products = {op};
  if (op.getTiles())
    return products;
  while (auto next = dyn_cast_or_null<pipe::MmaPrepackedOp>(products.back()->getNextNode())) {
    bool isLike = next.getWeights().getType() == op.getWeights().getType() &&
                  next.getB().getType() == op.getB().getType() && !next.getTiles();
    bool isOther = llvm::none_of(products, [&](pipe::MmaPrepackedOp product) {
      return product.getAccumulator() == next.getAccumulator();
    });
    if (!isLike || !isOther)
      break;
    products.push_back(next);
  }
  return products;
}

struct LowerMmaPrepackedFew : PipePattern<pipe::MmaPrepackedOp> {
  using PipePattern::PipePattern;

  LogicalResult matchAndRewrite(pipe::MmaPrepackedOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!takesWarpProducts(op))
      return failure();
    SmallVector<pipe::MmaPrepackedOp> products = productsInTurns(op);
    rewriter.setInsertionPoint(products.back());
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    forExistingTiles(b, adaptor.getTiles(), op.getWeights().getType().getRows(),
                     [&](int64_t first, int64_t count) {
                       std::vector<Turn> turns;
                       for (pipe::MmaPrepackedOp product : products)
                         turns.push_back(load(b, rewriter, product, first, count));
                       multiply(b, op, turns, count);
                     });
    for (pipe::MmaPrepackedOp product : products)
      rewriter.eraseOp(product);
    return success();
  }

private:
  Turn load(ImplicitLocOpBuilder &b, ConversionPatternRewriter &rewriter, pipe::MmaPrepackedOp op,
            int64_t first, int64_t count) const {
    auto lowered = [&](Value value) { return rewriter.getRemappedValue(value); };
    Turn turn = {lowered(op.getAccumulator()), {}, {}, {}};
    pipe::SharedType type = op.getB().getType();
    ColumnsOfB columns(b, lowered(op.getB()), type);
    Int32 thread = threadOfRole(b, op, state);
    for (int64_t tile = first; tile < first + count; ++tile) {
      turn.words.push_back(
          loadPrepackedTile(b, lowered(op.getWeights()), op.getWeights().getType(), thread, tile));
      turn.columns.push_back(columns.load(tile));
    }
    turn.sums = loadAccumulator(b, op.getAccumulator().getType(), turn.accumulator,
                                lowered(op.getAccumulate()), first == 0);
    return turn;
  }

  void multiply(ImplicitLocOpBuilder &b, pipe::MmaPrepackedOp op, MutableArrayRef<Turn> turns,
                int64_t count) const {
    pipe::SharedType type = op.getB().getType();
    emitProxyFence(b, op.getLoc()); // the reads before loads that follow
    PackedHalves halves = halvesOf(b, op, state);
    for (int64_t tile = 0; tile < count; ++tile) {
      SmallVector<SmallVector<Value>> weights;
      for (Turn &turn : turns)
        weights.push_back(halves.convertTile(turn.words[tile].codes, turn.words[tile].scales));
      for (int64_t step = 0; step < kSteps; ++step)
        for (auto [turn, ofTurn] : llvm::zip_equal(turns, weights))
          multiplyOne(b, type.getElementType(), ArrayRef(ofTurn).slice(4 * step, 4),
                      ArrayRef(turn.columns[tile]).slice(2 * step, 2), turn.sums);
    }
    for (Turn &turn : turns)
      storeElements(b, turn.accumulator, turn.sums);
  }

  static void multiplyOne(ImplicitLocOpBuilder &b, Type element, ArrayRef<Value> weights,
                          ArrayRef<Value> columns, MutableArrayRef<Value> sums) {
    auto operands = [&](ArrayRef<Value> words) {
      SmallVector<Value> pairs(words);
      if (element.isF16())
        for (Value &word : pairs)
          word = LLVM::BitcastOp::create(b, VectorType::get(2, element), word);
      return pairs;
    };
    SmallVector<Type> floats(kSums, b.getF32Type());
    NVVM::MMATypes kind = element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    Value result = NVVM::MmaOp::create(
        b, LLVM::LLVMStructType::getLiteral(b.getContext(), floats), operands(weights),
        operands(columns), ValueRange(ArrayRef<Value>(sums)), ArrayRef<int64_t>{16, 8, 16},
        std::nullopt, std::nullopt, std::array{kind, kind},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    for (int64_t i = 0; i < kSums; ++i)
      sums[i] = LLVM::ExtractValueOp::create(b, result, i);
  }
};

} // namespace

void fp4::populatePrepackedFewPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                       const KernelState &state) {
  patterns.add<LowerMmaPrepackedFew>(converter, patterns.getContext(), state);
}
