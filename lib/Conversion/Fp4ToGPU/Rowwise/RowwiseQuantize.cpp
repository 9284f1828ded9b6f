//===- RowwiseQuantize.cpp - Kernels that stream along rows ---------------===//
//
// Quantizes with row-wise output, and dequantizes. A thread loads the elements of all its blocks
// before it uses the first, because loads in flight hide the latency of memory. Values that depend
// only on the tensor are computed while the loads are under way.
//
//===----------------------------------------------------------------------===//
#include "ElementSource.h"
#include "InlinePtx.h"
#include "Int32.h"
#include "Lowering.h"
#include "Reduce/GridMax.h"
#include "Rowwise/RowBlocks.h"
#include "SideQuantizer.h"

#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/ISA/BufferShape.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/Plans/BlockLanes.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp4;
using numerics::Stage;

namespace {

/// The one-shot grid over the blocks of a matrix: each thread has `blocksPerThread` blocks,
/// `threads` apart from each other, so that a warp's accesses are adjacent and all loads of a
/// thread are in flight before the first is used.
class RowGrid {
public:
  /// `columns` is an index on the host where they are dynamic, else null.
  RowGrid(KernelBuilder &kernel, const KernelPlan &plan, RowBlocks::Shape shape, Value rows,
          Value columns)
      : kernel(kernel), threads(*plan.threads), blocksPerThread(*plan.stream.blocksPerThread),
        shape(shape), hostBlocks(RowBlocks::count(kernel.host(), shape, rows, columns)),
        rows(kernel.scalar(rows)), columns(takeColumns(columns)),
        inKernel(kernel.body(), shape, this->rows, this->columns) {}

  RowBlocks &blocks() { return inKernel; }
  /// The matrix in blocks of another shape, of which only the place of scales is asked.
  RowBlocks inShape(RowBlocks::Shape other) {
    return RowBlocks(kernel.body(), other, rows, columns);
  }

  /// The blocks of this thread.
  SmallVector<RowBlocks::Position> positions();
  void launch() { kernel.launch(hostCtas()); }
  Value hostCtas() {
    ImplicitLocOpBuilder &host = kernel.host();
    return arith::CeilDivUIOp::create(host, hostBlocks, constIndex(host, blocksPerCta()));
  }

private:
  std::optional<RowBlocks::Columns> takeColumns(Value columns);

  KernelBuilder &kernel;
  int64_t blocksPerCta() const { return threads * blocksPerThread; }
  int64_t threads, blocksPerThread;
  RowBlocks::Shape shape;
  Value hostBlocks, rows;
  std::optional<RowBlocks::Columns> columns;
  RowBlocks inKernel;
};

} // namespace

std::optional<RowBlocks::Columns> RowGrid::takeColumns(Value columns) {
  if (!shape.isDynamic())
    return {};
  ImplicitLocOpBuilder &host = kernel.host(), &b = kernel.body();
  Value perRow = RowBlocks::countPerRow(host, shape, columns);
  Value blocks = arith::DivUIOp::create(host, columns, constIndex(host, shape.blockSize));
  Int32 tiles(b, 0);
  if (shape.tiledScales)
    tiles = {
        b, kernel.scalar(arith::DivUIOp::create(host, perRow, constIndex(host, shape.tileBlocks)))};
  return RowBlocks::Columns{{b, kernel.scalar(blocks)},
                            {b, kernel.scalar(hostBlocks)},
                            tiles,
                            HostDivisor(kernel, perRow)};
}

SmallVector<RowBlocks::Position> RowGrid::positions() {
  ImplicitLocOpBuilder &b = kernel.body();
  Value cta = kernel.ctaIndex();
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  Value base = arith::MulIOp::create(b, cta, constI32(b, blocksPerCta()));
  Value first = arith::AddIOp::create(b, base, thread);
  bool isGuarded = shape.isDynamic() || RowBlocks::countPerRow(shape) % blocksPerCta() != 0;
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

int64_t fp4::unitOfColumns(QuantizeOp op) {
  if (op.hasF32Scales()) // the last block may be shorter
    return hw::pitchUnitBytes;
  int64_t transformed = op.getHadamard() ? op.getHadamard()->getSize() : 1;
  return std::max<int64_t>(
      {op.getBlockSize(), transformed, int64_t(hw::pitchUnitBytes) * 8 / codeBits(op.getFormat())});
}

/// Returns how the rows of the input fall into blocks, and the place of the scales of the blocks.
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
          op.getPerRow() || prologueOf(op.getInput()),
          bool(stridedRowsOf(op.getInput()))};
}

