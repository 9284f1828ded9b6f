//===- Poison.cpp - Poisoned bits of a warp's registers -------------------===//
#include "Sim/State/Poison.h"
#include "Sim/Decode/ProgramImpl.h"
#include <algorithm>
#include <bit>
#include <cstring>

using namespace fp4::sim;

Poison::Poison(const Kernel &kernel)
    : kernel(kernel), shadows(kernel.registerBytes), zeros(kernel.constants.size()),
      marks(kernel.registerBytes / 4 / 64 + 1) {}

uint32_t Poison::lanesOf(const Operand &o) const {
  if (o.bank != kRegBank)
    return 0;
  const std::byte *shadow = shadows.bytes() + o.offset;
  uint32_t lanes = 0;
  if (o.kind == OperandKind::Pred) {
    std::memcpy(&lanes, shadow, sizeof(lanes));
    return lanes;
  }
  for (size_t lane = 0; lane < 32; ++lane)
    lanes |= uint32_t(std::any_of(shadow + lane * o.width, shadow + (lane + 1) * o.width,
                                  [](std::byte b) { return b != std::byte(0); }))
             << lane;
  return lanes;
}

void Poison::update(const Operand &o, uint32_t lanes, const Origins &from) {
  const uint32_t poisoned = lanesOf(o), place = o.offset / 4;
  if (!poisoned) {
    marks[place / 64] &= ~(1ull << place % 64);
    origins.erase(o.offset);
    return;
  }
  marks[place / 64] |= 1ull << place % 64;
  Origins &mine = origins[o.offset];
  for (uint32_t rest = lanes & poisoned; rest; rest &= rest - 1)
    mine[size_t(std::countr_zero(rest))] = from[size_t(std::countr_zero(rest))];
}

void Poison::clear(const Operand &o, uint32_t lanes) {
  if (!o || o.bank != kRegBank || !has(o.offset))
    return;
  std::byte *shadow = shadows.bytes() + o.offset;
  if (o.kind == OperandKind::Pred) {
    const uint32_t left = lanesOf(o) & ~lanes;
    std::memcpy(shadow, &left, sizeof(left));
  } else {
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
      std::memset(shadow + size_t(std::countr_zero(rest)) * o.width, 0, o.width);
  }
  update(o, 0, {});
}

const Selection *Poison::selectionAt(uint32_t pc) {
  const auto [entry, isNew] = selections.try_emplace(pc);
  if (isNew)
    entry->second = findSelection(kernel, pc);
  return entry->second ? &*entry->second : nullptr;
}

void Poison::choose(const Selection &selection, uint32_t lanes, const Origins &from) {
  choices.push_back({&selection, lanes, from});
}

void Poison::endChoices(uint32_t pc, uint32_t lanes) {
  for (Choice &choice : choices)
    if (choice.selection->join == pc && choice.lanes & lanes) {
      endChoice(choice, choice.lanes & lanes);
      choice.lanes &= ~lanes;
    }
  std::erase_if(choices, [](const Choice &choice) { return choice.lanes == 0; });
}

/// Poisons all bits of the results: the values of the other way are not known.
void Poison::endChoice(const Choice &choice, uint32_t lanes) {
  for (const Operand &o : choice.selection->results) {
    std::byte *shadow = shadows.bytes() + o.offset;
    if (o.kind == OperandKind::Pred) {
      const uint32_t all = lanesOf(o) | lanes;
      std::memcpy(shadow, &all, sizeof(all));
    } else {
      for (uint32_t rest = lanes; rest; rest &= rest - 1)
        std::memset(shadow + size_t(std::countr_zero(rest)) * o.width, 0xFF, o.width);
    }
    update(o, lanes, choice.from);
  }
  if (choice.selection->carry) {
    carry |= lanes;
    carryOrigin = choice.from[size_t(std::countr_zero(lanes))];
  }
}

void Poison::storeLocal(int lane, uint64_t address, PoisonedByte byte) {
  if (byte.bits != std::byte(0))
    local[key(lane, address)] = byte;
  else if (anyLocal())
    local.erase(key(lane, address));
}

const PoisonedByte *Poison::loadLocal(int lane, uint64_t address) const {
  const auto found = local.find(key(lane, address));
  return found == local.end() ? nullptr : &found->second;
}
