//===- Stack.cpp - stacksave, stackrestore, alloca ------------------------===//
//
// PTX ISA, "Stack Manipulation Instructions". A kernel that uses them has a stack in each thread's
// local memory, after a word that counts the bytes in use; it grows down. Memory that a function
// does not release lives until the kernel ends.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/ProgramImpl.h"
#include "Sim/Insn/Lanes.h"
#include "Sim/State/ExecContext.h"

#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

constexpr uint32_t kStackBytes = 64 << 10, kStackAlign = 4096, kMinimumAlign = 8;

/// Returns the bytes of stack that one lane uses.
uint64_t used(ExecContext &cx, int lane) {
  const size_t base = size_t(lane) * cx.kernel().info.localBytes;
  uint64_t bytes;
  std::memcpy(&bytes, cx.warp().local.data() + base + cx.kernel().stackTop, sizeof(bytes));
  return bytes;
}

/// Sets them; false after an error.
bool setUsed(ExecContext &cx, int lane, uint64_t bytes) {
  if (bytes > kStackBytes) {
    cx.fail(fmt::format("the stack of {} bytes per thread is too small", kStackBytes), "", lane);
    return false;
  }
  const size_t base = size_t(lane) * cx.kernel().info.localBytes;
  std::memcpy(cx.warp().local.data() + base + cx.kernel().stackTop, &bytes, sizeof(bytes));
  return true;
}

Outcome save(ExecContext &cx, const Insn &insn) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    cx.setScalar(insn.op[0], lane, cx.kernel().stackTop - used(cx, lane));
  }
  return Outcome::Next;
}

Outcome restore(ExecContext &cx, const Insn &insn) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (!setUsed(cx, lane, cx.kernel().stackTop - cx.scalar(insn.op[0], lane)))
      return Outcome::Error;
  }
  return Outcome::Next;
}

Outcome allocate(ExecContext &cx, const Insn &insn) {
  const uint64_t top = cx.kernel().stackTop, unit = insn.as<StackModifiers>().alignment;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t bytes = cx.scalar(insn.op[1], lane);
    const uint64_t wanted = bytes > kStackBytes ? bytes : used(cx, lane) + bytes;
    if (!setUsed(cx, lane, (wanted + unit - 1) / unit * unit))
      return Outcome::Error;
    cx.setScalar(insn.op[0], lane, top - used(cx, lane));
  }
  return Outcome::Next;
}

/// The first use gives the kernel its stack.
Status useStack(BindContext &cx, Handler handler) {
  if (cx.insn.type != Type::U32 && cx.insn.type != Type::U64)
    return useFor(cx, nullptr);
  if (!cx.kernel.stackTop) {
    uint32_t &local = cx.kernel.info.localBytes;
    cx.kernel.stackTop = (local + kStackBytes + kStackAlign - 1) / kStackAlign * kStackAlign;
    local = cx.kernel.stackTop + sizeof(uint64_t);
  }
  return cx.use(handler);
}

} // namespace

namespace fp4::sim {

Status bindStackSave(BindContext &cx) { return useStack(cx, save); }
Status bindStackRestore(BindContext &cx) { return useStack(cx, restore); }
Status bindAlloca(BindContext &cx) {
  const int64_t align = cx.insn.op[2] ? cx.insn.op[2].imm : kMinimumAlign;
  if (align <= 0 || align > kStackAlign || (align & (align - 1)))
    return cx.fail(fmt::format("the alignment must be a power of two up to {}, but got {}",
                               kStackAlign, align));
  cx.insn.make<StackModifiers>({std::max(uint32_t(align), kMinimumAlign)});
  return useStack(cx, allocate);
}

} // namespace fp4::sim
