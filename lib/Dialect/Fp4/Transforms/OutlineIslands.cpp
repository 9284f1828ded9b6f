//===- OutlineIslands.cpp - fp4 islands to functions of their own ---------===//
//
// 1. Every island becomes a function of the module @fp4_islands.
// 2. In its place the host calls a declaration of the same name, with the buffers of what the
//    island reads and with new buffers for its results. The host stays a program on tensors:
//    bufferization.to_buffer and to_tensor are what one-shot-bufferize joins to its own buffers.
// 3. Tensors that only fp4 can store become bytes.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/Transforms/Islands.h"
#include "fp4/Dialect/Fp4/Transforms/Passes.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

namespace fp4 {
#define GEN_PASS_DEF_OUTLINEISLANDS
#include "fp4/Dialect/Fp4/Transforms/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

/// One island on its way out.
class IslandOutliner {
public:
  IslandOutliner(const fp4::Island &found, ModuleOp islands)
      : island(found), islands(islands), builder(islands.getContext()),
        members(island.begin(), island.end()) {
    // Earlier islands have moved some behind others.
    llvm::sort(island, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  }

  LogicalResult run(StringRef name) {
    findBoundary();
    if (outputs.empty()) { // nobody reads the results
      eraseIsland();
      return success();
    }
    moveReadersBehind();
    builder.setInsertionPointAfter(island.back());
    SmallVector<Value> buffers;
    for (Value input : inputs) {
      FailureOr<Value> buffer = bufferOf(input);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    for (Value output : outputs) {
      FailureOr<Value> destination = allocateDestination(output);
      if (failed(destination))
        return failure();
      buffers.push_back(*destination);
    }
    createFunction(name);
    createCall(name, buffers);
    eraseUnusedSizes();
    eraseIsland();
    return success();
  }

private:
  Location loc() { return island.front()->getLoc(); }

  void findBoundary() {
    for (Operation *op : island) {
      for (Value operand : op->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (isa_and_present<arith::ConstantOp>(producer))
          constants.insert(producer);
        else if (!members.contains(producer))
          inputs.insert(operand);
      }
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !members.contains(user); }))
          outputs.push_back(result);
    }
  }

