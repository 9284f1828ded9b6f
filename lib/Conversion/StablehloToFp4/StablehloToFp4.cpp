//===- StablehloToFp4.cpp - Block-scaled matmuls of stablehlo to fp4 ------===//
//
// Operations are known by their names, and their attributes by MLIR's generic form, in which those
// of an operation that is not registered are either attributes or one dictionary of properties.
//
//===----------------------------------------------------------------------===//

#include "Stablehlo.h"

#include "fp4/Conversion/StablehloToFp4/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/Inliner.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/Support/JSON.h"

namespace fp4 {
#define GEN_PASS_DEF_CONVERTSTABLEHLOTOFP4
#include "fp4/Conversion/StablehloToFp4/Passes.h.inc"
} // namespace fp4

using namespace mlir;
using namespace fp4;
using namespace fp4::stablehlo;

//===----------------------------------------------------------------------===//
// Operations by their names
//===----------------------------------------------------------------------===//

bool fp4::stablehlo::is(Operation *op, StringRef name) {
  return op && op->getName().getStringRef() == name;
}

Attribute fp4::stablehlo::attributeOf(Operation *op, StringRef name) {
  if (Attribute attribute = op->getDiscardableAttr(name))
    return attribute;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

Value fp4::stablehlo::transposed(Value value) {
  Operation *op = value.getDefiningOp();
  if (!is(op, "stablehlo.transpose") || op->getNumOperands() != 1)
    return {};
  auto permutation = dyn_cast_or_null<DenseI64ArrayAttr>(attributeOf(op, "permutation"));
  SmallVector<int64_t> expected = {0, 1, 2};
  const int64_t rank = cast<ShapedType>(value.getType()).getRank();
  if (rank != 2 && rank != 3)
    return {};
  expected.resize(rank);
  std::swap(expected[rank - 2], expected[rank - 1]);
  return permutation && permutation.asArrayRef() == ArrayRef<int64_t>(expected) ? op->getOperand(0)
                                                                                : Value();
}

namespace {

StringRef stringOf(Operation *op, StringRef name) {
  auto text = dyn_cast_or_null<StringAttr>(attributeOf(op, name));
  return text ? text.getValue() : StringRef();
}

bool isCall(Operation *op) {
  return is(op, "stablehlo.custom_call") &&
         stringOf(op, "call_target_name") == "__op$block_scaled_dot";
}

bool isComposite(Operation *op) {
  return is(op, "stablehlo.composite") && stringOf(op, "name") == "xla.scaled_dot";
}

/// Returns true when an operation of stablehlo reads or makes numbers of 4 bits, or names a matmul
/// of them.
bool looksBlockScaled(Operation *op) {
  if (!op->getName().getStringRef().starts_with("stablehlo."))
    return false;
  auto isFp4 = [](Type type) { return isa<Float4E2M1FNType>(getElementTypeOrSelf(type)); };
  return llvm::any_of(op->getOperandTypes(), isFp4) || llvm::any_of(op->getResultTypes(), isFp4) ||
         stringOf(op, "call_target_name").contains("block_scaled") ||
         stringOf(op, "name").contains("scaled_dot");
}

/// Checks for four ranked operands and one ranked result.
LogicalResult checkOperands(Operation *op) {
  auto ranked = [](Type type) { return isa<RankedTensorType>(type); };
  if (op->getNumOperands() == 4 && op->getNumResults() == 1 &&
      llvm::all_of(op->getOperandTypes(), ranked) && ranked(op->getResult(0).getType()))
    return success();
  return ingress::refuse(op, "it must have two sides, their scales, and one result",
                         "multiply with a global scale behind the matmul");
}

//===----------------------------------------------------------------------===//
// The custom call
//===----------------------------------------------------------------------===//

/// Returns true for dense<[2, 1, 0]>: the last dimension is the fastest.
bool isRowMajor(Attribute layout) {
  auto order = dyn_cast<DenseIntElementsAttr>(layout);
  if (!order)
    return false;
  int64_t expected = order.getNumElements();
  return llvm::all_of(order.getValues<APInt>(),
                      [&](const APInt &dim) { return dim.getSExtValue() == --expected; });
}

LogicalResult checkLayouts(Operation *op) {
  for (StringRef name : {"operand_layouts", "result_layouts"})
    if (auto layouts = dyn_cast_or_null<ArrayAttr>(attributeOf(op, name));
        layouts && !llvm::all_of(layouts, isRowMajor))
      return ingress::refuse(op, Twine("its ") + name + " must be row-major",
                             "export the program without layouts of its own");
  return success();
}

/// Checks {"scaled_dot_backend_config": {"lhs_batch_dimensions": [0], "rhs_batch_dimensions": [0],
/// ...}}
LogicalResult checkBatches(Operation *op, int64_t rank) {
  StringRef text = stringOf(op, "backend_config");
  if (text.empty())
    return success();
  auto refuse = [&] {
    return ingress::refuse(op, "its backend_config must have dimension 0 as the batch of both sides, "
                               "but got '" + text + "'",
                           "move the batches to the front before the matmul");
  };
  llvm::Expected<llvm::json::Value> config = llvm::json::parse(text);
  if (!config) {
    llvm::consumeError(config.takeError());
    return refuse();
  }
  const llvm::json::Object *whole = config->getAsObject();
  const llvm::json::Object *dot = whole ? whole->getObject("scaled_dot_backend_config") : nullptr;
  if (!dot)
    return refuse();
  for (StringRef name : {"lhs_batch_dimensions", "rhs_batch_dimensions"}) {
    const llvm::json::Array *batches = dot->getArray(name);
    bool known = batches && batches->size() == size_t(rank - 2) &&
                 (rank == 2 || (*batches)[0].getAsInteger() == 0);
    if (!known)
      return refuse();
  }
  return success();
}

FailureOr<ingress::ScaledMatmul> matchCall(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (failed(checkLayouts(op)) || failed(checkBatches(op, result.getRank())))
    return failure();
  return ingress::ScaledMatmul{{op->getOperand(0), op->getOperand(2)},
                               {op->getOperand(1), op->getOperand(3)},
                               /*alpha=*/Value(),
                               result};
}

//===----------------------------------------------------------------------===//
// The composite
//===----------------------------------------------------------------------===//

/// Element [i][j] of nested arrays of numbers, if it is an array of `count` numbers: the first one,
/// or -1 for none.
std::optional<int64_t> numberAt(Attribute attribute, unsigned i, unsigned j, unsigned count) {
  for (unsigned at : {i, j}) {
    auto array = dyn_cast_or_null<ArrayAttr>(attribute);
    if (!array || array.size() != 2)
      return std::nullopt;
    attribute = array[at];
  }
  auto numbers = dyn_cast<ArrayAttr>(attribute);
  if (!numbers || numbers.size() != count)
    return std::nullopt;
  if (count == 0)
    return -1;
  auto number = dyn_cast<IntegerAttr>(numbers[0]);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

FailureOr<ingress::ScaledMatmul> matchComposite(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  const int64_t rank = result.getRank();
  if (rank != 2 && rank != 3)
    return ingress::refuse(op, "it must multiply matrices, or matrices in batches",
                           "collapse other dimensions to rows before the matmul");
  auto attributes = dyn_cast_or_null<DictionaryAttr>(attributeOf(op, "composite_attributes"));
  Attribute numbers = attributes ? attributes.get("dimension_numbers") : Attribute();
  const unsigned batches = rank - 2;
  std::optional<int64_t> contracted = numberAt(numbers, 0, 1, 1);
  bool known = numberAt(numbers, 0, 0, 1) == rank - 1 && contracted &&
               (contracted == rank - 1 || contracted == rank - 2) &&
               (batches == 0 ? numberAt(numbers, 1, 0, 0) && numberAt(numbers, 1, 1, 0)
                             : numberAt(numbers, 1, 0, 1) == 0 && numberAt(numbers, 1, 1, 1) == 0);
  if (!known)
    return ingress::refuse(op, "its dimension_numbers must contract the last dimension of the left "
                               "side, with batches in front",
                           "move the axes in jax before the matmul");
  ingress::ScaledMatmul product = {{op->getOperand(0), op->getOperand(2)},
                                   {op->getOperand(1), op->getOperand(3)},
                                   /*alpha=*/Value(),
                                   result};
  if (contracted == rank - 1)
    return product;
  product.rhs = {transposed(product.rhs.data), transposed(product.rhs.scales)};
  if (product.rhs.data && product.rhs.scales)
    return product;
  return ingress::refuse(
      op, "the right side must be N x K with K contiguous, and to transpose packed numbers would "
          "move data",
      "keep it as N x K in jax, and say so: dimension_numbers=(((2,), (2,)), ((0,), (0,))) for "
      "batches, (((1,), (1,)), ((), ())) for matrices; or transpose it with its scales in the "
      "program");
}

//===----------------------------------------------------------------------===//
// Alpha
//===----------------------------------------------------------------------===//

/// The number that `value` repeats: a stablehlo.broadcast_in_dim of a tensor<f32>.
Value broadcastNumber(Value value) {
  Operation *op = value.getDefiningOp();
  if (!is(op, "stablehlo.broadcast_in_dim") || op->getNumOperands() != 1)
    return {};
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  return type && type.getRank() == 0 && type.getElementType().isF32() ? op->getOperand(0) : Value();
}

/// The multiplication of `result` with one number, if it is all that reads `result`. A matmul that
/// was rounded before has no alpha.
Operation *takeAlpha(Value result, Value &alpha) {
  if (!result.hasOneUse() || !getElementTypeOrSelf(result.getType()).isF32())
    return nullptr;
  Operation *user = *result.user_begin();
  if (!is(user, "stablehlo.multiply") || user->getNumOperands() != 2)
    return nullptr;
  alpha = broadcastNumber(user->getOperand(result.use_begin()->getOperandNumber() == 0 ? 1 : 0));
  return alpha ? user : nullptr;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The matmul that `op` is. Further operations that it needs are built with `b`.
FailureOr<ingress::ScaledMatmul> match(OpBuilder &b, Operation *op) {
  if (isExplicitDot(op))
    return matchExplicitDot(b, op);
  if (!isCall(op) && !isComposite(op))
    return ingress::refuse(op, "it reads or makes numbers of 4 bits and is no matmul",
                           "only __op$block_scaled_dot, xla.scaled_dot, and dot_general of numbers "
                           "times their scales are known; pass quantized tensors as arguments");
  if (failed(checkOperands(op)))
    return failure();
  return isCall(op) ? matchCall(op) : matchComposite(op);
}

LogicalResult convert(Operation *op) {
  OpBuilder b(op);
  FailureOr<ingress::ScaledMatmul> product = match(b, op);
  if (failed(product))
    return failure();
  Operation *scaling = takeAlpha(op->getResult(0), product->alpha);
  Operation *last = scaling ? scaling : op;
  b.setInsertionPoint(last);
  FailureOr<Value> value = ingress::convertMatmul(b, op, *product);
  if (failed(value))
    return failure();
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  if (type.getRank() != product->result.getRank()) // rows of several dimensions
    value = ingress::reshapeTo(b, op->getLoc(), *value, type);
  last->getResult(0).replaceAllUsesWith(*value);
  SmallVector<Operation *> dead = {last};
  if (scaling)
    dead.push_back(op);
  for (Operation *each : dead)
    each->erase();
  return success();
}

/// Erases those of `feeders` that nobody reads any more, the last of the program first: MLIR cannot
/// know that operations of a dialect that is not loaded have no side effects.
void eraseDead(SetVector<Operation *> &feeders) {
  for (bool any = true; any;) {
    any = false;
    SmallVector<Operation *> all = feeders.takeVector();
    for (Operation *op : llvm::reverse(all))
      if (op->use_empty()) {
        op->erase();
        any = true;
      } else {
        feeders.insert(op);
      }
  }
}

bool isForeign(StringAttr name) {
  auto [dialect, rest] = name.getValue().split('.');
  return dialect == "mhlo" || dialect == "jax" || dialect == "sdy" || dialect == "stablehlo";
}

/// An inliner: jax puts a matmul into a private function of its own, away from the multiplication
/// behind it. The inliner of upstream leaves operations alone that are not registered.
struct GemmInliner : InlinerInterface {
  using InlinerInterface::InlinerInterface;
  bool isLegalToInline(Operation *, Operation *, bool) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
};

/// Returns true when `op` repeats or reshapes scales, as jnp.repeat does in a function of its own.
bool movesNumbers(Operation *op) {
  bool isMove = is(op, "stablehlo.reshape") || is(op, "stablehlo.broadcast_in_dim");
  return isMove && isa<Float4E2M1FNType, Float8E8M0FNUType, Float8E4M3FNType>(
                       getElementTypeOrSelf(op->getResult(0)));
}

/// Inlines private functions with matmuls, or with a part of one.
void inlineGemms(ModuleOp module) {
  GemmInliner inliner(module.getContext());
  SymbolTable symbols(module);
  SmallVector<func::CallOp> calls;
  module.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    bool hasGemm = callee && callee.isPrivate() && callee.getBody().hasOneBlock() &&
                   llvm::any_of(callee.front(), [](Operation &op) {
                     return isCall(&op) || isComposite(&op) || movesNumbers(&op);
                   });
    if (!hasGemm || failed(inlineCall(inliner, InlinerConfig().getCloneCallback(), call, callee,
                                      &callee.getBody())))
      continue;
    call.erase();
    if (SymbolTable::symbolKnownUseEmpty(callee, module))
      callee.erase();
  }
}

/// Erases notes of jax about modules and functions, which mean nothing to fp4.
void eraseNotes(Operation *op) {
  for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
    if (isForeign(attribute.getName()))
      op->removeDiscardableAttr(attribute.getName());
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    for (NamedAttribute attribute : llvm::to_vector(function.getArgAttrs(i)))
      if (isForeign(attribute.getName()))
        function.removeArgAttr(i, attribute.getName());
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    for (NamedAttribute attribute : llvm::to_vector(function.getResultAttrs(i)))
      if (isForeign(attribute.getName()))
        function.removeResultAttr(i, attribute.getName());
}

struct ConvertStablehloToFp4 : fp4::impl::ConvertStablehloToFp4Base<ConvertStablehloToFp4> {
  void runOnOperation() override {
    inlineGemms(getOperation());
    SmallVector<Operation *> products;
    SmallVector<FlatSymbolRefAttr> decompositions;
    getOperation().walk([&](Operation *op) {
      if (isComposite(op))
        if (auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attributeOf(op, "decomposition")))
          decompositions.push_back(symbol);
    });
    auto isDecomposition = [&](Operation *op) {
      auto name = SymbolTable::getSymbolName(op);
      return llvm::any_of(decompositions,
                          [&](FlatSymbolRefAttr symbol) { return symbol.getAttr() == name; });
    };
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<FunctionOpInterface>()))
      if (!function.isPublic() && isDecomposition(function))
        function.erase(); // the function only describes the composite
      else
        function.walk([&](Operation *op) {
          if (isCall(op) || isComposite(op) || isExplicitDot(op))
            products.push_back(op);
        });
    convertAll(products);
    refuseOthers();
    eraseNotes(getOperation());
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      eraseNotes(function);
  }

  void convertAll(ArrayRef<Operation *> products) {
    for (Operation *op : products) {
      SetVector<Operation *> feeders = feedersOf(op);
      for (Operation *user : op->getUsers()) // alpha
        for (Value operand : user->getOperands())
          if (is(operand.getDefiningOp(), "stablehlo.broadcast_in_dim"))
            feeders.insert(operand.getDefiningOp());
      if (failed(convert(op))) {
        signalPassFailure(); // the remaining operations are reported too
        refused.insert(feeders.begin(), feeders.end());
        continue;
      }
      ++numConverted;
      feeders.remove(op);
      fed.insert(feeders.begin(), feeders.end());
    }
    fed.set_subtract(refused);
    eraseDead(fed);
  }

  /// Reports operations on numbers of 4 bits that are no matmul, and no part of one that was
  /// reported.
  void refuseOthers() {
    getOperation().walk([&](Operation *op) {
      if (!looksBlockScaled(op) || is(op, "stablehlo.transpose") || refused.contains(op))
        return;
      OpBuilder b(op);
      (void)match(b, op);
      signalPassFailure();
    });
  }

  SetVector<Operation *> refused; ///< reported operations, and those that feed them
  SetVector<Operation *> fed;     ///< operations that fed a matmul
};

} // namespace
