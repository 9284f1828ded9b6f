//===- AttentionKernel.cpp - Blocks of queries pass over blocks of keys ---===//
//
// A CTA takes tiles of queries, a warpgroup 64 rows of each: tokens of one head, or tokens and the
// heads that share keys. For every block of keys, from the last one to the first: the products of
// queries and keys, their maximum of each row, powers of two of their distances from it, and the
// products of these, rounded, and the values. If the maximum grows, the sums of before are scaled
// (online softmax). The values of a block are multiplied with the keys of the next one, while
// threads compute powers (pipe-chain-mmas). Only the last blocks have masks, which the tile's
// number decides.
//
//===----------------------------------------------------------------------===//

#include "AttentionBuilder.h"
#include "Lowering.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

void AttentionBuilder::build() {
  b.forEachWork(b.constant(attention.tiles()),
                b.constant(attention.batches() * attention.headTiles()),
                [&](Value number, Value head, Value) { buildTile(tileOf(number, head)); });
  gpu::ReturnOp::create(b);
}

QueryTile AttentionBuilder::tileOf(Value number, Value batchAndHead) {
  QueryTile tile;
  tile.batch = b.div(batchAndHead, attention.headTiles());
  Value head = b.rem(batchAndHead, attention.headTiles());
  bool hasGroups = attention.tileHeads > 1;
  tile.keyHead = hasGroups ? head : b.div(head, attention.headsOfGroup());
  tile.head = hasGroups ? b.mul(head, attention.headsOfGroup()) : head;
  if (attention.op.getCausal()) // the longest first
    number = b.sub(b.constant(attention.tiles() - 1), number);
  tile.first = b.mul(number, attention.tileTokens());
  Value begin = b.mul(tile.batch, attention.queryTokens());
  tile.row = b.add(begin, tile.first);
  tile.rowsEnd = b.add(begin, b.constant(attention.queryTokens()));
  tile.keys = loads.keysOf(tile.batch);
  return tile;
}

/// The blocks of keys that some query of the tile sees, one at least: a tile that sees no key takes
/// a block all of whose keys are hidden.
Value AttentionBuilder::countBlocks(const QueryTile &tile) {
  if (attention.seesAll())
    return b.constant(attention.blocks());
  Value end = tile.keys;
  if (attention.op.getCausal()) { // the end of the keys that the last query sees, if it exists
    int64_t behind = attention.tileTokens() - attention.queryTokens();
    end = b.add(tile.first, b.add(tile.keys, b.constant(behind)));
  }
  Value some = arith::MaxSIOp::create(b, end, b.constant(1));
  Value blocks = b.quotientUp(some, attention.keys);
  if (!attention.op.getCausal())
    return blocks;
  Value all = b.quotientUp(arith::MaxSIOp::create(b, tile.keys, b.constant(1)), attention.keys);
  return arith::MinSIOp::create(b, blocks, all);
}

/// The first block that some query of the tile sees, which is the first query; null: block 0.
Value AttentionBuilder::firstBlockSeen(const QueryTile &tile) {
  if (!attention.window())
    return {};
  Value first = b.sub(endForFirstQuery(tile), b.constant(attention.window()));
  return b.div(arith::MaxSIOp::create(b, first, b.constant(0)), attention.keys);
}

/// The blocks of this CTA, one at least: CTAs behind the last block have one that is hidden.
AttentionBuilder::Range AttentionBuilder::rangeOf(const QueryTile &tile) {
  Value blocks = countBlocks(tile), seen = firstBlockSeen(tile);
  if (attention.splits == 1)
    return {seen ? seen : b.constant(0), blocks};
  Value place = b.placeInCluster(gpu::Dimension::x);
  Value perCta = b.quotientUp(seen ? b.sub(blocks, seen) : blocks, attention.splits);
  Value begin = arith::MulIOp::create(b, place, perCta);
  if (seen)
    begin = b.add(begin, seen);
  Value end = arith::MinSIOp::create(b, b.add(begin, perCta), blocks);
  return {begin, arith::MaxSIOp::create(b, end, b.add(begin, b.constant(1)))};
}

