//===- ExecContext.cpp - Memory access, blocking and errors of handlers ---===//
#include "Sim/State/ExecContext.h"
#include "Sim/State/Awaited.h"
#include "Sim/State/SourcePlace.h"
#include "fp4/Sim/Events/BarrierEvent.h"
#include "fp4/Sim/Observer.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

using namespace fp4;
using namespace fp4::sim;

ExecContext::ExecContext(Cluster &cluster)
    : observer(cluster.launch->observer), currentCluster(cluster),
      currentKernel(cluster.launch->kernel) {}

void ExecContext::select(Warp &warp) {
  currentWarp = &warp;
  currentCta = warp.cta;
  registers = warp.registers;
  banks[kRegBank] = warp.registers;
  banks[kConstBank] = warp.constants;
}

Actor ExecContext::actor() const {
  return {static_cast<uint32_t>(currentCluster.index), currentCta->rank, currentWarp->index, 0};
}

CodePoint ExecContext::here() const { return {pc, currentKernel->code[pc].line}; }

uint64_t ExecContext::scalar(const Operand &o, int lane) const {
  uint64_t value = 0;
  std::memcpy(&value, banks[o.bank] + o.offset + static_cast<size_t>(lane) * o.width,
              o.width < 8 ? o.width : 8);
  return value;
}

