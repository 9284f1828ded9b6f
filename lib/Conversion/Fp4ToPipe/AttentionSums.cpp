//===- AttentionSums.cpp - Sums of all keys, and results ------------------===//
//
// CTAs of a cluster that share the keys of a tile have sums from maxima of their own. The cluster
// reduces the maxima, scales all sums as if these were from the largest one, and adds them up: each
// CTA has the result of some columns. The order is that of the CTAs, so that results always have
// the same bits.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/PipeWarps.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Columns of tensor memory that a thread reads and stores at a time.
static constexpr int64_t kStoredColumns = 64;

void AttentionBuilder::finish(const QueryTile &tile, Value sums, Value maximum, Value sum) {
  Value whole = attention.sumColumns() > 1 ? sumOfRow(sum, /*columns=*/1) : sum;
  if (attention.splits > 1)
    return reduceInCluster(tile, sums, maximum, whole);
  Value inverse = closeRows(tile, maximum, whole);
  if (tile.valueFactor)
    inverse = arith::MulFOp::create(b, inverse, b.splat(attention.numbers(1), tile.valueFactor));
  for (auto [number, part] : llvm::enumerate(promoted))
    storeColumns(tile, read(part.sums), int64_t(number) * attention.partColumns(), inverse);
  if (attention.isPromoted())
    return;
  int64_t columns = stores                 ? attention.quantizedColumns()
                    : attention.hasLanes() ? kStoredColumns
                                           : attention.valueElements();
  for (int64_t first = 0; first < attention.valueElements(); first += columns)
    store(tile, sums, first, columns, inverse);
}

void AttentionBuilder::reduceInCluster(const QueryTile &tile, Value sums, Value maximum,
                                       Value whole) {
  Value largest = reduceRow(maximum, /*maximum=*/true);
  Value distance = arith::SubFOp::create(b, maximum, originOf(largest));
  Value shrink = exp2(arith::MulFOp::create(b, distance, factor(1)));
  scale(sums, shrink);
  int64_t columns = attention.columnsOfPiece();
  reduce(sums, columns, /*maximum=*/false);
  Value ofAll = reduceRow(arith::MulFOp::create(b, whole, shrink), /*maximum=*/false);
  Value inverse = closeRows(tile, largest, ofAll);
  Value place = b.placeInCluster(gpu::Dimension::x);
  for (int64_t first = 0; first < attention.valueElements(); first += columns) {
    Value adding = b.constant(first / columns % attention.splits);
    b.when(b.compare(arith::CmpIPredicate::eq, place, adding),
           [&] { store(tile, sums, first, columns, inverse); });
  }
}

/// Reduces the rows of `fragment` that queries have.
void AttentionBuilder::reduce(Value fragment, int64_t columns, bool maximum) {
  int64_t rows = std::min(attention.queryTokens(), attention.tileTokens()) * attention.tileHeads;
  ReduceOp::create(b, /*sums=*/Type(), fragment, b.getI64IntegerAttr(columns), maximum,
                   attention.rows == kGroupRows ? b.getI64IntegerAttr(rows) : IntegerAttr(),
                   /*place=*/IntegerAttr());
}

/// The sum of the numbers that the CTAs have of a row, or the maximum. Each CTA adds up a piece of
/// its own.
Value AttentionBuilder::reduceRow(Value number, bool maximum) {
  int64_t columns = attention.splits * kThreadColumns;
  Value pieces = fragment(columns);
  WriteOp::create(b, toColumns(number, columns), pieces, uint64_t(0));
  reduce(pieces, kThreadColumns, maximum);
  return ownPiece(pieces);
}

/// The number of a row in the piece of this CTA.
Value AttentionBuilder::ownPiece(Value fragment) {
  Value place = b.placeInCluster(gpu::Dimension::x);
  Value own;
  for (int64_t part = 0; part < attention.splits; ++part) {
    Value piece = read(fragment, part * kThreadColumns, kThreadColumns);
    if (own) {
      Value isOwn = b.compare(arith::CmpIPredicate::eq, place, b.constant(part));
      piece = arith::SelectOp::create(b, isOwn, piece, own);
    }
    own = piece;
  }
  return maximumOfRow(own); // its columns are equal
}

