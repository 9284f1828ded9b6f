//===- FinalizeHostBuffers.cpp - Tensors to buffers at boundaries ---------===//
//
// Per host function:
// 1. Tensor arguments become user buffers. If user and device buffer differ in pitch and the
//    argument is used, a padded copy is made on entry. Uses of a strided argument get a copy only
//    if they cannot read its strides (StridedArguments.h).
// 2. Returned tensors become user buffers that the function allocated and nobody else holds;
//    otherwise a copy is made before the return. Allocations of results carry the number of the
//    result, so that a caller can provide the memory, and the pitch of a strided result.
// 3. Casts between tensors and buffers cancel; any tensor operation that is left is an error.
// 4. Every buffer that is not returned is deallocated after its last use, except for counters and
//    reports.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Conversion/HostToRuntime/Passes.h"
#include "fp4/Dialect/Utils/StridedArguments.h"
#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Dialect/Fp4/IR/Strided.h"
#include "fp4/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fp4 {
#define GEN_PASS_DEF_FINALIZEHOSTBUFFERS
#include "fp4/Conversion/HostToRuntime/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

Value castTo(OpBuilder &builder, Location loc, Type type, Value value) {
  return UnrealizedConversionCastOp::create(builder, loc, type, value).getResult(0);
}

/// The sizes of `buffer`'s dynamic dimensions.
SmallVector<Value> dynamicSizes(OpBuilder &builder, Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(builder, loc, buffer, dim));
  return sizes;
}

/// The first columns of `buffer`, as many as `type` has.
Value leadingColumns(OpBuilder &builder, Location loc, Value buffer, MemRefType type) {
  if (buffer.getType() == type)
    return buffer;
  SmallVector<OpFoldResult> offsets(2, builder.getIndexAttr(0)),
      strides(2, builder.getIndexAttr(1));
  OpFoldResult rows = memref::getMixedSize(builder, loc, buffer, 0);
  SmallVector<OpFoldResult> sizes = {rows, builder.getIndexAttr(type.getDimSize(1))};
  return memref::SubViewOp::create(builder, loc, buffer, offsets, sizes, strides);
}

/// Matrix `number` of a batch.
Value matrixOf(OpBuilder &builder, Location loc, Value batch, int64_t number) {
  auto type = cast<MemRefType>(batch.getType());
  SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0)),
      strides(3, builder.getIndexAttr(1)), sizes;
  offsets[0] = builder.getIndexAttr(number);
  sizes = {builder.getIndexAttr(1), builder.getIndexAttr(type.getDimSize(1)),
           builder.getIndexAttr(type.getDimSize(2))};
  auto matrix = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      type.getShape().drop_front(), type, offsets, sizes, strides));
  return memref::SubViewOp::create(builder, loc, matrix, batch, offsets, sizes, strides);
}

void copyRows(OpBuilder &builder, Location loc, Value to, Value from) {
  auto target = cast<MemRefType>(to.getType()), source = cast<MemRefType>(from.getType());
  if (source.getRank() == 3 && !source.getLayout().isIdentity()) {
    for (int64_t number = 0; number < source.getDimSize(0); ++number)
      copyRows(builder, loc, matrixOf(builder, loc, to, number),
               matrixOf(builder, loc, from, number));
    return;
  }
  bool isMatrix = target.getRank() == 2 && target.getDimSize(1) != source.getDimSize(1);
  bool wider = isMatrix && target.getDimSize(1) > source.getDimSize(1);
  if (isMatrix && !wider)
    from = leadingColumns(builder, loc, from, target);
  if (wider)
    to = leadingColumns(builder, loc, to, source);
  gpu::MemcpyOp::create(builder, loc, TypeRange(), ValueRange(), to, from);
}

/// A new buffer of `type` with the contents of `source`, whose rows may be wider or narrower.
Value copyTo(OpBuilder &builder, Location loc, MemRefType type, Value source) {
  auto memory = MemRefType::get(type.getShape(), type.getElementType()); // dense
  Value copy = gpu::AllocOp::create(builder, loc, memory, /*asyncToken=*/Type(), ValueRange(),
                                    dynamicSizes(builder, loc, source), ValueRange())
                   .getMemref();
  if (memory != type)
    copy = memref::CastOp::create(builder, loc, type, copy);
  copyRows(builder, loc, copy, source);
  return copy;
}

