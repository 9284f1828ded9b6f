//===- KernelBuilder.cpp - One streaming kernel and its launch ------------===//
#include "KernelBuilder.h"

#include "InlinePtx.h"
#include "Int32.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"
#include "fp4/Dialect/Fp4/IR/RowNumbers.h"
#include "fp4/Dialect/Pipe/IR/Layouts.h"
#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/LaunchAttributes.h"
#include "fp4/Dialect/Utils/OperandNames.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/ISA/GpuModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fp4;

Value fp4::deviceBuffer(OpBuilder &builder, Location loc, Value tensor) {
  MemRefType type = deviceBufferType(cast<RankedTensorType>(tensor.getType()));
  if (auto cast = tensor.getDefiningOp<UnrealizedConversionCastOp>())
    if (cast.getInputs().size() == 1 && cast.getInputs()[0].getType() == type)
      return cast.getInputs()[0];
  return UnrealizedConversionCastOp::create(builder, loc, type, tensor).getResult(0);
}

//===----------------------------------------------------------------------===//
// KernelBuilder
//===----------------------------------------------------------------------===//

/// A gpu.module with a name that nobody has, in front of the function that holds `op`.
static gpu::GPUModuleOp createModule(Operation *op, StringRef kind, SymbolTable &symbols) {
  auto parent = op->getParentOfType<FunctionOpInterface>();
  std::string stem = (parent.getName() + "_" + kind + "_").str();
  unsigned number = 0;
  while (symbols.lookup(stem + std::to_string(number)))
    ++number;
  OpBuilder builder(parent);
  auto module = gpu::GPUModuleOp::create(builder, op->getLoc(), stem + std::to_string(number));
  symbols.insert(module, Block::iterator(parent));
  return module;
}

static NamedAttrList attributeOf(StringRef name, Attribute value) {
  NamedAttrList list;
  list.append(name, value);
  return list;
}

NamedAttrList fp4::pdlOf(const KernelPlan &plan, MLIRContext *context) {
  std::optional<LaunchDependents> dependents = launchDependentsOf(plan);
  return dependents ? attributeOf(kPdlAttr, LaunchDependentsAttr::get(context, *dependents))
                    : NamedAttrList();
}

/// Returns the attribute that relates the launch of `op` to the launch before or after it; empty:
/// none. A plan of tile_gemm speaks of the GEMM alone, and not of the kernels beside it.
static NamedAttrList overlapOf(Operation *op, const KernelPlan &plan) {
  if (plan.family != KernelFamily::TileGemm && plan.pdl)
    return pdlOf(plan, op->getContext());
  auto flag = UnitAttr::get(op->getContext());
  if (isa<AmaxOp, HadamardAmaxOp>(op))
    return attributeOf(kLeadsAttr, flag);
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantize.getAmax() ? attributeOf(kFollowsAttr, flag) : NamedAttrList();
}

KernelBuilder::KernelBuilder(Operation *op, StringRef kind, LoweringContext &context)
    : op(op), target(context.target), plan(context.plan), buffers(context.buffers),
      overlap(overlapOf(op, context.plan)), hostBuilder(op->getLoc(), op),
      bodyBuilder(op->getLoc(), op->getContext()), module(createModule(op, kind, context.symbols)) {
  bodyBuilder.setInsertionPointToStart(module.getBody());
  function = gpu::GPUFuncOp::create(bodyBuilder, "kernel", bodyBuilder.getFunctionType({}, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), bodyBuilder.getUnitAttr());
  function.setKnownBlockSizeAttr(
      bodyBuilder.getDenseI32ArrayAttr({static_cast<int32_t>(numThreads()), 1, 1}));
  // Registers are to be so few that these CTAs fit on an SM.
  if (plan.ctasPerSm)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      bodyBuilder.getI32IntegerAttr(static_cast<int32_t>(*plan.ctasPerSm)));
  bodyBuilder.setInsertionPointToStart(&function.getBody().front());
}

Value KernelBuilder::policyOfLoads(Value units, int64_t bytes, Eviction eviction) {
  if (!hw::gainsFromLastingLoads(target) || bytes <= 0)
    return {};
  Int32 fewest(bodyBuilder, int64_t(llvm::divideCeil(target.l2Bytes, uint64_t(bytes))));
  return evictionPolicy(
      bodyBuilder, eviction,
      arith::CmpIOp::create(bodyBuilder, arith::CmpIPredicate::uge, units, fewest));
}

