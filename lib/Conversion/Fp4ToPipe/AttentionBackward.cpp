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

/// The rows of a sequence in the maps: their plane, and the rows of it in front of them, or null.
struct SequenceRows {
  Value plane, before;
  Value tokens;
};

/// A tile: its sequence, its head, its first row, and the tiles of both operands.
struct OwnTile {
  SequenceRows own, others;
  Value head, first;    ///< of the tile, in its sequence
  Value begin, end;     ///< first row of the tile, and end of its sequence, among those of all
  Value place;          ///< key at the place of the first query of the sequence
  Value numbers;        ///< first number of the sequence, of its first head
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
        others(backward, !isOfKeys), args(backward, which, func) {}

  void build();

private:
  void viewNumbers();
  OwnTile tileOf(Value number, Value list);
  OwnTile placeTile(Value number, Value list);
  OwnTile placePacked(Value number, Value head);
  void buildTile(const OwnTile &tile);
  PassedBlocks rangeOf(const OwnTile &tile);
  void passBlock(const OwnTile &tile, Value head, Value block);
  Value load(unsigned map, const SequenceRows &sequence, Value head, Value first, int64_t rows,
             int64_t elements);
  Value powersOf(const OwnTile &tile, Value first, Value scores, Value exponents);
  Value riseOf(Value tangents);
  QueryNumbers numbersOf(const OwnTile &tile, Value head, Value first);
  Value masked(const OwnTile &tile, Value first, Value scores);
  Value isMasked(Value place, Value left);
  Value hide(Value place, Value left, Value scores);
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
  /// An offset of packed rows as one from 0 to `most`, whatever it is.
  Value offsetOf(Value offsets, Value sequence, Value most) {
    Value number = b.entry(offsets, b.min(sequence, op.getBatches()));
    return arith::MinSIOp::create(b, atLeastZero(number), most);
  }
  /// Returns true when the last block of keys may have some that are not there.
  bool hasRest() { return !isOfKeys && (op.isPacked() || others.tokens % others.block); }

  TileBuilder b;
  AttentionBackward &backward;
  AttentionBackwardOp op;
  const BackwardKernel &which;
  bool isOfKeys; ///< tiles are of keys
  BackwardSide own, others;
  BackwardArguments args;
  Value numbersOfKind;      ///< numbers of all heads, of one kind
  Value ofScores, ofPowers; ///< sums of a tile: of the operands of scores, and of powers; or null
  QueryNumbers ofRows;      ///< numbers of the queries of a tile
};

} // namespace

void fp4::buildBackward(gpu::GPUFuncOp kernel, AttentionBackward &backward,
                        const BackwardKernel &which) {
  BackwardBuilder(kernel, backward, which).build();
}

/// The order of arguments is that of BackwardLowering.
BackwardArguments::BackwardArguments(AttentionBackward &backward, const BackwardKernel &which,
                                     gpu::GPUFuncOp func) {
  unsigned number = 0;
  auto take = [&](Value &argument, bool isThere) {
    if (isThere)
      argument = func.getArgument(number++);
  };
  for (Value &map : maps)
    take(map, true);
  take(numbers, true);
  take(ofScores, which.hasScores);
  take(ofPowers, which.hasPowers);
  for (Value *argument : {&table, &places, &offsets[0], &offsets[1], &rows[0], &rows[1], &padded})
    take(*argument, backward.isPacked());
}

void BackwardBuilder::build() {
  viewNumbers();
  Value tiles = op.isPacked() ? b.entry(args.table, args.places)
                              : b.constant(int64_t(llvm::divideCeil(own.tokens, backward.rows)));
  b.forEachWork(tiles, b.constant(own.lists), [&](Value number, Value list, Value) {
    Value last = b.sub(b.sub(tiles, b.constant(1)), number);
    if (!isOfKeys && op.getCausal()) // the longest first
      std::swap(number, last);
    bool areUneven = op.getCausal() || op.isPacked();
    buildTile(tileOf(b.inPanels(number, last, list, own.lists, areUneven), list));
  });
  gpu::ReturnOp::create(b);
}

