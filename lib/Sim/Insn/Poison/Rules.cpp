//===- Rules.cpp - The shadow of a result, by PoisonRule ------------------===//
//
// As MemorySanitizer has it: exact where bits only move and where logic decides, all of the result
// where arithmetic mixes. Instructions that move bits say themselves where to: their handlers are
// executed once more, on shadows.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Poison/Rules.h"
#include "Sim/Decode/OperandRoles.h"
#include "Sim/Insn/Poison/Propagate.h"
#include <algorithm>
#include <bit>
#include <cstring>

using namespace fp4;
using namespace fp4::sim;

using Bits = PoisonStep::Bits;

static size_t bytesIn(const Operand &o) {
  return o.kind == OperandKind::Pred ? sizeof(uint32_t) : size_t(32) * o.width;
}

static Bits laneOf(const std::byte *rows, const Operand &o, unsigned lane) {
  Bits bits = 0;
  if (o.kind == OperandKind::Pred)
    return unsigned(rows[lane / 8]) >> lane % 8 & 1;
  std::memcpy(&bits, rows + size_t(lane) * o.width, o.width);
  return bits;
}

static Bits onesBelow(unsigned count) { return count >= 128 ? ~Bits(0) : (Bits(1) << count) - 1; }

//===----------------------------------------------------------------------===//
// Sources and results
//===----------------------------------------------------------------------===//

PoisonStep::PoisonStep(ExecContext &cx, const Insn &insn)
    : cx(cx), insn(insn), poison(cx.poison()) {
  forEachOperand(cx.kernel(), insn, true, [&](size_t, const Operand &o) { results.push_back(o); });
  forEachOperand(cx.kernel(), insn, false, [&](size_t, const Operand &o) { takeOrigins(o); });
  size_t at = 0;
  for (const PatternItem &item : rowOf(insn).pattern)
    for (unsigned n = 0; n < item.operands() && at < insn.op.size(); ++n, ++at)
      if (!isDestination(item.kind))
        takeSource(at);
}

void PoisonStep::takeOrigins(const Operand &o) {
  if (!poison.has(o))
    return;
  const uint32_t bad = poison.lanesOf(o);
  poisoned |= bad;
  for (uint32_t rest = bad; rest; rest &= rest - 1)
    origins[size_t(std::countr_zero(rest))] = poison.origin(o.offset, std::countr_zero(rest));
}

void PoisonStep::takeSource(size_t at) {
  const Operand &o = insn.op[at];
  if (o.kind != OperandKind::Reg && o.kind != OperandKind::Pred)
    return;
  const std::byte *rows = cx.src<std::byte>(o);
  std::memcpy(&values[at * slot], rows, bytesIn(o));
  Source source{at, {}, {}};
  const bool has = poison.has(o);
  for (unsigned lane = 0; lane < 32; ++lane) {
    source.value[lane] = laneOf(rows, o, lane) ^ Bits(o.kind == OperandKind::Pred && o.negated);
    if (has)
      source.shadow[lane] = laneOf(poison.registers() + o.offset, o, lane);
  }
  sources.push_back(source);
}

/// Returns the source of an operand; one that is absent or a vector has neither bits nor poison.
const PoisonStep::Source &PoisonStep::source(size_t at) const {
  static const Source none;
  const auto found = std::ranges::find(sources, at, &Source::at);
  return found == sources.end() ? none : *found;
}

/// The operand as a handler finds it in `values`.
Operand PoisonStep::inValues(size_t at) const {
  Operand o = insn.op[at];
  if (o) {
    o.bank = kValueBank;
    o.offset = uint32_t(at * slot);
  }
  return o;
}

uint32_t PoisonStep::valueMask(size_t at) const {
  uint32_t mask = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    mask |= uint32_t(source(at).value[lane] & 1) << lane;
  return mask;
}

uint32_t PoisonStep::shadowMask(size_t at) const {
  uint32_t mask = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    mask |= uint32_t(source(at).shadow[lane] != 0) << lane;
  return mask;
}

