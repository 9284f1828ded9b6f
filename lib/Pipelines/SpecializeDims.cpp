//===- SpecializeDims.cpp - Other sizes for named dimensions --------------===//
//
// Argument types are rewritten if fp4.dims names a given dimension. Then every operation of which
// an operand has another type now, in the order of the body, infers its result types again from its
// operands. Finally the result types of the function follow from its return.
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/Pipelines/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace fp4 {
#define GEN_PASS_DEF_SPECIALIZEDIMS
#include "fp4/Pipelines/Passes.h.inc"
} // namespace fp4

using namespace mlir;

static constexpr llvm::StringLiteral kDimsAttr = "fp4.dims";

namespace {

/// Infers types of upstream operations that compute element by element, into tensors that they are
/// given.
bool inferElementwise(Operation &op, SmallVectorImpl<Type> &types) {
  if (auto written = dyn_cast<DestinationStyleOpInterface>(op)) {
    llvm::append_range(types, TypeRange(written.getDpsInits()));
    return true;
  }
  auto result = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  if (!result || !OpTrait::hasElementwiseMappableTraits(&op))
    return false;
  types.push_back(result.clone(cast<RankedTensorType>(op.getOperand(0).getType()).getShape()));
  return true;
}

/// The result types of the operation `op` for the operands it has now.
LogicalResult inferTypes(Operation &op, SmallVectorImpl<Type> &types) {
  if (inferElementwise(op, types))
    return success();
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    types.push_back(tensor::CollapseShapeOp::inferCollapsedType(collapse.getSrcType(),
                                                                collapse.getReassociationMaps()));
    return success();
  }
  if (succeeded(fp4::inferResultTypes(&op, op.getOperands(), types)))
    return success();
  InFlightDiagnostic diagnostic = op.emitError()
                                  << "'" << op.getName() << "' cannot be given other sizes"
                                  << " (its result types do not follow from its operands)";
  diagnostic.attachNote() << "write the program for these sizes, or give sizes only to dimensions "
                             "that it does not depend on";
  return failure();
}

struct SpecializeDims : fp4::impl::SpecializeDimsBase<SpecializeDims> {
  using SpecializeDimsBase::SpecializeDimsBase;

  LogicalResult parseSizes() {
    for (StringRef text : dims) {
      auto [name, digits] = text.split('=');
      int64_t size = 0;
      if (name.empty() || digits.getAsInteger(10, size) || size < 1)
        return fp4::withNote(getOperation().emitError()
                                 << "a size must be written NAME=SIZE with SIZE at least "
                                    "1, but got '"
                                 << text << "'",
                             "rows that may be none stay dynamic");
      sizes[name] = size;
    }
    return success();
  }

  /// The argument type with the sizes asked for.
  FailureOr<Type> specialize(func::FuncOp function, BlockArgument argument) {
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kDimsAttr);
    auto tensor = dyn_cast<RankedTensorType>(argument.getType());
    if (!names)
      return argument.getType();
    if (!tensor || names.size() != size_t(tensor.getRank()) ||
        !llvm::all_of(names, llvm::IsaPred<StringAttr>))
      return fp4::withNote(function.emitError()
                               << "'" << kDimsAttr << "' of argument " << argument.getArgNumber()
                               << " must hold one name for each dimension of " << argument.getType()
                               << ", but got " << names,
                           "write one string for each dimension, empty where it has no name");
    SmallVector<int64_t> shape(tensor.getShape());
    for (auto [size, text] : llvm::zip_equal(shape, names.getAsValueRange<StringAttr>())) {
      if (text.empty())
        continue;
      auto [name, digits] = text.split('/'); // "M/16": as many blocks of 16 as M needs
      int64_t divisor = 1;
      if (!digits.empty() && (digits.getAsInteger(10, divisor) || divisor < 1))
        return fp4::withNote(function.emitError()
                                 << "a dimension must be called NAME or NAME/SIZE with SIZE at "
                                    "least 1, but '"
                                 << kDimsAttr << "' of argument " << argument.getArgNumber()
                                 << " has '" << text << "'",
                             "write \"M\", or \"M/16\" for as many blocks of 16 as M needs");
      used.insert(name);
      if (auto found = sizes.find(name); found != sizes.end() && !ShapedType::isDynamic(size))
        size = llvm::divideCeil(found->second, divisor);
    }
    return Type(tensor.clone(shape));
  }

  void setType(Value value, Type type) {
    if (value.getType() != type)
      changed.insert(value);
    value.setType(type);
  }

  auto hasChanged() const {
    return [this](Value value) { return changed.contains(value); };
  }

  LogicalResult rewrite(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      FailureOr<Type> type = specialize(function, argument);
      if (failed(type))
        return failure();
      setType(argument, *type);
    }
    for (Operation &op : function.getBody().front().without_terminator()) {
      SmallVector<Type> types;
      if (op.getNumResults() == 0 || llvm::none_of(op.getOperands(), hasChanged()))
        continue;
      if (failed(inferTypes(op, types)))
        return failure();
      for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
        setType(result, type);
    }
    Operation *terminator = function.getBody().front().getTerminator();
    function.setFunctionType(FunctionType::get(&getContext(), function.getBody().getArgumentTypes(),
                                               terminator->getOperandTypes()));
    return success();
  }

  /// Rejects a name that no argument carries: a mistake of the caller, who reads the names that
  /// there are.
  LogicalResult checkNames() {
    for (const auto &entry : sizes) {
      if (used.contains(entry.getKey()))
        continue;
      InFlightDiagnostic diagnostic = getOperation().emitError()
                                      << "no argument has a dimension called '" << entry.getKey()
                                      << "'";
      if (used.empty())
        diagnostic.attachNote() << "name dimensions with the argument attribute fp4.dims, for "
                                   "example {fp4.dims = [\"M\", \"K\"]}";
      SmallVector<StringRef> known(used.keys());
      llvm::sort(known);
      if (!known.empty())
        diagnostic.attachNote() << "the dimensions that have a name are "
                                << llvm::join(known, ", ");
      return failure();
    }
    return success();
  }

  void runOnOperation() override {
    sizes.clear();
    used.clear();
    changed.clear();
    if (failed(parseSizes()))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.getBody().hasOneBlock() && failed(rewrite(function)))
        return signalPassFailure();
    if (failed(checkNames()))
      signalPassFailure();
  }

  llvm::StringMap<int64_t> sizes;
  llvm::StringSet<> used;
  llvm::DenseSet<Value> changed; ///< values that have another type now
};

} // namespace
