//===- AttentionBackwardHost.cpp - Launches for gradients of attention ----===//

#include "AttentionBackward.h"
#include "DynamicSizes.h"
#include "Lowering.h"
#include "SequenceTable.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// Packed operands of a side of attention, of queries or of keys, as indices and buffers; null
/// where sequences are not packed.
struct PackedSide {
  Value rows, offsets;
  Value table, places; ///< of tiles
};

/// The order in which tiles take less and less time, or, those of queries with a causal mask, more
/// and more (BackwardBuilder::build).
static TileOrder orderOf(AttentionBackward &backward) {
  if (backward.window())
    return TileOrder::Groups;
  return backward.op.getCausal() ? TileOrder::Numbers : TileOrder::LargestGroups;
}

namespace {
struct BackwardLowering : OpConversionPattern<AttentionBackwardOp> {
  BackwardLowering(const TypeConverter &converter, MLIRContext *context,
                   const hw::TargetModel &target)
      : OpConversionPattern(converter, context), target(target) {}

  LogicalResult matchAndRewrite(AttentionBackwardOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<KernelPlan> plan = planOf(op, target);
    if (failed(plan))
      return failure();
    AttentionBackward backward(op, *plan);
    std::array<Value, 2> queries = {adaptor.getQuery(), adaptor.getOutputGradient()},
                         keys = {adaptor.getKey(), adaptor.getValue()};
    PackedSide ofQueries, ofKeys;
    if (op.isPacked()) {
      checkRows(rewriter, op, adaptor);
      ofQueries =
          sideOf(rewriter, backward, {queries[0], adaptor.getOffsets()[0], "query_offsets"});
      ofKeys = sideOf(rewriter, backward, {keys[0], adaptor.getOffsets()[1], "key_offsets"});
    }
    SmallVector<Value> results;
    for (auto [result, rows] :
         llvm::zip(op.getResults(), std::array<Value, 3>{ofQueries.rows, ofKeys.rows, ofKeys.rows}))
      results.push_back(
          allocateBuffer(rewriter, op.getLoc(), cast<RankedTensorType>(result.getType()), rows));
    Totals totals = findTotals(rewriter, backward, adaptor.getOutput(), adaptor.getOutputGradient(),
                               adaptor.getLse(), ofQueries.offsets);
    ValueRange gradients = ValueRange(results).drop_front();
    auto launchOfKeys = [&](const BackwardKernel &which, ValueRange results) {
      launch(rewriter, backward, which, {keys, queries}, {ofKeys, ofQueries}, totals, results);
    };
    if (backward.sumsTogether()) {
      launchOfKeys({"keys", true, true, true}, gradients);
    } else {
      launchOfKeys({"values", true, false, true}, gradients.back());
      launchOfKeys({"keys", true, true, false}, gradients.front());
    }
    launch(rewriter, backward, {"queries", false, true, false}, {queries, keys},
           {ofQueries, ofKeys}, totals, results.front());
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  using Sides = std::array<PackedSide, 2>;
  using Tokens = std::array<std::array<Value, 2>, 2>;

  /// Operands of queries have as many rows, and so have those of keys.
  static void checkRows(OpBuilder &b, AttentionBackwardOp op, OpAdaptor adaptor) {
    Location loc = op.getLoc();
    auto rowsOf = [&](Value buffer) { return memref::DimOp::create(b, loc, buffer, 0); };
    auto check = [&](StringRef name, Value buffer, Value like, StringRef note) {
      ExpectSizeOp::create(b, loc, "rows of " + placeOfOperand(op, "attention_backward", name),
                           rowsOf(buffer), rowsOf(like), note);
    };
    StringRef ofQuery = "it has the tokens of queries";
    check("value", adaptor.getValue(), adaptor.getKey(), "values have the tokens of keys");
    check("output", adaptor.getOutput(), adaptor.getQuery(), ofQuery);
    check("output_gradient", adaptor.getOutputGradient(), adaptor.getQuery(), ofQuery);
    check("lse", adaptor.getLse(), adaptor.getQuery(), ofQuery);
  }

  /// Cuts packed rows into tiles.
  static PackedSide sideOf(ConversionPatternRewriter &b, AttentionBackward &backward,
                           const PackedRows &packed) {
    AttentionBackwardOp op = backward.op;
    auto [table, places] = makeSequenceTable(
        b, {op, "attention_backward", op.getBatches(), backward.rows, orderOf(backward)}, packed);
    return {memref::DimOp::create(b, op.getLoc(), packed.rows, 0), packed.offsets, table, places};
  }

  /// Launches a kernel whose tiles are of the first of `tokens` and `sides`, and whose blocks are
  /// of the others.
  void launch(ConversionPatternRewriter &b, AttentionBackward &backward,
              const BackwardKernel &which, const Tokens &tokens, const Sides &sides,
              const Totals &totals, ValueRange results) const {
    Location loc = backward.op.getLoc();
    BackwardSide side(backward, which.isOfKeys), other(backward, !which.isOfKeys);
    SmallVector<Value> arguments;
    std::array<int64_t, 2> rows = {backward.rows, other.block};
    for (unsigned i : {0, 1})
      for (Value buffer : tokens[i])
        arguments.push_back(mapOf(b, backward, buffer, sides[i].rows, rows[i]));
    arguments.push_back(numbersOf(b, backward, totals, which.isOfKeys));
    for (Value result : results)
      arguments.push_back(resultOf(b, backward, result, sides[0].rows));
    if (backward.isPacked())
      addPacked(b, backward, sides, totals, arguments);
    gpu::GPUModuleOp kernels =
        createKernelModule(b, backward.op->getParentOfType<ModuleOp>(), backward.op, which.name);
    gpu::GPUFuncOp kernel =
        createKernel(kernels, ValueRange(arguments).getTypes(), backward.plan, loc);
    buildBackward(kernel, backward, which);
    int64_t tiles = backward.isPacked() ? side.tokens / backward.rows + backward.op.getBatches() + 1
                                        : int64_t(llvm::divideCeil(side.tokens, backward.rows));
    launchPersistent(b, loc, kernel, backward.plan, tiles * side.lists, target, arguments);
  }

  static void addPacked(OpBuilder &b, AttentionBackward &backward, const Sides &sides,
                        const Totals &totals, SmallVector<Value> &arguments) {
    Location loc = backward.op.getLoc();
    auto toI32 = [&](Value number) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getI32Type(), number);
    };
    llvm::append_values(arguments, sides[0].table, toI32(sides[0].places));
    auto list = GlobalType::get({backward.op.getBatches() + 1}, b.getI32Type());
    for (const PackedSide &side : sides)
      arguments.push_back(ViewOp::create(b, loc, list, side.offsets));
    for (const PackedSide &side : sides)
      arguments.push_back(toI32(side.rows));
    arguments.push_back(toI32(totals.padded));
  }

