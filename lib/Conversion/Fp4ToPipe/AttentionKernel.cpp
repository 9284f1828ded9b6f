//===- AttentionKernel.cpp - Blocks of queries pass over blocks of keys ---===//
//
// A CTA takes tiles of queries of one head, a warpgroup 64 rows of each. For every block of keys,
// from the last one to the first: the products of queries and keys, their maximum of each row,
// powers of two of their distances from it, and the products of these, rounded, and the values. If
// the maximum grows, the sums of before are scaled (online softmax). The values of a block are
// multiplied with the keys of the next one, while threads compute powers (pipe-chain-mmas). Only
// the last blocks have masks, which the tile's number decides.
//
// Keys and values are rows of matrices of all tokens, a head a range of columns. Boxes of queries
// may reach into the next sequence, whose rows are computed and not stored; boxes of keys may not
// (AttentionPlans.cpp). Keys behind the last row load as zero.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "TileBuilder.h"

#include "fp4/Dialect/Pipe/IR/Fragments.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Pipe/IR/PipeMma.h"
#include "fp4/Dialect/Pipe/IR/PipeRows.h"
#include "fp4/Dialect/Pipe/IR/Rings.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

namespace {

/// Rows of a warpgroup, columns of a swizzled row, and columns of what each thread has of a row.
constexpr int64_t kGroupRows = 64, kPanel = 64, kThreadColumns = 8;

/// An fp4.attention, and the tile of its plan.
struct Attention {
  Attention(AttentionOp op, const KernelPlan &plan)
      : op(op), plan(plan), rows(plan.tile[0]), keys(plan.tile[1]) {}

  AttentionOp op;
  const KernelPlan &plan;
  int64_t rows, keys; ///< queries of a tile, and keys of a block

  Type element() { return op.getQueryType().getElementType(); }
  int64_t batches() { return op.getQueryType().getDimSize(0); }
  int64_t queryTokens() { return op.getQueryType().getDimSize(1); }
  int64_t keyTokens() { return op.getKeyType().getDimSize(1); }
  int64_t heads() { return op.getQueryType().getDimSize(2); }
  int64_t headsOfGroup() { return heads() / op.getKeyType().getDimSize(2); }
  int64_t queryElements() { return op.getQueryType().getDimSize(3); }
  int64_t valueElements() { return op.getValueType().getDimSize(3); }
  /// Tiles of the queries of a sequence, and all tiles.
  int64_t tiles() { return int64_t(llvm::divideCeil(queryTokens(), rows)); }
  int64_t works() { return tiles() * batches() * heads(); }
  /// Keys that query 0 sees beyond key 0, with masks; negative where there are more queries.
  int64_t keysBefore() { return keyTokens() - queryTokens(); }
  /// Returns true when no block has masks.
  bool isWhole() { return !op.getCausal() && keyTokens() % keys == 0; }

  /// A box of `tokens` rows, as wide as the swizzle.
  TensorMapType box(int64_t tokens) {
    return TensorMapType::get({tokens, kPanel}, element(), Layout::Swizzle128B);
  }
  SharedType tile(int64_t tokens, int64_t elements) {
    return SharedType::get({tokens, elements}, element(), Layout::Swizzle128B);
  }
  /// Tiles in the registers of a warpgroup.
  RankedTensorType numbers(int64_t columns) {
    return DistributionAttr::tensorOf(FragmentKind::Wgmma, columns, Float32Type::get(context()));
  }
  MLIRContext *context() { return op.getContext(); }
};

/// A tile of queries: its head and its rows.
struct QueryTile {
  Value first;        ///< first query of the tile in its sequence
  Value row, rowsEnd; ///< that row among the rows of all tokens, and the end of the sequence
  Value keyRow;       ///< first key of the sequence among those rows
  Value queryColumn, keyColumn, valueColumn, resultColumn;
};

/// Numbers that a tile carries from block to block of keys.
struct RowState {
  Value maximum; ///< of the products so far, a number for each row
  Value sum;     ///< of the powers, what each thread has of them
  Value powers;  ///< of the last block, rounded: they multiply its values while the next one begins
};

class AttentionBuilder {
public:
  AttentionBuilder(gpu::GPUFuncOp func, Attention &attention)
      : b(func, attention.plan, attention.op.getLoc()), attention(attention),
        queries(func.getArgument(0)), keys(func.getArgument(1)), values(func.getArgument(2)),
        result(func.getArgument(3)) {}
  void build();

private:
  QueryTile tileOf(Value number, Value head);
  void buildTile(const QueryTile &tile);
  Value countBlocks(const QueryTile &tile);
  Value scoresOf(const QueryTile &tile, Value block, Value query);
  RowState firstBlock(const QueryTile &tile, Value block, Value query);
  RowState nextBlock(const QueryTile &tile, Value block, Value query, Value sums, RowState before);
  Value endForFirstQuery(const QueryTile &tile);
  Value originOf(Value maximum);
  Value powersOf(Value scores, Value maximum);
  Value rounded(Value numbers);
  void scale(Value sums, Value factors);
  void multiplyValues(const QueryTile &tile, Value block, Value powers, Value sums);
  Value masked(const QueryTile &tile, Value firstKey, Value products);
  Value hide(const QueryTile &tile, Value firstKey, Value products);
  void store(const QueryTile &tile, Value sums, Value sum);

