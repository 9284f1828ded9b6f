//===- Route.h - The axes of a route --------------------------------------===//
//
// A route says how a GEMM reaches the tensor core: the core, the form in which each operand of an
// instruction reaches the core, the place of the sums, and the operand of the op that is A.
// Routes.h has the table of all routes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fp4::hw {
struct TargetModel;
}

namespace fp4::route {

enum class Core : uint8_t {
#define FP4_CORE(Enumerator, word, ptx, needs) Enumerator,
#include "fp4/Routes/Axes.def"
};

/// The form in which an operand of an instruction reaches the core.
enum class Operand : uint8_t {
#define FP4_OPERAND(Enumerator, word, meaning) Enumerator,
#include "fp4/Routes/Axes.def"
};

enum class Accumulate : uint8_t {
#define FP4_ACCUMULATE(Enumerator, word, meaning) Enumerator,
#include "fp4/Routes/Axes.def"
};

enum class Orientation : uint8_t {
#define FP4_ORIENTATION(Enumerator, word, meaning) Enumerator,
#include "fp4/Routes/Axes.def"
};

/// The words of an axis, by the number of the enumerator.
template <typename Word> std::span<const std::string_view> wordsOf();
template <> std::span<const std::string_view> wordsOf<Core>();
template <> std::span<const std::string_view> wordsOf<Operand>();
template <> std::span<const std::string_view> wordsOf<Accumulate>();
template <> std::span<const std::string_view> wordsOf<Orientation>();

template <typename Word> std::string_view wordOf(Word word) {
  return wordsOf<Word>()[static_cast<size_t>(word)];
}

/// "tcgen05", "wgmma", "mma.sync", "fma".
std::string_view ptxName(Core core);
bool hasCore(const hw::TargetModel &target, Core core);
/// Fails with "target 'sm_90a' has no tcgen05" and the targets that have the core.
Status requireCore(const hw::TargetModel &target, Core core);

/// A route, or the axes of one that somebody asks for: an axis without a value is open.
struct Route {
  std::optional<Core> core = std::nullopt;
  std::optional<Operand> a = std::nullopt, b = std::nullopt; ///< operands of an instruction
  std::optional<Accumulate> accumulate = std::nullopt;
  std::optional<Orientation> orientation = std::nullopt;

  /// Forms of the operands of the op: A is the rhs where they are swapped.
  std::optional<Operand> lhs() const { return orientation == Orientation::Swapped ? b : a; }
  std::optional<Operand> rhs() const { return orientation == Orientation::Swapped ? a : b; }

  bool operator==(const Route &) const = default;
  bool isOpen() const { return *this == Route(); }
  bool isComplete() const { return core && a && b && accumulate && orientation; }
  /// Returns this route, with its open axes taken from `other`.
  Route orElse(const Route &other) const;
  /// Returns true when no axis has another value than the same axis of `other`.
  bool agreesWith(const Route &other) const { return orElse(other) == other.orElse(*this); }
  /// "<core = wgmma, a = registers, b = shared, accumulate = core, orientation = normal>", without
  /// open axes.
  std::string str() const;
};

/// Calls `body` with the name and the value of each axis of `route`, in the order of the text.
template <typename AnyRoute, typename Body> void forEachAxis(AnyRoute &route, Body body) {
  body(std::string_view("core"), route.core);
  body(std::string_view("a"), route.a);
  body(std::string_view("b"), route.b);
  body(std::string_view("accumulate"), route.accumulate);
  body(std::string_view("orientation"), route.orientation);
}

} // namespace fp4::route
