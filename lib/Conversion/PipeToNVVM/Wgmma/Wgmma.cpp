//===- Wgmma.cpp - Descriptors and turns of warpgroups --------------------===//
#include "Wgmma/Wgmma.h"

#include "Common/MmaPattern.h"

#include "InlinePtx.h"
#include "PackedBytes.h"
#include "SmallBuilders.h"

using namespace mlir;
using namespace fp4;

/// The descriptor of a tile of `form` at `address`, an i32.
static Value descriptorAt(ImplicitLocOpBuilder &b, Value address, const hw::SmemDescriptor &form) {
  Value start = hw::descriptorStart(Int32(b, address));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), start);
  return arith::OrIOp::create(b, wide, constantI64(b, b.getLoc(), int64_t(form.encodeWgmma())));
}

Value fp4::wgmmaDescriptor(ImplicitLocOpBuilder &b, Value tile, const hw::SmemDescriptor &form) {
  return descriptorAt(b, LLVM::PtrToIntOp::create(b, b.getI32Type(), tile), form);
}

static hw::SmemDescriptor formOfRows() {
  return hw::SmemDescriptor::kMajorOperand(hw::SwizzleMode::B128);
}

Value fp4::wgmmaDescriptor(ImplicitLocOpBuilder &b, Value tile) {
  return wgmmaDescriptor(b, tile, formOfRows());
}

Value fp4::wgmmaDescriptor(ImplicitLocOpBuilder &b, Value tile, pipe::SharedType type) {
  return wgmmaDescriptor(b, tile,
                         hw::SmemDescriptor::kMajorOperand(pipe::swizzleMode(type.getLayout())));
}

/// The address comes from the first lane of the warp, so that values computed from it are uniform.
Value fp4::uniformDescriptor(ImplicitLocOpBuilder &b, Value tile) {
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), tile);
  return descriptorAt(b, valueOfLane(b, address, constI32(b, 0)), formOfRows());
}

SmallVector<int64_t> fp4::instructionOffsets(pipe::SharedType tile, int64_t first, int64_t count) {
  int64_t width = pipe::swizzleWidth(tile.getLayout()), panelBytes = tile.getRows() * width;
  SmallVector<int64_t> offsets;
  for (int64_t i = first; i < first + count; ++i) {
    int64_t byte = i * hw::mmaRowBytes;
    offsets.push_back((byte / width * panelBytes + byte % width) / 16);
  }
  return offsets;
}

pipe::MmaOp fp4::mmaLedBy(pipe::MmaOp op) {
  Operation *next = op->getNextNode();
  while (!isa<pipe::MmaOp>(next))
    next = next->getNextNode();
  return cast<pipe::MmaOp>(next);
}

bool fp4::isOfFloats(pipe::MmaOp op) {
  if (op.getForm() != hw::MmaForm::WgmmaShared)
    return op.getForm() == hw::MmaForm::WgmmaFloat;
  bool leadsFloats =
      op.getChain() == pipe::MmaChain::Leads && mmaLedBy(op).getForm() == hw::MmaForm::WgmmaFloat;
  return leadsFloats || op.getB().getType().getColumns() != kLineBytes;
}

void fp4::finishMmaLoop(ImplicitLocOpBuilder &b, pipe::MmaOp product, Value fragment) {
  if (product.getChain() != pipe::MmaChain::UntilIteration)
    return;
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointAfter(product->getParentOfType<scf::ForOp>());
  int64_t count = product.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread();
  storeElements(b, fragment, awaitSums(b, loadElements(b, fragment, 0, count)));
}

/// Parts that the tensor core multiplies while the next one is converted. Each part has registers
/// of its own, which an iteration of a loop writes again: three parts may run on if the iteration
/// has four. With 16-bit floats, running on was slower (notebook/gemm-weights.md).
static int64_t partsAhead(pipe::MmaOp op, int64_t count) {
  constexpr int64_t fewest = 4;
  return op.getWithoutPowers() && count >= fewest ? fewest - 1 : 1;
}

void fp4::multiplyParts(ImplicitLocOpBuilder &b, pipe::MmaOp op, pipe::MmaOp::Adaptor adaptor,
                        const KernelState &state, WeightParts parts,
                        llvm::function_ref<SmallVector<Value>(int64_t)> convert) {
  pipe::SharedType type = op.getB().getType();
  WarpgroupMma product;
  product.element = type.getElementType();
  product.columns = type.getRows();
  product.accumulate = accumulateOrFalse(b, b.getLoc(), adaptor.getAccumulate());
  product.b = uniformDescriptor(b, adaptor.getB());
  product.isUniform = true;
  Value fragment = adaptor.getAccumulator();
  SmallVector<Value> sums = loadElements(
      b, fragment, 0, op.getAccumulatorAs<pipe::FragmentType>().getElementsPerThread());
  for (int64_t i = 0; i < parts.count; ++i) {
    if (parts.first + i > 0)
      product.accumulate = arith::ConstantOp::create(b, b.getBoolAttr(true));
    product.a = convert(i);
    product.bOffsets = instructionOffsets(type, (parts.first + i) * parts.steps, parts.steps);
    bool goesOn = i + 1 < parts.count || op.goesOn();
    product.pending = goesOn ? partsAhead(op, parts.count) : 0;
    sums = multiplyWarpgroup(b, sums, product);
    if (i == 0) // the reads of weights before loads that follow, while the tensor core is busy
      emitProxyFence(b, op.getLoc());
  }
  storeElements(b, fragment, sums);
}

void fp4::promoteBytes(ImplicitLocOpBuilder &b, ValueRange sums, ArrayRef<Value> rows,
                       MutableArrayRef<Value> acc) {
  PackedBytes bytes(b);
  Value powers[] = {bytes.powerOf(rows[0]), bytes.powerOf(rows[1])};
  for (auto [i, element] : llvm::enumerate(acc))
    element = LLVM::FMAOp::create(b, sums[i], powers[i / 2 % 2], element);
}
