//===- WarpTransform.cpp - Hadamard transforms of a tile by mma.sync ------===//
#include "TileQuantize/WarpTransform.h"

#include "WarpMma.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kHalf = kWarpTransform / 2;
/// Two bf16 of 1/4, and their signs.
constexpr int64_t kQuarters = 0x3E803E80, kSigns = 0x80008000;

/// The words of operand B: elements k and k + 1 of column n of H, k = 2 (lane % 4) + 8 half and
/// n = lane / 4 + 8 part.
struct Matrix {
  std::array<std::array<Value, 2>, 2> words; ///< words by part and half
};

} // namespace

/// An element is negative where k and n have an odd number of bits in common, or the mask has bit
/// k.
static Matrix makeMatrix(ImplicitLocOpBuilder &b, Int32 lane, uint16_t signMask) {
  Int32 k = lane % 4 * 2, n = lane / 4;
  Int32 odd(b, LLVM::CtPopOp::create(b, b.getI32Type(), k & n));
  Int32 quarters = (odd & 1) * kSigns ^ (n & 1) * (int64_t(1) << 31) ^ Int32(b, kQuarters);
  Matrix matrix;
  for (int64_t half : {0, 1}) {
    Int32 mask = Int32(b, signMask >> kHalf * half).shiftRight(k);
    Int32 word = quarters ^ (mask & 1) * (1 << 15) ^ (mask & 2) * (1 << 30);
    for (int64_t part : {0, 1})
      matrix.words[part][half] = part && half ? word ^ Int32(b, kSigns) : word;
  }
  return matrix;
}

static SmallVector<Value> loadTransposed(ImplicitLocOpBuilder &b, Value pointer) {
  SmallVector<Type> types(4, b.getI32Type());
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded =
      NVVM::LdMatrixOp::create(b, LLVM::LLVMStructType::getLiteral(b.getContext(), types), pointer,
                               4, NVVM::MMALayout::col, shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return words;
}

/// Four sums of this thread: neighbours of a row of X^T H, and those 8 rows below.
static SmallVector<Value> multiply(Scalars &s, ImplicitLocOpBuilder &b, ArrayRef<Value> rows,
                                   ArrayRef<Value> columns) {
  SmallVector<Value> sums(kWarpSums, s.constant(0));
  multiplyWarp(b, b.getBF16Type(), rows, columns, sums);
  return sums;
}

/// The words of the results that take the place of `rows`, in the order of their chunks.
static SmallVector<Value> transformRows(Scalars &s, ImplicitLocOpBuilder &b, ArrayRef<Value> rows,
                                        const Matrix &matrix) {
  SmallVector<Value> words(4);
  for (int64_t part : {0, 1}) {
    SmallVector<Value> sums = multiply(s, b, rows, matrix.words[part]);
    words[part] = s.packBF16(sums[0], sums[1]);
    words[2 + part] = s.packBF16(sums[2], sums[3]);
  }
  return words;
}

/// All loads come before the first store, which ptxas would not move them across.
void fp4::emitWarpTransform(Scalars &s, ImplicitLocOpBuilder &b, ElementTile &elements,
                            Int32 thread, uint16_t signMask) {
  Int32 lane = thread % TilePlan::warp, warp = thread / TilePlan::warp;
  Matrix matrix = makeMatrix(b, lane, signMask);
  // Lanes name the rows of four matrices of 8 x 8: two chunks of 8 rows, and of the next 8.
  Int32 row = lane % 8 + lane / 16 * kHalf, chunk = warp * 2 + lane / 8 % 2;
  constexpr int64_t bands = TilePlan::rows / kWarpTransform;
  SmallVector<Value> pointers;
  SmallVector<SmallVector<Value>> rows;
  for (int64_t band = 0; band < bands; ++band) {
    pointers.push_back(elements.chunkAddress(row + band * kWarpTransform, chunk));
    rows.push_back(loadTransposed(b, pointers.back()));
  }
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  for (int64_t band = 0; band < bands; ++band)
    NVVM::StMatrixOp::create(b, pointers[band], transformRows(s, b, rows[band], matrix),
                             NVVM::MMALayout::row, shape, NVVM::LdStMatrixEltType::B16);
  NVVM::SyncWarpOp::create(b, s.integer(-1));
}