/// Adds the powers of sinks to the sums of rows, and stores the logarithms of these. Returns what
/// the sums of values are multiplied by. Powers are those of distances from the larger of maximum
/// and sink, which a lazy maximum lets them exceed by its growth.
Value AttentionBuilder::closeRows(const QueryTile &tile, Value maximum, Value whole) {
  if (!args.sinks && !args.lse)
    return inverseOf(whole);
  Value exponent = arith::MulFOp::create(b, maximum, factor(1)), shrink;
  if (attention.isOfBytes())
    exponent = arith::SubFOp::create(b, exponent, powerShift());
  if (args.sinks) {
    Value log2e = splat(1, std::numbers::log2e_v<float>);
    Value sink = arith::MulFOp::create(b, ofHeads(tile, args.sinks), log2e),
          top = arith::MaximumFOp::create(b, exponent, sink);
    Value origin = originOf(top);
    shrink = exp2(arith::SubFOp::create(b, exponent, origin));
    Value ofSink = exp2(arith::SubFOp::create(b, sink, origin));
    whole = arith::AddFOp::create(b, arith::MulFOp::create(b, whole, shrink), ofSink);
    exponent = top;
  }
  if (args.lse)
    storeLogSums(tile, exponent, whole);
  Value inverse = inverseOf(whole);
  return shrink ? arith::MulFOp::create(b, inverse, shrink).getResult() : inverse;
}

/// The number that `list` has for the head of each row.
Value AttentionBuilder::ofHeads(const QueryTile &tile, Value list) {
  RankedTensorType type = attention.numbers(1);
  auto numberOf = [&](int64_t head) {
    Value place = head ? b.add(tile.head, b.constant(head)) : tile.head;
    return b.splat(type, b.entry(list, place));
  };
  Value number = numberOf(0);
  if (attention.tileHeads == 1)
    return number;
  RankedTensorType integers = type.clone(b.getI32Type());
  auto splatOf = [&](int64_t value) { return b.splat(integers, b.constant(value)); };
  Value row = ElementIndexOp::create(b, integers, uint64_t(0));
  Value ofRow = arith::RemUIOp::create(b, row, splatOf(attention.tileHeads));
  for (int64_t head = 1; head < attention.existingHeads(); ++head) {
    Value isHead = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, ofRow, splatOf(head));
    number = arith::SelectOp::create(b, isHead, numberOf(head), number);
  }
  return number;
}

/// Stores the natural logarithms of `whole` times 2 to the power of `exponent`, in the first CTA of
/// those that share keys.
void AttentionBuilder::storeLogSums(const QueryTile &tile, Value exponent, Value whole) {
  Value logarithm = math::Log2Op::create(b, whole, arith::FastMathFlags::afn);
  Value sum = arith::MulFOp::create(b, arith::AddFOp::create(b, exponent, logarithm),
                                    splat(1, std::numbers::ln2_v<float>));
  auto storeAll = [&] { storeNumbers(tile, sum, args.lse); };
  if (attention.splits == 1)
    return storeAll();
  Value place = b.placeInCluster(gpu::Dimension::x);
  b.when(b.compare(arith::CmpIPredicate::eq, place, b.constant(0)), storeAll);
}

/// Stores a number of each row.
void AttentionBuilder::storeNumbers(const QueryTile &tile, Value numbers, Value dest) {
  auto stored = StoreOp::create(b, numbers, dest, tile.row, tile.head, tile.rowsEnd);
  if (attention.tileHeads > 1)
    stored.setHeads(SmallVector<int64_t>{attention.tileHeads, attention.existingHeads(), 1});
}

/// 1 over the sum of a row, or 0 of a row that sees no key.
Value AttentionBuilder::inverseOf(Value whole) {
  Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, whole, splat(1, 0));
  Value inverse = arith::DivFOp::create(b, splat(1, 1), whole);
  return arith::SelectOp::create(b, isNone, splat(1, 0), inverse);
}

/// Stores `columns` columns of the result from `first` on.
void AttentionBuilder::store(const QueryTile &tile, Value sums, int64_t first, int64_t columns,
                             Value inverse) {
  storeColumns(tile, read(sums, first, columns), first, inverse);
}