/// The shape of what a thread has: a block, or a part of one that lanes have together.
static RowBlocks::Shape threadShape(QuantizeOp op, const KernelPlan &plan) {
  RowBlocks::Shape shape = rowShape(op, plan.stream.cacheHints);
  int64_t lanes = lanesOfBlock(op, plan);
  shape.blockSize /= lanes;
  shape.tileBlocks *= lanes;
  return shape;
}

//===----------------------------------------------------------------------===//
// With the amax in the same kernel
//===----------------------------------------------------------------------===//

QuantizeOp fp4::quantizerOf(AmaxOp amax, const LoweringContext &context) {
  if (context.noArithmetic)
    return {};
  for (Operation *user : amax->getUsers()) {
    auto quantize = dyn_cast<QuantizeOp>(user);
    auto plan = user->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
    if (quantize && plan && plan.getFamily() == KernelFamily::StreamBlocks &&
        plan.getPlan().stream.amax == AmaxKernel::Same && amaxOfKernel(quantize) == amax)
      return quantize;
  }
  return {};
}

/// Facts of the device are known when the host code runs.
static Value hostSms(ImplicitLocOpBuilder &host, ModuleOp module) {
  constexpr StringLiteral name = "fp4rt_multiprocessor_count";
  if (!module.lookupSymbol(name)) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    LLVM::LLVMFuncOp::create(b, module.getLoc(), name,
                             LLVM::LLVMFunctionType::get(b.getI32Type(), ArrayRef<Type>()));
  }
  auto call = LLVM::CallOp::create(host, TypeRange(host.getI32Type()), name, ValueRange());
  return arith::IndexCastOp::create(host, host.getIndexType(), call.getResult());
}

Value fp4::fitsAtOnce(QuantizeOp op, ImplicitLocOpBuilder &host, const hw::TargetModel &target,
                      Value rows, Value columns) {
  auto plan = op->getAttrOfType<PlanAttr>(Fp4Dialect::kPlanAttr);
  Value blocks = RowBlocks::count(host, threadShape(op, plan.getPlan()), rows, columns);
  Value ctas = arith::CeilDivUIOp::create(host, blocks,
                                          constIndex(host, kAmaxThreads * kAmaxBlocksPerThread));
  Value eighths = arith::MulIOp::create(host, hostSms(host, op->getParentOfType<ModuleOp>()),
                                        constIndex(host, amaxCtasPerSm(target) * kAmaxEighths));
  Value most =
      arith::MinUIOp::create(host, arith::DivUIOp::create(host, eighths, constIndex(host, 8)),
                             constIndex(host, kAmaxMostCtas));
  auto isAtMost = [&](Value x, Value y) {
    return arith::CmpIOp::create(host, arith::CmpIPredicate::ule, x, y);
  };
  return arith::AndIOp::create(host, isAtMost(constIndex(host, 1), ctas), isAtMost(ctas, most));
}

/// The amax of what the threads of the grid have loaded, also stored to `result`.
static Value amaxOf(QuantizeOp op, NanPolicy nan, KernelBuilder &kernel, Scalars &s,
                    ArrayRef<SmallVector<Value>> words, Value result) {
  SmallVector<Value> all;
  for (const SmallVector<Value> &block : words)
    all.append(block);
  Type element = cast<RankedTensorType>(op.getInput().getType()).getElementType();
  return emitMaxOfAll(kernel, s, s.amax(all, element, nan == NanPolicy::Propagate), result);
}

//===----------------------------------------------------------------------===//
// Quantizers
//===----------------------------------------------------------------------===//