void ExecContext::setScalar(const Operand &o, int lane, uint64_t value) const {
  std::memcpy(registers + o.offset + static_cast<size_t>(lane) * o.width, &value,
              o.width < 8 ? o.width : 8);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

ExecContext::Place ExecContext::place(Space space, uint64_t address) const {
  if (space == Space::SharedCta)
    return {Space::SharedCluster, address};
  if (space == Space::Param && address >= kFunctionParams)
    return {Space::Local, address - kFunctionParams};
  if (space != Space::Generic)
    return {space == Space::Const ? Space::Global : space, address};
  switch (address >> 32) {
  case kSharedWindow >> 32:
    return {Space::SharedCluster, address & 0xFFFFFFFF};
  case kLocalWindow >> 32:
    return {Space::Local, address & 0xFFFFFFFF};
  case kParamWindow >> 32:
    return place(Space::Param, address & 0xFFFFFFFF);
  default:
    return {Space::Global, address};
  }
}

static const char *verb(bool write) { return write ? "writes" : "reads"; }

Poison &ExecContext::poison() {
  if (!currentWarp->poison)
    currentWarp->poison = std::make_unique<Poison>(*currentKernel);
  return *currentWarp->poison;
}

ShadowRegisters::ShadowRegisters(ExecContext &cx, const std::byte *values, std::byte *registers)
    : cx(cx), observer(std::exchange(cx.observer, nullptr)), mask(cx.mask) {
  const Poison &poison = cx.poison();
  cx.registers = registers ? registers : poison.registers();
  cx.banks[kRegBank] = cx.registers;
  cx.banks[kConstBank] = poison.constants();
  cx.banks[kValueBank] = values;
}

ShadowRegisters::~ShadowRegisters() {
  cx.select(*cx.currentWarp);
  cx.observer = observer;
  cx.mask = mask;
}

std::byte *ExecContext::resolve(Space space, uint64_t address, uint32_t bytes, uint32_t align,
                                int lane, Access access) {
  const bool write = access == Access::Write;
  Place where = place(space, address);
  if (where.address % align != 0) {
    fail(fmt::format("{} {} bytes at {:#x}: the address must be a multiple of {}", verb(write),
                     bytes, address, align),
         "", lane);
    return nullptr;
  }
  // An address may lie just below 2^64: its end is small.
  const auto within = [&](uint64_t size) { return bytes <= size && where.address <= size - bytes; };
  switch (where.space) {
  case Space::Global:
    return resolveGlobal(where.address, bytes, lane, access);
  case Space::SharedCluster:
    return resolveShared(space, where.address, bytes, lane, access);
  case Space::Local:
    if (within(currentKernel->info.localBytes))
      return resolveLocal(where.address, bytes, lane, access);
    fail(fmt::format("{} {} bytes at local address {:#x}, but a thread has {} bytes", verb(write),
                     bytes, where.address, currentKernel->info.localBytes),
         "", lane);
    return nullptr;
  default:
    if (!write && within(launch().params.size()))
      return launch().params.data() + where.address;
    fail(fmt::format("{} {} bytes at parameter address {:#x}, but the parameters are {} read-only "
                     "bytes",
                     verb(write), bytes, where.address, launch().params.size()),
         "", lane);
    return nullptr;
  }
}

/// The memory of a thread, in which poison may lie that it stored.
std::byte *ExecContext::resolveLocal(uint64_t address, uint32_t bytes, int lane, Access access) {
  const Poison *poison = currentWarp->poison.get();
  if (poison && poison->anyLocal() && access != Access::Write) {
    Loaded found{lane, {}, {}};
    for (uint32_t i = bytes; i-- > 0;)
      if (const PoisonedByte *byte = poison->loadLocal(lane, address + i)) {
        found.bits[i] = byte->bits;
        found.origin = byte->origin;
      }
    if (found.origin.address && !passPoison(found, access))
      return nullptr;
  }
  return currentWarp->local.data() + static_cast<size_t>(lane) * currentKernel->info.localBytes +
         address;
}

std::byte *ExecContext::resolveGlobal(uint64_t address, uint32_t bytes, int lane, Access access) {
  const bool write = access == Access::Write;
  const Allocation *a = lastAllocation;
  if (!a || address < a->address || address - a->address + bytes > a->size) {
    a = launch().memory->find(address, bytes);
    if (!a) {
      fail(fmt::format("{} {} bytes of global memory out of bounds", verb(write), bytes),
           launch().memory->explain(address, bytes), lane);
      return nullptr;
    }
    lastAllocation = a;
  }
  if (write && a->readOnly) {
    fail(fmt::format("writes {} bytes to the .const variable '{}'", bytes, a->name), "", lane);
    return nullptr;
  }
  if (write)
    launch().memory->aboutToWrite(address, bytes);
  return a->bytes.get() + (address - a->address);
}

std::byte *ExecContext::resolveShared(Space space, uint64_t address, uint32_t bytes, int lane,
                                      Access access) {
  const bool write = access == Access::Write;
  auto offset = static_cast<uint32_t>(address) & kSharedOffsetMask;
  Cta *owner =
      address >> 32 ? nullptr : currentCluster.ctaOfSharedAddress(static_cast<uint32_t>(address));
  if (!owner || !owner->shared.contains(offset, bytes)) {
    failShared(address, bytes, lane, write);
    return nullptr;
  }
  if (space == Space::SharedCta && owner != currentCta) {
    fail(fmt::format("{} shared::cta address {:#x}, which belongs to CTA rank {}", verb(write),
                     address, owner->rank),
         "use shared::cluster for the shared memory of another CTA", lane);
    return nullptr;
  }
  if (owner->done()) {
    fail(fmt::format("{} shared memory of CTA rank {}, which has exited", verb(write), owner->rank),
         "keep the CTA alive with a barrier.cluster before its exit", lane);
    return nullptr;
  }
  if (write)
    owner->shared.markValid(offset, bytes);
  else if (!owner->shared.valid(offset, bytes) && !passInvalid(*owner, offset, bytes, lane, access))
    return nullptr;
  return owner->shared.at(offset);
}

void ExecContext::failShared(uint64_t address, uint32_t bytes, int lane, bool write) {
  uint32_t rank = static_cast<uint32_t>(address) >> kSharedRankShift;
  std::string note;
  if (address >> 32)
    note = "a shared address has 32 bits: convert a generic address with cvta.to.shared";
  else if (rank >= currentCluster.ctas.size())
    note = fmt::format("the cluster has {} CTAs, the address names rank {}",
                       currentCluster.ctas.size(), rank);
  else
    note = fmt::format("the CTA has shared addresses {:#x} to {:#x}", kSharedBase,
                       currentCluster.ctas[rank]->shared.end());
  fail(fmt::format("{} {} bytes at shared address {:#x}, which is out of bounds", verb(write),
                   bytes, address),
       note, lane);
}

/// Returns true when bytes that are not valid may be read; bytes in flight may not. A load of bytes
/// that nobody wrote gives poison.
bool ExecContext::passInvalid(Cta &owner, uint32_t offset, uint32_t bytes, int lane,
                              Access access) {
  Loaded found{lane, {}, {}};
  for (uint32_t at = offset; at < offset + bytes; ++at) {
    const auto bad = owner.shared.firstBad(at, offset + bytes - at);
    if (!bad)
      break;
    at = bad->offset;
    if (bad->ticket) {
      fail(fmt::format("reads shared byte {:#x}, which an asynchronous copy has not written yet",
                       at),
           fmt::format("{}; wait for its mbarrier before reading",
                       currentCluster.async->describeTicket(bad->ticket)),
           lane);
      return false;
    }
    if (at - offset < found.bits.size())
      found.bits[at - offset] = bad->stored ? bad->stored->bits : std::byte{0xFF};
    if (!found.origin.address)
      found.origin =
          bad->stored ? bad->stored->origin : PoisonOrigin{pc, owner.rank << kSharedRankShift | at};
  }
  return launch().options->uninitializedReads == UninitializedReads::Ignore ||
         passPoison(found, access);
}

bool ExecContext::passPoison(const Loaded &found, Access access) {
  if (access == Access::Load) {
    loaded.push_back(found);
    return true;
  }
  fail(fmt::format("reads {}, which was never written", describeShared(found.origin.address)),
       "a missing store, copy or barrier; --unwritten=ignore lets it pass", found.lane);
  return false;
}

std::string ExecContext::describeShared(uint32_t address) const {
  const std::string symbol = currentKernel->sharedSymbol(address & kSharedOffsetMask);
  return fmt::format("shared byte {:#x}{}", address & kSharedOffsetMask,
                     symbol.empty() ? "" : fmt::format(" ('{}')", symbol));
}

const std::byte *ExecContext::readable(Space space, uint64_t address, uint32_t bytes,
                                       uint32_t align, int lane) {
  return resolve(space, address, bytes, align, lane, Access::Read);
}

const std::byte *ExecContext::loadable(Space space, uint64_t address, uint32_t bytes,
                                       uint32_t align, int lane) {
  return resolve(space, address, bytes, align, lane, Access::Load);
}

std::byte *ExecContext::writable(Space space, uint64_t address, uint32_t bytes, uint32_t align,
                                 int lane) {
  return resolve(space, address, bytes, align, lane, Access::Write);
}

const std::byte *ExecContext::peek(Space space, uint64_t address, uint32_t bytes) const {
  const Place where = place(space, address);
  if (where.space == Space::Global)
    return currentCluster.launch->memory->translate(where.address, bytes);
  if (where.space != Space::SharedCluster || where.address >> 32)
    return nullptr;
  const Cta *owner = currentCluster.ctaOfSharedAddress(static_cast<uint32_t>(where.address));
  const uint32_t offset = static_cast<uint32_t>(where.address) & kSharedOffsetMask;
  const bool there = owner && owner->shared.contains(offset, bytes);
  return there && owner->shared.valid(offset, bytes) ? owner->shared.at(offset) : nullptr;
}

std::byte *ExecContext::sharedObject(uint64_t address, uint32_t bytes, uint32_t align,
                                     Cta **owner) {
  Place where = place(Space::Generic, address >> 32 ? address : address | kSharedWindow);
  auto offset = static_cast<uint32_t>(where.address) & kSharedOffsetMask;
  Cta *cta = where.space == Space::SharedCluster
                 ? currentCluster.ctaOfSharedAddress(static_cast<uint32_t>(where.address))
                 : nullptr;
  if (!cta || !cta->shared.contains(offset, bytes)) {
    failShared(where.space == Space::SharedCluster ? where.address : address, bytes, -1, false);
    return nullptr;
  }
  if (offset % align != 0) {
    fail(fmt::format("uses {} bytes at shared address {:#x}: the address must be a multiple of {}",
                     bytes, where.address, align));
    return nullptr;
  }
  if (owner)
    *owner = cta;
  return cta->shared.at(offset);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

namespace {
/// Lanes that reached a convergent instruction early.
class ConvergenceWait : public Wait, public AwaitsWarps {
public:
  ConvergenceWait(const Warp &warp, std::vector<MemberSet> sets, uint32_t line)
      : warp(warp), sets(std::move(sets)), line(line) {}
  bool ready() const override {
    return std::ranges::any_of(sets, [&](const MemberSet &set) { return missing(set) == 0; });
  }
  std::string describe() const override {
    std::string text;
    for (const MemberSet &set : sets)
      text +=
          fmt::format("{}lanes {:#010x} of its own warp to reach line {}, where lanes {:#010x} are",
                      text.empty() ? "" : ", and ", missing(set), line, set.lanes);
    return text;
  }
  Awaited awaited() const override { return {Awaited::What::Lanes, warp.cta->rank, warp.index}; }

private:
  uint32_t missing(const MemberSet &set) const { return set.members & warp.live & ~set.lanes; }

  const Warp &warp;
  std::vector<MemberSet> sets;
  uint32_t line;
};
} // namespace

bool ExecContext::converged() {
  const uint32_t parted = currentWarp->parted;
  if (!together())
    return false;
  if (parted && observer)
    observer->onBarrier({actor(), here(), BarrierOp::Parted, 0, parted - 1, mask});
  exchanged(mask);
  return true;
}

void ExecContext::exchanged(uint32_t lanes) {
  if (!observer)
    return;
  const uint32_t others = currentWarp->live & ~lanes;
  observer->onBarrier(
      {actor(), here(), BarrierOp::Exchange, 0, 0, others ? lanes : uint32_t(kAllLanes)});
}

bool ExecContext::together() {
  if (currentWarp->live & ~mask) {
    blockUntilTogether({{mask, kAllLanes}});
    return false;
  }
  currentWarp->parted = 0;
  return true;
}

Outcome ExecContext::blockUntilTogether(std::vector<MemberSet> sets) {
  return block(std::make_unique<ConvergenceWait>(*currentWarp, std::move(sets),
                                                 currentKernel->code[pc].line));
}

std::string fp4::sim::describeLocation(const Launch &launch, const Cta &cta, uint32_t warp,
                                       int lane, const Insn &insn) {
  std::string text =
      fmt::format("kernel '{}', CTA ({},{},{}), warp {}", displayName(launch.kernel->info.name),
                  cta.index[0], cta.index[1], cta.index[2], warp);
  if (lane >= 0)
    text += fmt::format(", lane {}", lane);
  text += fmt::format(", at {}:{}:{}", launch.program->name, insn.line, insn.column);
  const std::string source = sourcePlace(*launch.program, insn);
  return source.empty() ? text : text + " (" + source + ")";
}

Outcome ExecContext::fail(std::string message, std::string note, int lane) {
  const Insn &insn = currentKernel->code[pc];
  std::string where = describeLocation(launch(), *currentCta, currentWarp->index, lane, insn);
  std::string source = launch().program->shownLine(insn.line);
  if (!note.empty())
    note += "; ";
  note += "the instruction is: " + source;
  return fail(Error{ErrorKind::Simulation, where + ": " + message, std::move(note)});
}

Outcome ExecContext::fail(Error problem) {
  if (!failed)
    error = std::move(problem);
  failed = true;
  return Outcome::Error;
}
