//===- AttentionSlices.cpp - One result of the sums of slices of keys ------===//
//
// Each slice of keys has left sums from a maximum of its own. A CTA of this kernel has a row of
// queries: it scales the sums of all slices as if they were from the largest maximum, and adds them
// in an order that depends on their number alone, so that results always have the same bits.
//
//===----------------------------------------------------------------------===//
#include "AttentionBuilder.h"
#include "DynamicSizes.h"
#include "ItemLaunch.h"

#include "ElementwiseEmitter.h"
#include "InlinePtx.h"
#include "LaneBlocks.h"
#include "Scalars.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Utils/StridedArguments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace fp4;

/// Columns of a thread, slices whose sums a thread loads at a time, and lanes of a warp.
static constexpr int64_t kColumns = 4, kTogether = 8, kLanes = 32;

/// Groups of threads that take slices in turn: one where a thread loads all sums at a time.
static int64_t groupsOf(int64_t slices) { return slices <= kTogether ? 1 : 4; }

namespace {
/// The kernel: arguments are the sums of values, exponents and wholes of slices, the sinks, if
/// there are any, and the results. Each warp has the power of every slice, one in a lane.
class SliceKernel {
public:
  SliceKernel(RewriterBase &rewriter, Attention &attention, ArrayRef<Type> types,
              const hw::TargetModel &target)
      : attention(attention), threads(attention.valueElements() / kColumns),
        groups(groupsOf(attention.slices)),
        kernel(rewriter, attention.op, "slices", types, threads * groups), b(kernel.b),
        s(b, target), row(kernel.cta()), lane(kernel.thread() % kLanes),
        group(kernel.thread() / threads), column(kernel.thread() % threads),
        columns(attention.results.quantizer ? 2 * kColumns : kColumns) {
    if (attention.results.isStrided)
      pitch = kernel.number();
  }

  gpu::GPUFuncOp build();

private:
  using Values = SmallVector<Value>;

  int64_t rows() { return attention.batches() * attention.queryTokens() * attention.heads(); }
  Value minusInfinity() { return s.constant(-std::numeric_limits<float>::infinity()); }
  /// The number that a buffer has of a slice, or of the last one.
  Int32 placeOf(Int32 slice) {
    return minimum(slice, Int32(b, attention.slices - 1)) * rows() + row;
  }
  Value numberOf(unsigned argument, Int32 place) {
    return fp4::load(b, b.getF32Type(), address(b, kernel.pointer(argument), place, 4), 4);
  }
  Value ofAllLanes(Value number, llvm::function_ref<Value(Value, Value)> combine);
  void findPowers();
  Values loadSome(int64_t first);
  Values sumsOfGroup(Values loaded);
  Value sharedSums();
  Values sumsOfAll(const Values &own);
  Values argumentsOf(Value numbers);
  unsigned firstResult();
  QuantizedRows quantizedRows();
  Value addressOf(Int32 place, int64_t bytes);
  void storeRow(const Values &sums);
  void storeLogSum();

  Attention &attention;
  int64_t threads, groups; ///< threads of a group, and groups
  ItemKernel kernel;
  ImplicitLocOpBuilder &b;
  Scalars s;
  Int32 row, lane, group, column;
  Value pitch;      ///< bytes from a token's result to the next (i64); null: without gaps
  int64_t columns;  ///< of the result that a thread has: of a quantizer, those of two
  Values powers;    ///< of slices lane, lane + 32, ...
  Value top, whole; ///< exponent of 2 that the sums are scaled by, and the sum of powers
};
} // namespace

Value SliceKernel::ofAllLanes(Value number, llvm::function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = kLanes / 2; distance > 0; distance /= 2)
    number = combine(number, valueOfPartner(b, number, distance));
  return number;
}

/// Finds the power of each slice, and their sum with that of the sink.
void SliceKernel::findPowers() {
  Values exponents, wholes;
  for (int64_t first = 0; first < attention.slices; first += kLanes) {
    Int32 slice = lane + first;
    Value exponent = numberOf(1, placeOf(slice));
    exponents.push_back(
        arith::SelectOp::create(b, slice < attention.slices, exponent, minusInfinity()));
    wholes.push_back(numberOf(2, placeOf(slice)));
  }
  Value sink;
  top = exponents.front();
  for (Value exponent : ArrayRef(exponents).drop_front())
    top = s.maximumNumber(top, exponent);
  top = ofAllLanes(top, [&](Value x, Value y) { return s.maximumNumber(x, y); });
  if (attention.op.getSinks()) {
    sink =
        s.multiply(numberOf(3, row % attention.heads()), s.constant(std::numbers::log2e_v<float>));
    top = s.maximumNumber(top, sink);
  }
  Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, top, minusInfinity());
  Value origin = arith::SelectOp::create(b, isNone, s.constant(0), top);
  Value own = s.constant(0);
  for (auto [exponent, ofSlice] : llvm::zip_equal(exponents, wholes)) {
    powers.push_back(approximateExp2(b, s.subtract(exponent, origin)));
    own = s.add(own, s.multiply(ofSlice, powers.back()));
  }
  whole = ofAllLanes(own, [&](Value x, Value y) { return s.add(x, y); });
  if (sink)
    whole = s.add(whole, approximateExp2(b, s.subtract(sink, origin)));
}

