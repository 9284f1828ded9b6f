//===- ElementSource.cpp - Elements of a streaming kernel -----------------===//
#include "ElementSource.h"

#include "ElementwiseEmitter.h"

#include "fp4/Dialect/Fp4/IR/Elementwise.h"
#include "fp4/Dialect/Fp4/IR/Prologue.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

/// Pairs, as kernels of elementwise operations alone have them.
static constexpr int64_t kLanesAtOnce = 2;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

ElementSource::ElementSource(KernelBuilder &kernel, Value tensor, bool noArithmetic)
    : kernel(kernel), b(kernel.body()), type(typeOf(tensor)), prologue(prologueOf(tensor)),
      noArithmetic(noArithmetic) {
  if (!prologue) {
    inputs.push_back({kernel.inputRows(tensor), type});
    return;
  }
  for (OpOperand *operand : prologue.getDpsInputOperands())
    addInput(operand);
}

void ElementSource::addInput(OpOperand *operand) {
  SmallVector<unsigned> dims =
      dimensionsOf(cast<linalg::LinalgOp>(prologue.getOperation()), operand->getOperandNumber());
  Input input{.rows = {},
              .type = typeOf(operand->get()),
              .hasRows = llvm::is_contained(dims, 0),
              .hasColumns = llvm::is_contained(dims, 1)};
  if (input.hasRows && input.hasColumns)
    input.rows = kernel.inputRows(operand->get());
  else
    input.rows.base = kernel.input(operand->get());
  inputs.push_back(input);
}

bool ElementSource::isFlat() const {
  return llvm::all_of(inputs, [](const Input &input) {
    return input.hasRows && input.hasColumns && !input.rows.pitch;
  });
}

InputRows &ElementSource::matrix() { return inputs.front().rows; }

Value ElementSource::Input::placeOf(ImplicitLocOpBuilder &b, Value row, Value run,
                                    int64_t count) const {
  return address(b, hasRows ? rows.at(b, row) : rows.base, run, count * elementBytes());
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// The elements of a run in words.
static Value unpacked(ImplicitLocOpBuilder &b, ArrayRef<Value> words, Type element, int64_t count) {
  Type i16 = b.getI16Type();
  auto type = VectorType::get(count, element);
  if (count == 1 && element.getIntOrFloatBitWidth() == 16) {
    Value half = arith::TruncIOp::create(b, i16, words.front());
    Value bits = vector::FromElementsOp::create(b, type.clone(i16), half);
    return vector::BitCastOp::create(b, type, bits);
  }
  auto bits = VectorType::get(words.size(), b.getI32Type());
  return vector::BitCastOp::create(b, type, vector::FromElementsOp::create(b, bits, words));
}

/// The words of a run of elements.
static SmallVector<Value> packed(ImplicitLocOpBuilder &b, Value elements) {
  auto type = cast<VectorType>(elements.getType());
  if (type.getNumElements() > 1 || type.getElementTypeBitWidth() == 32)
    return packedWords(b, elements);
  Value bits = vector::BitCastOp::create(b, type.clone(b.getI16Type()), elements);
  Value half = vector::ExtractOp::create(b, bits, 0);
  return {arith::ExtUIOp::create(b, b.getI32Type(), half).getResult()};
}

/// `count` elements of an argument of the region, a vector of f32.
Value ElementSource::argument(const Input &input, Value row, int64_t count, Load load) {
  Type element = input.type.getElementType();
  if (input.hasColumns)
    return widenToF32(b, unpacked(b, load(input), element, count));
  Value from = input.rows.base;
  if (input.hasRows)
    from = address(b, from, row, input.elementBytes());
  Value number = fp4::load(b, element, from, input.elementBytes());
  return widenToF32(b, vector::BroadcastOp::create(b, VectorType::get(count, element), number));
}

/// Mixes all bits that are loaded into as many words as the run has.
SmallVector<Value> ElementSource::mixed(int64_t count, Load load) {
  SmallVector<Value> words(llvm::divideCeil(count * type.getElementTypeBitWidth(), 32));
  for (const Input &input : inputs) {
    if (!input.hasColumns)
      continue;
    for (auto [i, word] : llvm::enumerate(load(input))) {
      Value &mixed = words[i % words.size()];
      mixed = mixed ? arith::XOrIOp::create(b, mixed, word).getResult() : word;
    }
  }
  for (Value &word : words)
    word = word ? word : constI32(b, 0);
  return words;
}

SmallVector<Value> ElementSource::words(Value row, int64_t count, Load load) {
  if (!prologue)
    return load(inputs.front());
  if (noArithmetic)
    return mixed(count, load);
  SmallVector<Value> arguments;
  for (const Input &input : inputs)
    arguments.push_back(argument(input, row, count, load));
  Value result = emitQuickElementwise(b, *prologue.getBody(), arguments, kLanesAtOnce).front();
  return packed(b, narrowTo(b, result, type.getElementType()));
}
