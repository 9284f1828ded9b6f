//===- Registers.cpp - Registers that warps pass to each other ------------===//
//
// PTX ISA, "setmaxnreg". A CTA has the registers of its launch: those that a warp gives back are
// what another can take.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/Arrivals.h"
#include "Sim/Decode/Decode.h"
#include "Sim/State/Barriers.h"
#include "Sim/State/ExecContext.h"
#include <fmt/format.h>
#include <map>

namespace fp4::sim {
namespace {

constexpr uint32_t lanes = 32;

/// Ready when the other warps have given back enough.
class RegisterWait final : public Wait {
public:
  RegisterWait(const Cta &cta, uint32_t wanted) : cta(cta), wanted(wanted) {}
  bool ready() const override { return cta.freeRegisters >= wanted; }
  std::string describe() const override {
    return fmt::format("{} free registers of the CTA, of which {} are free: {}", wanted,
                       cta.freeRegisters, holders());
  }

private:
  /// "warps 0, 4-9 have 240 each, warps 1-3 exited with 168 each".
  std::string holders() const {
    std::map<std::pair<bool, uint32_t>, std::vector<uint32_t>> alike;
    for (const Warp &warp : cta.warps)
      alike[{warp.done(), warp.maxRegisters}].push_back(warp.index);
    std::string text;
    for (const auto &[kind, warps] : alike)
      text += fmt::format("{}warp{} {} {} {} a thread", text.empty() ? "" : ", ",
                          warps.size() > 1 ? "s" : "", listNumbers(warps),
                          kind.first         ? "exited with"
                          : warps.size() > 1 ? "have"
                                             : "has",
                          kind.second);
    return text;
  }

  const Cta &cta;
  uint32_t wanted;
};

Outcome setRegisters(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  const uint32_t count = static_cast<uint32_t>(insn.op[0].imm);
  const bool increases = insn.as<RegisterModifiers>().increases;
  uint32_t &current = cx.warp().maxRegisters;
  if (current == 0)
    return Outcome::Next;
  if (increases ? count < current : count > current)
    return cx.fail(fmt::format("setmaxnreg.{} expects at {} the {} registers that the warp has, but "
                               "got {}",
                               increases ? "inc" : "dec", increases ? "least" : "most", current,
                               count));
  Cta &cta = cx.cta();
  if (increases) {
    const uint32_t wanted = lanes * (count - current);
    if (cta.freeRegisters < wanted)
      return cx.block(std::make_unique<RegisterWait>(cta, wanted));
    cta.freeRegisters -= wanted;
  } else {
    cta.freeRegisters += lanes * (current - count);
  }
  cx.cluster().policy->touches(Policy::Shared::Registers,
                               increases ? Policy::Touch::Take : Policy::Touch::Give, cta.rank, 0);
  current = count;
  return Outcome::Next;
}

} // namespace

Status bindSetmaxnreg(BindContext &cx) {
  int64_t count = cx.insn.op[0].imm;
  if (count < 24 || count > 256 || count % 8 != 0)
    return cx.fail("the register count must be a multiple of 8 from 24 to 256, but got " +
                   std::to_string(count));
  const bool increases = cx.match.text("action") == "inc";
  cx.insn.make<RegisterModifiers>({increases});
  if (increases)
    cx.kernel.info.largestIncrease = std::max(cx.kernel.info.largestIncrease, uint32_t(count));
  return cx.use(setRegisters);
}

} // namespace fp4::sim
