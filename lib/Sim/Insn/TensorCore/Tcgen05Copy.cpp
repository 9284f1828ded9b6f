//===- Tcgen05Copy.cpp - tcgen05.cp and tcgen05.shift ---------------------===//
//
// PTX ISA, "tcgen05.cp" and "tcgen05.shift". Shared memory to tensor memory by a matrix descriptor;
// with cta_group::2 in both CTAs of the pair, each from its own shared memory to its own tensor
// memory.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/TensorCore/Tcgen05.h"
#include "fp4/ISA/SmemDescriptor.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::CopyShape;

struct Copy {
  CopyShape shape{};
  hw::SmemDescriptor source;
  hw::TmemAddress to;
  unsigned bits = 0; ///< bits of packed source elements; 0: plain bytes
};

/// 16 packed elements of `bits` bits to 16 bytes: fp4 in bits 5:2; 6-bit types in bits 5:0.
std::array<uint8_t, 16> decompress(const std::byte *packed, unsigned bits) {
  std::array<uint8_t, 16> out{};
  for (unsigned i = 0; i < 16; ++i) {
    unsigned value = 0;
    for (unsigned b = 0; b < bits; ++b) {
      const unsigned at = i * bits + b;
      value |= (unsigned(packed[at / 8]) >> (at % 8) & 1u) << b;
    }
    out[i] = uint8_t(bits == 4 ? value << 2 : value);
  }
  return out;
}

/// The rectangles written: whole quarters of the TMEM lanes where the shape has them.
std::vector<TmemRange> footprint(const Copy &copy) {
  const uint32_t columns = hw::copyColumns(copy.shape);
  if (copy.shape != CopyShape::C4x256b)
    return {{0, hw::tmemLaneCount, copy.to.column, columns}};
  std::vector<TmemRange> ranges;
  for (unsigned row = 0; row < 4; ++row)
    ranges.push_back({hw::copyCells(copy.shape, row, 0).cells[0].lane, 1, copy.to.column, columns});
  return ranges;
}

Status copyRow(TicketQueue &queue, const Ticket &self, uint32_t rank, const Copy &copy,
               unsigned row) {
  TensorMemory &tmem = queue.state(rank).tmem;
  for (unsigned word = 0; word < hw::copyColumns(copy.shape); word += 4) {
    const uint32_t address = rank << kSharedRankShift | copy.source.operandAddress(row, 4 * word);
    queue.emitAccess(self, AccessKind::Read, Space::SharedCluster, address, 16, Proxy::Async);
    FP4_ASSIGN(auto from, queue.sharedSource(address, copy.bits ? 2 * copy.bits : 16, self));
    std::array<uint8_t, 16> bytes;
    if (copy.bits)
      bytes = decompress(from, copy.bits);
    else
      std::memcpy(bytes.data(), from, 16);
    for (unsigned i = 0; i < 4; ++i) {
      const hw::CopyCells cells = hw::copyCells(copy.shape, row, word + i);
      for (unsigned c = 0; c < cells.count; ++c)
        std::memcpy(tmem.cell(cells.cells[c].lane, copy.to.column + cells.cells[c].column),
                    bytes.data() + 4 * i, 4);
    }
  }
  return {};
}

Status runCopy(TicketQueue &queue, const Ticket &self, uint32_t rank, const Copy &copy) {
  for (unsigned row = 0; row < hw::copyRows(copy.shape); ++row)
    FP4_TRY(copyRow(queue, self, rank, copy, row));
  return {};
}

