//===- MmaOperands.cpp - Operands of tcgen05.mma --------------------------===//
#include "Sim/Insn/MmaOperands.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::AccumulatorLayout;

tl::unexpected<Error> fail(std::string message, std::string note = "") {
  return makeError(ErrorKind::Simulation, std::move(message), std::move(note));
}

/// The rectangles of D in one CTA. The 16-lane organizations take lanes 0-15 or 16-31 of each 32.
std::vector<TmemRange> accumulatorRanges(const MmaRequest &mma) {
  const unsigned columns = hw::accumulatorColumns(mma.layout, mma.n);
  if (mma.layout != AccumulatorLayout::F && mma.layout != AccumulatorLayout::C)
    return {{mma.d.lane, hw::tmemLaneCount, mma.d.column, columns}};
  std::vector<TmemRange> ranges;
  for (uint32_t lane = 0; lane < hw::tmemLaneCount; lane += 32)
    ranges.push_back({lane + mma.d.lane, 16, mma.d.column, columns});
  return ranges;
}

Status checkShape(MmaRequest &mma) {
  FP4_TRY(hw::validateMmaShape(mma.kind, mma.ctaGroup, mma.m, mma.n));
  const auto layout = hw::accumulatorLayout(mma.ctaGroup, mma.m, false, false);
  if (!layout)
    return fail(
        fmt::format("there is no tcgen05.mma of M = {} with cta_group::{}", mma.m, mma.ctaGroup));
  mma.layout = *layout;
  const bool halfLanes = mma.layout == AccumulatorLayout::F;
  if (mma.d.lane != 0 && !(halfLanes && mma.d.lane == 16))
    return fail(fmt::format("expects an accumulator at lane 0{}, but got lane {}",
                            halfLanes ? " or 16" : "", mma.d.lane));
  if (mma.transposeA || mma.transposeB)
    return fail("the simulator models K-major operands only, but the instruction descriptor asks "
                "for a transposed one");
  if (mma.aInTmem && (mma.layout == AccumulatorLayout::F || mma.layout == AccumulatorLayout::B))
    return fail(fmt::format("the simulator does not model A in tensor memory with M = {} and "
                            "cta_group::{}",
                            mma.m, mma.ctaGroup));
  return {};
}

/// The rows of a K-major tile in shared memory. When the whole span is valid no row is checked.
Status gatherRows(Engine &engine, const Ticket &self, uint32_t rank, const hw::SmemDescriptor &tile,
                  unsigned rows, uint8_t *out) {
  std::vector<uint32_t> offsets(2 * rows);
  uint32_t low = ~0u, high = 0;
  for (unsigned i = 0; i < 2 * rows; ++i) {
    offsets[i] = tile.operandAddress(i / 2, 16 * (i % 2));
    low = std::min(low, offsets[i]);
    high = std::max(high, offsets[i] + 16);
  }
  const uint32_t base = rank << kSharedRankShift;
  FP4_TRY(engine.checkShared(base | low, high - low));
  SharedMemory &shared = engine.cluster().ctas[rank]->shared;
  const bool allValid = shared.valid(low, high - low);
  for (unsigned i = 0; i < 2 * rows; ++i) {
    engine.emitAccess(self, AccessKind::Read, Space::SharedCluster, base | offsets[i], 16,
                      Proxy::Async);
    if (!allValid)
      FP4_TRY(engine.sharedSource(base | offsets[i], 16, self));
    std::memcpy(out + 16 * i, shared.at(offsets[i]), 16);
  }
  return {};
}

} // namespace

bool decodeOperands(ExecContext &cx, const Insn &insn, int lane, MmaRequest &mma) {
  mma.d = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[0], lane)));
  mma.aInTmem = insn.op[1].kind == OperandKind::Address;
  if (mma.aInTmem) {
    mma.aTmem = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[1], lane)));
  } else {
    auto a = hw::SmemDescriptor::decode(cx.scalar(insn.op[1], lane));
    if (!a)
      return failHere(cx, std::move(a.error()), lane), false;
    mma.a = *a;
  }
  auto b = hw::SmemDescriptor::decode(cx.scalar(insn.op[2], lane));
  if (!b)
    return failHere(cx, std::move(b.error()), lane), false;
  mma.b = *b;
  if (Status ok = checkShape(mma); !ok)
    return failHere(cx, std::move(ok.error()), lane), false;
  mma.ranks = groupRanks(cx, mma.ctaGroup);
  return !mma.ranks.empty();
}

