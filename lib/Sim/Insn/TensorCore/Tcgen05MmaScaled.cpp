//===- Tcgen05MmaScaled.cpp - Block-scaled tcgen05.mma of fp4 -------------===//
//
// PTX ISA, "tcgen05.mma" and ".sp" with .block_scale, kinds mxf4 and mxf4nvf4: D = A * B (+ D), A
// of M x 64 and B of N x 64 fp4 (K-major), scale factors in tensor memory. A sparse A stands for K
// of 128: a scale is of 16 or 32 of its stored elements, and of twice as many of B. Bits of the
// descriptor make it K = 96 or 128, whose scales reach over the end of a block of 4. One ticket
// does the whole of it when it completes: gather operands and scales by lib/ISA's layouts, multiply
// (BlockScaledMma.h), write D. With cta_group::2 each CTA of the pair supplies half of the rows of
// A and of B and holds its part of D. kind::mxf8f6f4 is in Tcgen05Mma.cpp.
//
// Operands: D, A (a descriptor, or an address in tensor memory), B, metadata of a sparse A,
// instruction descriptor, SFA, SFB, accumulate.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/BlockScaledMma.h"
#include "Sim/Insn/TensorCore/MmaOperands.h"
#include "fp4/ISA/ScaleLayout.h"
#include "fp4/ISA/TargetModel.h"

#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::AccumulatorLayout;

/// Scale bytes of `rows` rows, one per group of 16 k, from the tensor memory of one CTA.
Status gatherScales(TicketQueue &queue, const Ticket &self, uint32_t rank, const MmaRequest &mma,
                    uint32_t address, unsigned rows, unsigned id, hw::ScaleOperand operand,
                    std::string_view name, std::vector<uint8_t> &out) {
  const auto base = hw::TmemAddress::unpack(address);
  const bool pair = operand == hw::ScaleOperand::ColumnsPairM128;
  const unsigned perHalf = pair ? rows / 2 : rows;
  const TmemRange range{0, hw::tmemLaneCount, base.column, (perHalf + 31) / 32};
  FP4_TRY(queue.checkCells(rank, range, self.id, name));
  emitTmem(queue, self, rank, range);
  TensorMemory &tmem = queue.state(rank).tmem;
  const unsigned vector = unsigned(mma.scales.vector), copies = pair ? 2 : 4, repeat = 4 / vector;
  out.resize(4 * rows);
  for (unsigned row = 0; row < rows; ++row) {
    const auto first = hw::scaleCell(row, 0, id, 0, operand, rows);
    const uint32_t word = *tmem.cell(first.lane, base.column + first.column);
    for (unsigned block = 0; block < 4; ++block)
      out[4 * row + block] = uint8_t(word >> (8 * (first.byte + block / repeat)));
    const uint32_t used = (vector == 4 ? ~0u : (1u << (8 * vector)) - 1) << (8 * first.byte);
    for (unsigned q = 1; q < copies; ++q) {
      const auto cell = hw::scaleCell(row, 0, id, q, operand, rows);
      if ((*tmem.cell(cell.lane, base.column + cell.column) ^ word) & used)
        return makeError(
            ErrorKind::Simulation,
            fmt::format("the copies of {} in tensor memory differ: row {} in TMEM lanes {} and "
                        "{}, column {}",
                        name, row, first.lane, cell.lane, base.column + cell.column),
            "every quarter of the TMEM lanes must hold the same scale factors");
    }
  }
  return {};
}

/// Sums of products that an instruction scales: of 16 elements of 4 bits, or of a scale block of
/// bytes.
unsigned groupsOf(const MmaRequest &mma) {
  const unsigned k = hw::mmaK(mma.kind, false, mma.variant.depth);
  return k / (mma.kind == hw::MmaKind::MXF8F6F4 ? 32 : 16);
}

