//===- RowColumns.cpp - Words that a row kernel keeps for several rows -----===//
#include "Rows/RowElements.h"
#include "Rowwise/RowBlocks.h"

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

/// Pieces of a chunk of columns: of f32, or of bf16 where rows wait in shared memory, too.
int64_t RowElements::piecesOfShared() const { return kernel.hasStages() ? kPieces / 2 : kPieces; }

/// The place of a piece: those of all threads follow each other.
Value RowElements::placeOfShared(const Source &source, const Chunk &chunk, int64_t piece) {
  int64_t before = (chunk.index * piecesOfShared() + piece) * kernel.numThreads() * kAccessBytes;
  return advance(b, address(b, source.shared, rowTeam.lane(), kAccessBytes), before);
}

void RowElements::shareColumns() {
  constexpr int64_t ofPiece = kAccessBytes / 4;
  int64_t words = ofPiece * piecesOfShared() * rowTeam.chunksPerThread() * kernel.numThreads();
  int64_t left = kMostShared;
  for (auto &[key, source] : sources)
    left -= source.copied ? bytesOfRow(source) / 4 : 0;
  for (auto &[key, source] : sources) {
    const Operand &operand = source.operand;
    if (!operand.hasColumns || operand.hasRows || operand.column || source.rows.table ||
        !source.type.getElementType().isBF16() || words > left)
      continue;
    left -= words;
    Value shared = kernel.sharedWords(words, "columns_" + std::to_string(left));
    rowTeam.forEachChunk(/*unrolled=*/true, [&, &source = source](const Chunk &chunk) {
      SmallVector<Value> loaded = load(source, chunk);
      source.shared = shared;
      if (!kernel.hasStages())
        loaded = packedWords(b, widened(loaded, source.type));
      for (int64_t i = 0; i < piecesOfShared(); ++i)
        storeValues(b, ArrayRef(loaded).slice(size_t(i * ofPiece), ofPiece),
                    placeOfShared(source, chunk, i));
    });
  }
}

Value RowElements::loadShared(const Source &source, const Chunk &chunk) {
  SmallVector<Value> words;
  auto type = VectorType::get(kAccessBytes / 4, b.getI32Type());
  for (int64_t i = 0; i < piecesOfShared(); ++i) {
    Value piece =
        LLVM::LoadOp::create(b, type, placeOfShared(source, chunk, i), /*alignment=*/kAccessBytes);
    for (int64_t word = 0; word < type.getNumElements(); ++word)
      words.push_back(vector::ExtractOp::create(b, piece, word));
  }
  if (kernel.hasStages())
    return widened(words, source.type);
  auto wide = VectorType::get(kChunk, b.getF32Type());
  Value vector = vector::FromElementsOp::create(
      b, VectorType::get(int64_t(words.size()), b.getI32Type()), words);
  return vector::BitCastOp::create(b, wide, vector);
}
