//===- CheckProgram.cpp - Programs that no later pass could explain -------===//
//
// Rejection of operations that would lose their place or their meaning before a later pass could
// reject them:
//
//   nested modules     nobody looks into them
//   poison, constants  canonicalization forgets where they were written
//   empty tensors      canonicalization forgets them too, and devices have no empty buffers
//   names              a manifest cannot quote them
//   weights            constants that prepacking for e4m3 would make NaN
//   scale layouts      upstream operations take encodings for comments: tensor.cast changes them
//
//===----------------------------------------------------------------------===//

#include "fp4/Dialect/Utils/BufferTypes.h"
#include "fp4/Dialect/Utils/ConstantBytes.h"
#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/IR/Remedy.h"
#include "fp4/ISA/WeightLayout.h"
#include "fp4/Numerics/ByteWeights.h"
#include "fp4/Pipelines/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

namespace fp4 {
#define GEN_PASS_DEF_CHECKPROGRAM
#include "fp4/Pipelines/Passes.h.inc"
} // namespace fp4

using namespace mlir;

namespace {

bool isTiled(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && fp4::scaleLayout(tensor);
}

/// Returns true for a conversion between a tensor and its own device buffer.
bool isBufferOf(UnrealizedConversionCastOp op) {
  if (op.getNumOperands() != 1 || op.getNumResults() != 1)
    return false;
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  auto tensor = dyn_cast<RankedTensorType>(isTiled(from) ? from : to);
  return tensor && fp4::deviceBufferType(tensor) == (isTiled(from) ? to : from);
}

/// Returns true when `op` may touch tiled scales: it hands them on, or makes them of logical
/// elements.
bool keepsLayouts(Operation *op) {
  if (isa<func::CallOp, func::ReturnOp, arith::ConstantOp, tensor::DimOp>(op))
    return true;
  if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op))
    return isBufferOf(cast);
  return isa<tensor::CastOp, tensor::ExtractSliceOp>(op) &&
         isTiled(op->getOperand(0).getType()) == isTiled(op->getResult(0).getType());
}

LogicalResult checkLayouts(Operation *op) {
  if (isa<fp4::Fp4Dialect>(op->getDialect()) ||
      llvm::none_of(llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                       llvm::to_vector(op->getResultTypes())),
                    isTiled) ||
      keepsLayouts(op))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError(
      "must not read or make scales in layout #fp4.scale_layout<tiled_128x4>, which it knows "
      "nothing of");
  diagnostic.attachNote() << "fp4.swizzle_scales makes them of row-major scales, "
                             "fp4.unswizzle_scales gives row-major ones back";
  return diagnostic;
}

bool isEmpty(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && llvm::is_contained(tensor.getShape(), 0);
}

/// Checks that no function takes or returns a bundle, which no buffer holds.
LogicalResult checkBundles(func::FuncOp function) {
  Type found;
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
    if (isa<fp4::ScaledType>(type))
      found = type;
  if (!found)
    return success();
  return fp4::withNote(
      function.emitOpError("must take and return tensors, but has a value of type ") << found,
      "pass data and scales as two tensors, and write fp4.scaled before the matmul");
}

LogicalResult checkFunction(func::FuncOp function) {
  if (failed(checkBundles(function)))
    return failure();
  if (!llvm::json::isUTF8(function.getName())) {
    std::string name;
    llvm::raw_string_ostream stream(name);
    llvm::printEscapedString(function.getName(), stream);
    return fp4::withNote(
        function.emitOpError("must have a name of UTF-8 text, but got '") << name << "'",
        "rename the function: its name is in manifests and headers, which are text");
  }
  for (auto [number, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isEmpty(type)) {
      InFlightDiagnostic diagnostic =
          function.emitOpError("argument ") << number << " must have elements, but got " << type;
      diagnostic.attachNote() << "devices have no empty buffers; rows that may be none are dynamic";
      return diagnostic;
    }
  return success();
}

/// Checks that operands and results of an operation of this dialect have elements.
LogicalResult checkElements(Operation *op) {
  for (Type type : llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                      llvm::to_vector(op->getResultTypes())))
    if (isEmpty(type)) {
      InFlightDiagnostic diagnostic =
          op->emitOpError("must read and give tensors with elements, but got ") << type;
      diagnostic.attachNote() << "devices have no empty buffers; leave the operation out";
      return diagnostic;
    }
  return success();
}