/// Gathers the scale bytes of K = 96 and of the double K, one for each group: the scales begin at
/// byte `id` of a row's word and may end in the word of the next block.
Status gatherLongScales(TicketQueue &queue, const Ticket &self, uint32_t rank,
                        const MmaRequest &mma, uint32_t address, unsigned rows, unsigned id,
                        std::string_view name, std::vector<uint8_t> &out) {
  const unsigned groups = groupsOf(mma);
  const auto base = hw::TmemAddress::unpack(address);
  const unsigned scales = hw::scalesOfMma(mma.scales.vector, mma.variant.depth);
  const unsigned next = hw::nextScaleColumns(rows), words = (id + scales + 3) / 4;
  for (unsigned word = 0; word < words; ++word) {
    const TmemRange range{0, hw::tmemLaneCount, base.column + word * next, (rows + 31) / 32};
    FP4_TRY(queue.checkCells(rank, range, self.id, name));
    emitTmem(queue, self, rank, range);
  }
  TensorMemory &tmem = queue.state(rank).tmem;
  out.resize(groups * rows);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned scale = 0; scale < scales; ++scale) {
      const unsigned byte = id + scale;
      const auto read = [&](unsigned quadrant) {
        const auto cell = hw::scaleCell(row, byte % 4, 0, quadrant);
        return uint8_t(*tmem.cell(cell.lane, base.column + byte / 4 * next + cell.column) >>
                       8 * cell.byte);
      };
      const uint8_t value = read(0);
      for (unsigned quadrant = 1; quadrant < 4; ++quadrant)
        if (read(quadrant) != value)
          return makeError(ErrorKind::Simulation,
                           fmt::format("the copies of {} in tensor memory differ: row {}, scale {}",
                                       name, row, scale),
                           "every quarter of the TMEM lanes must hold the same scale factors");
      const unsigned repeat = groups / scales;
      std::fill_n(&out[groups * row + scale * repeat], repeat, value);
    }
  return {};
}

/// The columns of B that a row of a sparse A multiplies, 32 bytes each.
std::vector<uint8_t> columnsFor(const MmaRequest &mma, const SparseRow &row,
                                const std::vector<uint8_t> &b) {
  std::vector<uint8_t> chosen(size_t(hw::mmaRowBytes) * mma.n);
  for (size_t column = 0; column < mma.n; ++column)
    selectElements(row, 4, &b[mma.columnBytes() * column], &chosen[hw::mmaRowBytes * column]);
  return chosen;
}

void multiply(const MmaRequest &mma, BlockScaledOperands operands, const std::vector<uint8_t> &b,
              const std::vector<SparseRow> &selections) {
  if (selections.empty())
    return blockScaledMma(operands);
  operands.rows = 1;
  for (const SparseRow &row : selections) {
    const std::vector<uint8_t> chosen = columnsFor(mma, row, b);
    operands.b = chosen.data();
    blockScaledMma(operands);
    operands.a += hw::mmaRowBytes;
    operands.scalesA += 4;
    operands.d += operands.pitch;
  }
}

Status gatherSparseRows(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
                        unsigned member, const std::vector<uint8_t> &a,
                        std::vector<SparseRow> &selections) {
  std::vector<uint64_t> nonZero;
  for (unsigned row = 0; row < mma.rows(); ++row)
    nonZero.push_back(
        nonZeroElements(std::span(a).subspan(row * hw::mmaRowBytes, hw::mmaRowBytes), 4));
  return gatherSelections(queue, self, mma, member, nonZero, selections);
}

/// Columns of the part of one CTA.
Status runPart(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, unsigned member,
               const PartOfD &part, const std::vector<uint8_t> &b) {
  const uint32_t rank = mma.ranks[member];
  std::vector<uint8_t> a, scalesA, scalesB;
  std::vector<SparseRow> selections;
  FP4_TRY(gatherA(queue, self, mma, member, part, a));
  if (mma.variant.sparse)
    FP4_TRY(gatherSparseRows(queue, self, mma, member, a, selections));
  FP4_TRY(gatherScaleBytes(queue, self, rank, mma, true, scalesA));
  FP4_TRY(gatherScaleBytes(queue, self, rank, mma, false, scalesB));
  FP4_TRY(checkAccumulator(queue, self, mma, member));
  BlockScaledOperands operands;
  operands.rows = int(mma.rows());
  operands.columns = int(mma.n);
  operands.groups = int(groupsOf(mma));
  operands.a = a.data();
  operands.b = b.data();
  operands.scalesA = scalesA.data();
  operands.scalesB = scalesB.data();
  operands.format = mma.scales.type;
  operands.negateA = mma.a.negate;
  operands.negateB = mma.b.negate;
  operands.accumulate = mma.accumulate;
  Accumulator accumulator(queue, mma, member, part);
  operands.d = accumulator.data();
  operands.pitch = accumulator.pitch();
  multiply(mma, operands, b, selections);
  accumulator.writeBack();
  return {};
}