/// Gives the numbers of packed queries their size, which makes them one row of columns.
void BackwardBuilder::viewNumbers() {
  if (!op.isPacked()) {
    numbersOfKind = b.constant(backward.numbers());
    return;
  }
  numbersOfKind = b.mul(args.padded, op.getHeads());
  if (!isOfKeys)
    return;
  Value all = b.mul(numbersOfKind, 2), wide = arith::ExtUIOp::create(b, b.getI64Type(), all);
  Value pitch = arith::MulIOp::create(b, wide, arith::ConstantIntOp::create(b, sizeof(float), 64));
  auto row = GlobalType::get({1, ShapedType::kDynamic}, b.getF32Type());
  args.numbers = ViewOp::create(b, row, args.numbers, /*offset=*/uint64_t(0),
                                /*rows=*/Value(), all, pitch);
}

OwnTile BackwardBuilder::tileOf(Value number, Value list) {
  OwnTile tile = op.isPacked() ? placePacked(number, list) : placeTile(number, list);
  tile.scores = load(0, tile.own, tile.head, tile.first, backward.rows, op.getElements());
  if (which.hasScores)
    tile.powers = load(1, tile.own, tile.head, tile.first, backward.rows, op.getValueElements());
  return tile;
}

/// A tile of sequences of equal lengths, each a plane.
OwnTile BackwardBuilder::placeTile(Value number, Value list) {
  OwnTile tile;
  Value batch = b.div(list, own.heads);
  tile.head = b.rem(list, own.heads);
  tile.first = b.mul(number, backward.rows);
  tile.own = {batch, Value(), b.constant(own.tokens)};
  tile.others = {batch, Value(), b.constant(others.tokens)};
  Value begin = b.mul(batch, own.tokens);
  tile.begin = b.add(begin, tile.first);
  tile.end = b.add(begin, b.constant(own.tokens));
  tile.place = b.constant(backward.firstPlace());
  tile.numbers = b.mul(batch, op.getHeads() * backward.paddedQueries());
  return tile;
}

/// A tile of packed sequences, whose planes end with them (pipe.make_tensor_map). Rows behind the
/// last sequence see none. Offsets that are wrong give some rows or none.
OwnTile BackwardBuilder::placePacked(Value number, Value head) {
  OwnTile tile;
  tile.head = head;
  tile.begin = b.entry(args.table, number, 0);
  tile.end = b.entry(args.table, number, 1);
  Value batch = b.entry(args.table, number, 2), next = b.add(batch, b.constant(1));
  auto rowsOf = [&](unsigned side, Value begin, Value end) -> SequenceRows {
    Value tokens = b.sub(end, begin);
    return {end, b.sub(args.rows[side], tokens), tokens};
  };
  Value begin = offsetOf(args.offsets[0], batch, tile.begin);
  Value endOfOthers = offsetOf(args.offsets[1], next, args.rows[1]);
  Value beginOfOthers = offsetOf(args.offsets[1], batch, endOfOthers);
  tile.first = b.sub(tile.begin, begin);
  tile.own = rowsOf(0, begin, tile.end);
  tile.others = rowsOf(1, beginOfOthers, endOfOthers);
  const SequenceRows &queries = isOfKeys ? tile.others : tile.own,
                     &keys = isOfKeys ? tile.own : tile.others;
  tile.place = b.sub(keys.tokens, queries.tokens);
  constexpr int64_t unit = AttentionBackward::kPlaceUnit;
  Value firstQuery = isOfKeys ? beginOfOthers : begin;
  tile.numbers = b.add(b.mul(b.div(firstQuery, unit), unit), b.mul(batch, backward.rowsBehind()));
  return tile;
}

/// Loads rows of a head, `elements` wide.
Value BackwardBuilder::load(unsigned map, const SequenceRows &sequence, Value head, Value first,
                            int64_t rows, int64_t elements) {
  auto type = tileOfTokens(backward.element(), rows, elements);
  Value row = sequence.before ? b.add(sequence.before, first) : first;
  auto loaded = LoadOp::create(b, type, args.maps[map], row, b.mul(head, elements),
                               /*existing=*/Value());
  loaded.getPlaneMutable().assign(sequence.plane);
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
    store(tile, ofScores, args.ofScores, /*isScaled=*/true);
  if (which.hasPowers)
    store(tile, ofPowers, args.ofPowers, /*isScaled=*/false);
}

