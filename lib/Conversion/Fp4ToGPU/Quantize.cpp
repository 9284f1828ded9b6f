//===- Quantize.cpp - Kernels that stream over blocks of elements ---------===//
//
// One thread handles a block: 16 or 32 elements in loads of 32 bytes, their codes in one store of 8
// or 16 bytes, and the scale in a store of one byte. The arithmetic is the recipe's program of
// lib/Numerics; its tensor stage a thread computes once for all its blocks.
//
//===----------------------------------------------------------------------===//
#include "BlockQuantizer.h"
#include "KernelBuilder.h"
#include "Lowering.h"

#include "fp4/Conversion/BufferTypes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

namespace {

/// The widest access, in bytes.
constexpr int64_t kAccessBytes = 32;

/// Where block number `block` of a matrix lies in its row-major, its packed and its scale buffer.
class BlockAddresses {
public:
  BlockAddresses(ImplicitLocOpBuilder &b, int64_t columns, int64_t blockSize)
      : b(b), blockSize(blockSize), blocksPerRow(columns / blockSize),
        pitch(paddedRowBytes(columns)) {}

  Value elements(Value base, Value block, int64_t elementBytes) {
    return address(b, base, block, blockSize * elementBytes);
  }

  Value packed(Value base, Value block) {
    if (blocksPerRow * blockSize / 2 == pitch)
      return address(b, base, block, blockSize / 2);
    Value perRow = constI32(b, blocksPerRow);
    Value row = arith::DivUIOp::create(b, block, perRow);
    Value column = arith::RemUIOp::create(b, block, perRow);
    return address(b, address(b, base, row, pitch), column, blockSize / 2);
  }

  Value scale(Value base, Value block) { return address(b, base, block, 1); }

private:
  ImplicitLocOpBuilder &b;
  int64_t blockSize, blocksPerRow, pitch;
};

/// `count` i32 words from `pointer`, in the widest loads.
SmallVector<Value> loadWords(ImplicitLocOpBuilder &b, Value pointer, int64_t count) {
  int64_t perLoad = std::min(count, kAccessBytes / 4);
  auto type = VectorType::get(perLoad, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t first = 0; first < count; first += perLoad) {
    Value data = load(b, type, advance(b, pointer, first * 4), perLoad * 4);
    for (int64_t lane = 0; lane < perLoad; ++lane)
      words.push_back(vector::ExtractOp::create(b, data, lane));
  }
  return words;
}

/// Stores `values` (of one type) to `pointer` in the widest stores.
void storeValues(ImplicitLocOpBuilder &b, ArrayRef<Value> values, Value pointer) {
  Type element = values.front().getType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t perStore = std::min<int64_t>(values.size(), kAccessBytes / bytes);
  auto type = VectorType::get(perStore, element);
  for (int64_t first = 0; first < static_cast<int64_t>(values.size()); first += perStore) {
    Value data = vector::FromElementsOp::create(b, type, values.slice(first, perStore));
    store(b, data, advance(b, pointer, first * bytes), perStore * bytes);
  }
}

/// The number of blocks of a matrix, an index.
Value countBlocks(ImplicitLocOpBuilder &host, Value rows, int64_t columns, int64_t blockSize) {
  return arith::MulIOp::create(host, rows, constIndex(host, columns / blockSize));
}

InFlightDiagnostic noKernel(Operation *op, const Twine &what, const Twine &found, StringRef note) {
  InFlightDiagnostic diag = op->emitOpError()
                            << "has kernels for " << what << ", but got " << found;
  diag.attachNote() << note;
  return diag;
}

/// Rows of whole blocks: the kernels have no remainder yet.
LogicalResult checkWholeBlocks(Operation *op, Value matrix, Format format) {
  int64_t columns = cast<RankedTensorType>(matrix.getType()).getDimSize(1);
  if (columns % fp4::blockSize(format) == 0)
    return success();
  return noKernel(op, "rows of whole blocks", Twine(columns) + " columns",
                  "pad the rows with zeros to a multiple of 16");
}

LogicalResult checkSupported(QuantizeOp op) {
  if (op.getRounding() != Rounding::NearestEven)
    return noKernel(op, "rounding nearest_even", "rounding " + stringifyRounding(op.getRounding()),
                    "remove 'rounding' and 'rng', or run the reference in lib/Numerics");
  if (op.getHadamard() || op.getColumnwiseHadamard())
    return noKernel(op, "plain inputs",
                    op.getHadamard() ? "attribute 'hadamard'" : "attribute 'columnwise_hadamard'",
                    "transform the tensor with fp4.hadamard");
  if (op.hasColumnwise() || op.hasSquareBlocks())
    return success();
  if (scaleLayout(cast<RankedTensorType>(op.getScales().getType())))
    return noKernel(op, "row-major scales", "scales of layout tiled_128x4",
                    "write them row-major and use fp4.swizzle_scales");
  return checkWholeBlocks(op, op.getInput(), op.getFormat());
}

} // namespace