Ticket mmaTicket(ExecContext &cx, const Insn &insn, int lane, const MmaRequest &mma) {
  Ticket ticket = Engine::of(cx).makeTicket(cx, insn, EngineKind::Mma, lane);
  ticket.ctaGroup = mma.ctaGroup;
  for (uint32_t rank : mma.ranks) {
    ticket.sharedReads |= 1u << rank;
    for (const TmemRange &range : accumulatorRanges(mma))
      ticket.tmemWrites.push_back({rank, range});
  }
  return ticket;
}

Status gatherA(Engine &engine, const Ticket &self, const MmaRequest &mma, unsigned member,
               std::vector<uint8_t> &out) {
  const unsigned rows = mma.m / mma.ctaGroup;
  const uint32_t rank = mma.ranks[member];
  out.resize(hw::mmaRowBytes * rows);
  if (!mma.aInTmem)
    return gatherRows(engine, self, rank, mma.a, rows, out.data());
  const TmemRange range{mma.aTmem.lane, rows, mma.aTmem.column, hw::mmaRowBytes / 4};
  FP4_TRY(engine.checkCells(rank, range, self.id, "A"));
  emitTmem(engine, self, AccessKind::Read, rank, range);
  for (unsigned row = 0; row < rows; ++row)
    std::memcpy(out.data() + hw::mmaRowBytes * row,
                engine.state(rank).tmem.cell(range.lane + row, range.column), hw::mmaRowBytes);
  return {};
}

Status gatherB(Engine &engine, const Ticket &self, const MmaRequest &mma,
               std::vector<uint8_t> &out) {
  const unsigned rows = mma.n / mma.ctaGroup;
  out.resize(hw::mmaRowBytes * mma.n);
  for (unsigned member = 0; member < mma.ctaGroup; ++member)
    FP4_TRY(gatherRows(engine, self, mma.ranks[member], mma.b, rows,
                       out.data() + hw::mmaRowBytes * rows * member));
  return {};
}

Status checkAccumulator(Engine &engine, const Ticket &self, const MmaRequest &mma,
                        unsigned member) {
  for (const TmemRange &range : accumulatorRanges(mma)) {
    if (mma.accumulate) {
      FP4_TRY(engine.checkCells(mma.ranks[member], range, self.id, "the accumulator"));
      emitTmem(engine, self, AccessKind::Read, mma.ranks[member], range);
    }
    emitTmem(engine, self, AccessKind::Write, mma.ranks[member], range);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The accumulator
//===----------------------------------------------------------------------===//

template <typename F> void Accumulator::forEachCell(F &&f) {
  const unsigned rows = mma.m / mma.ctaGroup;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < mma.n; ++column) {
      const auto cell = hw::accumulatorCell(mma.layout, member * rows + row, column, mma.n);
      f(copy[size_t(row) * mma.n + column],
        *tmem.cell(mma.d.lane + cell.lane, mma.d.column + cell.column));
    }
}

Accumulator::Accumulator(Engine &engine, const MmaRequest &mma, unsigned member)
    : tmem(engine.state(mma.ranks[member]).tmem), mma(mma), member(member) {
  if (mma.layout == AccumulatorLayout::A || mma.layout == AccumulatorLayout::D)
    return;
  copy.resize(size_t(mma.m / mma.ctaGroup) * mma.n);
  if (mma.accumulate)
    forEachCell([](uint32_t &ours, uint32_t &cell) { ours = cell; });
}

void Accumulator::writeBack() {
  if (!copy.empty())
    forEachCell([](uint32_t &ours, uint32_t &cell) { cell = ours; });
}

} // namespace fp4::sim
