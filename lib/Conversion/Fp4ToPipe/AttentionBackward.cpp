//===- AttentionBackward.cpp - Tiles pass over blocks, for gradients ------===//
//
// A CTA takes tiles of keys, a warpgroup 64 rows of each, and passes over blocks of the queries
// that see some of them, for all heads that share the keys; or tiles of queries, and blocks of
// keys. Both multiply rows by rows twice, with the operands of scores and with those of the
// gradient of powers:
//
//   tiles of keys:     s^T = key query^T,  g^T = value gradient^T
//                      value_gradient += p^T gradient,  key_gradient += ds^T query
//   tiles of queries:  s = query key^T,    g = gradient value^T
//                      query_gradient += ds key
//
// p and ds are in the registers of the threads that computed them when they are operand A. So no
// tile is stored in shared memory, and no sum is shared between CTAs: gradients have the same bits
// every time. The price is that both kernels compute s and g, seven products in place of five. Two
// kernels add up one sum each where registers have no room for both of a tile of keys: eight.
//
//===----------------------------------------------------------------------===//
#include "AttentionBackward.h"

#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Rows of a warpgroup of wgmma, and elements in a swizzled row.
static constexpr int64_t kGroupRows = 64, kPanel = 64;

/// Heads are panels of 64 elements, or else of 32.
static Layout layoutOfHead(int64_t elements) {
  return elements % kPanel ? Layout::Swizzle64B : Layout::Swizzle128B;
}

TensorMapType fp4::boxOfTokens(Type element, int64_t rows, int64_t elements) {
  int64_t panel = elements % kPanel ? kPanel / 2 : kPanel;
  return TensorMapType::get({1, rows, panel}, element, layoutOfHead(elements));
}

SharedType fp4::tileOfTokens(Type element, int64_t rows, int64_t elements) {
  return SharedType::get({rows, elements}, element, layoutOfHead(elements));
}

namespace {

/// A tile: its sequence, its head, its first row, and the tiles of both operands.
struct OwnTile {
  Value batch, head, first;
  Value scores, powers; ///< operand A of scores, and of the gradient of powers
};

/// Two numbers of each query (AttentionTotals.cpp), in its row or column.
struct QueryNumbers {
  Value exponents, totals;
};

/// Blocks that a tile passes over.
struct PassedBlocks {
  Value begin, end;
};

class BackwardBuilder {
public:
  BackwardBuilder(gpu::GPUFuncOp func, AttentionBackward &backward, const BackwardKernel &which)
      : b(func, backward.plan, backward.op.getLoc()), backward(backward), op(backward.op),
        which(which), isOfKeys(which.isOfKeys), own(backward, isOfKeys),
        others(backward, !isOfKeys), arguments(func.getArguments()) {}

  void build();

private:
  OwnTile tileOf(Value number, Value list);
  void buildTile(const OwnTile &tile);
  PassedBlocks rangeOf(const OwnTile &tile);
  void passBlock(const OwnTile &tile, Value head, Value block);
  Value load(unsigned map, Value batch, Value head, Value first, int64_t rows, int64_t elements);
  Value powersOf(const OwnTile &tile, Value first, Value scores, Value exponents);
  Value riseOf(Value tangents);
  QueryNumbers numbersOf(const OwnTile &tile, Value head, Value first);
  Value masked(const OwnTile &tile, Value first, Value scores);
  Value isMasked(Value place, Value first);
  Value hide(Value place, Value first, Value scores);
  void addProducts(Value sums, Value numbers, Value elements);
  void store(const OwnTile &tile, Value sums, Value result, bool isScaled);

