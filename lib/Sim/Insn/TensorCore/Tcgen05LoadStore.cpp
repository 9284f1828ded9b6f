//===- Tcgen05LoadStore.cpp - tcgen05.ld and tcgen05.st -------------------===//
//
// PTX ISA, "tcgen05.ld" and "tcgen05.st". A warp moves cells of its own quarter of the TMEM lanes
// to or from registers; hw::loadCell says which. tcgen05.ld.red also gives the least or greatest of
// what each thread loaded.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/Scalar/Floats.h"
#include "Sim/Insn/TensorCore/Tcgen05.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::LoadShape;

/// One instruction: where it begins and which registers it names.
struct Transfer {
  LoadShape shape{};
  bool packed = false;
  uint32_t rank = 0, warp = 0;
  hw::TmemAddress base;
  uint32_t halfSplit = 0;
  std::byte *registers = nullptr; ///< bank 0 of the warp
  std::vector<Operand> elements;
  const std::byte *constants = nullptr; ///< bank 1
  bool practice = false;                ///< Judgement::Practice
  bool reduces = false;                 ///< tcgen05.ld.red
  bool untouched = false;               ///< a load of cells that nothing has written
};

/// The cells the instruction touches, as rectangles.
std::vector<TmemRange> footprint(const Transfer &t, uint32_t repetitions) {
  const uint32_t lanes = t.shape == LoadShape::S32x32b ? 32 : 16;
  const uint32_t columns = hw::loadColumns(t.shape, repetitions) * (t.packed ? 2 : 1);
  const uint32_t lane = 32 * (t.warp % 4) + (lanes == 16 ? t.base.lane & 16 : 0);
  std::vector<TmemRange> ranges{{lane, lanes, t.base.column, columns}};
  if (t.shape == LoadShape::S16x32bx2)
    ranges.push_back({lane, lanes, t.base.column + t.halfSplit, columns});
  return ranges;
}

/// The TMEM lane that an address names. PTX wants one of the warp's own quarter. Hardware seems to
/// look at the lane within the quarter only: of kernels that are right on a B200, some name lane 0
/// in every warp, some lanes 128 to 255 in the second CTA of a pair.
uint32_t laneNamed(ExecContext &cx, uint32_t quarter, uint32_t lane) {
  return cx.launch().options->judgement == Judgement::Practice ? quarter + lane % 32 : lane;
}

/// Reads the operands; false after cx.fail.
bool decode(ExecContext &cx, const Insn &insn, const Operand &address, const Operand &vector,
            const Operand &split, Transfer &t) {
  const auto &how = insn.as<TmemTransferModifiers>();
  t.shape = how.shape;
  t.packed = how.packed;
  t.rank = cx.cta().rank;
  t.warp = cx.warp().index;
  t.registers = cx.warp().registers;
  t.constants = cx.warp().constants;
  t.halfSplit = split ? uint32_t(split.imm) : 0;
  t.practice = cx.launch().options->judgement == Judgement::Practice;
  t.reduces = how.reduction != TmemReduction::None;
  t.elements.assign(cx.elements(vector), cx.elements(vector) + cx.elementCount(vector));
  const uint32_t first = uint32_t(cx.address(address, cx.firstLane()));
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (uint32_t(cx.address(address, std::countr_zero(rest))) != first) {
      cx.fail("expects the same tensor memory address in all lanes");
      return false;
    }
  t.base = hw::TmemAddress::unpack(first);
  const uint32_t quarter = 32 * (t.warp % 4);
  t.base.lane = laneNamed(cx, quarter, t.base.lane);
  const bool half = t.shape != LoadShape::S32x32b && t.base.lane == quarter + 16;
  if (t.base.lane != quarter && !half) {
    cx.fail(fmt::format("warp {} may access TMEM lanes {}..{} only, but the address names lane {}",
                        t.warp, quarter, quarter + 31, t.base.lane),
            "add (warp % 4) * 32 to the lane field, bits 16 to 31");
    return false;
  }
  return true;
}

