//===- ConvertAhead.cpp - An operand that is converted once ---------------===//
//
// A product of many rows loads an operand for every tile of the other one. Converted in the product,
// each element is converted as often. This kernel does it once, at the speed of a copy: the product
// loads what it can multiply.
//
// The elements of a k tile have the order of pipe.convert_tile (FragmentLayout.h), and are the same
// numbers, so that a product has the same bits with it and without. A thread has eight elements of
// each quarter of a k tile, which become 64 bytes side by side.
//
//===----------------------------------------------------------------------===//

#include "ConvertAhead.h"

#include "Lowering.h"

#include "HalfOperands.h"
#include "InlinePtx.h"
#include "Int32.h"
#include "SmallBuilders.h"

#include "fp4/ISA/FragmentLayout.h"
#include "fp4/ISA/ScaleLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

Type fp4::convertedTypeOf(const MatmulShape &shape) {
  MLIRContext *context = shape.scaleType.getContext();
  return shape.block == 16 ? Type(Float16Type::get(context)) : Type(BFloat16Type::get(context));
}

/// The buffer of the results.
static pipe::GlobalType convertedA(const MatmulShape &shape) {
  return pipe::GlobalType::get({shape.m, shape.k}, convertedTypeOf(shape));
}

namespace {
class ConvertKernel {
public:
  ConvertKernel(gpu::GPUFuncOp func, const MatmulShape &shape, const hw::TargetModel &target)
      : shape(shape), b(func.getLoc(), func.getBody()),
        halves(b, target, shape.scaleType, {}, shape.dataTypeA) {
    auto argument = [&](unsigned number) -> Value {
      Type pointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
      return pipe::GlobalPtrOp::create(b, pointer, func.getArgument(number));
    };
    source = argument(0);
    scales = argument(1);
    dest = argument(2);
    rows = shape.dynamicRows() ? func.getArgument(3) : Value();
    build();
    gpu::ReturnOp::create(b);
  }

  static constexpr int64_t kThreads = 256;
  /// Items of a thread: eight elements of each quarter of a k tile.
  static int64_t itemsPerRow(const MatmulShape &shape) { return shape.k / kElements; }

private:
  static constexpr int64_t kQuarters = 4, kElements = kQuarters * hw::codesPerWord;
  static constexpr int64_t kItemsOfTile = hw::convertedTileK / kElements;

  /// An item: its row, its k tile, and its place in each quarter.
  struct Item {
    Int32 number, row, tile, place;
  };

  void build();
  void convert(const Item &item);
  SmallVector<Value> loadCodes(const Item &item);
  Value loadScales(const Item &item);

  MatmulShape shape;
  ImplicitLocOpBuilder b;
  HalfOperands halves;
  Value source, scales, dest, rows;
};
} // namespace

