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

/// The sources of all lanes, for constant b and c.
struct fp4::sim::ShuffleMap {
  uint8_t from[32];
  uint32_t inRange;
};

namespace {

/// The lane to read from; `inRange` as the ISA defines it.
int shflSource(ShuffleMode mode, int lane, uint32_t b, uint32_t c, bool &inRange) {
  int bval = static_cast<int>(b & 31), segment = static_cast<int>(c >> 8 & 31);
  int limit = (lane & segment) | (static_cast<int>(c & 31) & ~segment);
  int from = lane;
  switch (mode) {
  case ShuffleMode::Up:
    from = lane - bval;
    inRange = from >= limit;
    break;
  case ShuffleMode::Down:
    from = lane + bval;
    inRange = from <= limit;
    break;
  case ShuffleMode::Butterfly:
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

ShuffleMap makeShuffleMap(ShuffleMode mode, uint32_t b, uint32_t c) {
  ShuffleMap map{};
  for (int lane = 0; lane < 32; ++lane) {
    bool in = false;
    map.from[lane] = static_cast<uint8_t>(shflSource(mode, lane, b, c, in));
    map.inRange |= uint32_t(in) << lane;
  }
  return map;
}

/// Maps are few and live as long as the process: instructions point to them.
const ShuffleMap *internShuffleMap(ShuffleMode mode, uint32_t b, uint32_t c) {
  static std::mutex lock;
  static std::map<std::tuple<ShuffleMode, uint32_t, uint32_t>, ShuffleMap> maps;
  std::lock_guard<std::mutex> guard(lock);
  auto [entry, fresh] = maps.try_emplace({mode, b & 31, c & 0x1F1F});
  if (fresh)
    entry->second = makeShuffleMap(mode, b, c);
  return &entry->second;
}

void shflConstant(ExecContext &cx, const Insn &insn) {
  const ShuffleMap *map = insn.as<ShuffleModifiers>().map;
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
  const ShuffleMode mode = insn.as<ShuffleModifiers>().mode;
  Lanes<uint32_t> result;
  uint32_t inRange = 0;
  for (int lane = 0; lane < 32; ++lane) {
    bool in = false;
    result.v[lane] = a[shflSource(mode, lane, b[lane], c[lane], in)];
    inRange |= uint32_t(in) << lane;
  }
  commit(cx, insn.op[0], result);
  cx.setPredicate(insn.op[1], inRange);
}

void vote(ExecContext &cx, const Insn &insn) {
  uint32_t trues = cx.predicate(insn.op[1]) & cx.mask;
  const VoteMode mode = insn.as<VoteModifiers>().mode;
  bool result = mode == VoteMode::All   ? trues == cx.mask
                : mode == VoteMode::Any ? trues != 0
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

template <typename T> T reduce(ReduxOp op, T x, T y) {
  switch (op) {
  case ReduxOp::Add:
    return static_cast<T>(uint32_t(x) + uint32_t(y));
  case ReduxOp::Min:
    return x < y ? x : y;
  case ReduxOp::Max:
    return x > y ? x : y;
  case ReduxOp::And:
    return x & y;
  case ReduxOp::Or:
    return x | y;
  default:
    return x ^ y;
  }
}

template <typename T> void redux(ExecContext &cx, const Insn &insn) {
  const T *a = cx.src<T>(insn.op[1]);
  const ReduxOp op = insn.as<ReduxModifiers>().op;
  T value = a[cx.firstLane()];
  for (uint32_t rest = cx.mask & (cx.mask - 1); rest; rest &= rest - 1)
    value = reduce<T>(op, value, a[std::countr_zero(rest)]);
  cx.store<T>(insn.op[0], [&](int) { return value; });
}

void reduxFloat(ExecContext &cx, const Insn &insn) {
  const auto &how = insn.as<ReduxModifiers>();
  const float *a = cx.src<float>(insn.op[1]);
  float value = std::bit_cast<float>(kNaN32);
  bool sawNaN = false, max = how.op == ReduxOp::Max;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    float x = a[std::countr_zero(rest)];
    if (how.abs)
      x = std::fabs(x);
    if (x != x) {
      sawNaN = true;
      continue;
    }
    bool take = value != value || (x == value ? std::signbit(x) != max : (x > value) == max);
    value = take ? x : value;
  }
  if (sawNaN && how.nan)
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
  const auto mode = cx.match.pick<ShuffleMode>("mode");
  auto &how = cx.insn.make<ShuffleModifiers>({nullptr, mode});
  const Operand &b = cx.insn.op[3], &c = cx.insn.op[4];
  if (b.bank != kConstBank || c.bank != kConstBank)
    return useFor(cx, cx.insn.type == Type::B32 ? together<shfl, 5> : nullptr);
  how.map = internShuffleMap(mode, static_cast<uint32_t>(b.imm), static_cast<uint32_t>(c.imm));
  return useFor(cx, cx.insn.type == Type::B32 ? together<shflConstant, 5> : nullptr);
}

Status bindVote(BindContext &cx) {
  cx.insn.make<VoteModifiers>({cx.match.pick<VoteMode>("mode")});
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
  const auto op = cx.match.pick<ReduxOp>("op");
  const auto &how = insn.make<ReduxModifiers>({op, cx.match.has("abs"), cx.match.has("NaN")});
  if (insn.type == Type::F32)
    return op == ReduxOp::Min || op == ReduxOp::Max ? cx.use(together<reduxFloat, 2>)
                                                    : useFor(cx, nullptr);
  if (how.abs || how.nan)
    return cx.fail("'.abs' and '.NaN' need .f32");
  bool bitwise = op >= ReduxOp::And;
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
