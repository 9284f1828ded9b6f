//===- RowwiseQuantize.cpp - Kernels that stream along rows ---------------===//
//
// Quantizes with row-wise output, and dequantizes. A thread loads the elements of all its blocks
// before it uses the first, because loads in flight hide the latency of memory. Values that depend
// only on the tensor are computed while the loads are under way.
//
//===----------------------------------------------------------------------===//
#include "Lowering.h"
#include "Rowwise/RowBlocks.h"
#include "SideQuantizer.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

namespace {

/// The one-shot grid over the blocks of a matrix: each thread has `blocksPerThread` blocks,
/// `threads` apart from each other, so that a warp's accesses are adjacent and all loads of a
/// thread are in flight before the first is used.
class RowGrid {
public:
  RowGrid(KernelBuilder &kernel, const KernelPlan &plan, RowBlocks::Shape shape, Value rows)
      : kernel(kernel), threads(*plan.threads), blocksPerThread(*plan.blocksPerThread),
        shape(shape), hostBlocks(RowBlocks::count(kernel.host(), shape, rows)),
        inKernel(kernel.body(), shape, kernel.scalar(rows)) {}

  RowBlocks &blocks() { return inKernel; }

  /// The blocks of this thread.
  SmallVector<RowBlocks::Position> positions();
  void launch() {
    ImplicitLocOpBuilder &host = kernel.host();
    Value perCta = constIndex(host, blocksPerCta());
    kernel.launch(arith::CeilDivUIOp::create(host, hostBlocks, perCta));
  }

private:
  KernelBuilder &kernel;
  int64_t blocksPerCta() const { return threads * blocksPerThread; }
  int64_t threads, blocksPerThread;
  RowBlocks::Shape shape;
  Value hostBlocks;
  RowBlocks inKernel;
};

} // namespace

SmallVector<RowBlocks::Position> RowGrid::positions() {
  ImplicitLocOpBuilder &b = kernel.body();
  Value cta = NVVM::BlockIdXOp::create(b, b.getI32Type());
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value base = arith::MulIOp::create(b, cta, constI32(b, blocksPerCta()));
  Value first = arith::AddIOp::create(b, base, thread);
  bool isGuarded = RowBlocks::countPerRow(shape) % blocksPerCta() != 0;
  SmallVector<RowBlocks::Position> positions;
  for (int64_t i = 0; i < blocksPerThread; ++i) {
    Value index = arith::AddIOp::create(b, first, constI32(b, i * threads));
    positions.push_back(inKernel.position(index, isGuarded));
  }
  return positions;
}

/// The amax (f32) of each block: that of the tensor, or of the block's row; none where `pointer` is
/// null.
static SmallVector<Value> loadAmaxes(ImplicitLocOpBuilder &b, Value pointer, bool perRow,
                                     ArrayRef<RowBlocks::Position> positions) {
  SmallVector<Value> amaxes;
  for (const RowBlocks::Position &position : positions) {
    if (!pointer || (!perRow && !amaxes.empty()))
      amaxes.push_back(amaxes.empty() ? Value() : amaxes.front());
    else
      amaxes.push_back(
          load(b, b.getF32Type(), perRow ? address(b, pointer, position.row, 4) : pointer, 4));
  }
  return amaxes;
}

/// Bits that a code takes in memory.
static int64_t codeBits(Format format) { return hasPackedData(format) ? 4 : 8; }

/// How the rows of the input fall into blocks, and where the scales of the blocks go.
static RowBlocks::Shape rowShape(QuantizeOp op, bool cacheHints) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  bool isTiled = scaleLayout(cast<RankedTensorType>(op.getScales().getType())).has_value();
  bool isRagged = type.isDynamicDim(0) || type.getDimSize(0) % 128 != 0;
  return {type.getDimSize(1),
          op.getBlockSize(),
          type.getElementTypeBitWidth() / 8,
          codeBits(op.getFormat()),
          isTiled,
          isTiled && isRagged,
          cacheHints,
          op.getPerRow()};
}

