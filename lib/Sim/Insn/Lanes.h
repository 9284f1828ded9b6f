//===- Lanes.h - Handlers from per-lane functions -------------------------===//
//
// Most instructions compute each lane from the same lane of their sources. lanewise<F, D, S...> is
// the handler of such an instruction: D is the destination's element type, S the sources', and F a
// function object. The result goes to a local array first, so that the loop vectorises whatever
// registers the instruction names, and is then written to the active lanes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Decode.h"
#include "Sim/State/ExecContext.h"
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

/// Registers are the same or apart: a loop over lanes may write one while it reads another.
#if defined(__clang__)
#define FP4_LANES_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define FP4_LANES_INDEPENDENT _Pragma("GCC ivdep")
#else
#define FP4_LANES_INDEPENDENT
#endif

namespace fp4::sim {

template <typename T> struct alignas(64) Lanes {
  T v[32];
};

/// All ones or zeros for each of four lanes, by a nibble of a lane mask.
inline constexpr auto kNibbleMasks = [] {
  std::array<std::array<uint32_t, 4>, 16> table{};
  for (uint32_t nibble = 0; nibble < 16; ++nibble)
    for (uint32_t i = 0; i < 4; ++i)
      table[nibble][i] = nibble >> i & 1 ? ~0u : 0u;
  return table;
}();

/// d = mask ? a : b, lane by lane.
template <typename T> inline void select(T *d, const T *a, const T *b, uint32_t mask) {
  if constexpr (sizeof(T) == 4) {
    uint32_t x[32], y[32];
    std::memcpy(x, a, sizeof(x));
    std::memcpy(y, b, sizeof(y));
    for (unsigned n = 0; n < 8; ++n) {
      const auto &choose = kNibbleMasks[mask >> (4 * n) & 15];
      for (unsigned i = 0; i < 4; ++i)
        x[4 * n + i] = (x[4 * n + i] & choose[i]) | (y[4 * n + i] & ~choose[i]);
    }
    std::memcpy(d, x, sizeof(x));
  } else {
    for (unsigned lane = 0; lane < 32; ++lane)
      d[lane] = mask >> lane & 1 ? a[lane] : b[lane];
  }
}

/// Writes the active lanes of a register.
template <typename T>
inline void commit(const ExecContext &cx, const Operand &destination, const Lanes<T> &result) {
  T *d = cx.dst<T>(destination);
  if (cx.mask == kAllLanes) {
    std::memcpy(d, result.v, sizeof(result.v));
    return;
  }
  if constexpr (sizeof(T) == 4) {
    select(d, result.v, d, cx.mask);
    return;
  }
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    d[lane] = result.v[lane];
  }
}

namespace detail {
template <typename F, typename D, typename... S, size_t... I>
inline Outcome lanewiseImpl(ExecContext &cx, const Insn &insn, std::index_sequence<I...>) {
  auto sources = std::make_tuple(cx.src<S>(insn.op[I + 1])...);
  if (cx.mask == kAllLanes) {
    D *d = cx.dst<D>(insn.op[0]);
    FP4_LANES_INDEPENDENT
    for (int lane = 0; lane < 32; ++lane)
      d[lane] = static_cast<D>(F()(std::get<I>(sources)[lane]...));
    return Outcome::Next;
  }
  Lanes<D> result;
  for (int lane = 0; lane < 32; ++lane)
    result.v[lane] = static_cast<D>(F()(std::get<I>(sources)[lane]...));
  commit(cx, insn.op[0], result);
  return Outcome::Next;
}
} // namespace detail

/// op[0] = F(op[1], op[2], ...)
template <typename F, typename D, typename... S>
Outcome lanewise(ExecContext &cx, const Insn &insn) {
  return detail::lanewiseImpl<F, D, S...>(cx, insn, std::index_sequence_for<S...>());
}

/// Handlers by integer type. Signed and unsigned B types count as unsigned.
template <template <typename> class H> Handler pickInteger(Type type) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return H<uint16_t>::run;
  case Type::S16:
    return H<int16_t>::run;
  case Type::U32:
  case Type::B32:
    return H<uint32_t>::run;
  case Type::S32:
    return H<int32_t>::run;
  case Type::U64:
  case Type::B64:
    return H<uint64_t>::run;
  case Type::S64:
    return H<int64_t>::run;
  default:
    return nullptr;
  }
}

/// Installs `handler`, or reports the type as not usable here.
inline Status useFor(BindContext &cx, Handler handler) {
  if (!handler)
    return cx.fail(std::string("does not work on .") + std::string(spelling(cx.insn.type)));
  return cx.use(handler);
}

} // namespace fp4::sim
