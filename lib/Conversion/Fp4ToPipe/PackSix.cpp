//===- PackSix.cpp - Elements of 6 bits, packed before a GEMM -------------===//
//
// Quantizers and callers have a byte for each element of 6 bits. The tensor core with tensor memory
// reads such elements packed, and TMA reads them so from memory. The kernel here packs a matrix
// once, at the speed of a copy: a thread takes 64 elements that follow one another, and stores 48
// bytes.
//
//===----------------------------------------------------------------------===//

#include "ItemLaunch.h"
#include "OperandKernels.h"

#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/ISA/PackedSixBits.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kAccessWords = 4, kAccess = 16; // one load or store, in words and in bytes
constexpr int64_t kElements = 64;                 // elements of a thread
constexpr int64_t kPackedBytes = kElements * 6 / 8;

/// Arguments of the kernel: the elements, the packed ones, and of these the rows and the bytes of a
/// row that are dynamic.
SmallVector<Type> argumentTypes(RankedTensorType type) {
  Builder b(type.getContext());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t bytes = type.isDynamicDim(1) ? columns : columns * 6 / 8;
  SmallVector<Type> types = {pipe::GlobalType::get({rows, columns}, type.getElementType()),
                             pipe::GlobalType::get({rows, bytes}, b.getI8Type())};
  types.append(type.getNumDynamicDims(), b.getI32Type());
  return types;
}

void packItem(ImplicitLocOpBuilder &b, Value source, Value dest, Int32 item) {
  auto four = VectorType::get(kAccessWords, b.getI32Type());
  Value from = address(b, source, item, kElements), to = address(b, dest, item, kPackedBytes);
  SmallVector<Value> packed;
  for (int64_t byte = 0; byte < kElements; byte += hw::sixBitGroup) {
    Value loaded = load(b, four, advance(b, from, byte), kAccess);
    auto word = [&](int64_t i) { return Int32(b, vector::ExtractOp::create(b, loaded, i)); };
    for (Int32 bits : hw::packSixBitGroup<Int32>({word(0), word(1), word(2), word(3)}))
      packed.push_back(bits);
  }
  for (int64_t i = 0; i < kPackedBytes / 4; i += kAccessWords)
    store(b, vector::FromElementsOp::create(b, four, ArrayRef(packed).slice(i, kAccessWords)),
          advance(b, to, 4 * i), kAccess);
}

gpu::GPUFuncOp buildKernel(RewriterBase &rewriter, BlockScaledMatmulOp op, RankedTensorType type) {
  ItemKernel kernel(rewriter, op, "pack", argumentTypes(type));
  Value source = kernel.pointer(0), dest = kernel.pointer(1);
  Int32 item = kernel.item(), rows = kernel.size(type.getDimSize(0));
  Value exists = type.isDynamicDim(1)
                     ? item < rows * (kernel.size(ShapedType::kDynamic) / kPackedBytes)
                     : item / (type.getDimSize(1) / kElements) < rows;
  kernel.when(exists, [&] { packItem(kernel.b, source, dest, item); });
  return kernel.finish();
}

} // namespace

Value fp4::packSix(RewriterBase &rewriter, BlockScaledMatmulOp op, Value buffer,
                   RankedTensorType type, Value rows, Value columns) {
  Location loc = op.getLoc();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  SmallVector<Value> sizes;
  if (type.isDynamicDim(0))
    sizes.push_back(rows);
  else
    rows = index(type.getDimSize(0));
  gpu::GPUFuncOp kernel = buildKernel(rewriter, op, type);
  if (!type.isDynamicDim(1)) {
    Value blocks = blocksOfRows(rewriter, loc, rows, type.getDimSize(1) / kElements);
    return launchItems(rewriter, loc, kernel, buffer, blocks, sizes);
  }
  Value perRow = arith::DivUIOp::create(rewriter, loc, columns, index(kElements));
  sizes.push_back(arith::MulIOp::create(rewriter, loc, perRow, index(kPackedBytes)));
  Value blocks = blocksOfRows(rewriter, loc, rows, perRow);
  return launchItems(rewriter, loc, kernel, buffer, blocks, sizes);
}