LogicalResult fp4::lowerRowwiseQuantize(QuantizeOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "quantize", context);
  ImplicitLocOpBuilder &b = kernel.body();
  auto type = cast<RankedTensorType>(op.getInput().getType());

  Value rows = kernel.hostRows(op.getInput());
  Value input = kernel.input(op.getInput());
  Value amaxPointer = op.getAmax() ? kernel.input(op.getAmax()) : Value();
  Value rng = op.getRng() ? kernel.input(op.getRng()) : Value();
  Value data = kernel.output(op.getData(), rows), scales = kernel.output(op.getScales(), rows);
  RowGrid grid(kernel, context.plan, rowShape(op, context.plan.cacheHints), rows);
  RowBlocks &blocks = grid.blocks();
  int64_t codeWords = op.getBlockSize() * codeBits(op.getFormat()) / 32;

  SmallVector<RowBlocks::Position> positions = grid.positions();
  SmallVector<SmallVector<Value>> words;
  for (const RowBlocks::Position &position : positions)
    words.push_back(blocks.load(input, position));
  Scalars scalars(b, context.target);
  SmallVector<Value> amaxes = loadAmaxes(b, amaxPointer, op.getPerRow(), positions);
  Value groups = constI32(b, llvm::divideCeil(type.getDimSize(1), 16));
  std::optional<SideQuantizer> quantizer;
  for (auto [position, elements, amax] : llvm::zip_equal(positions, words, amaxes)) {
    if (!context.noArithmetic && (!quantizer || op.getPerRow()))
      quantizer.emplace(scalars, b, op, /*columnwise=*/false, amax, rng, groups);
    BlockPlace place{position.row, position.column, position.index};
    BlockQuantizer::Block block =
        quantizer ? quantizer->quantize(elements, place) : mixBits(b, elements, amax, codeWords);
    blocks.storeCodes(data, position, block.codes);
    blocks.storeScale(scales, position, block.scale);
  }
  grid.launch();
  return success();
}

/// The codes, i32, of words with a byte for each.
static SmallVector<Value> bytesOf(ImplicitLocOpBuilder &b, ArrayRef<Value> words) {
  SmallVector<Value> bytes;
  for (Value word : words)
    for (int64_t i = 0; i < 4; ++i) {
      Value shifted = i ? arith::ShRUIOp::create(b, word, constI32(b, 8 * i)).getResult() : word;
      bytes.push_back(arith::AndIOp::create(b, shifted, constI32(b, 0xFF)));
    }
  return bytes;
}

/// Emits the values, of type `element`, of a block of codes with this scale byte (i8).
static SmallVector<Value> dequantizeBlock(ImplicitLocOpBuilder &b, Scalars &scalars,
                                          RecipeEmitter &recipe, ArrayRef<Value> words, Value scale,
                                          Type element, bool packed) {
  recipe.set(RecipeOp::ScaleByte, arith::ExtUIOp::create(b, b.getI32Type(), scale));
  recipe.emit(Stage::Block);
  SmallVector<Value> values;
  for (Value word : words)
    values.append(packed ? scalars.unpackE2M1(word) : bytesOf(b, word));
  for (Value &value : values) {
    recipe.set(packed ? RecipeOp::Element : RecipeOp::Code, value);
    recipe.emit(Stage::Element);
    value = recipe[recipe.program().element];
    if (!element.isF32())
      value = arith::TruncFOp::create(b, element, value);
  }
  return values;
}

LogicalResult fp4::lowerDequantize(DequantizeOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "dequantize", context);
  ImplicitLocOpBuilder &b = kernel.body();
  auto type = cast<RankedTensorType>(op.getResult().getType());

  Value rows = kernel.hostRows(op.getData());
  Value data = kernel.input(op.getData()), scales = kernel.input(op.getScales());
  Value amaxPointer = op.getAmax() ? kernel.input(op.getAmax()) : Value();
  Value result = kernel.output(op.getResult(), rows);
  RowGrid grid(kernel, context.plan,
               {type.getDimSize(1), blockSize(op.getFormat()), type.getElementTypeBitWidth() / 8,
                codeBits(op.getFormat()), /*tiledScales=*/false, /*paddedRows=*/false,
                /*usedOnce=*/false, op.getPerRow()},
               rows);
  RowBlocks &blocks = grid.blocks();

  SmallVector<RowBlocks::Position> positions = grid.positions();
  SmallVector<std::pair<SmallVector<Value>, Value>> loaded;
  for (const RowBlocks::Position &position : positions)
    loaded.emplace_back(blocks.loadCodes(data, position), blocks.loadScale(scales, position));
  Scalars scalars(b, context.target);
  RecipeEmitter recipe(scalars, b, numerics::makeDequantizer(op.resolveRecipe()));
  SmallVector<Value> amaxes = loadAmaxes(b, amaxPointer, op.getPerRow(), positions);
  for (auto [position, block, amax] : llvm::zip_equal(positions, loaded, amaxes)) {
    if (&position == &positions.front() || op.getPerRow()) {
      recipe.set(RecipeOp::TensorAmax, amax);
      recipe.emit(Stage::Tensor);
    }
    blocks.storeElements(result, position,
                         dequantizeBlock(b, scalars, recipe, block.first, block.second,
                                         type.getElementType(), hasPackedData(op.getFormat())));
  }
  grid.launch();
  return success();
}