namespace {

/// A kernel of a quantizer whose results have their buffers.
class RowwiseKernel {
public:
  RowwiseKernel(QuantizeOp op, const LoweringContext &context, KernelBuilder &kernel,
                ArrayRef<Value> results)
      : op(op), context(context), kernel(kernel), b(kernel.body()), s(b, context.target),
        rows(kernel.hostRows(op.getInput())), columns(kernel.hostColumns(op.getInput())),
        source(kernel, op.getInput(), context.noArithmetic) {
    amax = op.getAmax() ? kernel.input(op.getAmax()) : Value();
    rng = op.getRng() ? kernel.input(op.getRng()) : Value();
    // Other kernels wait for memory, or, with Philox, for the pipe that multiplies integers.
    if (source.isComputed())
      s.clampRandom();
    else if (op.getRecipe().getDecisions().adaptive == numerics::Adaptive::Off)
      s.saveRegisters();
    data = kernel.pointer(results[0], cast<RankedTensorType>(op.getData().getType()));
    scales = kernel.pointer(results[1], cast<RankedTensorType>(op.getScales().getType()));
    shape = threadShape(op, context.plan);
    lanes = lanesOfBlock(op, context.plan);
    grid.emplace(kernel, context.plan, shape, rows, columns);
    positions = grid->positions();
    prefetch();
    if (skipsPadding())
      beginMatrix();
    if (source.isComputed() && !context.withAmax.contains(op)) {
      amaxes = loadAmaxes(b, amax, op.getPerRow(), positions);
      if (amax) // LLVM would move the loads behind branches of the elements
        amaxes = computeHere(b, b.getLoc(), amaxes);
    }
    for (const RowBlocks::Position &position : positions)
      words.push_back(loadBlock(position));
  }

  /// Emits the quantizer with its amax operand, if there is one. The kernel is launched where
  /// `condition` (i1) holds; null: always.
  void emit(Value condition) {
    quantize(amaxes.empty() ? loadAmaxes(b, amax, op.getPerRow(), positions) : amaxes);
    if (ofMatrix)
      b.setInsertionPointAfter(ofMatrix);
    launch(condition, /*cooperative=*/false);
  }

  /// Emits the quantizer with the amax of the values that its threads have loaded.
  void emitAtOnce(NanPolicy nan, Value condition) {
    Value largest = amaxOf(op, nan, kernel, s, words, /*result=*/amax);
    quantize(SmallVector<Value>(positions.size(), largest));
    launch(condition, /*cooperative=*/true);
  }

private:
  /// Returns true when a thread whose scale pads the matrix stores that alone, and does not compute
  /// the elements of a row that exists: an H200 takes 2.67 us for SiLU(g) * u of 64 x 7168 to NVFP4
  /// in place of 2.90. Lanes that exchange values stay together: a warp has lanes of one row.
  bool skipsPadding() {
    bool isOfOneRow = !columns && RowBlocks::countPerRow(shape) % kWarp == 0;
    return source.isComputed() && shape.paddedRows && positions.size() == 1 &&
           (lanes == 1 || isOfOneRow) && !op.getHadamard() && !context.withAmax.contains(op);
  }

  /// Begins the branch of threads whose block the matrix has; others store a scale of zero.
  void beginMatrix() {
    RowBlocks::Position &position = positions.front();
    ofMatrix = scf::IfOp::create(b, position.isMatrix, /*withElseRegion=*/true);
    b.setInsertionPointToStart(ofMatrix.elseBlock());
    position.isMatrix = {};
    storeScale(position, arith::ConstantOp::create(b, b.getI8IntegerAttr(0)));
    b.setInsertionPointToStart(ofMatrix.thenBlock());
  }

  /// The blocks of an input of the matrix.
  RowBlocks blocksOf(const ElementSource::Input &input) {
    RowBlocks::Shape its = shape;
    its.elementBytes = input.elementBytes();
    its.strided = static_cast<bool>(input.rows.pitch);
    its.usedOnce &= input.hasRows;
    return grid->inShape(its);
  }