  /// A map of the tokens of all heads, each sequence a plane: what lies behind its last token loads
  /// as zero.
  static Value mapOf(OpBuilder &b, AttentionBackward &backward, Value buffer, Value packedRows,
                     int64_t rows) {
    Location loc = backward.op.getLoc();
    auto type = cast<MemRefType>(buffer.getType());
    ArrayRef<int64_t> shape = type.getShape();
    int64_t elements = shape.back(), columns = shape.drop_back().back() * elements;
    SmallVector<int64_t> planes = {shape[0], shape[1], columns};
    if (packedRows)
      planes = {ShapedType::kDynamic, columns};
    Value view = ViewOp::create(b, loc, MemRefType::get(planes, type.getElementType()), buffer,
                                /*offset=*/0, packedRows);
    return MakeTensorMapOp::create(b, loc, boxOfTokens(type.getElementType(), rows, elements), view,
                                   /*dynamic_columns=*/Value(), b.getI64IntegerAttr(columns));
  }

  /// The numbers of queries, as one row for tiles of keys, or as one column.
  static Value numbersOf(OpBuilder &b, AttentionBackward &backward, const Totals &totals,
                         bool isRow) {
    Location loc = backward.op.getLoc();
    int64_t numbers = ShapedType::kDynamic;
    Value all;
    if (totals.padded)
      all =
          arith::MulIOp::create(b, loc, totals.padded,
                                arith::ConstantIndexOp::create(b, loc, 2 * backward.op.getHeads()));
    else
      numbers = 2 * backward.numbers();
    if (!isRow)
      return globalOf(b, loc, totals.buffer, {numbers, 1}, all);
    return globalOf(b, loc, totals.buffer, {1, numbers}, all);
  }

  /// The matrix of the tokens of a result.
  static Value resultOf(OpBuilder &b, AttentionBackward &backward, Value result, Value rows) {
    ArrayRef<int64_t> shape = cast<MemRefType>(result.getType()).getShape();
    int64_t columns = ShapedType::getNumElements(shape.take_back(2));
    int64_t tokens = rows ? ShapedType::kDynamic : shape[0] * shape[1];
    return globalOf(b, backward.op.getLoc(), result, {tokens, columns}, rows);
  }

  /// A buffer as an argument of `shape`, whose dynamic size is `size`: without sizes where columns
  /// are dynamic.
  static Value globalOf(OpBuilder &b, Location loc, Value buffer, ArrayRef<int64_t> shape,
                        Value size) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    Value view = ViewOp::create(b, loc, MemRefType::get(shape, element), buffer, /*offset=*/0, size);
    auto type = GlobalType::get(shape, element);
    return fp4::viewOf(b, loc, type.hasDynamicColumns() ? Gemm::withoutSizes(type) : type, view);
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateBackwardPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                   const hw::TargetModel &target) {
  patterns.add<BackwardLowering>(converter, patterns.getContext(), target);
}