/// Stores `sums` as columns of the result from `first` on; those of slices as they are.
void AttentionBuilder::storeColumns(const QueryTile &tile, Value sums, int64_t first,
                                    Value inverse) {
  int64_t columns = cast<RankedTensorType>(sums.getType()).getDimSize(1);
  Value scaled = sums;
  if (inverse)
    scaled = arith::MulFOp::create(b, sums, toColumns(inverse, columns));
  Value column = b.mul(tile.head, attention.valueElements());
  if (first)
    column = b.add(column, b.constant(first));
  if (attention.slices == 1)
    scaled = conversion.convertSums({SumConversion::Sums{scaled, /*factor=*/Value()}},
                                    {tile.row, column, /*group=*/Value(), /*transposed=*/false});
  if (stores)
    quantizeColumns(tile, scaled, column);
  if (!args.result)
    return;
  auto stored = StoreOp::create(b, scaled, args.result, tile.row, column, tile.rowsEnd);
  if (attention.tileHeads > 1)
    stored.setHeads(SmallVector<int64_t>{attention.tileHeads, attention.existingHeads(),
                                         attention.valueElements()});
}

/// Quantizes the elements of all rows from `column` on: threads have rows, or gather them.
void AttentionBuilder::quantizeColumns(const QueryTile &tile, Value elements, Value column) {
  auto type = cast<RankedTensorType>(elements.getType());
  ResultPlace place{tile.row, column, tile.rowsEnd, /*scaleShift=*/Value()};
  if (attention.hasLanes())
    return stores->emitSegment(place, elements);
  int64_t columns = type.getDimSize(1) * kGroupRows / GatherRowsOp::kRows;
  auto segment = DistributionAttr::tensorOf(FragmentKind::Lanes, columns, type.getElementType());
  Value zero = b.constant(0);
  auto gathered = GatherRowsOp::create(b, segment, b.getI32Type(), elements, zero, zero,
                                       /*transposed=*/UnitAttr(), /*place=*/IntegerAttr());
  place.column = b.add(column, gathered.getFirst());
  stores->emitSegment(place, gathered.getSegment());
}

//===----------------------------------------------------------------------===//
// Tiles in registers
//===----------------------------------------------------------------------===//

Value AttentionBuilder::splat(int64_t columns, float number) {
  return arith::ConstantOp::create(b, DenseElementsAttr::get(attention.numbers(columns), number));
}

Value AttentionBuilder::fragment(int64_t columns) {
  int64_t rows = attention.numbers(columns).getDimSize(0);
  return AccumulatorOp::create(
      b, FragmentType::get(b.getContext(), {rows, columns}, b.getF32Type(), attention.kind()));
}

Value AttentionBuilder::read(Value sums, int64_t first, int64_t columns) {
  RankedTensorType type = attention.numbers(columns);
  if (isa<TmemType>(sums.getType()))
    return ReadOp::create(b, type, sums, b.constant(first));
  return ReadOp::create(b, type, sums, first, int64_t(0));
}

Value AttentionBuilder::toColumns(Value rows, int64_t columns) {
  return BroadcastRowsOp::create(b, attention.numbers(columns), rows);
}

Value AttentionBuilder::sumOfRow(Value value, int64_t columns) {
  return ReduceRowsOp::create(b, attention.numbers(columns), RowCombination::Add, value);
}

Value AttentionBuilder::maximumOfRow(Value value) {
  return ReduceRowsOp::create(b, attention.numbers(/*columns=*/1), RowCombination::Maximum, value);
}

Value AttentionBuilder::exp2(Value value) {
  return math::Exp2Op::create(b, value, arith::FastMathFlags::afn);
}

Value AttentionBuilder::rounded(Value numbers, Type element) {
  auto type = cast<RankedTensorType>(numbers.getType());
  return arith::TruncFOp::create(b, type.clone(element), numbers);
}

/// Multiplies the rows of `sums` by `factors`.
void AttentionBuilder::scale(Value sums, Value factors) {
  Value all = toColumns(factors, attention.valueElements());
  WriteOp::create(b, arith::MulFOp::create(b, read(sums), all), sums, uint64_t(0));
}

Value AttentionBuilder::factor(int64_t columns) {
  Value all = splat(columns, float(attention.op.getExponentFactor()));
  if (!keyFactor || attention.op.getSoftcap()) // which tangents have
    return all;
  return arith::MulFOp::create(b, all, b.splat(attention.numbers(columns), keyFactor));
}