  /// Asks for the elements that the thread will load, and in one thread for what all of them need.
  void prefetch() {
    if (!kernel.takesTurns())
      return;
    for (const RowBlocks::Position &position : positions)
      for (const ElementSource::Input &input : source.inputsOfRuns())
        if (input.hasRows) {
          RowBlocks blocks = blocksOf(input);
          kernel.prefetch(blocks.elementsAt(input.rows, position), blocks.blockBytes(),
                          position.isMatrix);
        }
    Value isFirst = Int32(b, positions.front().index) < 1;
    if (amax && !op.getPerRow())
      kernel.prefetch(amax, /*bytes=*/4, isFirst);
    if (rng)
      kernel.prefetch(rng, /*bytes=*/16, isFirst);
  }

  SmallVector<Value> loadBlock(const RowBlocks::Position &position) {
    auto load = [&](const ElementSource::Input &input) {
      RowBlocks blocks = blocksOf(input);
      return blocks.load(input.rows, input.hasRows ? position : blocks.inFirstRow(position));
    };
    SmallVector<Value> block = source.words(position.row, shape.blockSize, load);
    if (source.isComputed())
      grid->blocks().clearBehindRow(block, position);
    return block;
  }

  void quantize(ArrayRef<Value> ofBlocks) {
    int64_t codeWords = shape.blockSize * shape.codeBits / 32;
    Value groups = rng ? randomGroups() : Value();
    std::optional<SideQuantizer> quantizer;
    for (auto [position, elements, amax] : llvm::zip_equal(positions, words, ofBlocks)) {
      if (!context.noArithmetic && (!quantizer || op.getPerRow()))
        quantizer.emplace(s, b, op, /*columnwise=*/false, amax, rng, groups);
      BlockPlace place{position.row, position.column, position.index};
      BlockQuantizer::Block block =
          quantizer ? quantizer->quantize(elements, place, sharedAmax(*quantizer, elements))
                    : mixBits(b, elements, amax, codeWords);
      grid->blocks().storeCodes(data, position, block.codes);
      storeScale(position, block.scale);
    }
  }

  /// Runs of 16 elements in a row.
  Value randomGroups() {
    if (columns)
      return kernel.scalar(
          arith::CeilDivUIOp::create(kernel.host(), columns, constIndex(kernel.host(), 16)));
    int64_t count = cast<RankedTensorType>(op.getInput().getType()).getDimSize(1);
    return constI32(b, llvm::divideCeil(count, 16));
  }

  /// The amax of a block that several lanes have; null where one has it.
  Value sharedAmax(SideQuantizer &quantizer, ArrayRef<Value> elements) {
    if (lanes == 1)
      return {};
    BlockQuantizer &recipe = quantizer.recipe();
    Type element = cast<RankedTensorType>(op.getInput().getType()).getElementType();
    Value amax = recipe.amax(elements, element);
    for (int64_t distance = lanes / 2; distance; distance /= 2) {
      Value other = valueOfPartner(b, amax, distance);
      amax = recipe.keepsNaN() ? s.maximumOrNaN(amax, other) : s.maximumNumber(amax, other);
    }
    return amax;
  }

  /// Stores a scale. The first of the lanes that share a block stores it.
  void storeScale(RowBlocks::Position position, Value scale) {
    if (lanes == 1)
      return grid->blocks().storeScale(scales, position, scale);
    Value isFirst = Int32(b, position.index) % lanes < 1;
    for (Value *number : {&position.index, &position.column, &position.paddedColumn})
      if (*number)
        *number = Int32(b, *number) / lanes;
    position.isMine =
        position.isMine ? arith::AndIOp::create(b, position.isMine, isFirst).getResult() : isFirst;
    grid->inShape(rowShape(op, /*cacheHints=*/false)).storeScale(scales, position, scale);
  }

  void launch(Value condition, bool cooperative) {
    ImplicitLocOpBuilder &host = kernel.host();
    Value ctas = grid->hostCtas();
    if (condition)
      ctas = arith::SelectOp::create(host, condition, ctas, constIndex(host, 0));
    kernel.launch(ctas, cooperative);
  }