  RankedTensorType numbers(int64_t columns) {
    return DistributionAttr::tensorOf(FragmentKind::Wgmma, columns, b.getF32Type());
  }
  Value splat(int64_t columns, float number) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(numbers(columns), number));
  }
  Value fragment(int64_t columns) {
    return AccumulatorOp::create(b, FragmentType::get(b.getContext(), {kGroupRows, columns},
                                                      b.getF32Type(), FragmentKind::Wgmma));
  }
  Value read(Value fragment) {
    int64_t columns = cast<FragmentType>(fragment.getType()).getShape()[1];
    return ReadOp::create(b, numbers(columns), fragment, int64_t(0), int64_t(0));
  }
  Value rounded(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType());
    return arith::TruncFOp::create(b, type.clone(backward.element()), tile);
  }
  Value atLeastZero(Value number) { return arith::MaxSIOp::create(b, number, b.constant(0)); }

  TileBuilder b;
  AttentionBackward &backward;
  AttentionBackwardOp op;
  const BackwardKernel &which;
  bool isOfKeys; ///< tiles are of keys
  BackwardSide own, others;
  ValueRange arguments;
  Value ofScores, ofPowers; ///< sums of a tile: of the operands of scores, and of powers; or null
  QueryNumbers ofRows;      ///< numbers of the queries of a tile
};

} // namespace

void fp4::buildBackward(gpu::GPUFuncOp kernel, AttentionBackward &backward,
                        const BackwardKernel &which) {
  BackwardBuilder(kernel, backward, which).build();
}

void BackwardBuilder::build() {
  int64_t tiles = int64_t(llvm::divideCeil(own.tokens, backward.rows));
  b.forEachWork(b.constant(tiles), b.constant(own.lists), [&](Value number, Value list, Value) {
    Value last = b.sub(b.constant(tiles - 1), number);
    if (!isOfKeys && op.getCausal()) // the longest first
      std::swap(number, last);
    buildTile(tileOf(b.inPanels(number, last, list, own.lists, op.getCausal()), list));
  });
  gpu::ReturnOp::create(b);
}

OwnTile BackwardBuilder::tileOf(Value number, Value list) {
  OwnTile tile;
  tile.batch = b.div(list, own.heads);
  tile.head = b.rem(list, own.heads);
  tile.first = b.mul(number, backward.rows);
  tile.scores = load(0, tile.batch, tile.head, tile.first, backward.rows, op.getElements());
  if (which.hasScores)
    tile.powers = load(1, tile.batch, tile.head, tile.first, backward.rows, op.getValueElements());
  return tile;
}

/// Loads rows of a head, `elements` wide.
Value BackwardBuilder::load(unsigned map, Value batch, Value head, Value first, int64_t rows,
                            int64_t elements) {
  auto type = tileOfTokens(backward.element(), rows, elements);
  auto loaded = LoadOp::create(b, type, arguments[map], first, b.mul(head, elements),
                               /*existing=*/Value());
  loaded.getPlaneMutable().assign(batch);
  loaded->setAttr(kRingAttr, b.getStringAttr("operand" + Twine(map)));
  return loaded.getResult();
}

void BackwardBuilder::buildTile(const OwnTile &tile) {
  ofScores = which.hasScores ? fragment(op.getElements()) : Value();
  ofPowers = which.hasPowers ? fragment(op.getValueElements()) : Value();
  if (!isOfKeys)
    ofRows = numbersOf(tile, tile.head, tile.first);
  PassedBlocks range = rangeOf(tile);
  auto passHead = [&](Value head) {
    b.loop(range.begin, range.end, b.constant(1),
           [&](Value block) { passBlock(tile, head, block); });
  };
  int64_t sharing = op.getHeadsOfGroup();
  if (!isOfKeys) {
    passHead(b.div(tile.head, sharing));
  } else if (sharing == 1) {
    passHead(tile.head);
  } else {
    Value first = b.mul(tile.head, sharing);
    b.loop(b.constant(0), b.constant(sharing), b.constant(1),
           [&](Value head) { passHead(b.add(first, head)); });
  }
  if (which.hasScores)
    store(tile, ofScores, arguments[5], /*isScaled=*/true);
  if (which.hasPowers)
    store(tile, ofPowers, arguments.back(), /*isScaled=*/false);
}