LogicalResult unsupportedType(func::FuncOp function, Location place, StringRef what,
                              unsigned number, Type type) {
  InFlightDiagnostic diagnostic = emitError(place)
                                  << what << " " << number << " of '" << function.getName()
                                  << "' must be a tensor with a device buffer, but got " << type;
  diagnostic.attachNote()
      << "buffers exist for scalars and matrices of bf16, f16, f32, i32, f4E2M1FN, "
         "f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2 and f8E8M0FNU of which rows, "
         "and columns of matrices, may be dynamic, for vectors of i64, and none for tensors "
         "without elements; drop what is not used, and convert other types "
         "outside";
  return diagnostic;
}

MemRefType userBuffer(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isEmpty = tensor && llvm::is_contained(tensor.getShape(), 0);
  return tensor && !isEmpty ? fp4::userBufferType(tensor) : MemRefType();
}

/// Turns the tensors of one function into buffers.
class FunctionFinalizer {
public:
  explicit FunctionFinalizer(func::FuncOp function)
      : function(function), body(function.getBody().front()), builder(function.getContext()) {}

  unsigned copies = 0, freed = 0; ///< numbers of copies and of frees that run() made

  LogicalResult run() {
    if (failed(checkSignature()) || failed(checkStraightLine()))
      return failure();
    convertArguments();
    convertResults();
    if (failed(cancelCasts()))
      return failure();
    deallocateTemporaries();
    return success();
  }

private:
  LogicalResult checkSignature() {
    for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
      if (!userBuffer(type))
        return unsupportedType(function, body.getArgument(number).getLoc(), "argument", number,
                               type);
    for (BlockArgument argument : body.getArguments())
      if (failed(checkCopy(argument)))
        return failure();
    for (auto [number, type] : llvm::enumerate(function.getResultTypes()))
      if (!userBuffer(type))
        return unsupportedType(function, function.getLoc(), "result", number, type);
    return success();
  }

  /// Returns true when `use` reads the strides of the strided argument `argument`.
  static bool readsStrides(OpOperand &use, MemRefType strided) {
    return isa<UnrealizedConversionCastOp>(use.getOwner()) &&
           use.getOwner()->getResult(0).getType() == strided;
  }

  /// Checks that a copy is possible: the matrices of a batch are copied one by one.
  LogicalResult checkCopy(BlockArgument argument) {
    auto tensor = cast<RankedTensorType>(argument.getType());
    if (!fp4::isStridedArgument(argument) || tensor.getRank() < 3 || !tensor.isDynamicDim(0))
      return success();
    MemRefType strided = fp4::stridedBufferType(tensor);
    for (OpOperand &use : argument.getUses()) {
      if (readsStrides(use, strided))
        continue;
      InFlightDiagnostic diagnostic = use.getOwner()->emitError()
                                      << "a strided argument of dynamically many matrices must be "
                                         "read by an operation that takes strides";
      diagnostic.attachNote(argument.getLoc())
          << "fp4.quantize and fp4.amax take strides, and so does a matmul of bf16, f16 or codes; "
             "for others make the batch static, or pass a matrix at a time";
      return diagnostic;
    }
    return success();
  }

  LogicalResult checkStraightLine() {
    if (function.getBody().hasOneBlock())
      return success();
    InFlightDiagnostic diagnostic = function.emitError()
                                    << "'" << function.getName()
                                    << "' must be straight-line code, but got branches";
    diagnostic.attachNote() << "decide outside, and call one function per case";
    return diagnostic;
  }

