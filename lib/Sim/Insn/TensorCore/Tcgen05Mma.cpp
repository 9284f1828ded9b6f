//===- Tcgen05Mma.cpp - tcgen05.mma of the kinds without fp4 scales -------===//
//
// PTX ISA, "tcgen05.mma", ".sp", ".ws" and ".ws.sp": kinds f16, tf32, f8f6f4 and i8, and the
// arithmetic of mxf8f6f4 (decoded in Tcgen05MmaScaled.cpp). Operands: D, A (a descriptor, or an
// address in tensor memory), B, metadata of a sparse A, instruction descriptor, maybe the TMEM
// lanes that are not written, accumulate, and then for .ws the mask of
// columns of B, else the power of two that divides D. Collectors are hints: no result depends on
// them.
//
//===----------------------------------------------------------------------===//
#include "Sim/Insn/TensorCore/MmaOperands.h"
#include "Sim/Async/Fail.h"
#include "fp4/ISA/ZeroColumnMask.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {
using namespace numerics;
namespace {

using hw::MmaKind;
using hw::MmaType;

constexpr uint8_t nanScale = 0xFF;

/// The part of one CTA, as its operands are decoded.
struct FloatingPart {
  DenseRows a;
  DenseColumns b;
  std::vector<uint8_t> scalesA, scalesB; ///< scales of mxf8f6f4: four a row, or two of the double K
  std::vector<SparseRow> selections;     ///< selections of the rows of a sparse A
};

/// Exponents of the scales of D's elements, row by row; none without scales. An element with a
/// scale that is NaN is one of `invalid`.
std::vector<int32_t> scaleExponents(const FloatingPart &part, std::vector<size_t> &invalid) {
  std::vector<int32_t> exponents;
  if (part.scalesA.empty())
    return exponents;
  for (size_t row = 0; row < part.a.size(); ++row)
    for (size_t column = 0; column < part.b.size(); ++column) {
      const uint8_t ofA = part.scalesA[4 * row], ofB = part.scalesB[4 * column];
      if (ofA == nanScale || ofB == nanScale)
        invalid.push_back(exponents.size());
      exponents.push_back(ofA == nanScale || ofB == nanScale ? 0 : int(ofA) + int(ofB) - 2 * 127);
    }
  return exponents;
}

/// Multiplies the factors of the double K by their scales, two for each row, and finds the elements
/// that have a NaN.
void scaleFactors(FloatingPart &part, std::vector<size_t> &invalid) {
  const auto exponentsOf = [](const std::vector<uint8_t> &scales) {
    std::vector<int32_t> exponents(scales.size());
    std::ranges::transform(scales, exponents.begin(), [](uint8_t code) { return int(code) - 127; });
    return exponents;
  };
  const auto hasNaN = [](const std::vector<uint8_t> &scales, size_t row) {
    return scales[2 * row] == nanScale || scales[2 * row + 1] == nanScale;
  };
  part.a.scaleBlocks(exponentsOf(part.scalesA));
  part.b.scaleBlocks(exponentsOf(part.scalesB));
  for (size_t row = 0; row < part.a.size(); ++row)
    for (size_t column = 0; column < part.b.size(); ++column)
      if (hasNaN(part.scalesA, row) || hasNaN(part.scalesB, column))
        invalid.push_back(row * part.b.size() + column);
}

void multiplyRows(TicketQueue &queue, const MmaRequest &mma, unsigned member, const PartOfD &of,
                  FloatingPart &part) {
  DenseRowOptions options{fractionBits(mma.a.type) + fractionBits(mma.b.type), mma.dType, {}};
  // [uncertain] PTX does not say whether the scaled D is rounded; here it is not.
  options.addendShift = mma.scaleD;
  Accumulator d(queue, mma, member, of);
  const unsigned n = part.b.size();
  std::vector<size_t> invalid;
  std::vector<int32_t> scales;
  if (mma.kind == MmaKind::MXF8F6F4 && mma.variant.depth == hw::MmaDepth::Double)
    scaleFactors(part, invalid);
  else
    scales = scaleExponents(part, invalid);
  std::vector<DenseRow> rows(part.a.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    uint32_t *cells = d.words() + row * d.pitch();
    if (!mma.accumulate)
      std::fill_n(cells, n, 0);
    rows[row] = {cells, scales.empty() ? nullptr : &scales[row * n],
                 part.selections.empty() ? nullptr : part.selections[row].data()};
  }
  denseRows(part.a, part.b, rows, options);
  for (size_t element : invalid)
    rows[element / n].d[element % n] = denseNaN;
  d.writeBack();
}

Status runFloating(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, unsigned member,
                   const PartOfD &of, const std::vector<uint8_t> &aBytes,
                   const std::vector<uint8_t> &bBytes) {
  FloatingPart part{
      DenseRows(mma.a.type, aBytes, mma.aTmem.has_value(), mma.a.negate, mma.rowBytes()),
      DenseColumns(mma.b.type, bBytes, mma.columnBytes(), false, mma.b.negate),
      {},
      {},
      {}};
  if (mma.kind == MmaKind::MXF8F6F4) {
    FP4_TRY(gatherScaleBytes(queue, self, mma.ranks[member], mma, true, part.scalesA));
    FP4_TRY(gatherScaleBytes(queue, self, mma.ranks[member], mma, false, part.scalesB));
  }
  std::vector<uint64_t> nonZero;
  for (unsigned row = 0; mma.variant.sparse && row < part.a.size(); ++row)
    nonZero.push_back(part.a.nonZero(row));
  FP4_TRY(gatherSelections(queue, self, mma, member, nonZero, part.selections));
  FP4_TRY(checkAccumulator(queue, self, mma, member));
  multiplyRows(queue, mma, member, of, part);
  return {};
}

Status runInteger(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, unsigned member,
                  const PartOfD &of, const std::vector<uint8_t> &a, const std::vector<uint8_t> &b) {
  std::vector<uint64_t> nonZero;
  for (unsigned row = 0; row < mma.rows(); ++row)
    nonZero.push_back(
        nonZeroElements(std::span(a).subspan(row * hw::mmaRowBytes, hw::mmaRowBytes), 8));
  std::vector<SparseRow> selections;
  FP4_TRY(gatherSelections(queue, self, mma, member, nonZero, selections));
  FP4_TRY(checkAccumulator(queue, self, mma, member));
  Accumulator d(queue, mma, member, of);
  for (unsigned row = 0; row < mma.rows(); ++row)
    for (unsigned column = 0; column < mma.n; ++column) {
      const uint8_t *factors = b.data() + size_t(mma.columnBytes()) * column;
      std::array<uint8_t, hw::mmaRowBytes> chosen;
      if (!selections.empty()) {
        selectElements(selections[row], 8, factors, chosen.data());
        factors = chosen.data();
      }
      uint32_t &cell = d.words()[row * d.pitch() + column];
      cell = integerElement(a.data() + hw::mmaRowBytes * row, factors, mma.a.type == MmaType::S8,
                            mma.b.type == MmaType::S8, mma.saturate, mma.accumulate ? cell : 0);
    }
  d.writeBack();
  return {};
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Status decodeDense(uint32_t bits, MmaRequest &mma) {
  FP4_ASSIGN(auto desc, hw::InstrDesc::decode(mma.kind, bits));
  if (desc.sparse != mma.variant.sparse)
    return fail(desc.sparse
                    ? "the instruction descriptor says sparse, but the instruction is not .sp"
                    : "the instruction is .sp, but bit 2 of the instruction descriptor is clear");
  const bool wide = mma.kind == MmaKind::F16 || mma.kind == MmaKind::TF32;
  if (desc.sparse && desc.sparsitySelector > (wide ? 1u : 0u))
    return fail(fmt::format("the sparsity selector of kind::{} must be {}, but got {}",
                            stringify(mma.kind), wide ? "0 or 1" : "0", desc.sparsitySelector));
  mma.sparsity.selector = desc.sparse ? desc.sparsitySelector : 0;
  mma.m = desc.m;
  mma.n = desc.n;
  mma.a.type = desc.aType;
  mma.b.type = desc.bType;
  mma.dType = desc.dType;
  mma.a.negate = desc.negateA;
  mma.b.negate = desc.negateB;
  mma.a.transpose = desc.transposeA;
  mma.b.transpose = desc.transposeB;
  mma.saturate = desc.saturate;
  mma.variant.depth = desc.doubleK ? hw::MmaDepth::Double : hw::MmaDepth::Single;
  return {};
}

Status decodeColumnMask(uint64_t bits, MmaRequest &mma) {
  FP4_ASSIGN(auto mask, hw::ZeroColumnMask::decode(bits));
  if (mask.columnShift > hw::maxColumnShift(mma.m))
    return fail(fmt::format("the column shift must be at most {} with M = {}, but got {}",
                            hw::maxColumnShift(mma.m), mma.m, mask.columnShift));
  mma.columns.shift = mask.columnShift;
  mma.columns.zero = mask.zeroColumns(mma.m, mma.n);
  return {};
}

/// Decodes the operands before and after the predicate that says if D is added to.
Status decodeOptions(ExecContext &cx, const Insn &insn, int lane, MmaRequest &mma) {
  const unsigned scale = insn.as<Tcgen05MmaModifiers>().accumulate;
  mma.accumulate = cx.predicate(insn.op[scale]) >> lane & 1;
  if (const Operand &mask = insn.op[scale - 1]; mask.kind == OperandKind::Vector)
    for (unsigned i = 0; i < cx.elementCount(mask); ++i)
      mma.disabled.push_back(uint32_t(cx.scalar(cx.elements(mask)[i], lane)));
  const Operand &last = insn.op[scale + 1];
  if (!last)
    return {};
  if (mma.variant.weightStationary)
    return decodeColumnMask(cx.scalar(last, lane), mma);
  mma.scaleD = int(last.imm);
  return {};
}

Outcome mmaDense(ExecContext &cx, const Insn &insn) {
  TicketQueue &queue = TicketQueue::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto mma = makeRequest(insn);
    if (Status ok = decodeDense(uint32_t(cx.scalar(mmaOperand(insn, 3), lane)), *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    if (Status ok = checkMmaTarget(cx, *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    if (!decodeOperands(cx, insn, lane, *mma))
      return Outcome::Error;
    if (Status ok = decodeOptions(cx, insn, lane, *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    Ticket ticket = mmaTicket(cx, insn, lane, *mma);
    ticket.stages.push_back(
        [&queue, mma](const Ticket &self) { return runDense(queue, self, *mma); });
    orderTcgen05(queue, ticket);
    if (Status status = queue.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

/// The immediate after the predicate.
Status checkScaleOfD(BindContext &bind, const Tcgen05MmaModifiers &mma) {
  const Operand &scale = bind.insn.op[mma.accumulate + 1];
  const MmaKind kind = mma.kind;
  if (!scale || mma.stationary)
    return {};
  if (kind != MmaKind::F16 && kind != MmaKind::TF32)
    return bind.fail(fmt::format("scale-input-d must not be given with kind::{}", stringify(kind)),
                     "kinds f16 and tf32 have it");
  if (scale.imm < 0 || scale.imm > 15)
    return bind.fail(fmt::format("scale-input-d must be 0 to 15, but got {}", scale.imm));
  return {};
}

} // namespace

Status runDense(TicketQueue &queue, const Ticket &self, const MmaRequest &mma) {
  std::vector<uint8_t> a, b;
  FP4_TRY(gatherB(queue, self, mma, b));
  for (unsigned member = 0; member < mma.ctaGroup; ++member)
    for (const PartOfD &part : partsOfD(queue, mma, member)) {
      FP4_TRY(gatherA(queue, self, mma, member, part, a));
      FP4_TRY(mma.kind == MmaKind::I8 ? runInteger(queue, self, mma, member, part, a, b)
                                      : runFloating(queue, self, mma, member, part, a, b));
    }
  ++queue.cluster().mmas;
  return {};
}

static Status bindDense(BindContext &bind, bool sparse, bool stationary) {
  auto &mma = decodeMmaModifiers(bind, sparse);
  mma.stationary = stationary;
  const Operand &mask = mmaOperand(bind.insn, 4);
  const bool masked = mask.kind == OperandKind::Vector;
  mma.accumulate = uint8_t((masked ? 5 : 4) + sparse);
  if (masked && mask.imm != 4 * mma.ctaGroup)
    return bind.fail(fmt::format("expects {} words of TMEM lanes that are not written, but got {}",
                                 4 * mma.ctaGroup, mask.imm));
  const std::string_view collector = bind.match.text("collector");
  if (mma.shiftA && (collector.ends_with("::use") || collector.ends_with("::fill")))
    return bind.fail(fmt::format(".ashift does not go with .{}", collector));
  FP4_TRY(checkScaleOfD(bind, mma));
  return bind.use(mmaDense);
}

Status bindTcgen05Mma(BindContext &bind) { return bindDense(bind, false, false); }
Status bindTcgen05MmaSparse(BindContext &bind) { return bindDense(bind, true, false); }
Status bindTcgen05MmaStationary(BindContext &bind) { return bindDense(bind, false, true); }
Status bindTcgen05MmaStationarySparse(BindContext &bind) { return bindDense(bind, true, true); }

} // namespace fp4::sim