/// The blocks some of which some row of a tile sees, or is seen by; none where the end is not
/// behind the begin.
PassedBlocks BackwardBuilder::rangeOf(const OwnTile &tile) {
  int64_t block = others.block;
  Value all = op.isPacked() ? b.quotientUp(tile.others.tokens, block)
                            : b.constant(int64_t(llvm::divideCeil(others.tokens, block)));
  PassedBlocks range = {b.constant(0), all};
  if (!op.getCausal())
    return range;
  int64_t window = backward.window();
  auto blockOf = [&](Value row) { return b.div(atLeastZero(row), block); };
  auto behindBlockOf = [&](Value row) { return blockOf(b.add(row, b.constant(block))); };
  Value last = b.add(tile.first, b.constant(backward.rows - 1));
  if (isOfKeys) {
    range.begin = blockOf(b.sub(tile.first, tile.place));
    Value seen = b.sub(b.add(last, b.constant(window - 1)), tile.place);
    if (window)
      range.end = arith::MinSIOp::create(b, range.end, behindBlockOf(seen));
    return range;
  }
  if (window)
    range.begin = blockOf(b.add(b.add(tile.first, tile.place), b.constant(1 - window)));
  range.end = arith::MinSIOp::create(b, range.end, behindBlockOf(b.add(last, tile.place)));
  return range;
}

/// Adds the products of a block, of a head of it.
void BackwardBuilder::passBlock(const OwnTile &tile, Value head, Value block) {
  int64_t columns = others.block;
  Value first = b.mul(block, columns);
  Value ofScoresB = load(2, tile.others, head, first, columns, op.getElements());
  auto [exponents, totals] = isOfKeys ? numbersOf(tile, head, first) : ofRows;
  Value products = fragment(columns), slopes = which.hasScores ? fragment(columns) : Value();
  MmaOp::create(b, products, tile.scores, ofScoresB);
  Value scores = read(products);
  if (op.getSoftcap())
    scores = b.tangentsOf(scores, splat(columns, float(op.getTangentFactor())));
  Value powers = powersOf(tile, first, scores, exponents);
  Value ofPowersB = load(3, tile.others, head, first, columns, op.getValueElements()), slope;
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
  Value zero = b.constant(0), rows;
  if (op.isPacked() && !isOfKeys)
    rows = b.mul(numbersOfKind, 2);
  auto fetch = [&](Value place) -> Value {
    auto fetched =
        FetchOp::create(b, numbers(others.block), args.numbers, isOfKeys ? zero : place,
                        isOfKeys ? place : zero, rows, /*transposed=*/false, /*one_row=*/false);
    fetched.setInBounds(true); // blocks and tiles that reach behind a sequence have numbers
    return fetched;
  };
  Value ofHead = b.mul(head, args.padded ? args.padded : b.constant(backward.paddedQueries()));
  Value place = b.add(b.add(tile.numbers, ofHead), first);
  return {fetch(place), fetch(b.add(place, numbersOfKind))};
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
  StoreOp::create(b, rounded(numbers), result, tile.begin, b.mul(tile.head, columns), tile.end);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// `scores` with minus infinity where a query does not see a key, in the blocks that have such
/// keys. Keys behind the last one load as zeros, whose powers may be infinite.
Value BackwardBuilder::masked(const OwnTile &tile, Value first, Value scores) {
  if (!op.getCausal() && !hasRest())
    return scores;
  // The place of the first query among the keys from the first one of the tile or block on.
  Value query = isOfKeys ? first : tile.first, key = isOfKeys ? tile.first : first;
  Value place = b.add(b.sub(query, key), tile.place);
  Value left = b.sub(tile.others.tokens, first);
  return b.replaceWhen(isMasked(place, left), scores, [&] { return hide(place, left, scores); });
}

/// Returns true (i1) where some query of tile and block does not see some key, the first query the
/// last key, or the last query the first one. `left` are the rows of the sequence from the block
/// on.
Value BackwardBuilder::isMasked(Value place, Value left) {
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
  if (hasRest())
    hideWhen(b.compare(arith::CmpIPredicate::slt, left, b.constant(others.block)));
  return isHidden;
}

/// A query in column c of a row r of keys sees the key if c >= r - place and, with a window,
/// c < r - place + window. A query in row r sees the key of column c if c <= r + place and
/// c > r + place - window.
Value BackwardBuilder::hide(Value place, Value left, Value scores) {
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
  if (hasRest())
    seeWhen(arith::CmpIPredicate::slt, tileOf(left));
  Value nothing = splat(others.block, -std::numeric_limits<float>::infinity());
  return arith::SelectOp::create(b, isSeen, scores, nothing);
}