Bits PoisonStep::allOf(const Operand &o) const {
  return o.kind == OperandKind::Pred ? 1 : onesBelow(8u * o.width);
}

void PoisonStep::setShadow(const Operand &o, int lane, Bits bits) {
  std::byte *shadow = poison.registers() + o.offset;
  if (o.kind == OperandKind::Pred) {
    uint32_t mask;
    std::memcpy(&mask, shadow, sizeof(mask));
    mask = (mask & ~(1u << lane)) | uint32_t(bits & 1) << lane;
    std::memcpy(shadow, &mask, sizeof(mask));
    return;
  }
  std::memcpy(shadow + size_t(lane) * o.width, &bits, o.width);
}

template <typename F> void PoisonStep::forEachLane(const F &f) const {
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    f(std::countr_zero(rest));
}

/// Calls f(lanes) for each set of lanes that name the same members.
template <typename F> void PoisonStep::forEachMembers(size_t operand, const F &f) const {
  for (uint32_t rest = lanes; rest;) {
    uint32_t same = 0;
    const Bits members = source(operand).value[size_t(std::countr_zero(rest))];
    for (uint32_t left = rest; left; left &= left - 1)
      if (source(operand).value[size_t(std::countr_zero(left))] == members)
        same |= left & (0 - left);
    f(same);
    rest &= ~same;
  }
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// The handler on shadows; the operands of the mask have their true values.
void PoisonStep::runOnShadows(uint32_t valueOperands) {
  Insn copy = insn;
  for (size_t at = 0; at < copy.op.size(); ++at)
    if (valueOperands >> at & 1)
      copy.op[at] = inValues(at);
    else if (copy.op[at].kind == OperandKind::Pred)
      copy.op[at].negated = false;
  if (insn.poison == PoisonRule::Shuffle)
    copy.op[1] = {}; // says which lanes were in range
  ShadowRegisters shadows(cx, values.data());
  cx.mask = lanes;
  copy.handler(cx, copy);
}

void PoisonStep::move() {
  uint32_t blurred = 0; // lanes that do not know where to
  for (const Source &source : sources)
    if (insn.poisonArgument >> source.at & 1)
      blurred |= shadowMask(source.at);
  runOnShadows(insn.poisonArgument);
  forEachLane([&](int lane) {
    for (const Operand &o : results)
      if (blurred >> lane & 1)
        setShadow(o, lane, allOf(o));
  });
}

void PoisonStep::parts() {
  const unsigned count = std::max<unsigned>(insn.poisonArgument, 1);
  const unsigned from = bitsOf(insn.type) / count;
  forEachLane([&](int lane) {
    for (const Operand &o : results) {
      const unsigned to = 8u * o.width / count;
      Bits bits = 0;
      for (unsigned part = 0; part < count && count > 1; ++part)
        for (const Source &source : sources)
          if (source.shadow[size_t(lane)] >> (part * from) & onesBelow(from))
            bits |= onesBelow(to) << (part * to);
      if (count == 1 || o.kind == OperandKind::Pred)
        bits = poisoned >> lane & 1 ? allOf(o) : 0;
      setShadow(o, lane, bits);
    }
  });
}

void PoisonStep::pack() {
  const unsigned half = insn.poisonArgument / 2u;
  forEachLane([&](int lane) {
    const Bits high = source(1).shadow[size_t(lane)] ? onesBelow(half) << half : 0;
    const Bits low = source(2).shadow[size_t(lane)] ? onesBelow(half) : 0;
    setShadow(results[0], lane, high | low);
  });
}

void PoisonStep::fill() {
  forEachLane([&](int lane) {
    Bits bits = 0;
    for (const Source &source : sources)
      bits |= source.shadow[size_t(lane)];
    const Bits lowest = bits & (0 - bits);
    setShadow(results[0], lane, bits ? ~(lowest - 1) : 0);
  });
}

void PoisonStep::carry() {
  const CarryModifiers use = carryOf(insn);
  uint32_t bad = poisoned & lanes;
  if (use.uses && poison.carry & lanes & ~bad) {
    for (uint32_t rest = poison.carry & lanes & ~bad; rest; rest &= rest - 1)
      origins[size_t(std::countr_zero(rest))] = poison.carryOrigin;
    bad |= poison.carry & lanes;
  }
  if (use.sets)
    poison.carry = (poison.carry & ~lanes) | bad;
  if (use.sets && bad)
    poison.carryOrigin = origins[size_t(std::countr_zero(bad))];
  forEachLane([&](int lane) {
    setShadow(results[0], lane, bad >> lane & 1 ? allOf(results[0]) : 0);
  });
}

/// Bit by bit, the result for which `table` has a bit; lop3 counts them so.
static Bits lookUp(unsigned table, Bits a, Bits b, Bits c) {
  Bits result = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1)
      result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

/// A bit of the result has poison when it depends on bits that have.
void PoisonStep::logic() {
  const unsigned table =
      insn.poisonArgument == kLogicOfOperand ? unsigned(insn.op[4].imm) : insn.poisonArgument;
  forEachLane([&](int lane) {
    Bits low[3], high[3]; // each poisoned bit as zero and as one
    for (size_t i = 0; i < 3; ++i) {
      const Source &s = source(i + 1);
      low[i] = s.value[size_t(lane)] & ~s.shadow[size_t(lane)];
      high[i] = low[i] | s.shadow[size_t(lane)];
    }
    Bits bits = 0;
    const Bits first = lookUp(table, low[0], low[1], low[2]);
    for (unsigned n = 1; n < 8 && poisoned >> lane & 1; ++n)
      bits |= first ^ lookUp(table, n & 4 ? high[0] : low[0], n & 2 ? high[1] : low[1],
                             n & 1 ? high[2] : low[2]);
    setShadow(results[0], lane, bits & allOf(results[0]));
  });
}

/// With a poisoned choice, bits in which both agree are clean.
void PoisonStep::select() {
  const uint32_t blurred = shadowMask(3);
  runOnShadows(1 << 3);
  const Source &a = source(1), &b = source(2);
  forEachLane([&](int l) {
    const auto lane = size_t(l);
    if (blurred >> l & 1)
      setShadow(results[0], l,
                (a.value[lane] ^ b.value[lane]) | a.shadow[lane] | b.shadow[lane]);
  });
}

/// The true comparison of setp, without what it is combined with.
uint32_t PoisonStep::comparison() {
  constexpr size_t p = kMaxOperands, other = kMaxOperands + 1; // places in `values`
  Insn copy = insn;
  for (size_t at = 2; at < 5; ++at)
    copy.op[at] = inValues(at);
  copy.op[0].offset = p * slot;
  copy.op[1] = {};
  const uint32_t neutral = insn.poisonArgument & kCompareAnd ? kAllLanes : 0;
  std::memcpy(&values[other * slot], &neutral, sizeof(neutral));
  copy.op[4].offset = other * slot;
  copy.op[4].negated = false;
  {
    ShadowRegisters registers(cx, values.data(), values.data());
    cx.mask = kAllLanes;
    copy.handler(cx, copy);
  }
  uint32_t result;
  std::memcpy(&result, &values[p * slot], sizeof(result));
  return result;
}

/// p = (a cmp b) op c, q = !(a cmp b) op c
void PoisonStep::compare() {
  const Source &a = source(2), &b = source(3);
  const unsigned traits = insn.poisonArgument;
  uint32_t bad[2] = {}, c = valueMask(4), unsure = shadowMask(4);
  forEachLane([&](int l) {
    const auto lane = size_t(l);
    const Bits either = a.shadow[lane] | b.shadow[lane];
    const bool decided = traits & kCompareEqual && (a.value[lane] ^ b.value[lane]) & ~either;
    for (unsigned i = 0; i < 2; ++i) {
      const Bits half = traits & kCompareHalves ? onesBelow(16) << (16 * i) : ~Bits(0);
      bad[i] |= uint32_t((either & half) != 0 && !decided) << l;
    }
  });
  const bool halves = traits & kCompareHalves;
  const uint32_t holds = unsure && !halves ? comparison() : kAllLanes;
  for (unsigned i = 0; i < 2; ++i) {
    const uint32_t shown = halves ? kAllLanes : i ? ~holds : holds;
    if (traits & kCompareAnd)
      bad[i] = (bad[i] & (c | unsure)) | (unsure & shown);
    else if (traits & kCompareOr)
      bad[i] = (bad[i] & (~c | unsure)) | (unsure & (halves ? kAllLanes : ~shown));
    else
      bad[i] |= unsure;
    if (insn.op[i])
      forEachLane([&](int lane) { setShadow(insn.op[i], lane, bad[i] >> lane & 1); });
  }
}

/// A clean lane may decide it: one that is true for any, one that is not for all, both for uni.
void PoisonStep::vote() {
  enum { All, Any, Uni };
  const uint32_t bad = shadowMask(1), value = valueMask(1);
  forEachMembers(2, [&](uint32_t set) {
    const bool yes = set & ~bad & value, no = set & ~bad & ~value;
    const bool decided = insn.poisonArgument == All   ? no
                         : insn.poisonArgument == Any ? yes
                                                      : yes && no;
    for (uint32_t rest = set; rest; rest &= rest - 1)
      setShadow(results[0], std::countr_zero(rest), (set & bad) && !decided);
    if (set & bad)
      std::ranges::fill(origins, origins[size_t(std::countr_zero(set & bad))]);
  });
}

void PoisonStep::ballot() {
  const uint32_t bad = shadowMask(1);
  forEachMembers(2, [&](uint32_t set) {
    for (uint32_t rest = set; rest; rest &= rest - 1)
      setShadow(results[0], std::countr_zero(rest), set & bad);
    if (set & bad)
      std::ranges::fill(origins, origins[size_t(std::countr_zero(set & bad))]);
  });
}

void PoisonStep::members() {
  const auto blur = [&](uint32_t set) {
    for (uint32_t rest = set; rest; rest &= rest - 1)
      for (const Operand &o : results)
        setShadow(o, std::countr_zero(rest), set & poisoned ? allOf(o) : 0);
  };
  if (insn.poisonArgument)
    forEachMembers(insn.poisonArgument, blur);
  else
    blur(lanes);
}

void PoisonStep::computeShadow() {
  switch (insn.poison) {
  case PoisonRule::Move:
  case PoisonRule::Shuffle:
    return move();
  case PoisonRule::Parts:
    return parts();
  case PoisonRule::Pack:
    return pack();
  case PoisonRule::Fill:
    return fill();
  case PoisonRule::Carry:
    return carry();
  case PoisonRule::Logic:
    return logic();
  case PoisonRule::Select:
    return select();
  case PoisonRule::Compare:
    return compare();
  case PoisonRule::Vote:
    return vote();
  case PoisonRule::Ballot:
    return ballot();
  case PoisonRule::Members:
    return members();
  case PoisonRule::Mma: {
    ShadowRegisters shadows(cx);
    return multiplyPoison(cx, insn);
  }
  default: // nothing that has poison came in
    for (const Operand &o : results)
      poison.clear(o, lanes);
  }
}

void PoisonStep::propagate(uint32_t executed) {
  lanes = executed;
  computeShadow();
  if (insn.poison == PoisonRule::Shuffle)
    poison.clear(insn.op[1], lanes);
  if (poisoned && !(poisoned == kAllLanes)) { // what crosses lanes comes from one of these
    const PoisonOrigin &any = origins[size_t(std::countr_zero(poisoned))];
    for (size_t lane = 0; lane < 32; ++lane)
      if (!(poisoned >> lane & 1) && origins[lane].address == 0)
        origins[lane] = any;
  }
  for (const Operand &o : results)
    poison.update(o, lanes, origins);
}
