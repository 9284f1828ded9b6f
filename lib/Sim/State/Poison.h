//===- Poison.h - Poisoned bits of a warp's registers ---------------------===//
//
// A load of bytes that nobody wrote is no error: the bits become poisoned, and their use is one
// (simulator.md, "Unwritten memory"). A poisoned bit is set in the *shadow* of its register.
// Shadows have the layout of the registers themselves, so that a handler can be run on them. Few
// warps ever have poison; the others have no object of this class.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Selection.h"
#include "Sim/State/AlignedBytes.h"
#include "Sim/State/SharedMemory.h"
#include <optional>
#include <unordered_map>

namespace fp4::sim {

struct Kernel;

class Poison {
public:
  using Origins = std::array<PoisonOrigin, 32>; ///< origin of each lane's poison

  explicit Poison(const Kernel &kernel);

  /// Shadows of bank 0, and of bank 1, whose constants have no poison.
  std::byte *registers() const { return shadows.bytes(); }
  const std::byte *constants() const { return zeros.bytes(); }
  /// Returns whether any register has poison, or will have.
  bool any() const { return !origins.empty() || !choices.empty(); }
  /// Returns true when the register that begins at `offset` of bank 0 has poison.
  bool has(uint32_t offset) const { return marks[offset / 4 / 64] >> (offset / 4 % 64) & 1; }
  bool has(const Operand &o) const {
    return o.bank == kRegBank && (o.width || o.kind == OperandKind::Pred) && has(o.offset);
  }
  /// The lanes of a register or predicate with a poisoned bit.
  uint32_t lanesOf(const Operand &o) const;
  const PoisonOrigin &origin(uint32_t offset, int lane) const {
    return origins.at(offset)[size_t(lane)];
  }
  const Origins &originsOf(uint32_t offset) const { return origins.at(offset); }
  /// The shadow of a register has changed in `lanes`, with poison that comes from `from`.
  void update(const Operand &o, uint32_t lanes, const Origins &from);
  /// Removes the poison of these lanes of a register.
  void clear(const Operand &o, uint32_t lanes);

  // --- Guards that have poison, and choose between values ---------------------------------------
  /// Returns the selection of the guard at `pc`, or null where the guard decides more than values.
  const Selection *selectionAt(uint32_t pc);
  /// Notes that the guard has poison in `lanes`: the results get it where the ways meet.
  void choose(const Selection &selection, uint32_t lanes, const Origins &from);
  /// Ends the choices of `lanes` whose ways meet at `pc`.
  void meet(uint32_t pc, uint32_t lanes) {
    if (!choices.empty())
      endChoices(pc, lanes);
  }

  // --- Local memory, by (lane, address) ---------------------------------------------------------
  bool anyLocal() const { return !local.empty(); }
  void storeLocal(int lane, uint64_t address, PoisonedByte byte);
  const PoisonedByte *loadLocal(int lane, uint64_t address) const;

  uint32_t carry = 0; ///< lanes whose CC.CF has poison
  PoisonOrigin carryOrigin;

private:
  /// Lanes on their way through a selection.
  struct Choice {
    const Selection *selection;
    uint32_t lanes;
    Origins from;
  };
  static uint64_t key(int lane, uint64_t address) { return address << 5 | uint64_t(lane); }
  void endChoices(uint32_t pc, uint32_t lanes);
  void endChoice(const Choice &choice, uint32_t lanes);

  const Kernel &kernel;
  AlignedBytes shadows, zeros;
  std::vector<uint64_t> marks; ///< bit for each 4 bytes of bank 0: a register there is poisoned
  std::unordered_map<uint32_t, Origins> origins;
  std::unordered_map<uint64_t, PoisonedByte> local;
  /// Selections by pc, as far as somebody asked for them.
  std::unordered_map<uint32_t, std::optional<Selection>> selections;
  std::vector<Choice> choices;
};

} // namespace fp4::sim