void KernelBuilder::prefetch(Value pointer, int64_t bytes, Value condition) {
  constexpr int64_t sector = 32;
  if (!takesTurns())
    return;
  if (!condition)
    condition = arith::ConstantIntOp::create(bodyBuilder, 1, 1);
  for (int64_t at = 0; at < bytes; at += sector)
    prefetchWhen(bodyBuilder, condition, advance(bodyBuilder, pointer, at));
}

Value KernelBuilder::buffer(Value tensor) {
  return deviceBuffer(hostBuilder, hostBuilder.getLoc(), tensor);
}

Value fp4::hostRows(ImplicitLocOpBuilder &host, Value tensor) {
  if (linalg::GenericOp prologue = prologueOf(tensor))
    return hostRows(host, rowsInputOf(prologue));
  if (tensor::GatherOp gather = gatherOf(tensor))
    return hostRows(host, gather.getIndices());
  if (Value argument = stridedRowsOf(tensor))
    return stridedRows(host, host.getLoc(), argument);
  return logicalRows(host, host.getLoc(), cast<RankedTensorType>(tensor.getType()),
                     deviceBuffer(host, host.getLoc(), tensor));
}

Value KernelBuilder::hostRows(Value tensor) { return fp4::hostRows(hostBuilder, tensor); }

Value KernelBuilder::hostColumns(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(1))
    return {};
  Value columns = memref::DimOp::create(hostBuilder, buffer(tensor), 1);
  if (!isa<Float4E2M1FNType>(type.getElementType()))
    return columns;
  return arith::MulIOp::create(hostBuilder, columns, constIndex(hostBuilder, 2)); // bytes
}

void KernelBuilder::expectColumns(StringRef name, Value columns, int64_t multiple) {
  Value unit = constIndex(hostBuilder, multiple);
  Value units = arith::CeilDivUIOp::create(hostBuilder, columns, unit);
  units = arith::MaxUIOp::create(hostBuilder, units, constIndex(hostBuilder, 1));
  Value up = arith::MulIOp::create(hostBuilder, units, unit);
  expectSize("columns", name, columns, up,
             "pad the columns with zeros to a multiple of " + std::to_string(multiple));
}

void KernelBuilder::expectSize(StringRef what, StringRef name, Value found, Value expected,
                               StringRef note) {
  std::string text = (what + " of " + placeOfOperand(op, op->getName().stripDialect(), name)).str();
  pipe::ExpectSizeOp::create(hostBuilder, text, found, expected, note);
}

void KernelBuilder::expectAmaxes(StringRef name, Value amaxes, Value lines) {
  auto type = amaxes ? cast<RankedTensorType>(amaxes.getType()) : RankedTensorType();
  if (!type || type.getRank() != 1 || type.hasStaticShape() || !lines)
    return;
  expectSize("numbers", name, hostRows(amaxes), lines, "pass an amax for each row, or column");
}

void KernelBuilder::expectMultiple(Value tensor, Value rows, int64_t multiple) {
  if (multiple == 1 || !cast<RankedTensorType>(tensor.getType()).isDynamicDim(0))
    return;
  Value unit = constIndex(hostBuilder, multiple);
  Value up =
      arith::MulIOp::create(hostBuilder, arith::CeilDivUIOp::create(hostBuilder, rows, unit), unit);
  pipe::ExpectSizeOp::create(
      hostBuilder, "rows of a tensor whose columns are grouped by " + std::to_string(multiple),
      rows, up, "pad the rows with zeros");
}

Value KernelBuilder::allocate(Value result, Value rows, Value columns) {
  auto type = cast<RankedTensorType>(result.getType());
  Value &memory = buffers[result];
  if (!memory)
    memory = allocateBuffer(hostBuilder, hostBuilder.getLoc(), type, rows, columns);
  result.replaceAllUsesWith(
      UnrealizedConversionCastOp::create(hostBuilder, type, memory).getResult(0));
  return memory;
}

Value KernelBuilder::addOperand(Value hostValue) {
  operands.push_back(hostValue);
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(index, hostValue.getType(), {}, hostBuilder.getLoc());
  return function.getArgument(index);
}

/// The address of an argument.
static Value addressOf(ImplicitLocOpBuilder &b, Value argument) {
  return pipe::ViewOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1), argument);
}