uint32_t *cellOf(TicketQueue &queue, const Transfer &t, int lane, unsigned reg, unsigned half) {
  const auto cell =
      t.packed ? hw::loadCellPacked(t.shape, t.warp, unsigned(lane), reg, half, t.base, t.halfSplit)
               : hw::loadCell(t.shape, t.warp, unsigned(lane), reg, t.base, t.halfSplit);
  return queue.state(t.rank).tmem.cell(cell.lane, cell.column);
}

void loadRegister(TicketQueue &queue, const Transfer &t, unsigned reg) {
  uint32_t *to = reinterpret_cast<uint32_t *>(t.registers + t.elements[reg].offset);
  for (int lane = 0; lane < 32; ++lane) {
    const uint32_t low = *cellOf(queue, t, lane, reg, 0);
    to[lane] = t.packed ? (low & 0xFFFF) | *cellOf(queue, t, lane, reg, 1) << 16 : low;
  }
}

void storeRegister(TicketQueue &queue, const Transfer &t, unsigned reg, const uint32_t *from) {
  for (int lane = 0; lane < 32; ++lane) {
    *cellOf(queue, t, lane, reg, 0) = t.packed ? from[lane] & 0xFFFF : from[lane];
    if (t.packed)
      *cellOf(queue, t, lane, reg, 1) = from[lane] >> 16;
  }
}

uint32_t reduceFloats(const TmemTransferModifiers &how, uint32_t a, uint32_t b) {
  const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (std::isnan(x) || std::isnan(y))
    return how.nan || (std::isnan(x) && std::isnan(y)) ? kNaN32 : std::isnan(x) ? b : a;
  const bool less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return less == (how.reduction == TmemReduction::MinFloat) ? a : b;
}

uint32_t reduce(const TmemTransferModifiers &how, uint32_t a, uint32_t b) {
  switch (how.reduction) {
  case TmemReduction::Min:
    return std::min(a, b);
  case TmemReduction::Max:
    return std::max(a, b);
  case TmemReduction::MinSigned:
    return uint32_t(std::min(int32_t(a), int32_t(b)));
  case TmemReduction::MaxSigned:
    return uint32_t(std::max(int32_t(a), int32_t(b)));
  default:
    return reduceFloats(how, a, b);
  }
}

/// The register of tcgen05.ld.red that has the result, after the others were loaded.
void reduceRegisters(TicketQueue &queue, const Insn &insn, const Transfer &t,
                     const Operand &result) {
  auto *to = reinterpret_cast<uint32_t *>(t.registers + result.offset);
  const auto &how = insn.as<TmemTransferModifiers>();
  const uint32_t keep = how.abs ? 0x7FFFFFFF : ~0u;
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t value = *cellOf(queue, t, lane, 0, 0) & keep;
    for (unsigned reg = 1; reg < t.elements.size(); ++reg)
      value = reduce(how, value, *cellOf(queue, t, lane, reg, 0) & keep);
    to[lane] = value;
  }
}

/// Half of the lanes of a 32x32b load that nothing has written, as an MMA with M = 64 leaves them:
/// kernels load all 32 lanes and use 16. An error by the letter.
std::optional<unsigned> untouchedHalf(TicketQueue &queue, const Transfer &t,
                                      const TmemRange &range) {
  if (t.shape != LoadShape::S32x32b || !t.practice)
    return {};
  const TensorMemory &tmem = queue.state(t.rank).tmem;
  bool untouched[2];
  for (uint32_t half : {0, 1})
    untouched[half] = tmem.untouched({range.lane + 16 * half, 16, range.column, range.columns});
  return untouched[0] == untouched[1] ? std::nullopt : std::optional(unsigned(untouched[1]));
}

/// True where nothing has written any of the cells, and practice lets a load read them: a compiler
/// that pipelines a loop may issue its first load although the loop has no iterations, as Triton
/// does. An error by the letter.
bool readsUntouched(TicketQueue &queue, const Transfer &t, const std::vector<TmemRange> &ranges) {
  const TensorMemory &tmem = queue.state(t.rank).tmem;
  return t.practice &&
         std::ranges::all_of(ranges, [&](const TmemRange &range) { return tmem.untouched(range); });
}