  /// Operations between those of the island that read its results go behind it. The readers have no
  /// side effects: findIslands has seen to that.
  void moveReadersBehind() {
    llvm::SmallPtrSet<Operation *, 8> readers;
    SmallVector<Operation *> moved;
    Block *block = island.front()->getBlock();
    for (Operation *op = island.front(); op != island.back(); op = op->getNextNode()) {
      if (members.contains(op))
        continue;
      WalkResult walk = op->walk([&](Operation *inner) {
        bool reads = llvm::any_of(inner->getOperands(), [&](Value operand) {
          Operation *producer = operand.getDefiningOp();
          return producer && producer->getBlock() == block &&
                 (members.contains(producer) || readers.contains(producer));
        });
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (!walk.wasInterrupted())
        continue;
      readers.insert(op);
      moved.push_back(op);
    }
    for (Operation *op : llvm::reverse(moved))
      op->moveAfter(island.back());
  }

  static MemRefType memrefOf(RankedTensorType tensor) {
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  }

  Value castTo(Type type, Value value) {
    return value.getType() == type
               ? value
               : UnrealizedConversionCastOp::create(builder, loc(), type, value).getResult(0);
  }

  /// The storage of a tensor of the boundary, null after an error.
  RankedTensorType requireStorage(Value value, StringRef what) {
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType storage = fp4::storageType(type);
    if (!storage)
      fp4::withNote(
          emitError(value.getLoc())
              << what << " of an island of fp4 operations must have dense bytes, "
              << "but got " << type,
          "static sizes, or dynamic rows of a matrix with an even number of columns, have; "
          "keep other tensors inside of one island");
    return storage;
  }

  FailureOr<Value> bufferOf(Value input) {
    RankedTensorType storage = requireStorage(input, "input");
    if (!storage)
      return failure();
    return bufferization::ToBufferOp::create(builder, loc(), memrefOf(storage),
                                             castTo(storage, input), /*read_only=*/true)
        .getResult();
  }

  FailureOr<Value> allocateDestination(Value output) {
    RankedTensorType storage = requireStorage(output, "result");
    if (!storage)
      return failure();
    auto type = cast<RankedTensorType>(output.getType());
    Value rows;
    if (type.getRank() > 0 && type.isDynamicDim(0)) {
      FailureOr<Value> found = sizeOf(output, 0);
      if (failed(found))
        return failure();
      rows = *found;
    }
    SmallVector<Value> sizes = fp4::bufferDynamicSizes(builder, loc(), type, rows);
    return memref::AllocOp::create(builder, loc(), memrefOf(storage), sizes).getResult();
  }

  /// A size of `tensor`, in terms of what the island reads.
  FailureOr<Value> sizeOf(Value tensor, int64_t dimension) {
    Operation *producer = tensor.getDefiningOp();
    if (!members.contains(producer))
      return tensor::DimOp::create(builder, loc(), tensor, dimension).getResult();
    if (auto cast = dyn_cast<tensor::CastOp>(producer))
      return sizeOf(cast.getSource(), dimension);
    auto shaped = dyn_cast<ReifyRankedShapedTypeOpInterface>(producer);
    ReifiedRankedShapedTypeDims shapes;
    Operation *before = builder.getInsertionPoint()->getPrevNode();
    if (!shaped || failed(shaped.reifyResultShapes(builder, shapes))) {
      fp4::withNote(emitError(tensor.getLoc())
                        << "the sizes of " << tensor.getType()
                        << " must follow from what an island of fp4 operations reads",
                    "let an argument of the function have these sizes, or make them static");
      return failure();
    }
    unsigned number = cast<OpResult>(tensor).getResultNumber();
    Value size = getValueOrCreateConstantIndexOp(builder, loc(), shapes[number][dimension]);
    return outsideOf(size, before->getNextNode());
  }

  /// `size`, which was computed from `first` on, without the sizes of values of the island.
  FailureOr<Value> outsideOf(Value size, Operation *first) {
    SmallVector<tensor::DimOp> dims;
    for (Operation *op = first; op && op != &*builder.getInsertionPoint(); op = op->getNextNode())
      if (auto dim = dyn_cast<tensor::DimOp>(op))
        if (members.contains(dim.getSource().getDefiningOp()))
          dims.push_back(dim);
    for (tensor::DimOp dim : dims) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(dim);
      FailureOr<Value> outside = sizeOf(dim.getSource(), *dim.getConstantIndex());
      if (failed(outside))
        return failure();
      if (size == dim.getResult())
        size = *outside;
      dim.replaceAllUsesWith(*outside);
      dim.erase();
    }
    return size;
  }

  /// Returns the name of an argument in the host's function, so that errors have the same name.
  static StringAttr nameOf(Value input) {
    auto argument = dyn_cast<BlockArgument>(input);
    auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
    return function && argument.getOwner()->isEntryBlock()
               ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "fp4.name")
               : StringAttr();
  }

  void createFunction(StringRef name) {
    OpBuilder body = OpBuilder::atBlockEnd(islands.getBody());
    auto type = body.getFunctionType(TypeRange(inputs.getArrayRef()), TypeRange(outputs));
    auto function = func::FuncOp::create(body, loc(), name, type);
    for (auto [index, input] : llvm::enumerate(inputs))
      if (StringAttr name = nameOf(input))
        function.setArgAttr(index, "fp4.name", name);
    Block *block = function.addEntryBlock();
    IRMapping mapping;
    mapping.map(inputs.getArrayRef(), block->getArguments());
    body.setInsertionPointToStart(block);
    for (Operation *op : constants)
      body.clone(*op, mapping);
    for (Operation *op : island)
      body.clone(*op, mapping);
    func::ReturnOp::create(body, loc(), llvm::map_to_vector(outputs, [&](Value output) {
                             return mapping.lookup(output);
                           }));
  }