Value KernelBuilder::pointer(Value buffer, RankedTensorType type) {
  auto layout = scaleLayout(type) ? pipe::Layout::Tiled128x4 : pipe::Layout::Linear;
  auto global = pipe::GlobalType::get(type.getShape(), type.getElementType(), layout);
  if (type.getRank() > 2) { // prepacked weights, static: a row for each tile
    int64_t rows = type.getNumElements() / type.getShape().back();
    global = pipe::GlobalType::get({rows, type.getShape().back()}, type.getElementType());
    buffer = pipe::ViewOp::create(hostBuilder, pipe::getBufferType(global), buffer,
                                  /*offset=*/0, /*rows=*/Value());
  }
  Value view = pipe::ViewOp::create(hostBuilder, global, buffer);
  return addressOf(bodyBuilder, addOperand(view));
}

Value KernelBuilder::stridedPointer(Value buffer, Type element) {
  auto global = pipe::GlobalType::get({ShapedType::kDynamic, ShapedType::kDynamic}, element);
  return addressOf(bodyBuilder, addOperand(pipe::ViewOp::create(hostBuilder, global, buffer)));
}

Value KernelBuilder::input(Value tensor) {
  return pointer(buffer(tensor), cast<RankedTensorType>(tensor.getType()));
}

InputRows KernelBuilder::inputRows(Value tensor) {
  if (tensor::GatherOp gather = gatherOf(tensor)) {
    InputRows rows = inputRows(gather.getSource());
    rows.table = input(gather.getIndices());
    return rows;
  }
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t bytes = type.isDynamicDim(1) ? 0 : type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  Value argument = stridedRowsOf(tensor);
  if (!argument)
    return {.base = input(tensor), .bytes = bytes};
  Location loc = hostBuilder.getLoc();
  Value buffer = stridedBuffer(hostBuilder, loc, argument);
  InputRows rows{.base = stridedPointer(buffer, type.getElementType()), .bytes = bytes};
  unsigned rank = cast<MemRefType>(buffer.getType()).getRank();
  rows.pitch = scalar(strideBytes(hostBuilder, loc, argument, rank - 2));
  if (rank == 3) {
    rows.rowsOfMatrix = cast<MemRefType>(buffer.getType()).getDimSize(1);
    rows.matrixPitch = scalar(strideBytes(hostBuilder, loc, argument, 0));
  }
  return rows;
}

Value InputRows::at(ImplicitLocOpBuilder &b, Value row) const {
  if (table) // row numbers are below 2^32, as rows are
    row = arith::TruncIOp::create(b, b.getI32Type(),
                                  load(b, b.getI64Type(), address(b, table, row, 8), 8));
  if (!pitch)
    return address(b, base, row, bytes);
  if (!matrixPitch)
    return address(b, base, row, pitch);
  Value ofMatrix = constI32(b, rowsOfMatrix);
  Value matrix = address(b, base, arith::DivUIOp::create(b, row, ofMatrix), matrixPitch);
  return address(b, matrix, arith::RemUIOp::create(b, row, ofMatrix), pitch);
}

Value KernelBuilder::output(Value result, Value rows, Value columns) {
  if (tensor::ScatterOp scatter = scatterOf(result)) // its rows are static
    return pointer(allocate(scatter.getResult(), Value()), scatter.getDestType());
  return pointer(allocate(result, rows, columns), cast<RankedTensorType>(result.getType()));
}

std::optional<InputRows> KernelBuilder::stridedOutput(Value result) {
  Value matrix = stridedMatrixOf(result);
  if (!matrix)
    return std::nullopt;
  Location loc = hostBuilder.getLoc();
  auto type = cast<RankedTensorType>(matrix.getType());
  Value memory = allocateStridedResult(hostBuilder, loc, type, *stridedResultOf(matrix), Value());
  matrix.replaceAllUsesWith(
      UnrealizedConversionCastOp::create(hostBuilder, type, memory).getResult(0));
  if (matrix != result)
    matrix.getDefiningOp()->erase();
  return InputRows{.base = stridedPointer(memory, type.getElementType()),
                   .pitch = scalar(pitchBytes(hostBuilder, loc, memory))};
}

Value KernelBuilder::scalar(Value hostValue) {
  if (hostValue.getType().isIndex())
    hostValue = arith::IndexCastOp::create(hostBuilder, hostBuilder.getI32Type(), hostValue);
  return addOperand(hostValue);
}