/// True where nothing has written the column of a register, as after a narrower accumulator in the
/// same place: the first load of a loop without iterations again. An error by the letter.
bool readsUntouchedColumn(TicketQueue &queue, const Transfer &t, const TmemRange &range,
                          uint32_t reg) {
  if (t.shape != LoadShape::S32x32b || t.packed || t.reduces || !t.practice)
    return false;
  return queue.state(t.rank).tmem.untouched({range.lane, range.lanes, range.column + reg, 1});
}

Status checkAllocated(TicketQueue &queue, const Transfer &t, const std::vector<TmemRange> &ranges) {
  for (const TmemRange &range : ranges)
    FP4_TRY(queue.state(t.rank).tmem.checkAllocated(range));
  return {};
}

Status checkWritten(TicketQueue &queue, const Transfer &t, TmemRange range, uint64_t reader) {
  if (const auto half = untouchedHalf(queue, t, range)) {
    range.lane += *half ? 0 : 16;
    range.lanes = 16;
  }
  Status all = queue.checkCells(t.rank, range, reader, "a cell");
  if (all || !t.practice)
    return all;
  uint32_t gaps = 0;
  for (uint32_t reg = 0; reg < range.columns; ++reg) {
    if (readsUntouchedColumn(queue, t, range, reg))
      ++gaps;
    else
      FP4_TRY(queue.checkCells(t.rank, {range.lane, range.lanes, range.column + reg, 1}, reader,
                               "a cell"));
  }
  return gaps ? Status() : std::move(all);
}

/// A write that is still in flight at issue is a race in any schedule.
Status checkLoad(TicketQueue &queue, const Transfer &t, const std::vector<TmemRange> &ranges,
                 uint64_t reader) {
  FP4_TRY(checkAllocated(queue, t, ranges));
  if (t.untouched)
    return {};
  for (const TmemRange &range : ranges)
    FP4_TRY(checkWritten(queue, t, range, reader));
  return {};
}

/// Fills the registers of untouched cells with a pattern that no kernel could take for a value.
void spoil(const Transfer &t, const Operand &element, unsigned half) {
  if (element)
    std::fill_n(reinterpret_cast<uint32_t *>(t.registers + element.offset) + 16 * half, 16, ~0u);
}

void spoilAll(const Transfer &t, const Operand &reduced, unsigned half) {
  for (const Operand &element : t.elements)
    spoil(t, element, half);
  spoil(t, reduced, half);
}

/// Gives the registers what the load finds: the cells, or where nothing wrote them, no value.
void loadRegisters(TicketQueue &queue, const Insn &insn, const Transfer &t, const Operand &reduced,
                   const TmemRange &first) {
  if (!t.untouched) {
    for (unsigned reg = 0; reg < t.elements.size(); ++reg) {
      if (t.elements[reg])
        loadRegister(queue, t, reg);
      if (readsUntouchedColumn(queue, t, first, reg))
        for (unsigned half : {0u, 1u})
          spoil(t, t.elements[reg], half);
    }
    if (reduced)
      reduceRegisters(queue, insn, t, reduced);
  }
  const auto half = t.untouched ? std::nullopt : untouchedHalf(queue, t, first);
  for (unsigned lanes : {0u, 1u})
    if (t.untouched || half == lanes)
      spoilAll(t, reduced, lanes);
}

/// tcgen05.ld: op 0 the registers, maybe 1 the reduced one, then the address, the half split
/// offset.
Outcome load(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  TicketQueue &queue = TicketQueue::of(cx);
  auto t = std::make_shared<Transfer>();
  const auto &how = insn.as<TmemTransferModifiers>();
  const bool reduces = how.reduction != TmemReduction::None;
  const unsigned address = reduces ? 2 : 1;
  if (!decode(cx, insn, insn.op[address], insn.op[0], insn.op[address + 1], *t))
    return Outcome::Error;
  const Operand reduced = reduces ? insn.op[1] : Operand{};
  const auto ranges = footprint(*t, how.repetitions);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::TmemLoad, cx.firstLane());
  if (Status ok = checkAllocated(queue, *t, ranges); !ok)
    return failHere(cx, std::move(ok.error()));
  t->untouched = readsUntouched(queue, *t, ranges);
  if (Status ok = checkLoad(queue, *t, ranges, ticket.id); !ok)
    return failHere(cx, std::move(ok.error()));
  for (const Operand &element : t->elements)
    if (element)
      ticket.writes.registers.push_back({element.offset, element.offset + 128});
  if (reduced)
    ticket.writes.registers.push_back({reduced.offset, reduced.offset + 128});
  ticket.stages.push_back([&queue, &insn, t, ranges, reduced](const Ticket &self) -> Status {
    FP4_TRY(checkLoad(queue, *t, ranges, self.id));
    loadRegisters(queue, insn, *t, reduced, ranges[0]);
    for (const TmemRange &range : ranges)
      emitTmem(queue, self, t->rank, range);
    return {};
  });
  return finish(cx, queue.issue(std::move(ticket)));
}