/// The blocks some of which some row of a tile sees, or is seen by; none where the end is not
/// behind the begin.
PassedBlocks BackwardBuilder::rangeOf(const OwnTile &tile) {
  int64_t block = others.block;
  PassedBlocks range = {b.constant(0), b.constant(int64_t(llvm::divideCeil(others.tokens, block)))};
  if (!op.getCausal())
    return range;
  int64_t place = backward.firstPlace(), window = backward.window();
  auto blockOf = [&](Value row) { return b.div(atLeastZero(row), block); };
  auto behindBlockOf = [&](Value row) { return blockOf(b.add(row, b.constant(block))); };
  Value last = b.add(tile.first, b.constant(backward.rows - 1));
  if (isOfKeys) {
    range.begin = blockOf(b.sub(tile.first, b.constant(place)));
    if (window)
      range.end = arith::MinSIOp::create(
          b, range.end, behindBlockOf(b.add(last, b.constant(window - 1 - place))));
    return range;
  }
  if (window)
    range.begin = blockOf(b.add(tile.first, b.constant(place + 1 - window)));
  range.end = arith::MinSIOp::create(b, range.end, behindBlockOf(b.add(last, b.constant(place))));
  return range;
}

/// Adds the products of a block, of a head of it.
void BackwardBuilder::passBlock(const OwnTile &tile, Value head, Value block) {
  int64_t columns = others.block;
  Value first = b.mul(block, columns);
  Value ofScoresB = load(2, tile.batch, head, first, columns, op.getElements());
  auto [exponents, totals] = isOfKeys ? numbersOf(tile, head, first) : ofRows;
  Value products = fragment(columns), slopes = which.hasScores ? fragment(columns) : Value();
  MmaOp::create(b, products, tile.scores, ofScoresB);
  Value scores = read(products);
  if (op.getSoftcap())
    scores = b.tangentsOf(scores, splat(columns, float(op.getTangentFactor())));
  Value powers = powersOf(tile, first, scores, exponents);
  Value ofPowersB = load(3, tile.batch, head, first, columns, op.getValueElements()), slope;
  if (which.hasScores) {
    MmaOp::create(b, slopes, tile.powers, ofPowersB);
    Value difference = arith::SubFOp::create(b, read(slopes), totals);
    slope = arith::MulFOp::create(b, powers, difference);
    if (op.getSoftcap())
      slope = arith::MulFOp::create(b, slope, riseOf(scores));
    slope = rounded(slope);
  }
  if (which.hasPowers)
    addProducts(ofPowers, rounded(powers), ofPowersB);
  if (which.hasScores)
    addProducts(ofScores, slope, ofScoresB);
}

/// The gradient 1 - t^2 of scores that are hyperbolic tangents.
Value BackwardBuilder::riseOf(Value tangents) {
  return math::FmaOp::create(b, arith::NegFOp::create(b, tangents), tangents,
                             splat(others.block, 1));
}

/// The powers of the scores of a block whose first row is `first`: products, or tangents.
Value BackwardBuilder::powersOf(const OwnTile &tile, Value first, Value scores, Value exponents) {
  Value factor = splat(others.block, float(op.getExponentFactor()));
  Value exponent = math::FmaOp::create(b, masked(tile, first, scores), factor, exponents);
  return math::Exp2Op::create(b, exponent, arith::FastMathFlags::afn);
}

/// The numbers of the queries from `first` on.
QueryNumbers BackwardBuilder::numbersOf(const OwnTile &tile, Value head, Value first) {
  Value list = b.add(b.mul(tile.batch, op.getHeads()), head), zero = b.constant(0);
  auto fetch = [&](Value place) -> Value {
    return FetchOp::create(b, numbers(others.block), arguments[4], isOfKeys ? zero : place,
                           isOfKeys ? place : zero, /*rows=*/Value(), /*transposed=*/false,
                           /*one_row=*/false);
  };
  Value place = b.add(b.mul(list, backward.paddedQueries()), first);
  return {fetch(place), fetch(b.add(place, b.constant(backward.numbers())))};
}

/// Adds the products of `numbers` and `elements` to `sums`.
void BackwardBuilder::addProducts(Value sums, Value numbers, Value elements) {
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product = MmaOp::create(b, sums, numbers, none, none, elements, none, none, always, none);
  product.setTransposed(true);
}

