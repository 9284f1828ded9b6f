//===- RowColumns.cpp - Words that a row kernel keeps for several rows -----===//
#include "Rows/RowElements.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp4;

namespace {

constexpr int64_t kChunk = RowTeam::kChunk, kAccessBytes = 16;
/// Pieces of a chunk of f32, an access each, and words of columns that shared memory has.
constexpr int64_t kPieces = kChunk * 4 / kAccessBytes, kMostShared = 8192;

} // namespace

SmallVector<Value> RowElements::loadRow() {
  SmallVector<Value> words;
  for (auto &[key, source] : sources)
    if (isKeptRow(source))
      forEachChunk([&, &source = source](const Chunk &chunk) {
        llvm::append_range(words, load(source, chunk));
      });
  return words;
}

void RowElements::keep(ValueRange words) {
  for (auto &[key, source] : sources) {
    if (!isKeptRow(source))
      continue;
    size_t perChunk = size_t(kChunk * source.type.getElementTypeBitWidth() / 32);
    for (int64_t i = 0; i < rowTeam.chunksPerThread(); ++i) {
      source.kept.emplace_back(words.take_front(perChunk));
      words = words.drop_front(perChunk);
    }
  }
}

/// Piece of four elements: those of all threads follow each other.
Value RowElements::placeOfShared(const Source &source, const Chunk &chunk, int64_t piece) {
  int64_t before = (chunk.index * kPieces + piece) * kernel.numThreads() * kAccessBytes;
  return advance(b, address(b, source.shared, rowTeam.lane(), kAccessBytes), before);
}

void RowElements::shareColumns() {
  int64_t words = kChunk * rowTeam.chunksPerThread() * kernel.numThreads(), left = kMostShared;
  for (auto &[key, source] : sources) {
    const Operand &operand = source.operand;
    if (!operand.hasColumns || operand.hasRows || operand.column || source.rows.table ||
        !source.type.getElementType().isBF16() || words > left)
      continue;
    left -= words;
    Value shared = kernel.sharedWords(words, "columns_" + std::to_string(left));
    rowTeam.forEachChunk(/*unrolled=*/true, [&, &source = source](const Chunk &chunk) {
      Value elements = widened(load(source, chunk), source.type);
      source.shared = shared;
      for (int64_t i = 0; i < kPieces; ++i)
        fp4::store(b,
                   vector::ExtractStridedSliceOp::create(b, elements, ArrayRef<int64_t>{4 * i},
                                                         ArrayRef<int64_t>{4},
                                                         ArrayRef<int64_t>{1}),
                   placeOfShared(source, chunk, i), kAccessBytes);
    });
  }
}

Value RowElements::loadShared(const Source &source, const Chunk &chunk) {
  SmallVector<Value> elements;
  auto type = VectorType::get(kChunk / kPieces, b.getF32Type());
  for (int64_t i = 0; i < kPieces; ++i) {
    Value piece =
        LLVM::LoadOp::create(b, type, placeOfShared(source, chunk, i), /*alignment=*/kAccessBytes);
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
      elements.push_back(vector::ExtractOp::create(b, piece, lane));
  }
  return vector::FromElementsOp::create(b, VectorType::get(kChunk, b.getF32Type()), elements);
}