  Value splat(int64_t columns, float number) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(attention.numbers(columns), number));
  }
  Value nothing(int64_t columns) { return splat(columns, -std::numeric_limits<float>::infinity()); }
  Value fragment(int64_t columns) {
    return FragmentOp::create(b, FragmentType::get(b.getContext(), {kGroupRows, columns},
                                                   b.getF32Type(), FragmentKind::Wgmma));
  }
  Value read(Value fragment) {
    int64_t columns = cast<FragmentType>(fragment.getType()).getShape()[1];
    return ReadOp::create(b, attention.numbers(columns), fragment, int64_t(0), int64_t(0));
  }
  Value toColumns(Value rows, int64_t columns) {
    return BroadcastRowsOp::create(b, attention.numbers(columns), rows);
  }
  Value reduce(RowCombination combination, Value value, int64_t columns) {
    return ReduceRowsOp::create(b, attention.numbers(columns), combination, value);
  }
  Value exp2(Value value) { return math::Exp2Op::create(b, value, arith::FastMathFlags::afn); }
  Value load(Value map, int64_t tokens, int64_t elements, Value row, Value column,
             StringRef ring = {}) {
    auto loaded = LoadOp::create(b, attention.tile(tokens, elements), map, row, column,
                                 /*existing=*/Value());
    if (!ring.empty())
      loaded->setAttr(kRingAttr, b.getStringAttr(ring));
    return loaded.getResult();
  }
  /// The factor of the products, in the exponent of 2.
  Value factor(int64_t columns) {
    return splat(columns, float(attention.op.getScale().convertToDouble() * std::numbers::log2e));
  }

  TileBuilder b;
  Attention &attention;
  Value queries, keys, values, result;
};

} // namespace

void AttentionBuilder::build() {
  b.forEachWork(b.constant(attention.tiles()), b.constant(attention.batches() * attention.heads()),
                [&](Value number, Value head, Value) { buildTile(tileOf(number, head)); });
  gpu::ReturnOp::create(b);
}

QueryTile AttentionBuilder::tileOf(Value number, Value batchAndHead) {
  QueryTile tile;
  Value batch = b.div(batchAndHead, attention.heads());
  Value head = b.rem(batchAndHead, attention.heads());
  Value group = b.div(head, attention.headsOfGroup());
  if (attention.op.getCausal()) // the longest first
    number = b.sub(b.constant(attention.tiles() - 1), number);
  tile.first = b.mul(number, attention.rows);
  Value begin = b.mul(batch, attention.queryTokens());
  tile.row = b.add(begin, tile.first);
  tile.rowsEnd = b.add(begin, b.constant(attention.queryTokens()));
  tile.keyRow = b.mul(batch, attention.keyTokens());
  tile.queryColumn = b.mul(head, attention.queryElements());
  tile.keyColumn = b.mul(group, attention.queryElements());
  tile.valueColumn = b.mul(group, attention.valueElements());
  tile.resultColumn = b.mul(head, attention.valueElements());
  return tile;
}

