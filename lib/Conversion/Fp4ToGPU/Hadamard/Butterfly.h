//===- Butterfly.h - Hadamard transform inside a kernel -------------------===//
//
// Emits the transform of fp4/Numerics/Hadamard.h: elements are divided by the size n of the block,
// fp32 stages compute (a + b, a - b) in the order of strides that the options name, and n * n^-1/2
// is the last factor. The division keeps sums finite near the largest numbers. A thread that holds
// whole blocks leaves it out as long as no sum of a block overflows; the bits are the same, because
// n is a power of two. HadamardArithmetic::ExactSum does the same in fp64 without the division by
// n, rounded once to fp32: exact sums of bf16 values whose exponents differ by up to 41.
//
// A thread holds 16 or more consecutive elements of a block. If the block is longer, 2, 4 or 8
// consecutive lanes of a warp hold it, and the stages between them exchange all elements by
// shfl.sync.bfly: 16 elements per lane cost one shuffle and one fused multiply-add each and keep a
// thread at the registers of the smallest block.
//
// Zeros need no special case: the sign of a zero sum is that of IEEE addition, also if all inputs
// are -0, because the signs of the mask belong to inputs and not to sums. An exact sum begins with
// +0.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"

#include "fp4/Numerics/Hadamard.h"

namespace fp4 {

class Butterfly {
public:
  Butterfly(Scalars &scalars, mlir::ImplicitLocOpBuilder &builder,
            const numerics::HadamardOptions &options)
      : s(scalars), b(builder), options(options) {}

  /// Lanes that hold a block when each has `count` elements.
  unsigned lanes(size_t count) const {
    return options.blockSize > count ? options.blockSize / static_cast<unsigned>(count) : 1;
  }

  /// The transform of `elements` (f32) without the scale and the rounding. Elements are
  /// consecutive and whole multiples of 16; `lanes(size)` neighbours hold a block, and where that
  /// is more than one all 32 lanes of the warp must be here.
  llvm::SmallVector<mlir::Value> sums(llvm::ArrayRef<mlir::Value> elements) {
    return sums(elements, divisor());
  }
  /// The largest magnitude of the sums.
  mlir::Value amax(llvm::ArrayRef<mlir::Value> elements, bool keepNaN);
  /// The factor of a sum. Exact sums are scaled before they are rounded: 1.
  mlir::Value scale();
  /// Sums times scale: what is then rounded to bf16.
  llvm::SmallVector<mlir::Value> transform(llvm::ArrayRef<mlir::Value> elements);
  /// Transforms the elements of a block, and rounds them to bf16 unless the options have no
  /// rounding. A scale that is a power of two is left to the block's scale.
  BlockElements transformBlock(const BlockElements &elements);

private:
  bool isExact() const { return options.arithmetic == numerics::HadamardArithmetic::ExactSum; }
  float factor() const; ///< scale() as a number
  float norm() const;   ///< 1 / sqrt(size of the block)
  llvm::SmallVector<mlir::Value> scaled(llvm::ArrayRef<mlir::Value> sums);
  /// The divisor of elements, so that no sum overflows that its scale would have kept finite.
  float divisor() const { return isExact() ? 1.0f : static_cast<float>(options.blockSize); }
  llvm::SmallVector<mlir::Value> sums(llvm::ArrayRef<mlir::Value> elements, float divisor);
  llvm::SmallVector<mlir::Value> prepared(llvm::ArrayRef<mlir::Value> elements, float divisor);
  BlockElements packed(llvm::ArrayRef<mlir::Value> values, bool finite = false);
  BlockElements unrounded(llvm::ArrayRef<mlir::Value> values);
  mlir::Value toFp32(mlir::Value sum);
  mlir::Value shuffle(mlir::Value mine, unsigned laneStride);
  void stageInThread(llvm::MutableArrayRef<mlir::Value> values, size_t stride);
  void stageAcrossLanes(llvm::MutableArrayRef<mlir::Value> values, unsigned laneStride);

  Scalars &s;
  mlir::ImplicitLocOpBuilder &b;
  numerics::HadamardOptions options;
};

/// Keeps warps whole where `lanes` neighbours exchange elements: threads behind the last item
/// repeat the last items, in groups, and store nothing.
class WholeWarps {
public:
  WholeWarps(mlir::ImplicitLocOpBuilder &builder, mlir::Value items, unsigned lanes)
      : b(builder), items(items), lanes(lanes) {}

  /// The end of a loop over the items. The loop needs the functions below only where there are
  /// several lanes.
  mlir::Value bound();
  /// `item`, or one of the last items instead of those behind.
  mlir::Value clamped(mlir::Value item);
  /// Emits `store` for the threads that have an item of their own.
  void ifOwn(mlir::Value item, llvm::function_ref<void()> store);

private:
  mlir::Value isOwn(mlir::Value item);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Value items; ///< a multiple of `lanes`
  unsigned lanes;
};

} // namespace fp4