Status run(TicketQueue &queue, const Ticket &self, const MmaRequest &mma) {
  std::vector<uint8_t> b;
  FP4_TRY(gatherB(queue, self, mma, b));
  for (unsigned member = 0; member < mma.ctaGroup; ++member)
    for (const PartOfD &part : partsOfD(queue, mma, member))
      FP4_TRY(runPart(queue, self, mma, member, part, b));
  ++queue.cluster().mmas;
  return {};
}

/// [derived] CUTLASS' steps of 6 and 3 scales begin at every second byte, and at every byte. Eight
/// scales begin at byte 0.
Status checkScaleIds(const MmaRequest &mma) {
  const bool isK96 = mma.variant.depth == hw::MmaDepth::K96;
  const unsigned scales = hw::scalesOfMma(mma.scales.vector, mma.variant.depth);
  const unsigned unit = isK96 ? unsigned(mma.scales.vector) / 2 : std::min(scales, 4u);
  for (unsigned id : {mma.scales.aId, mma.scales.bId})
    if (id % unit || (id + unit > 4 && !isK96))
      return makeError(
          ErrorKind::Simulation,
          fmt::format("scale factor id {} is not legal with {} scales per row", id, scales));
  return {};
}

Status decodeScaled(const Insn &insn, uint32_t bits, MmaRequest &mma) {
  FP4_ASSIGN(auto desc, hw::BlockScaledInstrDesc::decode(mma.kind, bits));
  mma.variant.depth = desc.depth;
  if (desc.sparse != mma.variant.sparse)
    return makeError(ErrorKind::Simulation,
                     desc.sparse
                         ? "the instruction descriptor says sparse, but the instruction is not .sp"
                         : "the instruction is .sp, but bit 2 of the instruction descriptor is "
                           "clear");
  mma.m = desc.m;
  mma.n = desc.n;
  mma.a.type = desc.aType;
  mma.b.type = desc.bType;
  mma.scales.type = desc.scaleType;
  mma.scales.aId = desc.sfaId;
  mma.scales.bId = desc.sfbId;
  mma.a.negate = desc.negateA;
  mma.b.negate = desc.negateB;
  mma.a.transpose = desc.transposeA;
  mma.b.transpose = desc.transposeB;
  mma.scales.inLanes = desc.scalesInLanes;
  const unsigned scales = insn.as<Tcgen05MmaModifiers>().scalesPerRow;
  mma.scales.vector = hw::ScaleVector(scales);
  if (!hw::isLegalScaleVector(mma.kind, mma.scales.type, mma.scales.vector))
    return makeError(ErrorKind::Simulation,
                     fmt::format("kind::{} with scales of type {} does not take {} scales per row",
                                 stringify(mma.kind), stringify(mma.scales.type), scales),
                     "check the scale type in bits 23-24 of the instruction descriptor");
  return checkScaleIds(mma);
}

/// CUTLASS leaves the scale factor id of the descriptor in the two highest bits, which no TMEM lane
/// has.
bool scaleAddress(ExecContext &cx, const Operand &o, int lane, unsigned id, uint32_t &address) {
  address = uint32_t(cx.address(o, lane));
  if (address >> 30 == id)
    address &= 0x3FFFFFFF;
  if (!hw::TmemAddress::unpack(address).lane)
    return true;
  cx.fail(fmt::format("expects scale factors at TMEM lane 0, but got {:#x}", address), "", lane);
  return false;
}

/// Returns the columns of the scales of so many rows; the scales of long MMAs may reach into the
/// next block.
TmemRange scaleColumns(const MmaRequest &mma, uint32_t address, unsigned rows) {
  const unsigned blocks = hw::scalesOfMma(mma.scales.vector, mma.variant.depth) > 4 ||
                                  mma.variant.depth == hw::MmaDepth::K96
                              ? 2
                              : 1;
  return {0, hw::tmemLaneCount, hw::TmemAddress::unpack(address).column,
          blocks * hw::nextScaleColumns(rows)};
}