  void convertArguments() {
    builder.setInsertionPointToStart(&body);
    SmallVector<Type> types;
    for (BlockArgument argument : body.getArguments()) {
      auto tensor = cast<RankedTensorType>(argument.getType());
      bool strided = fp4::isStridedArgument(argument);
      MemRefType user = strided ? fp4::stridedBufferType(tensor) : fp4::userBufferType(tensor);
      MemRefType device = fp4::deviceBufferType(tensor);
      types.push_back(user);
      argument.setType(user);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : llvm::make_early_inc_range(argument.getUses())) {
        if (strided && readsStrides(use, user)) // cancelCasts erases it
          use.getOwner()->getResult(0).replaceAllUsesWith(argument);
        else
          uses.push_back(&use);
      }
      if (uses.empty())
        continue;
      Value buffer = user == device ? argument : copy(argument.getLoc(), device, argument);
      Value replacement = castTo(builder, argument.getLoc(), tensor, buffer);
      for (OpOperand *use : uses)
        use->set(replacement);
    }
    function.setFunctionType(builder.getFunctionType(types, function.getResultTypes()));
  }

  Value copy(Location loc, MemRefType type, Value source) {
    ++copies;
    return copyTo(builder, loc, type, source);
  }

  /// The buffer that `buffer` is a view of.
  static Value memoryOf(Value buffer) {
    while (Operation *producer = buffer.getDefiningOp()) {
      if (auto view = dyn_cast<memref::SubViewOp>(producer)) // see allocateBuffer
        buffer = view.getSource();
      else if (auto view = dyn_cast<fp4::pipe::ViewOp>(producer))
        buffer = view.getSource();
      else if (auto cast = dyn_cast<UnrealizedConversionCastOp>(producer);
               cast && cast.getNumOperands() == 1)
        buffer = cast.getOperand(0);
      else
        break;
    }
    return buffer;
  }

  /// True for memory that this function allocated and that is not yet another result.
  static bool isOwn(Value memory, const llvm::SmallPtrSetImpl<void *> &returned) {
    return isa_and_present<gpu::AllocOp>(memory.getDefiningOp()) &&
           !returned.contains(memory.getAsOpaquePointer());
  }

  void convertResults() {
    Operation *terminator = body.getTerminator();
    builder.setInsertionPoint(terminator);
    SmallVector<Type> types;
    llvm::SmallPtrSet<void *, 4> returned;
    for (OpOperand &operand : terminator->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      bool strided = function.getResultAttr(number, fp4::kStridedAttr) != nullptr;
      Value buffer = strided ? stridedResult(operand) : denseResult(operand.get(), returned);
      Value memory = memoryOf(buffer);
      returned.insert(memory.getAsOpaquePointer());
      memory.getDefiningOp()->setAttr(fp4::kResultAttr, builder.getI32IntegerAttr(number));
      operand.set(buffer);
      types.push_back(buffer.getType());
    }
    function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), types));
  }

  Value denseResult(Value result, const llvm::SmallPtrSetImpl<void *> &returned) {
    auto tensor = cast<RankedTensorType>(result.getType());
    MemRefType user = fp4::userBufferType(tensor), device = fp4::deviceBufferType(tensor);
    Value buffer = bufferOf(result, device);
    bool isCopied = user != device || !isOwn(memoryOf(buffer), returned);
    return isCopied ? copy(result.getLoc(), user, buffer) : buffer;
  }

  /// Returns rows that a kernel has written to the caller's place, or a copy there.
  Value stridedResult(OpOperand &operand) {
    Value result = operand.get();
    auto tensor = cast<RankedTensorType>(result.getType());
    auto cast = result.getDefiningOp<UnrealizedConversionCastOp>();
    Value placed = cast && cast.getNumOperands() == 1 ? cast.getOperand(0) : Value();
    Operation *memory = placed ? memoryOf(placed).getDefiningOp() : nullptr;
    if (memory && memory->hasAttr(fp4::kResultAttr) &&
        placed.getType() == fp4::stridedBufferType(tensor))
      return placed;
    Value source = bufferOf(result, fp4::deviceBufferType(tensor));
    auto sizeOf = [&](int64_t dimension) -> Value {
      return memref::DimOp::create(builder, result.getLoc(), source, dimension);
    };
    Value to = fp4::allocateStridedResult(builder, result.getLoc(), tensor,
                                          operand.getOperandNumber(), sizeOf(0), sizeOf(1));
    copyRows(builder, result.getLoc(), to, source);
    ++copies;
    return to;
  }

  /// The buffer that `tensor` was converted from, or a cast to one.
  Value bufferOf(Value tensor, MemRefType type) {
    if (auto cast = tensor.getDefiningOp<UnrealizedConversionCastOp>())
      if (cast.getNumOperands() == 1 && cast.getOperand(0).getType() == type)
        return cast.getOperand(0);
    return castTo(builder, tensor.getLoc(), type, tensor);
  }

  /// Replaces buffer -> tensor -> buffer by the first buffer, then requires that no tensor is left.
  LogicalResult cancelCasts() {
    for (auto cast : llvm::to_vector(body.getOps<UnrealizedConversionCastOp>())) {
      if (cast.getNumOperands() != 1 || cast.getNumResults() != 1)
        continue;
      auto source = cast.getOperand(0).getDefiningOp<UnrealizedConversionCastOp>();
      if (!source || source.getNumOperands() != 1 ||
          source.getOperand(0).getType() != cast.getResult(0).getType())
        continue;
      cast.getResult(0).replaceAllUsesWith(source.getOperand(0));
    }
    // Operations are visited backwards, so that users go before the values that they use.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(&op))
        op.erase();
    for (Operation &op : body)
      if (llvm::any_of(op.getOperandTypes(), llvm::IsaPred<TensorType>) ||
          llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
        return rejectTensorOp(op);
    return success();
  }

  static std::string wayOut(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if ((dialect == "math" || dialect == "arith") && !fp4::elementOpOf(op))
      return "of operations of arith and math on tensors of f32, bf16 and f16, these have kernels: " +
             fp4::elementwiseOperations();
    if (op->getName().getStringRef() == "linalg.transpose")
      return "of static sizes, fp4.amax and fp4.quantize without groups and random numbers read "
             "through it, and a matmul that has no other use is made transposed; other tensors "
             "must come transposed";
    return "host functions consist of fp4 operations that convert-fp4-to-gpu and "
           "convert-fp4-to-pipe lower, of constants, and of views: reshapes and slices of whole "
           "rows; compute the rest before or after, or leave it to another compiler with "
           "fp4-outline-islands";
  }

  LogicalResult rejectTensorOp(Operation &op) {
    Operation *culprit = &op;
    // A tensor that is only written to needs no kernel, but its user does.
    bool isPassive = isa<UnrealizedConversionCastOp>(op) ||
                     op.getName().getStringRef() == "tensor.empty";
    if (isPassive && !op.use_empty())
      culprit = *op.user_begin();
    InFlightDiagnostic diagnostic = culprit->emitError()
                                    << "'" << culprit->getName()
                                    << "' computes on tensors and has no kernel";
    diagnostic.attachNote() << wayOut(culprit);
    return diagnostic;
  }

  /// The last operation of its basic block that needs `buffer`, directly or through a view of it.
  /// Null when the buffer is returned.
  static Operation *lastUse(Value buffer) {
    Operation *last = buffer.getDefiningOp();
    Block &block = *last->getBlock();
    llvm::SmallSetVector<Value, 8> views;
    views.insert(buffer);
    for (size_t i = 0; i < views.size(); ++i)
      for (Operation *user : views[i].getUsers()) {
        Operation *inBlock = block.findAncestorOpInBlock(*user);
        if (isa<func::ReturnOp>(inBlock))
          return nullptr;
        if (last->isBeforeInBlock(inBlock))
          last = inBlock;
        // A result that a pure operation computes from a buffer is a view of that buffer, unless it
        // is a number.
        if (isMemoryEffectFree(user))
          for (Value result : user->getResults())
            if (!result.getType().isIntOrIndexOrFloat())
              views.insert(result);
      }
    return last;
  }

  void deallocateTemporaries() {
    SmallVector<gpu::AllocOp> allocs; // a kernel that runs for some sizes only has allocations too
    function.walk([&](gpu::AllocOp op) { allocs.push_back(op); });
    for (gpu::AllocOp op : allocs) {
      if (op->hasAttr(fp4::kCountersAttr) || op->hasAttr(fp4::kGroupReportAttr))
        continue;
      Value buffer = op.getMemref();
      if (llvm::any_of(buffer.getUsers(), llvm::IsaPred<gpu::DeallocOp>))
        continue;
      Operation *last = lastUse(buffer);
      if (!last)
        continue;
      builder.setInsertionPointAfter(last);
      gpu::DeallocOp::create(builder, op.getLoc(), TypeRange(), ValueRange(), buffer);
      ++freed;
    }
  }

  func::FuncOp function;
  Block &body;
  OpBuilder builder;
};