/// Loads what a thread has of the slices of its group from `first` on, a few.
SliceKernel::Values SliceKernel::loadSome(int64_t first) {
  constexpr int64_t bytes = 4 * kColumns;
  auto four = VectorType::get(kColumns, b.getF32Type());
  int64_t end = std::min(attention.slices, first + kTogether * groups);
  Values loaded;
  for (; first < end; first += groups) {
    Int32 place = placeOf(group + first) * threads + column;
    loaded.push_back(
        fp4::load(b, four, address(b, kernel.pointer(0), place, bytes), unsigned(bytes)));
  }
  return loaded;
}

/// The sums of the slices of this group, the first of which are loaded.
SliceKernel::Values SliceKernel::sumsOfGroup(Values loaded) {
  Values sums(kColumns, s.constant(0));
  for (int64_t first = 0; first < attention.slices; loaded = loadSome(first))
    for (Value ofSlice : loaded) {
      Value power = valueOfLane(b, powers[size_t(first / kLanes)], (group + first) % kLanes);
      for (int64_t i = 0; i < kColumns; ++i)
        sums[size_t(i)] =
            s.add(sums[size_t(i)], s.multiply(vector::ExtractOp::create(b, ofSlice, i), power));
      first += groups;
    }
  return sums;
}

/// Memory for the sums of all threads.
Value SliceKernel::sharedSums() {
  auto module = b.getInsertionBlock()->getParentOp()->getParentOfType<gpu::GPUModuleOp>();
  auto type = LLVM::LLVMArrayType::get(b.getF32Type(), threads * groups * kColumns);
  constexpr unsigned sharedSpace = 3, alignment = 16;
  OpBuilder outside = OpBuilder::atBlockBegin(module.getBody());
  auto words = LLVM::GlobalOp::create(outside, b.getLoc(), type, /*isConstant=*/false,
                                      LLVM::Linkage::Internal, "sums", /*value=*/Attribute(),
                                      alignment, sharedSpace);
  return LLVM::AddressOfOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace),
                                   words.getSymName());
}

/// The sums of all groups, from the first to the last.
SliceKernel::Values SliceKernel::sumsOfAll(const Values &own) {
  if (groups == 1 && columns == kColumns)
    return own;
  Value shared = sharedSums();
  auto four = VectorType::get(kColumns, b.getF32Type());
  constexpr int64_t bytes = 4 * kColumns;
  fp4::store(b, vector::FromElementsOp::create(b, four, own),
             address(b, shared, kernel.thread(), bytes), bytes);
  NVVM::Barrier0Op::create(b);
  Values sums;
  Int32 ofResult =
      column % (attention.valueElements() / columns); // others have what one before has
  for (int64_t other = 0; other < groups; ++other)
    for (int64_t first = 0; first < columns; first += kColumns) {
      Value place = advance(b, address(b, shared, ofResult, 4 * columns),
                            other * threads * bytes + 4 * first);
      Value loaded = LLVM::LoadOp::create(b, four, place, unsigned(bytes));
      for (int64_t i = 0; i < kColumns; ++i) {
        Value next = vector::ExtractOp::create(b, loaded, i);
        if (other)
          sums[size_t(first + i)] = s.add(sums[size_t(first + i)], next);
        else
          sums.push_back(next);
      }
    }
  return sums;
}

void SliceKernel::storeRow(const Values &sums) {
  Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, whole, s.constant(0));
  Value inverse = arith::SelectOp::create(b, isNone, s.constant(0), s.divide(s.constant(1), whole));
  Values elements;
  for (Value sum : sums)
    elements.push_back(s.multiply(sum, inverse));
  Type element = attention.results.type;
  int64_t bytes = columns * element.getIntOrFloatBitWidth() / 8;
  Value numbers =
      vector::FromElementsOp::create(b, VectorType::get(columns, b.getF32Type()), elements);
  Value converted = emitEpilogue(b, attention.results.region, argumentsOf(numbers), element);
  Value isOwn = kernel.thread() < attention.valueElements() / columns;
  Int32 place = row * (attention.valueElements() / columns) + column;
  if (attention.results.quantizer)
    storeLaneBlocks(b, s, quantizedRows(), converted, place * columns, lane, /*distance=*/1, isOwn);
  if (!attention.results.storesElements)
    return;
  kernel.when(isOwn, [&] {
    auto words = VectorType::get(bytes / 4, b.getI32Type());
    fp4::store(b, vector::BitCastOp::create(b, words, converted), addressOf(place, bytes),
               unsigned(bytes));
  });
}

