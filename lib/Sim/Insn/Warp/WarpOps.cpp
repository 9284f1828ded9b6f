//===- WarpOps.cpp - Instructions across the lanes of a warp --------------===//
// PTX ISA 9.7.9.6 shfl.sync, 9.7.13 vote, match, redux, elect, activemask.
#include "Sim/Insn/Lanes.h"
#include "Sim/Insn/Scalar/Floats.h"
#include "Sim/Insn/Warp/Members.h"
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <tuple>

using namespace fp4;
using namespace fp4::sim;

namespace {

enum ShflMode : uint8_t { Up, Down, Bfly, Idx };

/// The lane to read from; `inRange` as the ISA defines it.
int shflSource(uint8_t mode, int lane, uint32_t b, uint32_t c, bool &inRange) {
  int bval = static_cast<int>(b & 31), segment = static_cast<int>(c >> 8 & 31);
  int limit = (lane & segment) | (static_cast<int>(c & 31) & ~segment);
  int from = lane;
  switch (mode) {
  case Up:
    from = lane - bval;
    inRange = from >= limit;
    break;
  case Down:
    from = lane + bval;
    inRange = from <= limit;
    break;
  case Bfly:
    from = lane ^ bval;
    inRange = from <= limit;
    break;
  default:
    from = (lane & segment) | (bval & ~segment);
    inRange = from <= limit;
    break;
  }
  return inRange ? from : lane;
}

/// The sources of all lanes, for constant b and c.
struct ShflMap {
  uint8_t from[32];
  uint32_t inRange;
};

ShflMap makeShflMap(uint8_t mode, uint32_t b, uint32_t c) {
  ShflMap map{};
  for (int lane = 0; lane < 32; ++lane) {
    bool in = false;
    map.from[lane] = static_cast<uint8_t>(shflSource(mode, lane, b, c, in));
    map.inRange |= uint32_t(in) << lane;
  }
  return map;
}

/// Maps are few and live as long as the process: instructions point to them.
const ShflMap *internShflMap(uint8_t mode, uint32_t b, uint32_t c) {
  static std::mutex lock;
  static std::map<std::tuple<uint8_t, uint32_t, uint32_t>, ShflMap> maps;
  std::lock_guard<std::mutex> guard(lock);
  auto [entry, fresh] = maps.try_emplace({mode, b & 31, c & 0x1F1F});
  if (fresh)
    entry->second = makeShflMap(mode, b, c);
  return &entry->second;
}

/// u = the map.
void shflConstant(ExecContext &cx, const Insn &insn) {
  const auto *map = reinterpret_cast<const ShflMap *>(insn.u);
  const uint32_t *a = cx.src<uint32_t>(insn.op[2]);
  Lanes<uint32_t> result;
  for (int lane = 0; lane < 32; ++lane)
    result.v[lane] = a[map->from[lane]];
  commit(cx, insn.op[0], result);
  cx.setPredicate(insn.op[1], map->inRange);
}

void shfl(ExecContext &cx, const Insn &insn) {
  const uint32_t *a = cx.src<uint32_t>(insn.op[2]), *b = cx.src<uint32_t>(insn.op[3]);
  const uint32_t *c = cx.src<uint32_t>(insn.op[4]);
  Lanes<uint32_t> result;
  uint32_t inRange = 0;
  for (int lane = 0; lane < 32; ++lane) {
    bool in = false;
    result.v[lane] = a[shflSource(insn.m[0], lane, b[lane], c[lane], in)];
    inRange |= uint32_t(in) << lane;
  }
  commit(cx, insn.op[0], result);
  cx.setPredicate(insn.op[1], inRange);
}

enum VoteMode : uint8_t { All, Any, Uni };

void vote(ExecContext &cx, const Insn &insn) {
  uint32_t trues = cx.predicate(insn.op[1]) & cx.mask;
  bool result = insn.m[0] == All   ? trues == cx.mask
                : insn.m[0] == Any ? trues != 0
                                   : trues == 0 || trues == cx.mask;
  cx.setPredicate(insn.op[0], result ? kAllLanes : 0);
}

void ballot(ExecContext &cx, const Insn &insn) {
  uint32_t trues = cx.predicate(insn.op[1]) & cx.mask;
  cx.store<uint32_t>(insn.op[0], [&](int) { return trues; });
}

template <typename T> void matchAny(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  Lanes<uint32_t> result{};
  for (int lane = 0; lane < 32; ++lane)
    for (int other = 0; other < 32; ++other)
      if ((cx.mask >> other & 1) && a[other] == a[lane])
        result.v[lane] |= 1u << other;
  commit(cx, insn.op[0], result);
}

template <typename T> void matchAll(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[2]);
  bool same = true;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    same &= a[std::countr_zero(rest)] == a[cx.firstLane()];
  cx.store<uint32_t>(insn.op[0], [&](int) { return same ? cx.mask : 0; });
  cx.setPredicate(insn.op[1], same ? kAllLanes : 0);
}