void AttentionBuilder::buildTile(const QueryTile &tile) {
  Value query = loads.query(tile);
  Value sums = fragment(attention.valueElements());
  Range range = rangeOf(tile);
  RowState state = passBlocks(tile, range, query, sums);
  multiplyValues(tile, attention.isPaged() ? state.rows : loads.rowsOf(tile, range.begin),
                 state.powers, sums);
  finish(tile, sums, state.maximum, state.sum);
}

/// All values of a state, and the state of such values.
static SmallVector<Value> toValues(const RowState &state) {
  SmallVector<Value> values = {state.maximum, state.sum, state.powers};
  llvm::append_range(values, state.rows);
  llvm::append_range(values, state.next);
  return values;
}
static RowState toState(ValueRange values) {
  ValueRange rows = values.drop_front(3);
  return {values[0], values[1], values[2], BlockRows(rows.take_front(rows.size() / 2)),
          BlockRows(rows.drop_front(rows.size() / 2))};
}

/// Passes over the blocks of `range` but for the values of the first one, which come last.
RowState AttentionBuilder::passBlocks(const QueryTile &tile, const Range &range, Value query,
                                      Value sums) {
  Value last = b.sub(range.end, b.constant(1));
  RowState first = firstBlock(tile, last, query);
  bool beginsAtZero = attention.splits == 1 && !attention.window();
  Value count = beginsAtZero ? range.end : b.sub(range.end, range.begin);
  auto loop = scf::ForOp::create(b, b.constant(1), count, b.constant(1), toValues(first));
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(loop.getBody());
  RowState after = nextBlock(tile, b.sub(last, loop.getInductionVar()), query, sums,
                             toState(loop.getRegionIterArgs()));
  scf::YieldOp::create(b, toValues(after));
  return toState(loop.getResults());
}

/// The rows of the block that comes behind `block` in a cache, or some rows behind the last one.
BlockRows AttentionBuilder::rowsBefore(const QueryTile &tile, Value block) {
  if (!attention.isPaged())
    return {};
  Value before = b.sub(block, b.constant(1));
  return loads.rowsOf(tile, arith::MaxSIOp::create(b, before, b.constant(0)));
}

/// The products of the queries and a block of keys.
Value AttentionBuilder::scoresOf(const QueryTile &tile, Value block, const BlockRows &rows,
                                 Value query) {
  Value firstKey = b.mul(block, attention.keys);
  Value key = loads.key(tile, rows), products = fragment(attention.keys);
  MmaOp::create(b, products, query, key);
  return masked(tile, firstKey, softcapped(read(products)));
}

/// The hyperbolic tangents of products with a softcap, whose factor is that of the exponent.
Value AttentionBuilder::softcapped(Value products) {
  if (!attention.op.getSoftcap())
    return products;
  auto splatOf = [&](double number) { return splat(attention.keys, float(number)); };
  Value power = exp2(arith::MulFOp::create(b, products, splatOf(attention.op.getTangentFactor())));
  Value inverse = arith::DivFOp::create(b, splatOf(1), arith::AddFOp::create(b, power, splatOf(1)),
                                        arith::FastMathFlags::afn);
  return math::FmaOp::create(b, inverse, splatOf(-2), splatOf(1));
}

/// `maximum`, or 0 where no key has been seen, so that distances from it are numbers.
Value AttentionBuilder::originOf(Value maximum) {
  if (!attention.mayHideBlocks())
    return maximum;
  Value isNone =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum, nothing(/*columns=*/1));
  return arith::SelectOp::create(b, isNone, splat(1, 0), maximum);
}

/// Powers of the distances of `scores` from `maximum`.
Value AttentionBuilder::powersOf(Value scores, Value maximum) {
  int64_t columns = attention.keys;
  Value offset = arith::NegFOp::create(b, arith::MulFOp::create(b, maximum, factor(1)));
  return exp2(math::FmaOp::create(b, scores, factor(columns), toColumns(offset, columns)));
}

RowState AttentionBuilder::firstBlock(const QueryTile &tile, Value block, Value query) {
  BlockRows rows = loads.rowsOf(tile, block), next = rowsBefore(tile, block);
  Value scores = scoresOf(tile, block, rows, query);
  Value maximum = maximumOfRow(scores);
  Value powers = powersOf(scores, originOf(maximum));
  return {maximum, sumOfRow(powers, kThreadColumns), rounded(powers),
          attention.isPaged() ? rows : BlockRows(), next};
}

