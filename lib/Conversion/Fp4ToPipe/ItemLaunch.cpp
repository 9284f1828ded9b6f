//===- ItemLaunch.cpp - Kernels of threads that have an item each ---------===//

#include "ItemLaunch.h"

#include "DynamicSizes.h"
#include "Lowering.h"

#include "SmallBuilders.h"

#include "fp4/Dialect/Utils/LaunchAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

static gpu::GPUFuncOp createFunction(RewriterBase &rewriter, Operation *op, StringRef kind,
                                     TypeRange arguments, int64_t threads) {
  gpu::GPUModuleOp module = createKernelModule(rewriter, op->getParentOfType<ModuleOp>(), op, kind);
  OpBuilder inside = OpBuilder::atBlockBegin(module.getBody());
  auto kernel =
      gpu::GPUFuncOp::create(inside, op->getLoc(), "kernel", inside.getFunctionType(arguments, {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), inside.getUnitAttr());
  kernel.setKnownBlockSizeAttr(inside.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  return kernel;
}

ItemKernel::ItemKernel(RewriterBase &rewriter, Operation *op, StringRef kind, TypeRange arguments,
                       int64_t threads)
    : func(createFunction(rewriter, op, kind, arguments, threads)),
      nextNumber(unsigned(llvm::count_if(arguments, llvm::IsaPred<pipe::GlobalType>))),
      b(op->getLoc(), func.getBody()) {}

Value ItemKernel::pointer(unsigned number) {
  return pipe::ViewOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1),
                              func.getArgument(number));
}

Int32 ItemKernel::size(int64_t known) {
  return ShapedType::isDynamic(known) ? Int32(b, number()) : Int32(b, known);
}

Int32 ItemKernel::cta() { return {b, NVVM::BlockIdXOp::create(b, b.getI32Type())}; }
Int32 ItemKernel::thread() { return {b, NVVM::ThreadIdXOp::create(b, b.getI32Type())}; }
Int32 ItemKernel::item() {
  Int32 first = cta() * kItemThreads;
  return first + thread();
}

gpu::GPUFuncOp ItemKernel::finish() {
  gpu::ReturnOp::create(b);
  return func;
}

PartsOfFour fp4::exchangeOfFour(ImplicitLocOpBuilder &b, PartsOfFour parts, Int32 place) {
  for (int64_t step : {1, 2}) {
    Value isLow = (place & step) < 1;
    for (int64_t low : {int64_t(0), 3 - step})
      for (auto [first, second] : llvm::zip_equal(parts[low], parts[low + step])) {
        Value sent = arith::SelectOp::create(b, isLow, second, first);
        Value received = valueOfPartner(b, sent, step);
        Value kept = arith::SelectOp::create(b, isLow, first, received);
        second = arith::SelectOp::create(b, isLow, received, second);
        first = kept;
      }
  }
  return parts;
}

Value fp4::blocksOfRows(RewriterBase &rewriter, Location loc, Value rows, int64_t itemsPerRow) {
  return blocksOfRows(rewriter, loc, rows,
                      arith::ConstantIndexOp::create(rewriter, loc, itemsPerRow));
}

Value fp4::blocksOfRows(RewriterBase &rewriter, Location loc, Value rows, Value itemsPerRow) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  Value items = rewriter.createOrFold<arith::MulIOp>(loc, rows, itemsPerRow);
  return arith::CeilDivUIOp::create(rewriter, loc, items, index(kItemThreads));
}

Value fp4::launchItems(RewriterBase &rewriter, Location loc, gpu::GPUFuncOp kernel,
                       ValueRange inputs, Value blocks, ArrayRef<Value> given,
                       std::optional<LaunchDependents> dependents, ArrayRef<Value> numbers) {
  SmallVector<Value> sizes = llvm::filter_to_vector(given, [](Value size) { return bool(size); });
  auto type = cast<pipe::GlobalType>(kernel.getArgumentTypes()[inputs.size()]);
  Value result = gpu::AllocOp::create(rewriter, loc, pipe::getBufferType(type),
                                      /*asyncToken=*/Type(), ValueRange(), sizes, ValueRange())
                     .getMemref();
  SmallVector<Value> buffers(inputs), arguments;
  buffers.push_back(result);
  for (auto [argument, buffer] : llvm::zip(kernel.getArgumentTypes(), buffers))
    arguments.push_back(viewOf(rewriter, loc, argument, buffer));
  sizes.append(numbers.begin(), numbers.end());
  for (Value size : sizes)
    arguments.push_back(arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), size));
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value threads = arith::ConstantIndexOp::create(rewriter, loc, (*kernel.getKnownBlockSize())[0]);
  auto launch = gpu::LaunchFuncOp::create(rewriter, loc, kernel, gpu::KernelDim3{blocks, one, one},
                                          gpu::KernelDim3{threads, one, one},
                                          /*dynamicSharedMemorySize=*/Value(), arguments);
  setPdl(launch, dependents);
  return result;
}

std::optional<LaunchDependents> fp4::launchDependentsBefore(const KernelPlan &plan) {
  if (launchDependentsOf(plan))
    return LaunchDependents::BeforeWait;
  return std::nullopt;
}

void fp4::setPdl(gpu::LaunchFuncOp launch, std::optional<LaunchDependents> dependents) {
  if (dependents)
    launch->setAttr(kPdlAttr, LaunchDependentsAttr::get(launch.getContext(), *dependents));
}