void ConvertKernel::build() {
  Int32 block(b, NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Int32 thread(b, NVVM::ThreadIdXOp::create(b, b.getI32Type()));
  halves.keepTables(thread);
  int64_t perRow = itemsPerRow(shape);
  Int32 number = block * kThreads + thread;
  Int32 row = number / perRow, inRow = number % perRow;
  Value exists = rows ? row < Int32(b, rows) : row < shape.m;
  auto branch = scf::IfOp::create(b, exists);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  convert({number, row, inRow / kItemsOfTile, inRow % kItemsOfTile});
}

/// The words of eight codes of each quarter, one after the other.
SmallVector<Value> ConvertKernel::loadCodes(const Item &item) {
  int64_t bytes = shape.dataTypeA.getIntOrFloatBitWidth(); // of eight codes
  Int32 index = item.row * (shape.k / hw::codesPerWord) + item.tile * (kQuarters * kItemsOfTile) +
                item.place;
  Value first = address(b, source, index, bytes);
  SmallVector<Value> words;
  for (int64_t quarter = 0; quarter < kQuarters; ++quarter)
    for (int64_t byte = 0; byte < bytes; byte += 4)
      words.push_back(load(b, b.getI32Type(),
                           advance(b, first, quarter * kItemsOfTile * bytes + byte), 4));
  return words;
}

/// A word with the scales of the four quarters.
Value ConvertKernel::loadScales(const Item &item) {
  int64_t blocksOfTile = hw::convertedTileK / shape.block / int64_t(hw::scaleBlockColumns);
  int64_t columns = shape.k / shape.block / int64_t(hw::scaleBlockColumns);
  auto word = [&](int64_t block) -> Value {
    Int32 index = hw::scaleBlockIndex(item.row / int64_t(hw::scaleBlockRows),
                                      item.tile * blocksOfTile + block, columns);
    Value tile = address(b, scales, index, int64_t(hw::scaleBlockBytes));
    return load(b, b.getI32Type(), address(b, tile, hw::scaleWordInBlock(item.row), 1), 4);
  };
  if (blocksOfTile == 1)
    return word(0);
  // Two scales for each quarter, of its first elements and of the others.
  Int32 selector = item.place / 2 * 0x1111 + 0x6420;
  return NVVM::PermuteOp::create(b, b.getI32Type(), word(0), word(1), selector,
                                 NVVM::PermuteMode::DEFAULT);
}

void ConvertKernel::convert(const Item &item) {
  SmallVector<Value> words = loadCodes(item);
  SmallVector<Value> factors = halves.factors(loadScales(item), kQuarters);
  size_t perQuarter = words.size() / kQuarters;
  SmallVector<SmallVector<Value>> pairs;
  for (size_t quarter = 0; quarter < kQuarters; ++quarter)
    pairs.push_back(halves.convert(
        ValueRange(words).slice(quarter * perQuarter, perQuarter), factors[quarter]));
  Value first = address(b, dest, item.number, 2 * kElements);
  for (size_t i = 0; i < pairs[0].size(); ++i) {
    SmallVector<Value> four;
    for (const SmallVector<Value> &quarter : pairs)
      four.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), quarter[i]));
    auto type = VectorType::get(kQuarters, b.getI32Type());
    store(b, vector::FromElementsOp::create(b, type, four), advance(b, first, int64_t(i) * 16), 16);
  }
}

static gpu::GPUFuncOp buildKernel(RewriterBase &rewriter, BlockScaledMatmulOp op,
                                  const MatmulShape &shape, const hw::TargetModel &target) {
  gpu::GPUModuleOp module =
      createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, "convert");
  OpBuilder inside = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Type> types = {pipe::GlobalType::get({shape.m, shape.k}, shape.dataTypeA),
                             shape.scalesA(), convertedA(shape)};
  if (shape.dynamicRows())
    types.push_back(inside.getI32Type());
  auto kernel = gpu::GPUFuncOp::create(inside, op.getLoc(), "kernel",
                                       inside.getFunctionType(types, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), inside.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      inside.getDenseI32ArrayAttr({int32_t(ConvertKernel::kThreads), 1, 1}));
  ConvertKernel(kernel, shape, target);
  return kernel;
}

Value fp4::convertAhead(RewriterBase &rewriter, BlockScaledMatmulOp op, Value lhs, Value scales,
                        const MatmulShape &shape, Value rows, const hw::TargetModel &target) {
  Location loc = op.getLoc();
  gpu::GPUFuncOp kernel = buildKernel(rewriter, op, shape, target);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value one = index(1), items = index(ConvertKernel::itemsPerRow(shape));
  items = rewriter.createOrFold<arith::MulIOp>(
      loc, shape.dynamicRows() ? rows : index(shape.m), items);
  Value blocks = arith::CeilDivUIOp::create(rewriter, loc, items, index(ConvertKernel::kThreads));
  blocks = arith::MaxUIOp::create(rewriter, loc, blocks, one); // no rows are no invalid launch
  SmallVector<Value> sizes;
  if (shape.dynamicRows())
    sizes.push_back(rows);
  Value converted = gpu::AllocOp::create(rewriter, loc, pipe::getBufferType(convertedA(shape)),
                                         /*asyncToken=*/Type(), ValueRange(), sizes, ValueRange())
                        .getMemref();
  SmallVector<Value> buffers = {lhs, scales, converted}, arguments;
  for (auto [type, buffer] : llvm::zip(kernel.getArgumentTypes(), buffers))
    arguments.push_back(pipe::GlobalViewOp::create(rewriter, loc, type, buffer));
  if (shape.dynamicRows())
    arguments.push_back(arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), rows));
  gpu::LaunchFuncOp::create(rewriter, loc, kernel, gpu::KernelDim3{blocks, one, one},
                            gpu::KernelDim3{index(ConvertKernel::kThreads), one, one},
                            /*dynamicSharedMemorySize=*/Value(), arguments);
  return converted;
}