/// The products of the next block of keys, and of the last block of values, which run together.
RowState AttentionBuilder::nextBlock(const QueryTile &tile, Value block, Value query, Value sums,
                                     RowState before) {
  RowState after;
  bool isPaged = attention.isPaged();
  BlockRows rows = isPaged ? before.next : loads.rowsOf(tile, block);
  after.next = rowsBefore(tile, block);
  if (isPaged)
    after.rows = rows;
  Value scores = scoresOf(tile, block, rows, query);
  after.maximum = arith::MaximumFOp::create(b, before.maximum, maximumOfRow(scores));
  Value maximum = originOf(after.maximum);
  Value grown = arith::SubFOp::create(b, before.maximum, maximum);
  Value shrink = exp2(arith::MulFOp::create(b, grown, factor(1)));
  Value powers = powersOf(scores, maximum);
  Value scaled = arith::MulFOp::create(b, before.sum, toColumns(shrink, kThreadColumns));
  after.sum = arith::AddFOp::create(b, scaled, sumOfRow(powers, kThreadColumns));
  multiplyValues(tile, isPaged ? before.rows : loads.rowsOf(tile, b.add(block, b.constant(1))),
                 before.powers, sums);
  after.powers = rounded(powers);
  scale(sums, shrink);
  return after;
}

/// Adds the products of `powers` and a block of values to `sums`.
void AttentionBuilder::multiplyValues(const QueryTile &tile, const BlockRows &rows, Value powers,
                                      Value sums) {
  Value value = loads.value(tile, rows);
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product = MmaOp::create(b, sums, powers, none, none, value, none, none, always, none);
  product.setTransposed(true);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// The end of the keys that the first query of a tile sees, with a causal mask.
Value AttentionBuilder::endForFirstQuery(const QueryTile &tile) {
  return b.add(tile.first, b.add(tile.keys, b.constant(1 - attention.queryTokens())));
}

/// Returns true (i1) where some query does not see a key of the block: the first query the last
/// key, or the last query the first one.
Value AttentionBuilder::isMasked(const QueryTile &tile, Value firstKey) {
  Value end = b.add(firstKey, b.constant(attention.keys)), seen = tile.keys;
  if (attention.op.getCausal())
    seen = arith::MinSIOp::create(b, endForFirstQuery(tile), tile.keys);
  Value isBehind = b.compare(arith::CmpIPredicate::sgt, end, seen);
  if (!attention.window())
    return isBehind;
  Value begin =
      b.add(endForFirstQuery(tile), b.constant(attention.tileTokens() - 1 - attention.window()));
  return arith::OrIOp::create(b, isBehind, b.compare(arith::CmpIPredicate::slt, firstKey, begin));
}

/// `products` with minus infinity where a query does not see a key, in the blocks that have such
/// keys.
Value AttentionBuilder::masked(const QueryTile &tile, Value firstKey, Value products) {
  if (attention.isWhole())
    return products;
  auto branch = scf::IfOp::create(b, products.getType(), isMasked(tile, firstKey),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, hide(tile, firstKey, products));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, products);
  return branch.getResult(0);
}

Value AttentionBuilder::hide(const QueryTile &tile, Value firstKey, Value products) {
  RankedTensorType type = attention.numbers(attention.keys).clone(b.getI32Type());
  auto tileOfScalar = [&](Value scalar) { return b.splat(type, scalar); };
  Value column = ElementIndexOp::create(b, type, uint64_t(1));
  Value begin;
  Value limit = tileOfScalar(b.sub(tile.keys, firstKey));
  if (attention.op.getCausal()) {
    Value seen = b.sub(endForFirstQuery(tile), firstKey);
    Value token = ElementIndexOp::create(b, type, uint64_t(0));
    if (attention.tileHeads > 1)
      token = arith::DivUIOp::create(b, token, tileOfScalar(b.constant(attention.tileHeads)));
    Value ofRow = arith::AddIOp::create(b, token, tileOfScalar(seen));
    limit = arith::MinSIOp::create(b, limit, ofRow);
    if (attention.window())
      begin = arith::SubIOp::create(b, ofRow, tileOfScalar(b.constant(attention.window())));
  }
  Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column, limit);
  if (begin)
    isSeen = arith::AndIOp::create(
        b, isSeen, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, column, begin));
  return arith::SelectOp::create(b, isSeen, products, nothing(attention.keys));
}