Outcome copyIn(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<TmemCopyModifiers>();
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto descriptor =
        hw::SmemDescriptor::decode(cx.scalar(insn.op[1], lane), hasWideDescriptors(cx));
    if (!descriptor)
      return failHere(cx, std::move(descriptor.error()), lane);
    Copy copy{how.shape, *descriptor,
              hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[0], lane))), how.sourceBits};
    if (copy.to.lane)
      return cx.fail(
          fmt::format("expects an address at TMEM lane 0, but got lane {}", copy.to.lane), "",
          lane);
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::TmemCopy, lane);
    ticket.tcgen05.ctaGroup = how.ctaGroup;
    ticket.tcgen05.pipelined = {PipelinedOp::Copy, copy.shape == CopyShape::C4x256b};
    const auto ranks = groupRanks(cx, how.ctaGroup);
    if (ranks.empty())
      return Outcome::Error;
    for (uint32_t rank : ranks) {
      ticket.sharedReads |= 1u << rank;
      for (const TmemRange &range : footprint(copy))
        ticket.writes.tmem.push_back({rank, range});
    }
    ticket.stages.push_back([&queue, copy, ranks](const Ticket &self) -> Status {
      for (uint32_t rank : ranks)
        FP4_TRY(runCopy(queue, self, rank, copy));
      return {};
    });
    orderTcgen05(queue, ticket);
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

/// The rows of a warp's 32 TMEM lanes move down by one, lane i to lane i + 1; the last is lost, the
/// first keeps its data for a tcgen05.cp.4x256b to replace. 8 columns. [uncertain] The direction is
/// the literal reading of the PTX text, which has no formula.
Outcome shiftDown(ExecContext &cx, const Insn &insn) {
  constexpr uint32_t columns = 8;
  const uint32_t ctaGroup = insn.as<TmemShiftModifiers>().ctaGroup;
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto at = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[0], lane)));
    if (at.lane % 32)
      return cx.fail(
          fmt::format("tcgen05.shift expects a TMEM lane that is a multiple of 32, but got {}",
                      at.lane),
          "", lane);
    Ticket ticket = queue.makeTicket(cx, insn, TicketKind::TmemShift, lane);
    ticket.tcgen05.ctaGroup = ctaGroup;
    ticket.tcgen05.pipelined = {PipelinedOp::Shift};
    const auto ranks = groupRanks(cx, ctaGroup);
    if (ranks.empty())
      return Outcome::Error;
    const TmemRange range{at.lane, 32, at.column, columns};
    for (uint32_t rank : ranks)
      ticket.writes.tmem.push_back({rank, range});
    ticket.stages.push_back([&queue, ranks, range](const Ticket &self) -> Status {
      for (uint32_t rank : ranks) {
        FP4_TRY(queue.checkCells(rank, range, self.id, "a row"));
        TensorMemory &tmem = queue.state(rank).tmem;
        for (uint32_t row = range.lanes - 1; row > 0; --row)
          std::memcpy(tmem.cell(range.lane + row, range.column),
                      tmem.cell(range.lane + row - 1, range.column), 4 * columns);
      }
      return {};
    });
    orderTcgen05(queue, ticket);
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

} // namespace

Status bindTcgen05Copy(BindContext &bind) {
  std::string text(bind.match.text("shape"));
  if (bind.match.has("cast"))
    text += "." + std::string(bind.match.text("cast"));
  const auto shape = hw::parseCopyShape(text);
  if (!shape)
    return bind.fail(
        fmt::format("there is no copy shape .{}", text),
        ".32x128b expects .warpx4, .64x128b one of the .warpx2 forms, the others none");
  auto &how = bind.insn.make<TmemCopyModifiers>({*shape, ctaGroupOf(bind)});
  if (bind.match.has("srcfmt") != bind.match.has("dstfmt"))
    return bind.fail(".b8x16 expects .b4x16_p64 or .b6x16_p32, and the reverse");
  if (bind.match.has("srcfmt"))
    how.sourceBits = bind.match.text("srcfmt") == "b4x16_p64" ? 4 : 6;
  return bind.use(copyIn);
}
Status bindTcgen05Shift(BindContext &bind) {
  bind.insn.make<TmemShiftModifiers>({ctaGroupOf(bind)});
  return bind.use(shiftDown);
}

} // namespace fp4::sim