  QuantizeOp op;
  const LoweringContext &context;
  KernelBuilder &kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  Value rows, columns; ///< extents on the host; `columns` is null where static
  ElementSource source;
  Value amax, rng, data, scales;
  RowBlocks::Shape shape;
  int64_t lanes = 1; ///< that have a block together
  std::optional<RowGrid> grid;
  scf::IfOp ofMatrix; ///< null unless padding is skipped
  SmallVector<RowBlocks::Position> positions;
  SmallVector<Value> amaxes; ///< of computed blocks, under way while these are computed
  SmallVector<SmallVector<Value>> words;
};

} // namespace

LogicalResult fp4::lowerRowwiseQuantize(QuantizeOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "quantize", context);
  ImplicitLocOpBuilder &host = kernel.host();
  Value rows = kernel.hostRows(op.getInput()), columns = kernel.hostColumns(op.getInput()), blocks;
  if (columns) {
    kernel.expectColumns("input", columns, unitOfColumns(op));
    blocks = arith::DivUIOp::create(host, columns, constIndex(host, op.getBlockSize()));
  }
  kernel.expectAmaxes("amax", op.getAmax(), rows);
  Value results[] = {kernel.allocate(op.getData(), rows, columns),
                     kernel.allocate(op.getScales(), rows, blocks)};
  Value isApart;
  if (auto nan = context.withAmax.find(op); nan != context.withAmax.end()) {
    LoweringContext together = context;
    together.plan.threads = kAmaxThreads;
    together.plan.stream.blocksPerThread = kAmaxBlocksPerThread;
    together.plan.ctasPerSm = amaxCtasPerSm(context.target);
    Value fits = fitsAtOnce(op, host, context.target, rows, columns);
    KernelBuilder both(op, "amax_quantize", together);
    RowwiseKernel(op, together, both, results).emitAtOnce(nan->second, fits);
    isApart = arith::XOrIOp::create(host, fits, arith::ConstantIntOp::create(host, 1, 1));
  }
  RowwiseKernel(op, context, kernel, results).emit(isApart);
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

/// Dynamic columns are whole blocks in rows that follow each other, and have their scales.
static void expectBlocks(DequantizeOp op, KernelBuilder &kernel, Value columns) {
  ImplicitLocOpBuilder &host = kernel.host();
  int64_t bits = codeBits(op.getFormat()), block = blockSize(op.getFormat());
  kernel.expectColumns("data", columns,
                       std::max<int64_t>(block, int64_t(hw::pitchUnitBytes) * 8 / bits));
  kernel.expectSize("columns", "scales", kernel.hostColumns(op.getScales()),
                    arith::DivUIOp::create(host, columns, constIndex(host, block)),
                    "pass the scales of these elements");
  if (bits == 8)
    return;
  Value pitch = arith::IndexCastOp::create(
      host, host.getIndexType(), pitchBytes(host, host.getLoc(), kernel.buffer(op.getData())));
  kernel.expectSize("bytes from one row to the next", "data", pitch,
                    arith::DivUIOp::create(host, columns, constIndex(host, 2)),
                    "pass a copy whose rows follow each other");
}

LogicalResult fp4::lowerDequantize(DequantizeOp op, LoweringContext &context) {
  KernelBuilder kernel(op, "dequantize", context);
  ImplicitLocOpBuilder &b = kernel.body();
  auto type = cast<RankedTensorType>(op.getResult().getType());

  Value rows = kernel.hostRows(op.getData()), columns = kernel.hostColumns(op.getData());
  if (columns)
    expectBlocks(op, kernel, columns);
  kernel.expectAmaxes("amax", op.getAmax(), rows);
  Value data = kernel.input(op.getData()), scales = kernel.input(op.getScales());
  Value amaxPointer = op.getAmax() ? kernel.input(op.getAmax()) : Value();
  Value result = kernel.output(op.getResult(), rows, columns);
  RowGrid grid(kernel, context.plan,
               {type.getDimSize(1), blockSize(op.getFormat()), type.getElementTypeBitWidth() / 8,
                codeBits(op.getFormat()), /*tiledScales=*/false, /*paddedRows=*/false,
                /*usedOnce=*/false, op.getPerRow()},
               rows, columns);
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
