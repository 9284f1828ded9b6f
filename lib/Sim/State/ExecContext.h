//===- ExecContext.h - Context of an instruction handler ------------------===//
//
// One per cluster run; the warp loop sets the current warp, lanes and instruction. Typical handler:
//
//   Outcome add(ExecContext &cx, const Insn &insn) {
//     const uint32_t *a = cx.src<uint32_t>(insn.op[1]), *b = cx.src<uint32_t>(insn.op[2]);
//     cx.store<uint32_t>(insn.op[0], [&](int lane) { return a[lane] + b[lane]; });
//     return Outcome::Next;
//   }
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Decode/Insn.h"
#include "Sim/State/Cluster.h"
#include "Sim/State/Launch.h"
#include "fp4/Sim/Actor.h"
#include "fp4/Sim/MemoryModel.h"
#include <bit>

namespace fp4::sim {

/// Lanes that wait for the other members of their set.
struct MemberSet {
  uint32_t lanes, members;
};

class ExecContext {
public:
  explicit ExecContext(Cluster &cluster);

  // --- Who executes ---------------------------------------------------------------------------
  Warp &warp() { return *currentWarp; }
  Cta &cta() { return *currentCta; }
  Cluster &cluster() { return currentCluster; }
  Launch &launch() { return *currentCluster.launch; }
  const Kernel &kernel() const { return *currentKernel; }
  /// The lanes that execute: the group's, less those the guard predicate switches off. Never 0.
  uint32_t mask = 0;
  /// The lanes of the group, whatever the guard says.
  uint32_t groupMask = 0;
  /// The lowest active lane.
  int firstLane() const { return std::countr_zero(mask); }
  Actor actor() const;
  CodePoint here() const;

  // --- Registers ------------------------------------------------------------------------------
  /// The 32 lanes of a register or constant. T must have the register's width.
  template <typename T> const T *src(const Operand &o) const {
    return reinterpret_cast<const T *>(banks[o.bank] + o.offset);
  }
  template <typename T> T *dst(const Operand &o) const {
    return reinterpret_cast<T *>(registers + o.offset);
  }
  /// Writes f(lane) to the active lanes.
  template <typename T, typename F> void store(const Operand &o, F &&f) const {
    T *d = dst<T>(o);
    if (mask == kAllLanes) {
      for (int lane = 0; lane < 32; ++lane)
        d[lane] = f(lane);
      return;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      int lane = std::countr_zero(rest);
      d[lane] = f(lane);
    }
  }
  /// A predicate as a lane mask, negation applied; all lanes for an absent operand.
  uint32_t predicate(const Operand &o) const {
    if (o.kind == OperandKind::None)
      return kAllLanes;
    uint32_t value = *reinterpret_cast<const uint32_t *>(banks[o.bank] + o.offset);
    return o.negated ? ~value : value;
  }
  /// Sets the active lanes of a destination predicate (ignored when absent or a sink).
  void setPredicate(const Operand &o, uint32_t value) const {
    if (o.kind == OperandKind::None)
      return;
    auto *p = reinterpret_cast<uint32_t *>(registers + o.offset);
    *p = (*p & ~mask) | (value & mask);
  }
  /// Lane `lane` of a register of any width up to 8, zero-extended.
  uint64_t scalar(const Operand &o, int lane) const;
  /// The first active lane of a register: for operands that must be uniform.
  uint64_t scalar(const Operand &o) const { return scalar(o, firstLane()); }
  /// Writes the low bytes of `value` to a register of any width up to 8.
  void setScalar(const Operand &o, int lane, uint64_t value) const;
  /// Address operand: base plus displacement.
  uint64_t address(const Operand &o, int lane) const {
    return (o.width == 4 ? uint64_t(src<uint32_t>(o)[lane]) : src<uint64_t>(o)[lane]) +
           static_cast<uint64_t>(o.imm);
  }
  /// Elements of a vector operand.
  const Operand *elements(const Operand &vector) const {
    return currentKernel->operandPool.data() + vector.offset;
  }
  unsigned elementCount(const Operand &vector) const { return unsigned(vector.imm); }

  // --- Poison ---------------------------------------------------------------------------------
  /// Returns the poison of the warp, which is made when it is first needed.
  Poison &poison();
  /// Poisoned bits of bytes that a lane loaded.
  struct Loaded {
    int lane = 0;
    std::array<std::byte, 32> bits{};
    PoisonOrigin origin;
  };
  /// Poison that `loadable` found; the caller puts it into shadows and clears the list.
  std::vector<Loaded> loaded;
  /// "shared byte 0x410 ('tile+16')", by its shared::cluster address.
  std::string describeShared(uint32_t address) const;

