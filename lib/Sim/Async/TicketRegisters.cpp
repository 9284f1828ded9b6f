//===- TicketRegisters.cpp - Registers of operations that are in flight ---===//
//
// An instruction that names a register of a tcgen05.ld for which its warp has not waited waits for
// it, or is wrong; one that names a register of a wgmma for which its warp has not waited is wrong,
// also if the wgmma is done by luck. Most instructions of a warp with such operations name none: a
// bit for each place in its registers says so.
//
//===----------------------------------------------------------------------===//
#include "Sim/Decode/OpcodeTable.h"
#include "TicketQueue.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {

namespace {

/// Returns true when an operand names a register of the ranges.
bool names(const Operand &o, const std::vector<RegisterRange> &ranges, const Kernel &kernel) {
  if (o.kind == OperandKind::Vector) {
    const Operand *elements = kernel.operandPool.data() + o.offset;
    return std::any_of(elements, elements + o.imm,
                       [&](const Operand &e) { return names(e, ranges, kernel); });
  }
  if ((o.kind != OperandKind::Reg && o.kind != OperandKind::Address) || o.bank != kRegBank)
    return false;
  const uint32_t end = o.offset + 32u * o.width;
  return std::any_of(ranges.begin(), ranges.end(), [&](const RegisterRange &range) {
    return o.offset < range.end && range.begin < end;
  });
}

} // namespace

void TicketQueue::watchRegisters(Warp &warp) {
  if (state(warp.cta->rank).wgmmaRegisters.try_emplace(warp.index).second)
    ++warp.loadsInFlight; // for as long as the warp lives
}

void TicketQueue::emitWaited(const Warp &warp, const Insn &insn, uint64_t id) {
  Observer *observer = owner.launch->ticketObserver();
  if (!observer)
    return;
  FenceEvent event;
  event.actor = {uint32_t(owner.index), warp.cta->rank, warp.index, 0};
  event.at = {0, insn.line};
  event.kind = FenceKind::TicketWaited;
  event.space = Space::Tmem;
  event.laneMask = warp.live;
  event.groups = id;
  observer->onFence(event);
}

std::vector<uint64_t> &TicketQueue::claimsOf(const Warp &warp) {
  auto &ofCta = ctas[warp.cta->rank].claims;
  ofCta.resize(warp.cta->warps.size());
  ofCta[warp.index].resize(owner.launch->kernel->registerBytes / claimUnit / 64 + 1);
  return ofCta[warp.index];
}

void TicketQueue::claim(std::vector<uint64_t> &claims, const UnwaitedLoad &load) {
  for (const RegisterRange &range : load.registers)
    for (uint32_t unit = range.begin / claimUnit, last = (range.end - 1) / claimUnit;
         unit <= last;) {
      const uint32_t from = unit % 64, count = std::min(last + 1 - unit, 64 - from);
      claims[unit / 64] |= (count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << from;
      unit += count;
    }
}

/// Claims of operations that have ended stay until an instruction meets one of them.
void TicketQueue::claimAgain(const Warp &warp) {
  std::vector<uint64_t> &claims = claimsOf(warp);
  std::ranges::fill(claims, 0);
  for (const UnwaitedLoad &load : unwaitedLoads)
    if (load.warp == &warp)
      claim(claims, load);
}

/// Returns true when an instruction names registers that any operation claims, or has claimed.
bool TicketQueue::namesClaimed(const Warp &warp, const Insn &insn) {
  const auto &ofCta = ctas[warp.cta->rank].claims;
  if (warp.index >= ofCta.size() || ofCta[warp.index].empty()) // it never issued such a ticket
    return false;
  const std::vector<uint64_t> &claims = ofCta[warp.index];
  const Operand *pool = owner.launch->kernel->operandPool.data();
  const auto claimed = [&](const Operand &o) {
    if ((o.kind != OperandKind::Reg && o.kind != OperandKind::Address) || o.bank != kRegBank)
      return false;
    const uint32_t last = (o.offset + 32u * o.width - 1) / claimUnit;
    for (uint32_t unit = o.offset / claimUnit; unit <= last; ++unit)
      if (claims[unit / 64] >> unit % 64 & 1)
        return true;
    return false;
  };
  return std::ranges::any_of(insn.op, [&](const Operand &o) {
    return o.kind == OperandKind::Vector
               ? std::any_of(pool + o.offset, pool + o.offset + o.imm, claimed)
               : claimed(o);
  });
}

Status TicketQueue::useRegisters(const Warp &warp, const Insn &insn) {
  auto &watched = state(warp.cta->rank).wgmmaRegisters;
  if (auto it = watched.find(warp.index); it != watched.end() && !insn.get<WgmmaModifiers>()) {
    const Kernel &kernel = *owner.launch->kernel;
    it->second.use(insn, kernel.operandPool.data(), uint32_t(&insn - kernel.code.data()),
                   opcodeTable()[insn.row].base == "mov");
  }
  if (!namesClaimed(warp, insn))
    return {};
  const auto uses = [&](const UnwaitedLoad &load) {
    return std::ranges::any_of(
        insn.op, [&](const Operand &o) { return names(o, load.registers, *owner.launch->kernel); });
  };
  for (size_t i = 0; i < unwaitedLoads.size();) {
    const UnwaitedLoad &load = unwaitedLoads[i];
    if (load.warp != &warp || load.chained == insn.handler || !uses(load)) {
      ++i;
      continue;
    }
    const uint64_t id = load.id;
    // Nothing waits for a wgmma but wgmma.wait_group.
    if (owner.launch->options->judgement == Judgement::Letter || load.kind == TicketKind::Wgmma)
      return makeError(
          ErrorKind::Simulation,
          fmt::format("uses a register of the {} of line {} before it is known to be written",
                      stringify(load.kind), load.insn->line),
          load.kind == TicketKind::Wgmma ? "execute wgmma.wait_group first"
                                         : "execute tcgen05.wait::ld first");
    if (!done(id))
      FP4_TRY(runNow(id));
    emitWaited(warp, insn, id);
    unwaitedLoads.erase(unwaitedLoads.begin() + ptrdiff_t(i));
    --owner.ctas[warp.cta->rank]->warps[warp.index].loadsInFlight;
  }
  if (!insn.get<WgmmaModifiers>())
    claimAgain(warp);
  return {};
}

void TicketQueue::loadsWaited(Warp &warp) {
  warp.loadsInFlight -= uint32_t(std::erase_if(unwaitedLoads, [&](const UnwaitedLoad &load) {
    return load.warp == &warp && load.kind == TicketKind::TmemLoad;
  }));
}

void TicketQueue::productsWaited(Warp &warp, const std::vector<uint64_t> &ids) {
  warp.loadsInFlight -= uint32_t(std::erase_if(unwaitedLoads, [&](const UnwaitedLoad &load) {
    return std::ranges::find(ids, load.id) != ids.end();
  }));
}

} // namespace fp4::sim