/// The blocks of keys that some query of the tile sees.
Value AttentionBuilder::countBlocks(const QueryTile &tile) {
  int64_t all = int64_t(llvm::divideCeil(attention.keyTokens(), attention.keys));
  if (!attention.op.getCausal())
    return b.constant(all);
  // The end of the keys that the last query sees, which may not exist.
  Value end = b.add(tile.first, b.constant(attention.rows + attention.keysBefore()));
  // A tile that sees no key takes a block all of whose keys are hidden.
  Value some = arith::MaxSIOp::create(b, end, b.constant(1));
  return b.min(b.quotientUp(some, attention.keys), all);
}

void AttentionBuilder::buildTile(const QueryTile &tile) {
  Value query =
      load(queries, attention.rows, attention.queryElements(), tile.row, tile.queryColumn);
  Value sums = fragment(attention.valueElements());
  Value blocks = countBlocks(tile), last = b.sub(blocks, b.constant(1));
  RowState first = firstBlock(tile, last, query);
  auto loop = scf::ForOp::create(b, b.constant(1), blocks, b.constant(1),
                                 ValueRange{first.maximum, first.sum, first.powers});
  {
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToStart(loop.getBody());
    RowState before{loop.getRegionIterArg(0), loop.getRegionIterArg(1), loop.getRegionIterArg(2)};
    RowState after = nextBlock(tile, b.sub(last, loop.getInductionVar()), query, sums, before);
    scf::YieldOp::create(b, ValueRange{after.maximum, after.sum, after.powers});
  }
  multiplyValues(tile, b.constant(0), loop.getResult(2), sums);
  store(tile, sums, loop.getResult(1));
}

/// The products of the queries and a block of keys.
Value AttentionBuilder::scoresOf(const QueryTile &tile, Value block, Value query) {
  int64_t columns = attention.keys;
  Value firstKey = b.mul(block, columns), row = b.add(tile.keyRow, firstKey);
  Value key = load(keys, columns, attention.queryElements(), row, tile.keyColumn, "keys");
  Value products = fragment(columns);
  MmaOp::create(b, products, query, key);
  return masked(tile, firstKey, read(products));
}

/// `maximum`, or 0 where no key has been seen, so that distances from it are numbers.
Value AttentionBuilder::originOf(Value maximum) {
  if (!attention.op.getCausal())
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

Value AttentionBuilder::rounded(Value numbers) {
  auto type = cast<RankedTensorType>(numbers.getType());
  return arith::TruncFOp::create(b, type.clone(attention.element()), numbers);
}

RowState AttentionBuilder::firstBlock(const QueryTile &tile, Value block, Value query) {
  Value scores = scoresOf(tile, block, query);
  Value maximum = reduce(RowCombination::Maximum, scores, /*columns=*/1);
  Value powers = powersOf(scores, originOf(maximum));
  return {maximum, reduce(RowCombination::Add, powers, kThreadColumns), rounded(powers)};
}

/// The products of the next block of keys, and of the last block of values, which run together.
RowState AttentionBuilder::nextBlock(const QueryTile &tile, Value block, Value query, Value sums,
                                     RowState before) {
  Value scores = scoresOf(tile, block, query);
  RowState after;
  after.maximum = arith::MaximumFOp::create(b, before.maximum,
                                            reduce(RowCombination::Maximum, scores, /*columns=*/1));
  Value maximum = originOf(after.maximum);
  Value grown = arith::SubFOp::create(b, before.maximum, maximum);
  Value shrink = exp2(arith::MulFOp::create(b, grown, factor(1)));
  Value powers = powersOf(scores, maximum);
  Value scaled = arith::MulFOp::create(b, before.sum, toColumns(shrink, kThreadColumns));
  after.sum = arith::AddFOp::create(b, scaled, reduce(RowCombination::Add, powers, kThreadColumns));
  multiplyValues(tile, b.add(block, b.constant(1)), before.powers, sums);
  after.powers = rounded(powers);
  scale(sums, shrink);
  return after;
}

/// Multiplies the rows of `sums` by `factors`.
void AttentionBuilder::scale(Value sums, Value factors) {
  Value all = toColumns(factors, attention.valueElements());
  WriteOp::create(b, arith::MulFOp::create(b, read(sums), all), sums, uint64_t(0));
}

/// Adds the products of `powers` and a block of values to `sums`.
void AttentionBuilder::multiplyValues(const QueryTile &tile, Value block, Value powers,
                                      Value sums) {
  Value row = b.add(tile.keyRow, b.mul(block, attention.keys));
  Value value =
      load(values, attention.keys, attention.valueElements(), row, tile.valueColumn, "values");
  Value always = arith::ConstantIntOp::create(b, 1, 1), none;
  auto product = MmaOp::create(b, sums, powers, none, none, value, none, none, always, none);
  product.setTransposed(true);
}

/// The end of the keys that the first query of a tile sees, with a causal mask.
Value AttentionBuilder::endForFirstQuery(const QueryTile &tile) {
  return b.add(tile.first, b.constant(attention.keysBefore() + 1));
}

/// `products` with minus infinity where a query does not see a key, in the blocks that have such
/// keys.
Value AttentionBuilder::masked(const QueryTile &tile, Value firstKey, Value products) {
  if (attention.isWhole())
    return products;
  Value end = b.add(firstKey, b.constant(attention.keys));
  Value isMasked = b.compare(arith::CmpIPredicate::sgt, end, b.constant(attention.keyTokens()));
  if (attention.op.getCausal()) {
    Value seen = b.min(endForFirstQuery(tile), attention.keyTokens());
    isMasked = b.compare(arith::CmpIPredicate::sgt, end, seen);
  }
  auto branch = scf::IfOp::create(b, products.getType(), isMasked, /*withElseRegion=*/true);
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
  Value limit = tileOfScalar(b.sub(b.constant(attention.keyTokens()), firstKey));
  if (attention.op.getCausal()) {
    Value seen = b.sub(endForFirstQuery(tile), firstKey);
    Value ofRow =
        arith::AddIOp::create(b, ElementIndexOp::create(b, type, uint64_t(0)), tileOfScalar(seen));
    limit = arith::MinSIOp::create(b, limit, ofRow);
  }
  Value isSeen = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column, limit);
  return arith::SelectOp::create(b, isSeen, products, nothing(attention.keys));
}