/// The address of columns of the result, which are number `place` of all.
Value SliceKernel::addressOf(Int32 place, int64_t bytes) {
  Value result = kernel.pointer(firstResult());
  if (!pitch)
    return address(b, result, place, bytes);
  int64_t perToken = attention.heads() * attention.valueElements() / columns;
  return address(b, address(b, result, place / perToken, pitch), place % perToken, bytes);
}

/// The number of the first result among the arguments.
unsigned SliceKernel::firstResult() { return attention.op.getSinks() ? 4 : 3; }

/// Codes and scales, the results behind the others, and the amax, the last input.
QuantizedRows SliceKernel::quantizedRows() {
  AttentionOp op = attention.op;
  unsigned first = firstResult() + bool(op.getResult()) + bool(op.getLse());
  QuantizedRows rows{attention.results.quantizer->recipe.getDecisions(), Value(),
                     kernel.pointer(first), kernel.pointer(first + 1)};
  if (attention.results.quantizer->hasAmax)
    rows.amax = fp4::load(b, b.getF32Type(),
                          kernel.pointer(first + 2 + unsigned(attention.results.inputs.size())), 4);
  return rows;
}

/// `numbers`, and the inputs of the epilogue region, which come behind the results.
SliceKernel::Values SliceKernel::argumentsOf(Value numbers) {
  AttentionOp op = attention.op;
  unsigned next = firstResult() + op->getNumResults();
  Values pointers, all = {numbers};
  SmallVector<Type> types;
  for (const Results::Input &input : attention.results.inputs) {
    pointers.push_back(kernel.pointer(next++));
    types.push_back(input.type.getElementType());
  }
  llvm::append_range(all, loadScalars(b, pointers, types, columns));
  return all;
}

void SliceKernel::storeLogSum() {
  Value sum =
      s.multiply(s.add(top, approximateLog2(b, whole)), s.constant(std::numbers::ln2_v<float>));
  unsigned argument = firstResult() + bool(attention.op.getResult());
  kernel.when(kernel.thread() < 1,
              [&] { fp4::store(b, sum, address(b, kernel.pointer(argument), row, 4), 4); });
}

gpu::GPUFuncOp SliceKernel::build() {
  Values loaded = loadSome(0); // on their way while powers are found
  findPowers();
  storeRow(sumsOfAll(sumsOfGroup(loaded)));
  if (attention.op.getLse())
    storeLogSum();
  return kernel.finish();
}

void fp4::combineSlices(RewriterBase &rewriter, Attention &attention, const hw::TargetModel &target,
                        ValueRange buffers) {
  Location loc = attention.op.getLoc();
  SmallVector<Value> arguments;
  Value pitch;
  for (Value buffer : buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    if (!type.getLayout().isIdentity()) { // a strided result
      arguments.push_back(viewOf(rewriter, loc, attention.elementsWithGaps(), buffer));
      pitch = pitchBytes(rewriter, loc, buffer);
      continue;
    }
    auto flat = pipe::GlobalType::get({type.getNumElements()}, type.getElementType());
    auto list = MemRefType::get({type.getNumElements()}, type.getElementType()); // a scalar is one
    arguments.push_back(
        pipe::ViewOp::create(rewriter, loc, flat,
                             pipe::ViewOp::create(rewriter, loc, list, buffer, /*offset=*/0,
                                                  /*size=*/Value())));
  }
  if (pitch)
    arguments.push_back(pitch);
  SmallVector<Type> types(ValueRange(arguments).getTypes());
  gpu::GPUFuncOp kernel = SliceKernel(rewriter, attention, types, target).build();
  auto index = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, number);
  };
  Value one = index(1);
  auto launch = gpu::LaunchFuncOp::create(
      rewriter, loc, kernel,
      gpu::KernelDim3{index(attention.batches() * attention.queryTokens() * attention.heads()), one,
                      one},
      gpu::KernelDim3{index((*kernel.getKnownBlockSize())[0]), one, one},
      /*dynamicSharedMemorySize=*/Value(), arguments);
  setPdl(launch, LaunchDependents::AtEnd); // it begins while the last slices end
}