  void createCall(StringRef name, ValueRange buffers) {
    OpBuilder declarations(island.front()->getParentOfType<func::FuncOp>());
    auto type = builder.getFunctionType(buffers.getTypes(), {});
    auto declaration = func::FuncOp::create(declarations, loc(), name, type);
    declaration.setPrivate();
    declaration->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(), builder.getUnitAttr());
    func::CallOp::create(builder, loc(), declaration, buffers);
    ValueRange destinations = buffers.drop_front(inputs.size());
    for (auto [output, destination] : llvm::zip_equal(outputs, destinations)) {
      RankedTensorType storage = fp4::storageType(cast<RankedTensorType>(output.getType()));
      Value tensor = bufferization::ToTensorOp::create(builder, loc(), storage, destination,
                                                       /*restrict=*/true, /*writable=*/true);
      Value result = castTo(output.getType(), tensor);
      output.replaceUsesWithIf(result,
                               [&](OpOperand &use) { return !members.contains(use.getOwner()); });
    }
  }

  /// Sizes of other results than those that were asked for.
  void eraseUnusedSizes() {
    Operation *op = builder.getInsertionPoint()->getPrevNode();
    while (op != island.back()) {
      Operation *previous = op->getPrevNode();
      if (isOpTriviallyDead(op))
        op->erase();
      op = previous;
    }
  }

  void eraseIsland() {
    for (Operation *op : llvm::reverse(island))
      op->erase();
    for (Operation *op : constants)
      if (op->use_empty())
        op->erase();
  }

  fp4::Island island;
  ModuleOp islands;
  OpBuilder builder;
  llvm::SmallPtrSet<Operation *, 8> members;
  llvm::SetVector<Value> inputs;
  llvm::SetVector<Operation *> constants;
  SmallVector<Value> outputs;
};

/// A tensor.dim of a result becomes one of what the operation reads: no operation has to wait for
/// an island to learn a size.
void resolveSizes(ModuleOp host) {
  SmallVector<Operation *> dims;
  host.walk([&](tensor::DimOp dim) { dims.push_back(dim); });
  RewritePatternSet patterns(host.getContext());
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  (void)applyOpPatternsGreedily(dims, std::move(patterns), config);
}

struct OutlineIslands : fp4::impl::OutlineIslandsBase<OutlineIslands> {
  void runOnOperation() override {
    ModuleOp host = getOperation();
    resolveSizes(host);
    OwningOpRef<ModuleOp> islands = ModuleOp::create(host.getLoc(), fp4::kIslandsModule);
    if (Attribute target = host->getAttr(fp4::Fp4Dialect::kTargetAttr))
      islands.get()->setAttr(fp4::Fp4Dialect::kTargetAttr, target);
    for (auto function : llvm::to_vector(host.getOps<func::FuncOp>()))
      if (failed(outline(function, *islands)))
        return signalPassFailure();
    if (!islands->getBody()->empty() && failed(insert(host, std::move(islands))))
      return signalPassFailure();
    if (failed(fp4::convertToStorage(host)))
      signalPassFailure();
  }

private:
  LogicalResult outline(func::FuncOp function, ModuleOp islands) {
    SmallVector<Block *> blocks;
    function.walk([&](Block *block) { blocks.push_back(block); });
    unsigned count = 0;
    for (Block *block : blocks)
      for (const fp4::Island &island : fp4::findIslands(*block)) {
        std::string name = freeName(function.getName(), count);
        if (failed(IslandOutliner(island, islands).run(name)))
          return failure();
        ++numIslands;
      }
    return success();
  }

  LogicalResult insert(ModuleOp host, OwningOpRef<ModuleOp> islands) {
    if (Operation *taken = host.lookupSymbol(fp4::kIslandsModule))
      return fp4::withNote(taken->emitError("symbol '")
                               << fp4::kIslandsModule
                               << "' must be free for the functions of the islands",
                           "rename it");
    host.getBody()->push_front(islands.release());
    return success();
  }

  /// NAME_fp4_0, NAME_fp4_1, ...: what no other function is called.
  std::string freeName(StringRef function, unsigned &count) {
    std::string name;
    do
      name = (function + "_fp4_" + Twine(count++)).str();
    while (getOperation().lookupSymbol(name));
    return name;
  }
};

} // namespace

OwningOpRef<ModuleOp> fp4::takeIslands(ModuleOp host) {
  auto islands = host.lookupSymbol<ModuleOp>(kIslandsModule);
  if (islands)
    islands->remove();
  return islands;
}