/// The bytes of a constant; none of other values.
std::vector<uint8_t> bytesOf(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto elements = constant ? dyn_cast<ElementsAttr>(constant.getValue()) : ElementsAttr();
  if (!elements || !fp4::hasConstantBytes(elements))
    return {};
  return fp4::constantBytes(elements,
                            fp4::deviceBufferType(cast<RankedTensorType>(value.getType())));
}

/// Checks that constant weights for activations of e4m3 are in their range; other weights become
/// NaN in the kernel.
LogicalResult checkRange(fp4::PrepackOp op) {
  auto data = cast<RankedTensorType>(op.getData().getType());
  if (cast<RankedTensorType>(op.getResult().getType()).getDimSize(2) != fp4::hw::byteTileBytes)
    return success();
  std::vector<uint8_t> codes = bytesOf(op.getData()), scales = bytesOf(op.getScales());
  if (codes.empty() || scales.empty())
    return success();
  bool isOfRows = fp4::haveRowPowers(cast<RankedTensorType>(op.getResult().getType()));
  auto farScales = [&](fp4::numerics::PowersOf powers) {
    return fp4::numerics::findFarScales(codes, scales, uint64_t(data.getDimSize(0)),
                                        uint64_t(data.getDimSize(1)), powers);
  };
  auto far = farScales(isOfRows ? fp4::numerics::PowersOf::Rows : fp4::numerics::PowersOf::Tiles);
  if (!far)
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError("operand 'scales' must be at most 2^11 apart in ")
                                  << (isOfRows ? "a row" : "128 columns of a row") << ", but got 2^"
                                  << int(far->smallest) - 127 << " and 2^"
                                  << int(far->largest) - 127 << " in row " << far->row
                                  << " from column " << far->column << " on";
  bool fitsTiles = isOfRows && !farScales(fp4::numerics::PowersOf::Tiles);
  diagnostic.attachNote() << (fitsTiles
                                  ? "#fp4.weight_layout<wgmma> has such weights, for matmuls "
                                    "without arithmetic fast_accumulation"
                                  : "e4m3 has no such weights; prepack them in tiles of 4352 "
                                    "bytes for activations of bf16")
                          << ", or make the elements of the smaller scale blocks zero";
  return diagnostic;
}

LogicalResult check(Operation *op) {
  if (auto function = dyn_cast<func::FuncOp>(op))
    return checkFunction(function);
  if (auto nested = dyn_cast<ModuleOp>(op)) {
    InFlightDiagnostic diagnostic = nested.emitError(
        "a program must be one module, but got a module inside of another");
    diagnostic.attachNote() << "move its functions to the outer module";
    return diagnostic;
  }
  if (isa<ub::PoisonOp>(op) && isa<TensorType>(op->getResult(0).getType()) && !op->use_empty()) {
    InFlightDiagnostic diagnostic = op->emitOpError("has no value that a kernel could read");
    diagnostic.attachNote() << "make the tensor an argument or an arith.constant";
    return diagnostic;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && isa<RankedTensorType>(constant.getType()) && !op->use_empty() &&
      !fp4::isKernelOnlySplat(op) &&
      failed(fp4::verifyConstant(cast<ElementsAttr>(constant.getValue()),
                                 [&] { return op->emitOpError(); })))
    return failure();
  if (auto prepack = dyn_cast<fp4::PrepackOp>(op); prepack && failed(checkRange(prepack)))
    return failure();
  if (isa_and_present<fp4::Fp4Dialect>(op->getDialect()))
    return checkElements(op);
  return op->getDialect() ? checkLayouts(op) : success();
}

struct CheckProgram : fp4::impl::CheckProgramBase<CheckProgram> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    WalkResult walk = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      return op != module && failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
