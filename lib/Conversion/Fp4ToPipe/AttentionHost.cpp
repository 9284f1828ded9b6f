//===- AttentionHost.cpp - Arguments and launches of attention -------------===//
#include "AttentionBuilder.h"
#include "DynamicSizes.h"
#include "Lowering.h"
#include "SequenceTable.h"

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/OperandNames.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp4;
using namespace fp4::pipe;

/// The order in which the attention of tiles takes less and less time, or with a causal mask more
/// and more, since the kernel begins with the last one then (AttentionKernel.cpp). So no CTA has
/// long tiles left when others have none (rasterOfTiles).
static TileOrder orderOf(Attention &attention) {
  if (attention.window())
    return TileOrder::Groups;
  return attention.op.getCausal() ? TileOrder::Numbers : TileOrder::LargestGroups;
}

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
    SmallVector<Value> results, slices;
    SmallVector<Value> arguments = argumentsOf(rewriter, adaptor, attention, results, slices);
    gpu::GPUFuncOp kernel =
        createKernel(createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "attention"),
                     ValueRange(arguments).getTypes(), *plan, loc);
    AttentionBuilder(kernel, attention).build();
    launchPersistent(rewriter, loc, kernel, *plan, attention.works(), target, arguments);
    if (attention.slices > 1) {
      if (adaptor.getSinks())
        slices.push_back(adaptor.getSinks());
      llvm::append_range(slices, results);
      llvm::append_range(slices, adaptor.getInputs());
      combineSlices(rewriter, attention, target, slices);
    }
    if (Value matrix = stridedMatrixOf(op.getResult()))
      rewriter.replaceOp(matrix.getDefiningOp(), results.front());
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  /// Allocates the results, and the sums of slices. Returns the arguments in the order of
  /// AttentionArguments.
  SmallVector<Value> argumentsOf(ConversionPatternRewriter &b, OpAdaptor adaptor,
                                 Attention &attention, SmallVector<Value> &results,
                                 SmallVector<Value> &slices) const {
    AttentionOp op = attention.op;
    Location loc = op.getLoc();
    Value rows;
    if (op.isPacked())
      rows = sizeOf(b, loc, operandOf(b, attention, op.getQuery(), adaptor.getQuery()).memory(), 0);
    results = allocateResults(b, op, rows);
    slices = sumsOfSlices(b, attention);
    Type f32 = b.getF32Type();
    SmallVector<Value> arguments = mapsOf(b, adaptor, attention, rows);
    if (!slices.empty())
      arguments.push_back(globalOf(b, loc, slices[0], /*inner=*/2, rows, f32));
    else if (op.getResult())
      addElements(b, attention, results[0], rows, arguments);
    addBlockScales(b, adaptor, attention, arguments);
    Value sinks = slices.empty() ? adaptor.getSinks() : Value();
    for (Value numbers : {adaptor.getLengths(), adaptor.getPages(), adaptor.getKeyFactors(),
                          adaptor.getValueFactors(), sinks, adaptor.getSlopes()})
      if (numbers)
        arguments.push_back(listOf(b, loc, numbers));
    if (op.isPacked())
      addPacked(b, adaptor, attention, arguments);
    if (!slices.empty())
      for (Value numbers : ArrayRef(slices).drop_front())
        arguments.push_back(globalOf(b, loc, numbers, /*inner=*/1, rows, f32));
    else if (op.getLse())
      arguments.push_back(
          globalOf(b, loc, results[op.getResult() ? 1 : 0], /*inner=*/1, rows, f32));
    if (slices.empty())
      addEpilogue(b, adaptor, attention, results, arguments);
    return arguments;
  }

  /// Buffers of the results, of elements where the caller wants them.
  static SmallVector<Value> allocateResults(OpBuilder &b, AttentionOp op, Value rows) {
    SmallVector<Value> results;
    Value matrix = stridedMatrixOf(op.getResult());
    if (matrix)
      results.push_back(allocateStridedResult(b, op.getLoc(),
                                              cast<RankedTensorType>(matrix.getType()),
                                              *stridedResultOf(matrix), rows));
    for (Value result : op.getResults())
      if (!matrix || result != op.getResult())
        results.push_back(
            allocateBuffer(b, op.getLoc(), cast<RankedTensorType>(result.getType()), rows));
    return results;
  }

  /// Adds the elements, with a pitch where the caller has placed them.
  static void addElements(OpBuilder &b, Attention &attention, Value elements, Value rows,
                          SmallVector<Value> &arguments) {
    Location loc = attention.op.getLoc();
    if (attention.results.isStrided)
      llvm::append_values(arguments, fp4::viewOf(b, loc, attention.elementsWithGaps(), elements),
                          pitchBytes(b, loc, elements));
    else
      arguments.push_back(globalOf(b, loc, elements, /*inner=*/2, rows, attention.results.type));
  }

  /// The maps of queries, of keys and, unless they are columns of keys, of values.
  static SmallVector<Value> mapsOf(OpBuilder &b, OpAdaptor adaptor, Attention &attention,
                                   Value rows) {
    AttentionOp op = attention.op;
    auto of = [&](Value tensor, Value buffer) { return operandOf(b, attention, tensor, buffer); };
    SmallVector<Value> maps = {
        mapOfQueries(b, of(op.getQuery(), adaptor.getQuery()), attention, rows),
        mapOfKeys(b, of(op.getKey(), adaptor.getKey()), attention, attention.boxOfKeys())};
    if (attention.op.hasValueRows())
      maps.push_back(mapOf(b, attention.op.getLoc(), attention.boxOfValues(),
                           matrixOf(b, attention.op.getLoc(), adaptor.getValue(), 1)));
    else if (!attention.isLatent())
      maps.push_back(mapOfKeys(b, of(op.getValue(), adaptor.getValue()), attention,
                               attention.boxOfValues()));
    return maps;
  }

  /// Adds the inputs of the epilogue region, codes and scales.
  static void addEpilogue(OpBuilder &b, OpAdaptor adaptor, Attention &attention,
                          ArrayRef<Value> results, SmallVector<Value> &arguments) {
    AttentionOp op = attention.op;
    Location loc = op.getLoc();
    for (Value input : adaptor.getInputs()) {
      auto type = cast<MemRefType>(input.getType());
      arguments.push_back(fp4::viewOf(b, loc, GlobalType::get({}, type.getElementType()), input));
    }
    if (!attention.results.quantizer)
      return;
    int64_t rows = op.getResultRows();
    auto types = attention.results.quantizer->typesOf(rows, op.getResultColumns(),
                                                      attention.results.quantizer->tiledRows, rows);
    for (auto [type, buffer] : llvm::zip_equal(types, results.take_back(types.size())))
      arguments.push_back(fp4::viewOf(b, loc, type, buffer));
  }

  /// Adds the scales of blocks of all operands.
  static void addBlockScales(OpBuilder &b, OpAdaptor adaptor, Attention &attention,
                             SmallVector<Value> &arguments) {
    AttentionOp op = attention.op;
    if (!attention.isBlockScaled())
      return;
    for (auto [buffer, scales] : {std::pair(adaptor.getQueryScales(), op.getQueryScales()),
                                  std::pair(adaptor.getKeyScales(), op.getKeyScales()),
                                  std::pair(adaptor.getValueScales(), op.getValueScales())})
      if (scales)
        arguments.push_back(scalesOf(b, buffer, cast<RankedTensorType>(scales.getType())));
  }

  /// Adds the arguments of packed queries, and of packed keys.
  static void addPacked(ConversionPatternRewriter &b, OpAdaptor adaptor, Attention &attention,
                        SmallVector<Value> &arguments) {
    AttentionOp op = attention.op;
    Location loc = op.getLoc();
    auto toI32 = [&](Value number) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getI32Type(), number);
    };
    auto memoryOf = [&](Value tensor, Value buffer) {
      return operandOf(b, attention, tensor, buffer).memory();
    };
    Value ofKeys = memoryOf(op.getKey(), adaptor.getKey());
    auto [table, places] = makeSequenceTable(
        b, {op, "attention", attention.batches(), attention.tileTokens(), orderOf(attention)},
        {memoryOf(op.getQuery(), adaptor.getQuery()), adaptor.getQueryOffsets(), "query_offsets"},
        {ofKeys, adaptor.getKeyOffsets(), "key_offsets"});
    llvm::append_values(arguments, table, toI32(places));
    if (!op.hasPackedKeys())
      return;
    Value keys = sizeOf(b, loc, ofKeys, 0);
    ExpectSizeOp::create(b, loc, "rows of " + placeOfOperand(op, "attention", "value"),
                         sizeOf(b, loc, memoryOf(op.getValue(), adaptor.getValue()), 0), keys,
                         "values have the tokens of keys");
    llvm::append_values(arguments, listOf(b, loc, adaptor.getKeyOffsets()), toI32(keys));
  }

  /// Buffers of the sums of values of each slice, of their exponents of 2 and of sums of powers;
  /// none of one slice.
  static SmallVector<Value> sumsOfSlices(OpBuilder &b, Attention &attention) {
    SmallVector<Value> buffers;
    SmallVector<int64_t> shape = {attention.slices, attention.batches() * attention.queryTokens(),
                                  attention.heads(), attention.valueElements()};
    for (size_t rank : {4, 3, 3})
      if (attention.slices > 1)
        buffers.push_back(allocateBuffer(
            b, attention.op.getLoc(),
            RankedTensorType::get(ArrayRef(shape).take_front(rank), b.getF32Type()), Value()));
    return buffers;
  }

  static Value sizeOf(OpBuilder &b, Location loc, Value buffer, int64_t dimension) {
    return memref::DimOp::create(b, loc, buffer, dimension);
  }