void BackwardBuilder::store(const OwnTile &tile, Value sums, Value result, bool isScaled) {
  int64_t columns = cast<FragmentType>(sums.getType()).getShape()[1];
  Value numbers = read(sums);
  if (isScaled)
    numbers = arith::MulFOp::create(b, numbers, splat(columns, op.getScale().convertToFloat()));
  Value begin = b.mul(tile.batch, own.tokens);
  StoreOp::create(b, rounded(numbers), result, b.add(begin, tile.first), b.mul(tile.head, columns),
                  b.add(begin, b.constant(own.tokens)));
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// `scores` with minus infinity where a query does not see a key, in the blocks that have such
/// keys. Keys behind the last one load as zeros, whose powers may be infinite.
Value BackwardBuilder::masked(const OwnTile &tile, Value first, Value scores) {
  bool hasRest = !isOfKeys && others.tokens % others.block;
  if (!op.getCausal() && !hasRest)
    return scores;
  // The place of the first query among the keys from the first one of the tile or block on.
  Value query = isOfKeys ? first : tile.first, key = isOfKeys ? tile.first : first;
  Value place = b.add(b.sub(query, key), b.constant(backward.firstPlace()));
  return b.replaceWhen(isMasked(place, first), scores, [&] { return hide(place, first, scores); });
}

/// Returns true (i1) where some query of tile and block does not see some key, the first query the
/// last key, or the last query the first one.
Value BackwardBuilder::isMasked(Value place, Value first) {
  int64_t keys = isOfKeys ? backward.rows : others.block;
  int64_t queries = isOfKeys ? others.block : backward.rows;
  Value isHidden;
  auto hideWhen = [&](Value condition) {
    isHidden = isHidden ? arith::OrIOp::create(b, isHidden, condition).getResult() : condition;
  };
  if (op.getCausal())
    hideWhen(b.compare(arith::CmpIPredicate::slt, place, b.constant(keys - 1)));
  if (backward.window())
    hideWhen(b.compare(arith::CmpIPredicate::sgt, place, b.constant(backward.window() - queries)));
  if (!isOfKeys && others.tokens % others.block)
    hideWhen(b.compare(arith::CmpIPredicate::sgt, first, b.constant(others.tokens - others.block)));
  return isHidden;
}

/// A query in column c of a row r of keys sees the key if c >= r - place and, with a window,
/// c < r - place + window. A query in row r sees the key of column c if c <= r + place and
/// c > r + place - window.
Value BackwardBuilder::hide(Value place, Value first, Value scores) {
  RankedTensorType type = numbers(others.block).clone(b.getI32Type());
  auto tileOf = [&](Value scalar) { return b.splat(type, scalar); };
  Value row = ElementIndexOp::create(b, type, uint64_t(0)),
        column = ElementIndexOp::create(b, type, uint64_t(1)), isSeen;
  auto seeWhen = [&](arith::CmpIPredicate predicate, Value limit) {
    Value holds = arith::CmpIOp::create(b, predicate, column, limit);
    isSeen = isSeen ? arith::AndIOp::create(b, isSeen, holds).getResult() : holds;
  };
  Value window = b.constant(backward.window());
  if (op.getCausal() && isOfKeys) {
    Value begin = arith::SubIOp::create(b, row, tileOf(place));
    seeWhen(arith::CmpIPredicate::sge, begin);
    if (backward.window())
      seeWhen(arith::CmpIPredicate::slt, arith::AddIOp::create(b, begin, tileOf(window)));
  } else if (op.getCausal()) {
    Value end = arith::AddIOp::create(b, row, tileOf(place));
    seeWhen(arith::CmpIPredicate::sle, end);
    if (backward.window())
      seeWhen(arith::CmpIPredicate::sgt, arith::SubIOp::create(b, end, tileOf(window)));
  }
  if (!isOfKeys && others.tokens % others.block)
    seeWhen(arith::CmpIPredicate::slt, tileOf(b.sub(b.constant(others.tokens), first)));
  Value nothing = splat(others.block, -std::numeric_limits<float>::infinity());
  return arith::SelectOp::create(b, isSeen, scores, nothing);
}