enum ReduxOp : uint8_t { Add, Min, Max, And, Or, Xor };

template <typename T> T reduce(uint8_t op, T x, T y) {
  switch (op) {
  case Add:
    return static_cast<T>(uint32_t(x) + uint32_t(y));
  case Min:
    return x < y ? x : y;
  case Max:
    return x > y ? x : y;
  case And:
    return x & y;
  case Or:
    return x | y;
  default:
    return x ^ y;
  }
}

template <typename T> void redux(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  T value = a[cx.firstLane()];
  for (uint32_t rest = cx.mask & (cx.mask - 1); rest; rest &= rest - 1)
    value = reduce<T>(insn.m[0], value, a[std::countr_zero(rest)]);
  cx.store<T>(insn.op[0], [&](int) { return value; });
}

/// m[1] = abs, m[2] = NaN propagates.
void reduxFloat(ExecContext &cx, const Insn &insn) {
  const float *a = cx.src<float>(insn.op[1]);
  float value = std::bit_cast<float>(kNaN32);
  bool sawNaN = false, max = insn.m[0] == Max;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    float x = a[std::countr_zero(rest)];
    if (insn.m[1])
      x = std::fabs(x);
    if (x != x) {
      sawNaN = true;
      continue;
    }
    bool take = value != value || (x == value ? std::signbit(x) != max : (x > value) == max);
    value = take ? x : value;
  }
  if (sawNaN && insn.m[2])
    value = std::bit_cast<float>(kNaN32);
  cx.store<float>(insn.op[0], [&](int) { return value; });
}

/// The lowest member leads; PTX leaves the choice open.
void elect(ExecContext &cx, const Insn &insn) {
  auto leader = static_cast<uint32_t>(cx.firstLane());
  cx.store<uint32_t>(insn.op[0], [&](int) { return leader; });
  cx.setPredicate(insn.op[1], 1u << leader);
}

Outcome activemask(ExecContext &cx, const Insn &insn) {
  cx.store<uint32_t>(insn.op[0], [&](int) { return cx.mask; });
  return Outcome::Next;
}

} // namespace

namespace fp4::sim {

Status bindShfl(BindContext &cx) {
  cx.insn.m[0] = static_cast<uint8_t>(cx.match.choice("mode"));
  const Operand &b = cx.insn.op[3], &c = cx.insn.op[4];
  if (b.bank != kConstBank || c.bank != kConstBank)
    return useFor(cx, cx.insn.type == Type::B32 ? together<shfl, 5> : nullptr);
  cx.insn.u = reinterpret_cast<uint64_t>(
      internShflMap(cx.insn.m[0], static_cast<uint32_t>(b.imm), static_cast<uint32_t>(c.imm)));
  return useFor(cx, cx.insn.type == Type::B32 ? together<shflConstant, 5> : nullptr);
}

Status bindVote(BindContext &cx) {
  cx.insn.m[0] = static_cast<uint8_t>(cx.match.choice("mode"));
  return cx.use(together<vote, 2>);
}

Status bindBallot(BindContext &cx) {
  return useFor(cx, cx.insn.type == Type::B32 ? together<ballot, 2> : nullptr);
}

Status bindMatchAny(BindContext &cx) {
  if (cx.insn.type == Type::B32)
    return cx.use(together<matchAny<uint32_t>, 2>);
  return useFor(cx, cx.insn.type == Type::B64 ? together<matchAny<uint64_t>, 2> : nullptr);
}

Status bindMatchAll(BindContext &cx) {
  if (cx.insn.type == Type::B32)
    return cx.use(together<matchAll<uint32_t>, 3>);
  return useFor(cx, cx.insn.type == Type::B64 ? together<matchAll<uint64_t>, 3> : nullptr);
}

Status bindRedux(BindContext &cx) {
  Insn &insn = cx.insn;
  auto op = static_cast<ReduxOp>(cx.match.choice("op"));
  insn.m[0] = op;
  insn.m[1] = cx.match.has("abs");
  insn.m[2] = cx.match.has("NaN");
  if (insn.type == Type::F32)
    return op == Min || op == Max ? cx.use(together<reduxFloat, 2>) : useFor(cx, nullptr);
  if (insn.m[1] || insn.m[2])
    return cx.fail("'.abs' and '.NaN' need .f32");
  bool bitwise = op >= And;
  if (bitwise != (insn.type == Type::B32))
    return useFor(cx, nullptr);
  return useFor(cx, insn.type == Type::S32    ? together<redux<int32_t>, 2>
                    : bitsOf(insn.type) == 32 ? together<redux<uint32_t>, 2>
                                              : nullptr);
}

Status bindElect(BindContext &cx) { return cx.use(together<elect, 2>); }

Status bindActivemask(BindContext &cx) {
  return useFor(cx, cx.insn.type == Type::B32 ? activemask : nullptr);
}

} // namespace fp4::sim