LogicalResult fp4::lowerQuantize(QuantizeOp op, LoweringContext &context) {
  if (failed(checkSupported(op)))
    return failure();
  if (op.hasColumnwise() || op.hasSquareBlocks())
    return lowerTileQuantize(op, context);
  KernelBuilder kernel(op, "quantize", context.symbols);
  ImplicitLocOpBuilder &b = kernel.body();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t columns = type.getDimSize(1), blockSize = op.getBlockSize();
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;

  Value rows = kernel.hostRows(op.getInput());
  Value hostBlocks = countBlocks(kernel.host(), rows, columns, blockSize);
  Value input = kernel.input(op.getInput());
  Value amax = op.getAmax() ? kernel.input(op.getAmax()) : Value();
  Value data = kernel.output(op.getData(), rows), scales = kernel.output(op.getScales(), rows);
  Value blocks = kernel.scalar(hostBlocks);

  Scalars scalars(b, context.target);
  BlockQuantizer quantizer(scalars, b, op.getRecipe().resolve());
  BlockAddresses at(b, columns, blockSize);
  quantizer.setTensorAmax(amax ? load(b, b.getF32Type(), amax, 4) : Value());
  kernel.forEachItem(blocks, {}, [&](Value block, ValueRange) -> SmallVector<Value> {
    SmallVector<Value> words =
        loadWords(b, at.elements(input, block, elementBytes), blockSize * elementBytes / 4);
    auto [codes, scale] = quantizer.quantize(words, type.getElementType());
    storeValues(b, codes, at.packed(data, block));
    store(b, scale, at.scale(scales, block), 1);
    return {};
  });
  kernel.launchItems(hostBlocks);
  return success();
}

/// Emits the values, of type `element`, of a block of packed codes with this scale byte (i8).
static SmallVector<Value> dequantizeBlock(ImplicitLocOpBuilder &b, Scalars &scalars,
                                          RecipeEmitter &recipe, ArrayRef<Value> words, Value scale,
                                          Type element) {
  recipe.set(RecipeOp::ScaleByte, arith::ExtUIOp::create(b, b.getI32Type(), scale));
  recipe.emit(Stage::Block);
  SmallVector<Value> values;
  for (Value word : words)
    values.append(scalars.unpackE2M1(word));
  for (Value &value : values) {
    recipe.set(RecipeOp::Element, value);
    recipe.emit(Stage::Element);
    value = recipe[recipe.program().element];
    if (!element.isF32())
      value = arith::TruncFOp::create(b, element, value);
  }
  return values;
}

LogicalResult fp4::lowerDequantize(DequantizeOp op, LoweringContext &context) {
  if (failed(checkWholeBlocks(op, op.getData(), op.getFormat())))
    return failure();
  KernelBuilder kernel(op, "dequantize", context.symbols);
  ImplicitLocOpBuilder &b = kernel.body();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t columns = type.getDimSize(1), blockSize = fp4::blockSize(op.getFormat());
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;

  Value rows = kernel.hostRows(op.getData());
  Value hostBlocks = countBlocks(kernel.host(), rows, columns, blockSize);
  Value data = kernel.input(op.getData()), scales = kernel.input(op.getScales());
  Value amax = op.getAmax() ? kernel.input(op.getAmax()) : Value();
  Value result = kernel.output(op.getResult(), rows);
  Value blocks = kernel.scalar(hostBlocks);

  Scalars scalars(b, context.target);
  RecipeEmitter recipe(scalars, b, numerics::makeDequantizer(op.resolveRecipe()));
  BlockAddresses at(b, columns, blockSize);
  recipe.set(RecipeOp::TensorAmax, amax ? load(b, b.getF32Type(), amax, 4) : Value());
  recipe.emit(Stage::Tensor);
  kernel.forEachItem(blocks, {}, [&](Value block, ValueRange) -> SmallVector<Value> {
    Value scale = load(b, b.getI8Type(), at.scale(scales, block), 1);
    SmallVector<Value> words = loadWords(b, at.packed(data, block), blockSize / 8);
    storeValues(b, dequantizeBlock(b, scalars, recipe, words, scale, type.getElementType()),
                at.elements(result, block, elementBytes));
    return {};
  });
  kernel.launchItems(hostBlocks);
  return success();
}