/// Rejects symbols of the C ABI and of an emitted library's exports: a function of such a name
/// would take their place.
LogicalResult checkName(func::FuncOp function) {
  StringRef name = function.getName();
  for (StringRef reserved : {"fp4rt_", "fp4_entry_", "fp4_inner_", "fp4_data_", "fp4_manifest",
                             "fp4_bind", "fp4_runtime", "_mlir_ciface_"})
    if (name.starts_with(reserved)) {
      InFlightDiagnostic diagnostic = function.emitError()
                                      << "function name must not start with '" << reserved
                                      << "', but got '" << name << "'";
      diagnostic.attachNote() << "emitted libraries use such names themselves; rename the function";
      return diagnostic;
    }
  return success();
}

struct FinalizeHostBuffers : fp4::impl::FinalizeHostBuffersBase<FinalizeHostBuffers> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (failed(checkName(function)))
        return signalPassFailure();
      if (function.isExternal()) {
        fp4::withNote(
            function.emitError() << "'" << function.getName()
                                 << "' must have a body, but got a declaration",
            "define the function, or remove the declaration; programs are compiled whole");
        return signalPassFailure();
      }
      FunctionFinalizer finalizer(function);
      if (failed(finalizer.run()))
        return signalPassFailure();
      numCopies += finalizer.copies;
      numFreed += finalizer.freed;
    }
  }
};

} // namespace