void AttentionBuilder::store(const QueryTile &tile, Value sums, Value sum) {
  Value whole = reduce(RowCombination::Add, sum, /*columns=*/1);
  Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, whole, splat(1, 0));
  Value inverse = arith::DivFOp::create(b, splat(1, 1), whole);
  inverse = arith::SelectOp::create(b, isNone, splat(1, 0), inverse);
  Value scaled =
      arith::MulFOp::create(b, read(sums), toColumns(inverse, attention.valueElements()));
  StoreOp::create(b, rounded(scaled), result, tile.row, tile.resultColumn, tile.rowsEnd);
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
    Value arguments[] = {
        mapOf(rewriter, loc, adaptor.getQuery(), attention.box(attention.rows)),
        mapOf(rewriter, loc, adaptor.getKey(), attention.box(attention.keys)),
        mapOf(rewriter, loc, adaptor.getValue(), attention.box(attention.keys)),
        GlobalViewOp::create(rewriter, loc, ofResult, matrixOf(rewriter, loc, result))};
    gpu::GPUFuncOp kernel =
        createKernel(createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "attention"),
                     ValueRange(arguments).getTypes(), *plan, loc);
    AttentionBuilder(kernel, attention).build();
    launchPersistent(rewriter, loc, kernel, *plan, attention.works(), target, arguments);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  /// A buffer of tokens x heads x elements as the matrix of all tokens.
  static Value matrixOf(OpBuilder &b, Location loc, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    ArrayRef<int64_t> shape = type.getShape();
    auto matrix =
        MemRefType::get({shape[0] * shape[1], shape[2] * shape[3]}, type.getElementType());
    return BufferViewOp::create(b, loc, matrix, buffer, b.getI64IntegerAttr(0), Value());
  }

  static Value mapOf(OpBuilder &b, Location loc, Value buffer, TensorMapType box) {
    Value matrix = matrixOf(b, loc, buffer);
    int64_t columns = cast<MemRefType>(matrix.getType()).getDimSize(1);
    return MakeTensorMapOp::create(b, loc, box, matrix, b.getI64IntegerAttr(columns));
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateAttentionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const hw::TargetModel &target) {
  patterns.add<AttentionLowering>(converter, patterns.getContext(), target);
}
