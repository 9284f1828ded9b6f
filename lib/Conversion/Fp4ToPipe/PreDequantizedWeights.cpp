//===- PreDequantizedWeights.cpp - Pre-dequantized prepacked weights ---------------===//
//
// Beside wgmma, warps execute about one instruction in three cycles. The promotion of sums takes
// most of these, so that a GEMM of many rows has no room for conversions
// (notebook/gemm-weights.md). The kernel here makes e4m3 of prepacked MXFP4 weights once, at the
// speed of a copy.
//
// A CTA has a tile of 128 x 128 weights. Four lanes have the same rows, and four elements of each
// 16 columns. The four lanes exchange words, so that a lane stores 16 elements side by side and the
// four of them 64.
//
//===----------------------------------------------------------------------===//

#include "ItemLaunch.h"
#include "OperandKernels.h"

#include "PackedBytes.h"
#include "SmallBuilders.h"

#include "fp4/ISA/WeightLayout.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {
class ConvertWeightsKernel {
public:
  ConvertWeightsKernel(ItemKernel &kernel, const Gemm &gemm)
      : gemm(gemm), b(kernel.b), tile(kernel.cta()), thread(kernel.thread()),
        source(address(b, kernel.pointer(0), tile, hw::byteTileBytes)), powers(kernel.pointer(1)),
        dest(kernel.pointer(2)) {
    build();
  }

private:
  /// Lanes that have the same rows, which are so many apart.
  static constexpr int64_t kLanes = 4, kRows[] = {0, 8};
  static constexpr int64_t kHalves = 2, kBytes = 16; ///< halves along k; bytes of a load or store

  void build();
  SmallVector<Value> loadWords(Value pointer, int64_t count);
  void storeElements(ValueRange words);
  void storePowers(ValueRange rows);
  Int32 row() {
    return thread / 128 * hw::weightGroupRows + thread % 128 / 32 * 16 + thread % 32 / kLanes;
  }

  const Gemm &gemm;
  ImplicitLocOpBuilder &b;
  Int32 tile, thread;
  Value source, powers, dest;
};
} // namespace

SmallVector<Value> ConvertWeightsKernel::loadWords(Value pointer, int64_t count) {
  return scalarsOf(b,
                   load(b, VectorType::get(count, b.getI32Type()), pointer, unsigned(count * 4)));
}

void ConvertWeightsKernel::build() {
  Value codes = address(b, source, thread / 128, hw::byteGroupBytes);
  codes = address(b, codes, thread % 128, hw::byteThreadBytes);
  SmallVector<Value> words;
  for (int64_t half = 0; half < kHalves; ++half)
    llvm::append_range(words, loadWords(advance(b, codes, half * hw::byteHalfBytes),
                                        PackedBytes::numCodeWords / kHalves));
  Value first = advance(b, source, hw::byteCodeBytes);
  SmallVector<Value> rows = loadWords(
      address(b, first, thread / kLanes, 4 * PackedBytes::numRowWords), PackedBytes::numRowWords);
  storeElements(PackedBytes(b).convertTile(words, rows));
  storePowers(rows);
}

/// A register has four columns of 16, of the upper row or of the lower one in turn.
void ConvertWeightsKernel::storeElements(ValueRange words) {
  constexpr int64_t registersOfHalf = 8;
  PartsOfFour parts;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t half = 0; half < kHalves; ++half)
      for (int64_t lower : {0, 1})
        parts[lane].push_back(words[size_t(half * registersOfHalf + 2 * lane + lower)]);
  Int32 lane = thread % kLanes;
  parts = exchangeOfFour(b, std::move(parts), lane);
  int64_t tilesK = gemm.tilesK();
  Value line = address(b, dest, tile / tilesK * hw::weightTileRows + row(), gemm.depthOfB());
  line = address(b, line, tile % tilesK * hw::byteTileColumns + lane * kBytes, 1);
  for (int64_t half = 0; half < kHalves; ++half)
    for (int64_t lower : {0, 1}) {
      SmallVector<Value> columns;
      for (const SmallVector<Value> &part : parts)
        columns.push_back(part[size_t(2 * half + lower)]);
      auto type = VectorType::get(kLanes, b.getI32Type());
      store(b, vector::FromElementsOp::create(b, type, columns),
            advance(b, line, kRows[lower] * gemm.depthOfB() + half * hw::byteTileColumns / kHalves),
            kBytes);
    }
}

void ConvertWeightsKernel::storePowers(ValueRange rows) {
  emitWhen(b, thread % kLanes < 1, [&] {
    Value first = address(b, powers, tile * hw::weightTileRows + row(), 4);
    for (auto [word, distance] : llvm::zip_equal(rows, kRows))
      store(b, PackedBytes(b).powerOf(word), advance(b, first, 4 * distance), 4);
  });
}

ConvertedWeights fp4::preDequantizeWeights(RewriterBase &rewriter, BlockScaledMatmulOp op,
                                           Value tiles, const Gemm &gemm) {
  Location loc = op.getLoc();
  auto powersType = cast<pipe::GlobalType>(gemm.scalesB());
  auto packed =
      pipe::GlobalType::get({powersType.getShape()[0], hw::byteTileBytes}, rewriter.getI8Type());
  auto elements =
      pipe::GlobalType::get({gemm.problem.alignedColumns(), gemm.depthOfB()}, gemm.dataTypeB());
  ItemKernel kernel(rewriter, op, "convert", {packed, powersType, elements}, 2 * 128);
  ConvertWeightsKernel(kernel, gemm);
  Value powers =
      gpu::AllocOp::create(rewriter, loc, pipe::getBufferType(powersType),
                           /*asyncToken=*/Type(), ValueRange(), ValueRange(), ValueRange())
          .getMemref();
  Value source = pipe::ViewOp::create(rewriter, loc, pipe::getBufferType(packed), tiles,
                                      /*offset=*/0, /*rows=*/Value());
  Value blocks = arith::ConstantIndexOp::create(rewriter, loc, packed.getShape()[0]);
  return {launchItems(rewriter, loc, kernel.finish(), {source, powers}, blocks, /*sizes=*/{},
                      LaunchDependents::BeforeWait),
          powers};
}