Outcome mmaScaled(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto mma = makeRequest(insn);
    if (Status ok = decodeScaled(insn, uint32_t(cx.scalar(mmaOperand(insn, 3), lane)), *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    mma->accumulate = cx.predicate(mmaOperand(insn, 6)) >> lane & 1;
    if (!scaleAddress(cx, mmaOperand(insn, 4), lane, mma->scales.aId, mma->scales.a) ||
        !scaleAddress(cx, mmaOperand(insn, 5), lane, mma->scales.bId, mma->scales.b))
      return Outcome::Error;
    if (Status ok = checkMmaTarget(cx, *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    if (!decodeOperands(cx, insn, lane, *mma))
      return Outcome::Error;
    Ticket ticket = mmaTicket(cx, insn, lane, *mma);
    ticket.tcgen05.scales = {scaleColumns(*mma, mma->scales.a, mma->m / mma->ctaGroup),
                             scaleColumns(*mma, mma->scales.b, mma->n)};
    const bool fp4 = mma->kind != hw::MmaKind::MXF8F6F4;
    ticket.stages.push_back([&queue, mma, fp4](const Ticket &self) {
      return fp4 ? run(queue, self, *mma) : runDense(queue, self, *mma);
    });
    orderTcgen05(queue, ticket);
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

/// .scale_vec::NX, .blockNN, or the default of the kind.
uint8_t scalesPerRow(std::string_view kind, std::string_view vector) {
  if (vector.starts_with("scale_vec"))
    return uint8_t(vector[11] - '0');
  if (kind == "mxf8f6f4")
    return 1;
  return vector == "block16" ? 4 : 2;
}

} // namespace

Status gatherScaleBytes(TicketQueue &queue, const Ticket &self, uint32_t rank,
                        const MmaRequest &mma, bool ofA, std::vector<uint8_t> &out) {
  if (mma.variant.depth != hw::MmaDepth::Single)
    return ofA ? gatherLongScales(queue, self, rank, mma, mma.scales.a, mma.m / mma.ctaGroup,
                                  mma.scales.aId, "scale factors of A", out)
               : gatherLongScales(queue, self, rank, mma, mma.scales.b, mma.n, mma.scales.bId,
                                  "scale factors of B", out);
  const bool pair = mma.layout == AccumulatorLayout::B;
  const auto operand = !pair ? hw::ScaleOperand::Rows
                       : ofA ? hw::ScaleOperand::RowsPairM128
                             : hw::ScaleOperand::ColumnsPairM128;
  return ofA ? gatherScales(queue, self, rank, mma, mma.scales.a, mma.m / mma.ctaGroup,
                            mma.scales.aId, operand, "scale factors of A", out)
             : gatherScales(queue, self, rank, mma, mma.scales.b, mma.n, mma.scales.bId, operand,
                            "scale factors of B", out);
}

static Status bindScaled(BindContext &bind, bool sparse) {
  const std::string_view kind = bind.match.text("kind").substr(6),
                         vector = bind.match.text("vector");
  auto &mma = decodeMmaModifiers(bind, sparse);
  if (kind == "mxf4nvf4" && vector.empty())
    return bind.fail("kind::mxf4nvf4 expects .block16, .block32 or a .scale_vec");
  mma.scalesPerRow = scalesPerRow(kind, vector);
  if ((kind == "mxf8f6f4" && !vector.empty() && vector != "block32" && vector != "scale_vec::1X") ||
      (kind == "mxf4" && !vector.empty() && vector != "block32" && vector != "scale_vec::2X") ||
      (kind == "mxf4nvf4" && vector == "scale_vec::1X"))
    return bind.fail(fmt::format("kind::{} does not take .{}", kind, vector));
  return bind.use(mmaScaled);
}

Status bindTcgen05MmaScaled(BindContext &bind) { return bindScaled(bind, false); }
Status bindTcgen05MmaScaledSparse(BindContext &bind) { return bindScaled(bind, true); }

} // namespace fp4::sim