/// tcgen05.st: op 0 the address; then the registers, or the half split offset and the registers.
/// The registers are read at issue: the warp may reuse them at once.
Outcome store(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  TicketQueue &queue = TicketQueue::of(cx);
  const auto &how = insn.as<TmemTransferModifiers>();
  const bool split = how.shape == LoadShape::S16x32bx2;
  auto t = std::make_shared<Transfer>();
  if (!decode(cx, insn, insn.op[0], insn.op[split ? 2 : 1], split ? insn.op[1] : Operand{}, *t))
    return Outcome::Error;
  auto values = std::make_shared<std::vector<uint32_t>>(32 * t->elements.size());
  for (unsigned reg = 0; reg < t->elements.size(); ++reg)
    std::memcpy(values->data() + 32 * reg, cx.src<uint32_t>(t->elements[reg]), 128);
  const auto ranges = footprint(*t, how.repetitions);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::TmemStore, cx.firstLane());
  for (const TmemRange &range : ranges)
    ticket.writes.tmem.push_back({t->rank, range});
  ticket.stages.push_back([&queue, t, values](const Ticket &) -> Status {
    for (unsigned reg = 0; reg < t->elements.size(); ++reg)
      storeRegister(queue, *t, reg, values->data() + 32 * reg);
    return {};
  });
  return finish(cx, queue.issue(std::move(ticket)));
}

Status bindTransfer(BindContext &bind, const Operand &vector, Handler handler) {
  const auto shape = hw::parseLoadShape(bind.match.text("shape"));
  const unsigned repetitions = unsigned(std::stoul(std::string(bind.match.text("num").substr(1))));
  const auto registers = shape ? hw::loadRegisters(*shape, repetitions) : std::nullopt;
  if (!registers)
    return bind.fail(
        fmt::format("there is no shape .{} with .x{}", bind.match.text("shape"), repetitions));
  if (uint64_t(vector.imm) != *registers)
    return bind.fail(fmt::format(".{}.x{} expects {} registers, but got {}",
                                 bind.match.text("shape"), repetitions, *registers, vector.imm));
  auto &how = bind.insn.make<TmemTransferModifiers>({*shape, uint8_t(repetitions)});
  how.packed = bind.match.has("pack::16b") || bind.match.has("unpack::16b");
  return bind.use(handler);
}

} // namespace

Status bindTcgen05Load(BindContext &bind) { return bindTransfer(bind, bind.insn.op[0], load); }
Status bindTcgen05LoadReduced(BindContext &bind) {
  using enum TmemReduction;
  const bool greatest = bind.match.text("op") == "max";
  const bool abs = bind.match.has("abs"), nan = bind.match.has("NaN");
  const std::string_view type = bind.match.text("type");
  if (type != "f32" && (abs || nan))
    return bind.fail(fmt::format(".abs and .NaN expect .f32, but got .{}", type));
  FP4_TRY(bindTcgen05Load(bind));
  auto how = bind.insn.as<TmemTransferModifiers>();
  how.reduction = type == "u32"   ? greatest ? Max : Min
                  : type == "s32" ? greatest ? MaxSigned : MinSigned
                  : greatest      ? MaxFloat
                                  : MinFloat;
  how.abs = abs;
  how.nan = nan;
  bind.insn.make(how);
  return {};
}
Status bindTcgen05Store(BindContext &bind) {
  const bool split = bind.match.text("shape") == "16x32bx2";
  return bindTransfer(bind, bind.insn.op[split ? 2 : 1], store);
}

} // namespace fp4::sim