  // --- Memory ---------------------------------------------------------------------------------
  /// Resolves a generic address to a space and the address in it (Global, SharedCluster with the
  /// rank, Local, Param). A space other than Generic passes through; SharedCta becomes
  /// SharedCluster.
  struct Place {
    Space space;
    uint64_t address;
  };
  Place place(Space space, uint64_t address) const;
  /// Host storage for a read of [address, address + bytes) by `lane`: checks bounds, alignment to
  /// `align`, and that shared bytes are valid. Null after cx.fail.
  const std::byte *readable(Space space, uint64_t address, uint32_t bytes, uint32_t align,
                            int lane);
  /// Host storage as `readable` gives it, for a load into registers: unwritten bytes are no error,
  /// but noted in `loaded`.
  const std::byte *loadable(Space space, uint64_t address, uint32_t bytes, uint32_t align,
                            int lane);
  /// Host storage as `readable` gives it, for a write; marks shared bytes valid.
  std::byte *writable(Space space, uint64_t address, uint32_t bytes, uint32_t align, int lane);
  /// Host storage of bytes that may plainly be read: in one allocation, or valid in the shared
  /// memory of one CTA. Null otherwise; nothing is reported or changed.
  const std::byte *peek(Space space, uint64_t address, uint32_t bytes) const;
  /// The allocation of the last global access, or null: a hint for fast paths.
  const Allocation *recentAllocation() const { return lastAllocation; }
  /// Storage of an mbarrier or other object in shared memory, no validity check or change.
  /// `address` is a shared::cta or shared::cluster address. Null after cx.fail.
  std::byte *sharedObject(uint64_t address, uint32_t bytes, uint32_t align, Cta **owner = nullptr);

  // --- Control --------------------------------------------------------------------------------
  uint32_t target = 0;                ///< target of Outcome::Jump
  std::array<uint32_t, 32> targets{}; ///< targets of Outcome::Scatter
  /// The lanes that execute go where `targets` says.
  Outcome scatter() {
    target = targets[static_cast<size_t>(firstLane())];
    for (uint32_t rest = mask; rest; rest &= rest - 1)
      if (targets[static_cast<size_t>(std::countr_zero(rest))] != target)
        return Outcome::Scatter;
    return Outcome::Jump;
  }
  /// For instructions that arrive somewhere and then wait: 0 at the first execution. A value that
  /// the handler leaves here before Outcome::Retry is there when the handler is executed again; by
  /// its end the handler must set 0.
  uint64_t token = 0;
  /// The instruction blocked before, and its time limit has passed.
  bool expired = false;
  /// Blocks the active lanes until `wait->ready()`; return the result.
  Outcome block(std::unique_ptr<Wait> wait, Outcome how = Outcome::Retry) {
    pendingWait = std::move(wait);
    return how;
  }
  /// For .aligned instructions: true when all live lanes are active here. When false the group has
  /// been told to wait for the others: return Retry. Observers are told when only that wait brought
  /// the lanes together (BarrierOp::Parted).
  bool converged();
  /// Returns true when the lanes are together, for barriers that each thread passes by itself.
  bool together();
  /// Tells observers that these lanes have given their operands to a .sync instruction.
  void exchanged(uint32_t lanes);
  /// Blocks the active lanes until a set is complete.
  Outcome blockUntilTogether(std::vector<MemberSet> sets);
  /// Records a located error (kernel, CTA, warp, lane, PTX line); returns Outcome::Error.
  Outcome fail(std::string message, std::string note = "", int lane = -1);
  /// Records an error that is complete already.
  Outcome fail(Error error);

  Observer *observer = nullptr; ///< test before building an event

  // --- For the warp loop ----------------------------------------------------------------------
  void select(Warp &warp);
  std::unique_ptr<Wait> pendingWait;
  Error error;
  bool failed = false;
  uint32_t pc = 0;

private:
  friend class ShadowRegisters;
  /// Read: the bytes themselves are used.
  enum class Access : uint8_t { Read, Load, Write };

  std::byte *resolve(Space space, uint64_t address, uint32_t bytes, uint32_t align, int lane,
                     Access access);
  std::byte *resolveGlobal(uint64_t address, uint32_t bytes, int lane, Access access);
  std::byte *resolveShared(Space space, uint64_t address, uint32_t bytes, int lane, Access access);
  std::byte *resolveLocal(uint64_t address, uint32_t bytes, int lane, Access access);
  void failShared(uint64_t address, uint32_t bytes, int lane, bool write);
  bool passInvalid(Cta &owner, uint32_t offset, uint32_t bytes, int lane, Access access);
  bool passPoison(const Loaded &found, Access access);

  Cluster &currentCluster;
  const Kernel *currentKernel;
  Warp *currentWarp = nullptr;
  Cta *currentCta = nullptr;
  std::byte *registers = nullptr;
  const std::byte *banks[3] = {nullptr, nullptr, nullptr};
  const Allocation *lastAllocation = nullptr;
};

/// While it lives, the registers of the context are the shadows of the warp's, and no observer is
/// told anything. Operands of kValueBank lie in `values`; `registers` may replace the shadows.
class ShadowRegisters {
public:
  explicit ShadowRegisters(ExecContext &cx, const std::byte *values = nullptr,
                           std::byte *registers = nullptr);
  ~ShadowRegisters();
  ShadowRegisters(const ShadowRegisters &) = delete;
  ShadowRegisters &operator=(const ShadowRegisters &) = delete;

private:
  ExecContext &cx;
  Observer *observer;
  uint32_t mask;
};

/// "kernel 'k', CTA (1,0,0), warp 3, lane 7, at k.ptx:120:3 (gemm.mlir:14:5)": the prefix of every
/// run-time error, for engines that report long after the instruction was issued.
std::string describeLocation(const Launch &launch, const Cta &cta, uint32_t warp, int lane,
                             const Insn &insn);

} // namespace fp4::sim