//===----------------------------------------------------------------------===//
// Host
//===----------------------------------------------------------------------===//

namespace {
struct AttentionLowering : OpConversionPattern<AttentionOp> {
  AttentionLowering(const TypeConverter &converter, MLIRContext *context,
                    const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(AttentionOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<KernelPlan> plan = planOf(op, target);
    if (failed(plan))
      return failure();
    Attention attention(op, *plan);
    Location loc = op.getLoc();
    Value result = allocateBuffer(rewriter, loc, cast<RankedTensorType>(op.getResult().getType()),
                                  /*rows=*/Value());
    auto ofResult = GlobalType::get({attention.batches() * attention.queryTokens(),
                                     attention.heads() * attention.valueElements()},
                                    attention.element());
    SmallVector<Value> arguments = {
        mapOf(rewriter, loc, adaptor.getQuery(), attention.boxOfQueries(), /*planes=*/2),
        mapOf(rewriter, loc, adaptor.getKey(), attention.boxOfKeys(), /*planes=*/1),
        mapOf(rewriter, loc, adaptor.getValue(), attention.boxOfKeys(), /*planes=*/1),
        ViewOp::create(rewriter, loc, ofResult, matrixOf(rewriter, loc, result))};
    for (Value numbers : {adaptor.getLengths(), adaptor.getPages(), adaptor.getSinks()})
      if (numbers)
        arguments.push_back(listOf(rewriter, loc, numbers));
    SmallVector<Value> results = {result};
    if (op.getLse()) {
      auto type = cast<RankedTensorType>(op.getLse().getType());
      results.push_back(allocateBuffer(rewriter, loc, type, /*rows=*/Value()));
      arguments.push_back(rowsOf(rewriter, loc, results.back()));
    }
    gpu::GPUFuncOp kernel =
        createKernel(createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "attention"),
                     ValueRange(arguments).getTypes(), *plan, loc);
    AttentionBuilder(kernel, attention).build();
    launchPersistent(rewriter, loc, kernel, *plan, attention.works(), target, arguments);
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// The bytes of a buffer as one of `shape`.
  static Value viewOf(OpBuilder &b, Location loc, Value buffer, ArrayRef<int64_t> shape) {
    auto type = cast<MemRefType>(buffer.getType());
    return ViewOp::create(b, loc, MemRefType::get(shape, type.getElementType()), buffer);
  }

  /// A buffer of tokens x heads x elements as the matrix of all tokens.
  static Value matrixOf(OpBuilder &b, Location loc, Value buffer) {
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    return viewOf(b, loc, buffer, {shape[0] * shape[1], shape[2] * shape[3]});
  }

  /// Numbers of all sequences, or of all heads.
  static Value listOf(OpBuilder &b, Location loc, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t count = type.getNumElements();
    return ViewOp::create(b, loc, GlobalType::get({count}, type.getElementType()),
                          viewOf(b, loc, buffer, {count}));
  }

  /// A buffer of tokens x heads as the matrix of all tokens.
  static Value rowsOf(OpBuilder &b, Location loc, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t rows = type.getShape()[0] * type.getShape()[1], heads = type.getShape()[2];
    return ViewOp::create(b, loc, GlobalType::get({rows, heads}, type.getElementType()),
                          viewOf(b, loc, buffer, {rows, heads}));
  }

  /// A map of tokens, or of planes: with `planes` 1 a sequence is a plane of tokens, and with 2 a
  /// token is a plane of heads.
  static Value mapOf(OpBuilder &b, Location loc, Value buffer, TensorMapType box, int64_t planes) {
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    Value mapped = !box.hasPlanes() ? matrixOf(b, loc, buffer)
                   : planes == 1
                       ? viewOf(b, loc, buffer, {shape[0], shape[1], shape[2] * shape[3]})
                       : viewOf(b, loc, buffer, {shape[0] * shape[1], shape[2], shape[3]});
    int64_t columns = cast<MemRefType>(mapped.getType()).getShape().back();
    return MakeTensorMapOp::create(b, loc, box, mapped, /*dynamic_columns=*/Value(),
                                   b.getI64IntegerAttr(columns));
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateAttentionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const hw::TargetModel &target) {
  patterns.add<AttentionLowering>(converter, patterns.getContext(), target);
}