private:
  /// The bytes of a buffer as one of `shape`, whose dynamic size is `rows`.
  static Value viewOf(OpBuilder &b, Location loc, Value buffer, ArrayRef<int64_t> shape,
                      Value rows = {}) {
    auto type = cast<MemRefType>(buffer.getType());
    bool isStatic = !llvm::is_contained(shape, ShapedType::kDynamic);
    return ViewOp::create(b, loc, MemRefType::get(shape, type.getElementType()), buffer,
                          /*offset=*/0, isStatic ? Value() : rows);
  }

  /// The product of sizes, of which the first may be dynamic.
  static int64_t productOf(ArrayRef<int64_t> sizes) {
    return llvm::is_contained(sizes, ShapedType::kDynamic) ? ShapedType::kDynamic
                                                           : ShapedType::getNumElements(sizes);
  }

  /// A buffer as the matrix whose rows have the `inner` last dimensions.
  static Value matrixOf(OpBuilder &b, Location loc, Value buffer, int64_t inner, Value rows = {}) {
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    return viewOf(
        b, loc, buffer,
        {productOf(shape.drop_back(size_t(inner))), productOf(shape.take_back(size_t(inner)))},
        rows);
  }

  /// The matrix of matrixOf, of `element`, as an argument.
  static Value globalOf(OpBuilder &b, Location loc, Value buffer, int64_t inner, Value rows,
                        Type element) {
    Value matrix = matrixOf(b, loc, buffer, inner, rows);
    auto type = cast<MemRefType>(matrix.getType());
    return ViewOp::create(b, loc, GlobalType::get(type.getShape(), element), matrix);
  }

  /// Numbers of all sequences, or of all heads.
  static Value listOf(OpBuilder &b, Location loc, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t count = type.getNumElements();
    return ViewOp::create(b, loc, GlobalType::get({count}, type.getElementType()),
                          viewOf(b, loc, buffer, {count}));
  }

  /// Scales of all matrices, each in whole scale tiles, below each other.
  static Value scalesOf(OpBuilder &b, Value buffer, RankedTensorType scales) {
    ArrayRef<int64_t> tiles = cast<MemRefType>(buffer.getType()).getShape();
    int64_t rowBlocks = productOf(tiles.drop_back(2));
    auto type = GlobalType::get({rowBlocks * kScaleBlockRows, scales.getShape().back()},
                                scales.getElementType(), Layout::Tiled128x4);
    Location loc = buffer.getLoc();
    return ViewOp::create(
        b, loc, type, viewOf(b, loc, buffer, {rowBlocks, tiles[tiles.size() - 2], tiles.back()}));
  }

  /// The buffer of an operand without gaps, and the rows of tokens, of all heads, that the caller
  /// of the program places; null where there are none.
  struct Operand {
    Value buffer, strided;

    Value memory() const { return strided ? strided : buffer; } ///< has as many rows
  };

  /// An operand that may be a strided matrix in other dimensions.
  static Operand operandOf(OpBuilder &b, Attention &attention, Value tensor, Value buffer) {
    auto expand = tensor.getDefiningOp<tensor::ExpandShapeOp>();
    bool isOfHeads = tensor != attention.op.getQuery() && attention.op.getHeadsFirst();
    if (!expand || isOfHeads || !isStridedArgument(expand.getSrc()) ||
        expand.getSrcType().getRank() != 2 || expand.getReassociationIndices()[1].size() != 2)
      return {buffer, Value()};
    return {buffer, stridedBuffer(b, attention.op.getLoc(), expand.getSrc())};
  }

  /// Such rows in three dimensions, of `shape`, whose dynamic size is `dynamic`: planes of so many
  /// rows, or of parts of one row.
  static Value inPlanes(OpBuilder &b, Location loc, Value rows, ArrayRef<int64_t> shape,
                        int64_t rowsOfPlane, Value dynamic = {}) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, rows);
    Value pitch = metadata.getStrides()[0];
    OpFoldResult inner = b.getIndexAttr(shape[2]), outer = pitch;
    if (rowsOfPlane > 1) {
      inner = pitch;
      outer =
          arith::MulIOp::create(b, loc, pitch, arith::ConstantIndexOp::create(b, loc, rowsOfPlane))
              .getResult();
    }
    SmallVector<int64_t> strides = {ShapedType::kDynamic,
                                    rowsOfPlane > 1 ? ShapedType::kDynamic : shape[2], 1};
    auto type = MemRefType::get(shape, cast<MemRefType>(rows.getType()).getElementType(),
                                StridedLayoutAttr::get(b.getContext(), /*offset=*/0, strides));
    SmallVector<OpFoldResult> sizes = llvm::map_to_vector(
        shape, [&](int64_t size) -> OpFoldResult {
          return ShapedType::isDynamic(size) ? OpFoldResult(dynamic) : b.getIndexAttr(size);
        });
    return memref::ReinterpretCastOp::create(b, loc, type, rows, b.getIndexAttr(0), sizes,
                                             {outer, inner, b.getIndexAttr(1)});
  }

  static Value mapOf(OpBuilder &b, Location loc, TensorMapType box, Value mapped) {
    int64_t perByte = box.getElementType().getIntOrFloatBitWidth() == 4 ? 2 : 1;
    int64_t columns = cast<MemRefType>(mapped.getType()).getShape().back() * perByte;
    return MakeTensorMapOp::create(b, loc, box, mapped, /*dynamic_columns=*/Value(),
                                   b.getI64IntegerAttr(columns));
  }

  /// A map of queries: of tokens, or where a tile has several heads of planes, each a token.
  static Value mapOfQueries(OpBuilder &b, Operand query, Attention &attention, Value rows) {
    Location loc = attention.op.getLoc();
    Value buffer = query.buffer;
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    TensorMapType box = attention.boxOfQueries();
    SmallVector<int64_t> planes = {productOf(shape.drop_back(2)), attention.heads(), shape.back()};
    if (query.strided)
      return mapOf(b, loc, box,
                   box.hasPlanes() ? inPlanes(b, loc, query.strided, planes, /*rowsOfPlane=*/1, rows)
                                   : query.strided);
    return mapOf(b, loc, box,
                 box.hasPlanes() ? viewOf(b, loc, buffer, planes, rows)
                                 : matrixOf(b, loc, buffer, 2, rows));
  }

  /// A map of keys or of values: of tokens, of heads of pages and their tokens, or of planes, each
  /// a sequence.
  static Value mapOfKeys(OpBuilder &b, Operand key, Attention &attention, TensorMapType box) {
    Location loc = attention.op.getLoc();
    Value buffer = key.buffer;
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    bool arePlanes = box.hasPlanes() && !attention.hasPackedKeys();
    if (key.strided)
      return mapOf(b, loc, box,
                   arePlanes
                       ? inPlanes(b, loc, key.strided, {shape[0], shape[1], shape[2] * shape[3]},
                                  /*rowsOfPlane=*/shape[1])
                       : key.strided);
    Value rows = attention.hasPackedKeys() ? sizeOf(b, loc, buffer, 0) : Value();
    return mapOf(b, loc, box,
                 arePlanes ? viewOf(b, loc, buffer, {shape[0], shape[1], shape[2] * shape[3]})
                           : matrixOf(b, loc, buffer, attention.op.getHeadsFirst() ? 1 : 2, rows));
  }

  const hw::TargetModel &target;
};
} // namespace

void fp4::populateAttentionPatterns(const TypeConverter &converter, RewritePatternSet &patterns,
                                    const hw::TargetModel &target) {
  patterns.add<AttentionLowering>(converter, patterns.getContext(), target);
}
