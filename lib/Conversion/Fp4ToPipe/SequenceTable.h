//===- SequenceTable.h - Tiles of packed sequences -------------*- C++ -*-===//
//
// A small kernel in front of attention cuts packed sequences into tiles, none of which has tokens
// of two sequences (GroupTiles.h), and checks the offsets.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "GroupTiles.h"

#include "mlir/IR/PatternMatch.h"

namespace fp4 {

/// Buffers of a list of packed rows, and of its offsets, and the operand that these are; null where
/// there is none.
struct PackedRows {
  mlir::Value rows, offsets;
  llvm::StringRef name;
};

/// Packed sequences that are cut into tiles, of an operation that errors call `kind`.
struct TiledSequences {
  mlir::Operation *op;
  llvm::StringRef kind;
  int64_t batches; ///< sequences
  int64_t tokens;  ///< of a tile
  TileOrder order;
};

/// Returns the table of tiles of `rows`, which a kernel in front makes, and the number of its
/// places, an index. The kernel checks the offsets of `others` too.
std::pair<mlir::Value, mlir::Value> makeSequenceTable(mlir::RewriterBase &rewriter,
                                                      const TiledSequences &sequences,
                                                      const PackedRows &rows,
                                                      const PackedRows &others = {});

} // namespace fp4