gpu::LaunchFuncOp KernelBuilder::emitLaunch(Value ctas, std::optional<gpu::KernelDim3> cluster) {
  gpu::ReturnOp::create(bodyBuilder);
  Value one = constIndex(hostBuilder, 1), perCta = constIndex(hostBuilder, numThreads());
  return gpu::LaunchFuncOp::create(hostBuilder, function, gpu::KernelDim3{ctas, one, one},
                                   gpu::KernelDim3{perCta, one, one},
                                   /*dynamicSharedMemorySize=*/Value(), operands,
                                   /*asyncTokenType=*/Type(), /*asyncDependencies=*/{}, cluster);
}

static void setAttributes(Operation *launch, const NamedAttrList &attributes) {
  for (NamedAttribute attribute : attributes)
    launch->setAttr(attribute.getName(), attribute.getValue());
}

void KernelBuilder::launch(Value blocks, bool cooperative) {
  gpu::LaunchFuncOp launch = emitLaunch(blocks);
  if (cooperative)
    launch->setAttr(kCooperativeAttr, hostBuilder.getUnitAttr());
  else
    setAttributes(launch, overlap);
}

void KernelBuilder::launchClusters(Value ctas, Value size) {
  Value one = constIndex(hostBuilder, 1);
  setAttributes(emitLaunch(ctas, gpu::KernelDim3{size, one, one}), overlap);
}

void KernelBuilder::launchItems(Value items) {
  launch(arith::CeilDivUIOp::create(hostBuilder, items, constIndex(hostBuilder, itemsPerCta())));
}

Value KernelBuilder::ctaIndex() {
  Value index = NVVM::BlockIdXOp::create(bodyBuilder, bodyBuilder.getI32Type());
  if (plan.stream.order != CtaOrder::Descending)
    return index;
  Value blocks = NVVM::GridDimXOp::create(bodyBuilder, bodyBuilder.getI32Type());
  Value last = arith::SubIOp::create(bodyBuilder, blocks, constI32(bodyBuilder, 1));
  return arith::SubIOp::create(bodyBuilder, last, index);
}

Value KernelBuilder::globalThread() {
  Type i32 = bodyBuilder.getI32Type();
  Value block = NVVM::BlockIdXOp::create(bodyBuilder, i32);
  Value thread = NVVM::ThreadIdXOp::create(bodyBuilder, i32);
  Value base = arith::MulIOp::create(bodyBuilder, block, constI32(bodyBuilder, numThreads()));
  return arith::AddIOp::create(bodyBuilder, base, thread);
}

Value KernelBuilder::gridThreads() {
  Value blocks = NVVM::GridDimXOp::create(bodyBuilder, bodyBuilder.getI32Type());
  return arith::MulIOp::create(bodyBuilder, blocks, constI32(bodyBuilder, numThreads()));
}

ValueRange KernelBuilder::forEachItem(Value items, ValueRange carried, ItemBody item) {
  Value first = globalThread(), step = gridThreads();
  return forEachItem(first, items, step, carried, item);
}

ValueRange KernelBuilder::forEachItem(Value first, Value end, Value step, ValueRange carried,
                                      ItemBody item) {
  // Unsigned: the last step may lead beyond 2^31.
  auto loop = scf::ForOp::create(bodyBuilder, first, end, step, carried,
                                 /*bodyBuilder=*/nullptr, /*unsignedCmp=*/true);
  OpBuilder::InsertionGuard guard(bodyBuilder);
  bodyBuilder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = item(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(bodyBuilder, next);
  return loop.getResults();
}

Value KernelBuilder::sharedWords(int64_t count, StringRef name) {
  OpBuilder::InsertionGuard guard(bodyBuilder);
  auto type = LLVM::LLVMArrayType::get(bodyBuilder.getI32Type(), count);
  constexpr unsigned sharedSpace = 3;
  bodyBuilder.setInsertionPointToStart(module.getBody());
  auto words = LLVM::GlobalOp::create(bodyBuilder, type, /*isConstant=*/false,
                                      LLVM::Linkage::Internal, name, /*value=*/Attribute(),
                                      /*alignment=*/16, sharedSpace);
  bodyBuilder.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AddressOfOp::create(
      bodyBuilder, LLVM::LLVMPointerType::get(bodyBuilder.getContext(), sharedSpace),
      words.getSymName());
}
