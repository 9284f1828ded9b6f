//===- Routes.h - The table of routes of GEMMs ----------------------------===//
//
// A signature says what a GEMM multiplies, and a route how it reaches the tensor core. Routes.def
// has all routes; the verifier, the planner, lowerings, the reference and the documents read this
// one table.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Routes/Route.h"

#include "fp4/ISA/TargetModel.h"
#include "fp4/Numerics/BlockScaledGemm.h"
#include "fp4/Numerics/Formats.h"

#include <vector>

namespace fp4::route {

//===--- Signatures ------------------------------------------------------===//

/// Activations with scales; bf16 and f16; f8E4M3FN without scales.
enum class Activations : uint8_t { Scaled, Half, E4M3 };
/// Elements with scales of their own; the tiles of fp4.prepack, which contain them.
enum class Weights : uint8_t { Scaled, Prepacked };
/// The attribute `arithmetic` of a matmul, in its order.
enum class Arithmetic : uint8_t { TensorCore, Fma, K96, Fast, DoubleK };

/// GEMMs that a pair or a route may lack: of groups, of two rhs, with quantized results or an amax,
/// of workers that share tiles.
enum class Limit : uint8_t {
#define FP4_LIMIT(Enumerator, word, words) Enumerator,
#include "fp4/Routes/Routes.def"
};

/// The facts of a GEMM that the types and attributes of its operation say.
struct Signature {
  Activations activations = Activations::Scaled;
  Weights weights = Weights::Scaled;
  numerics::BlockFormat lhs{}, rhs{}; ///< formats; of activations without scales, the weights' own
  Arithmetic arithmetic = Arithmetic::TensorCore;
  uint32_t traits = 0; ///< bits of Limit: what routes may lack

  bool has(Limit limit) const { return traits >> static_cast<unsigned>(limit) & 1; }
  Signature with(Limit limit, bool holds = true) const;
};

/// Pairs of operands that have the same routes.
enum class Pair : uint8_t {
#define FP4_PAIR(Enumerator, words, Activations, Weights, Arithmetic, formats, limits, Other,      \
                 remedy)                                                                           \
  Enumerator,
#include "fp4/Routes/Routes.def"
};

/// Returns the pair of `signature`. The error says which pairs there are: those nearest to it, or
/// where the pair lacks GEMMs of its kind, those that have some.
Expected<Pair> requirePair(const Signature &signature);
/// Returns the same pair of a signature that has one, also where it lacks such GEMMs.
Pair pairOf(const Signature &signature);
/// "elements of 6 bits".
std::string_view wordsOf(Pair pair);

//===--- The table -------------------------------------------------------===//

/// Planners of GEMMs, each of which chooses among routes.
enum class Planner : uint8_t {
#define FP4_PLANNER(Enumerator) Enumerator,
#include "fp4/Routes/Routes.def"
};

/// The matrix whose rows, columns and depth the tile of a plan has.
enum class Tile : uint8_t { Result, Transpose };

/// A row of the table.
struct Record {
  Route route;     ///< complete
  uint32_t pairs;  ///< bits of the pairs that have the route
  uint32_t limits; ///< bits of Limit: GEMMs that do not have it
  uint32_t fields; ///< bits of the fields of plans that it reads and some others do not
  Planner planner; ///< the one that chooses among its routes
  Tile tile;
  numerics::TensorCore unit; ///< the model of the arithmetic

  bool isOf(Pair pair) const { return pairs >> static_cast<unsigned>(pair) & 1; }
  /// Returns true when the route reads `field` of a plan, by its name there.
  bool reads(std::string_view field) const;
  bool isSwapped() const { return route.orientation == Orientation::Swapped; }
};

std::span<const Record> table();

/// Returns the routes of `signature` on `target`, the usual one first.
std::vector<const Record *> routesOf(const Signature &signature, const hw::TargetModel &target);

/// Returns the first route of `signature` on `target` that agrees with `said`; null where there is
/// none.
const Record *findRoute(const Signature &signature, const hw::TargetModel &target,
                        const Route &said = {});

/// Returns the same route. The error says what the target has, and which targets have what was
/// asked for.
Expected<const Record *> requireRoute(const Signature &signature, const hw::TargetModel &target,
                                      const Route &said = {});

/// Returns the core of `signature` on `target`, which all of its routes share; nothing where it has
/// no route.
std::optional<Core> coreOf(const Signature &signature, const hw::TargetModel &target);

/// Returns the model of the arithmetic of `signature`. All routes of a signature on a target have
/// one model. The model of a target without a route is that of the pair's first route.
const Record &modelOf(const Signature &signature, const hw::TargetModel &target);

/// Returns why `target` has no route for `pair`; empty where it has one.
std::string_view reasonOfLack(Pair pair, const hw::TargetModel &target);
/// Returns why no route of `pair` on `core` has GEMMs of `limit`; empty where nobody says it.
std::string_view reasonOfLack(Pair pair, Core core, Limit limit);

/// Returns the routes of `target`, one in a line, below a line of headings. Lines behind them say
/// why there is none for other operands.
std::string listRoutes(const hw::TargetModel &target);

} // namespace fp4::route
