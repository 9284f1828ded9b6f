//===- Call.cpp - Device functions: call, ret, brx.idx --------------------===//
//
// PTX ISA, "Control Flow Instructions". A kernel has each device function once, with its own places
// for registers and parameters. A call copies the arguments of its lanes there and records where
// they return to; ret copies the results to the call site. Recursion is not possible in this way
// and is an error when it happens.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Warp/Call.h"
#include "Sim/Insn/Poison/Uses.h"
#include <cstring>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;

namespace {

std::byte *localBytes(ExecContext &cx, int lane) {
  return cx.warp().local.data() + static_cast<size_t>(lane) * cx.kernel().info.localBytes;
}

/// Copies one argument in the active lanes; the shorter of the two decides.
void copyArgument(ExecContext &cx, const ArgumentPlace &to, const ArgumentPlace &from) {
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    if (to.value || from.value)
      setArgument(cx, to, lane, argumentValue(cx, from, lane));
    else
      std::memmove(localBytes(cx, lane) + to.offset, localBytes(cx, lane) + from.offset,
                   std::min(to.bytes, from.bytes));
  }
  if (cx.warp().poison)
    copyPoison(cx, to, from);
}

uint32_t &insideMask(ExecContext &cx, const DeviceFunction &function) {
  return *reinterpret_cast<uint32_t *>(cx.warp().registers + function.inside);
}

uint32_t *returnTargets(ExecContext &cx, const DeviceFunction &function) {
  return reinterpret_cast<uint32_t *>(cx.warp().registers + function.returnTo);
}

/// The active lanes enter `function`. False after an error.
bool enter(ExecContext &cx, const CallSite &site, const DeviceFunction &function) {
  uint32_t &inside = insideMask(cx, function);
  if (uint32_t again = inside & cx.mask) {
    cx.fail(fmt::format("calls '{}' recursively, which is not simulated", function.name), "",
            std::countr_zero(again));
    return false;
  }
  if (site.arguments.size() != function.params.size() ||
      site.results.size() > function.results.size()) {
    cx.fail(fmt::format("'{}' has {} parameters and {} results, but the call passes {} and {}",
                        function.name, function.params.size(), function.results.size(),
                        site.arguments.size(), site.results.size()));
    return false;
  }
  inside |= cx.mask;
  for (size_t i = 0; i < site.arguments.size(); ++i)
    copyArgument(cx, function.params[i], site.arguments[i]);
  uint32_t *returnTo = returnTargets(cx, function);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(rest));
    returnTo[lane] = cx.pc + 1;
    cx.targets[lane] = function.entry;
  }
  return true;
}

const DeviceFunction *functionAt(const Kernel &kernel, uint64_t address) {
  for (const DeviceFunction &function : kernel.functions)
    if (function.address == address)
      return &function;
  return nullptr;
}

/// The active lanes for which `key(lane)` is the same as for the first.
template <typename F> uint32_t alike(uint32_t mask, F &&key) {
  auto wanted = key(std::countr_zero(mask));
  uint32_t same = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    if (key(std::countr_zero(rest)) == wanted)
      same |= rest & (0 - rest);
  return same;
}

} // namespace

uint64_t fp4::sim::argumentValue(ExecContext &cx, const ArgumentPlace &place, int lane) {
  if (place.value)
    return cx.scalar(place.value, lane);
  uint64_t value = 0;
  std::memcpy(&value, localBytes(cx, lane) + place.offset, std::min(place.bytes, 8u));
  return value;
}

void fp4::sim::setArgument(ExecContext &cx, const ArgumentPlace &place, int lane, uint64_t value) {
  if (place.value)
    cx.setScalar(place.value, lane, value);
  else
    std::memcpy(localBytes(cx, lane) + place.offset, &value, std::min(place.bytes, 8u));
}

Outcome fp4::sim::callFunction(ExecContext &cx, const Insn &insn) {
  const CallSite &site = cx.kernel().callSites[insn.as<CallModifiers>().site];
  const DeviceFunction &function = cx.kernel().functions[static_cast<size_t>(site.function)];
  return enter(cx, site, function) ? cx.scatter() : Outcome::Error;
}

/// Lanes may call different functions.
Outcome fp4::sim::callPointer(ExecContext &cx, const Insn &insn) {
  const CallSite &site = cx.kernel().callSites[insn.as<CallModifiers>().site];
  const uint32_t all = cx.mask;
  if (!expectClean(cx, site.pointer, all, "calls"))
    return Outcome::Error;
  for (uint32_t rest = all; rest; rest &= ~cx.mask) {
    cx.mask = alike(rest, [&](int lane) { return cx.scalar(site.pointer, lane); });
    uint64_t address = cx.scalar(site.pointer);
    const DeviceFunction *function = functionAt(cx.kernel(), address);
    if (!function)
      return cx.fail(
          fmt::format("calls {:#x}, which is not the address of a device function", address), "",
          cx.firstLane());
    if (!enter(cx, site, *function))
      return Outcome::Error;
  }
  cx.mask = all;
  return cx.scatter();
}

Outcome fp4::sim::callBuiltin(ExecContext &cx, const Insn &insn) {
  const CallSite &site = cx.kernel().callSites[insn.as<CallModifiers>().site];
  return site.builtin(cx, site);
}

Outcome fp4::sim::returnFromFunction(ExecContext &cx, const Insn &insn) {
  const DeviceFunction &function = cx.kernel().functions[insn.as<ReturnModifiers>().function];
  const uint32_t *returnTo = returnTargets(cx, function);
  insideMask(cx, function) &= ~cx.mask;
  const uint32_t all = cx.mask;
  for (uint32_t rest = all; rest; rest &= ~cx.mask) {
    cx.mask = alike(rest, [&](int lane) { return returnTo[lane]; });
    uint32_t target = returnTo[cx.firstLane()];
    const Insn &call = cx.kernel().code[target - 1];
    const CallSite &site = cx.kernel().callSites[call.as<CallModifiers>().site];
    for (size_t i = 0; i < site.results.size(); ++i)
      copyArgument(cx, site.results[i], function.results[i]);
    for (uint32_t lanes = cx.mask; lanes; lanes &= lanes - 1)
      cx.targets[static_cast<size_t>(std::countr_zero(lanes))] = target;
  }
  cx.mask = all;
  return cx.scatter();
}

Outcome fp4::sim::branchByIndex(ExecContext &cx, const Insn &insn) {
  const uint32_t *index = cx.src<uint32_t>(insn.op[0]);
  const uint32_t *targets =
      cx.kernel().branchTargets.data() + insn.as<BranchTableModifiers>().first;
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    if (index[lane] >= insn.op[1].imm)
      return cx.fail(fmt::format("index {} is not below the {} targets of brx.idx", index[lane],
                                 insn.op[1].imm),
                     "", lane);
    cx.targets[static_cast<size_t>(lane)] = targets[index[lane]];
  }
  return cx.scatter();
}
