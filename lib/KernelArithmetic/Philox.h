//===- Philox.h - Random words inside a kernel ----------------------------===//
//
// Emits the random bits of fp4/Numerics/StochasticRounding.h: Philox4x32-10 (two
// 32 x 32 -> 64 bit multiplications and two three-input exclusive ors per round),
// and the two mappings from the place of an element to a counter. Seed and offset
// come from a buffer, so that a captured launch can be replayed with other
// numbers.
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Numerics/StochasticRounding.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <array>

namespace fp4 {

/// The 128 bits of a counter.
using RandomWords = std::array<mlir::Value, 4>;

class PhiloxStream {
public:
  /// Reads seed and offset, two i64 at `rng`. Emit it outside of loops.
  PhiloxStream(mlir::ImplicitLocOpBuilder &builder, mlir::Value rng);

  /// The four i32 words of counter `offset + draw` of `subsequence`; both i64, no draw is 0.
  RandomWords words(mlir::Value subsequence, mlir::Value draw = {});

private:
  mlir::ImplicitLocOpBuilder &b;
  mlir::Value seed, offset;
};

/// The facts about the output matrix, whose elements are rounded, that the mapping needs.
struct RandomSide {
  numerics::PhiloxMapping mapping = numerics::PhiloxMapping::Element;
  bool columnwise = false;   ///< the output is the transposed input
  bool afterRowwise = false; ///< column-wise, in the launch that writes the row-wise output
  int64_t inputColumns = 0;
  mlir::Value groupsPerRow; ///< i32: groups of 16 in a row of the output, rounded up
  mlir::Value firstGroup;   ///< i64: groups of the matrices before this one; none is 0
};

/// The random words of one output, one for four elements.
class GroupRandom {
public:
  GroupRandom(mlir::ImplicitLocOpBuilder &builder, mlir::Value rng, const RandomSide &side)
      : b(builder), philox(builder, rng), side(side) {}

  /// Random words of block number `block` of `row`, of `blockSize` elements, 16 or 32; i32.
  llvm::SmallVector<mlir::Value> words(mlir::Value row, mlir::Value block, int64_t blockSize);
  /// Random words where the row does not matter, of block number `index`, counted through all rows.
  llvm::SmallVector<mlir::Value> words(mlir::Value index, int64_t blockSize);

private:
  RandomWords groupWords(mlir::Value row, mlir::Value group);
  RandomWords groupWords(mlir::Value index);
  RandomWords blockwiseWords(mlir::Value row, mlir::Value group);

  mlir::ImplicitLocOpBuilder &b;
  PhiloxStream philox;
  RandomSide side;
};

} // namespace fp4
