//===- Tcgen05Mma.cpp - tcgen05.mma of the kinds without fp4 scales -------===//
//
// PTX ISA, "tcgen05.mma": kinds f16, tf32, f8f6f4 and i8, and the arithmetic of mxf8f6f4 (decoded
// in Tcgen05MmaScaled.cpp). Dense. Insn::m: 0 hw::MmaKind, 1 cta_group. Operands:
// D, A (a descriptor, or an address in tensor memory), B, instruction descriptor, maybe the lanes
// that are not written, accumulate: Insn::m[2] is its index.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/DenseRow.h"
#include "Sim/Insn/MmaOperands.h"

#include <algorithm>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::MmaKind;
using hw::MmaType;

std::vector<FactorRow> decodeRows(MmaType type, const std::vector<uint8_t> &bytes, bool unpacked,
                                  bool negate) {
  std::vector<FactorRow> rows(bytes.size() / hw::mmaRowBytes);
  for (size_t i = 0; i < rows.size(); ++i)
    decodeFactors(type, bytes.data() + hw::mmaRowBytes * i, unpacked, negate, rows[i]);
  return rows;
}

constexpr int nanScale = 1 << 20;
int scaleExponent(uint8_t code) { return code == 0xFF ? nanScale : int(code) - 127; }

/// One row of D; a scale that is NaN gives NaN.
void multiplyRow(const FactorRow &a, const DenseColumns &b, std::vector<int32_t> &scales,
                 std::span<uint32_t> cells, const DenseRowOptions &options) {
  std::vector<size_t> invalid;
  for (size_t column = 0; column < scales.size(); ++column)
    if (scales[column] >= nanScale / 2) {
      invalid.push_back(column);
      scales[column] = 0;
    }
  denseRow(a, b, scales, cells, options);
  for (size_t column : invalid)
    cells[column] = denseNaN;
}

/// The part of one CTA, floating-point kinds.
Status runFloating(Engine &engine, const Ticket &self, const MmaRequest &mma, unsigned member,
                   const std::vector<uint8_t> &aBytes, const std::vector<uint8_t> &bBytes) {
  std::vector<uint8_t> scalesA, scalesB;
  const bool scaled = mma.kind == MmaKind::MXF8F6F4;
  if (scaled) {
    FP4_TRY(gatherScaleBytes(engine, self, mma.ranks[member], mma, true, scalesA));
    FP4_TRY(gatherScaleBytes(engine, self, mma.ranks[member], mma, false, scalesB));
  }
  FP4_TRY(checkAccumulator(engine, self, mma, member));
  const auto a = decodeRows(mma.aType, aBytes, mma.aInTmem, mma.negateA);
  const DenseColumns b(decodeRows(mma.bType, bBytes, false, mma.negateB), hw::mmaK(mma.kind));
  const DenseRowOptions options{fractionBits(mma.aType) + fractionBits(mma.bType), mma.dType, {}};
  Accumulator d(engine, mma, member);
  std::vector<int32_t> scales(b.size());
  for (size_t row = 0; row < a.size(); ++row) {
    const std::span<uint32_t> cells(d.words() + row * d.pitch(), b.size());
    if (!mma.accumulate)
      std::fill(cells.begin(), cells.end(), 0);
    for (size_t column = 0; scaled && column < b.size(); ++column)
      scales[column] = scaleExponent(scalesA[4 * row]) + scaleExponent(scalesB[4 * column]);
    multiplyRow(a[row], b, scales, cells, options);
  }
  d.writeBack();
  return {};
}

Status runInteger(Engine &engine, const Ticket &self, const MmaRequest &mma, unsigned member,
                  const std::vector<uint8_t> &a, const std::vector<uint8_t> &b) {
  FP4_TRY(checkAccumulator(engine, self, mma, member));
  Accumulator d(engine, mma, member);
  for (size_t row = 0; row < a.size() / hw::mmaRowBytes; ++row)
    for (size_t column = 0; column < mma.n; ++column) {
      uint32_t &cell = d.words()[row * d.pitch() + column];
      cell = integerElement(a.data() + hw::mmaRowBytes * row, b.data() + hw::mmaRowBytes * column,
                            mma.aType == MmaType::S8, mma.bType == MmaType::S8, mma.saturate,
                            mma.accumulate ? cell : 0);
    }
  d.writeBack();
  return {};
}

Status decodeDense(uint32_t bits, MmaRequest &mma) {
  auto desc = hw::InstrDesc::decode(mma.kind, bits);
  FP4_TRY(desc);
  if (desc->sparse)
    return makeError(ErrorKind::Simulation, "the simulator does not model sparse tcgen05.mma");
  mma.m = desc->m;
  mma.n = desc->n;
  mma.aType = desc->aType;
  mma.bType = desc->bType;
  mma.dType = desc->dType;
  mma.negateA = desc->negateA;
  mma.negateB = desc->negateB;
  mma.transposeA = desc->transposeA;
  mma.transposeB = desc->transposeB;
  mma.saturate = desc->saturate;
  return {};
}

Outcome mmaDense(ExecContext &cx, const Insn &insn) {
  Engine &engine = Engine::of(cx);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto mma = std::make_shared<MmaRequest>();
    mma->kind = MmaKind(insn.m[0]);
    mma->ctaGroup = insn.m[1];
    if (Status ok = decodeDense(uint32_t(cx.scalar(insn.op[3], lane)), *mma); !ok)
      return failHere(cx, std::move(ok.error()), lane);
    mma->accumulate = cx.predicate(insn.op[insn.m[2]]) >> lane & 1;
    if (insn.m[2] == 5)
      for (unsigned i = 0; i < cx.elementCount(insn.op[4]); ++i)
        mma->disabled.push_back(uint32_t(cx.scalar(cx.elements(insn.op[4])[i], lane)));
    if (!decodeOperands(cx, insn, lane, *mma))
      return Outcome::Error;
    Ticket ticket = mmaTicket(cx, insn, lane, *mma);
    ticket.stages.push_back(
        [&engine, mma](const Ticket &self) { return runDense(engine, self, *mma); });
    orderTcgen05(engine, ticket);
    if (Status status = engine.issue(std::move(ticket)); !status)
      return cx.fail(std::move(status.error()));
  }
  return Outcome::Next;
}

} // namespace

Status runDense(Engine &engine, const Ticket &self, const MmaRequest &mma) {
  std::vector<uint8_t> a, b;
  FP4_TRY(gatherB(engine, self, mma, b));
  for (unsigned member = 0; member < mma.ctaGroup; ++member) {
    FP4_TRY(gatherA(engine, self, mma, member, a));
    FP4_TRY(mma.kind == MmaKind::I8 ? runInteger(engine, self, mma, member, a, b)
                                    : runFloating(engine, self, mma, member, a, b));
  }
  ++engine.cluster().mmas;
  return {};
}

Status bindTcgen05Mma(BindContext &bind) {
  bind.insn.m[0] = uint8_t(*hw::parseMmaKind(bind.match.text("kind").substr(6)));
  bind.insn.m[1] = bind.match.text("group") == "cta_group::2" ? 2 : 1;
  const Operand &mask = bind.insn.op[4];
  bind.insn.m[2] = mask.kind == OperandKind::Vector ? 5 : 4;
  if (bind.insn.m[2] == 5 && mask.imm != 4 * bind.insn.m[1])
    return bind.fail(fmt::format("expects {} words of lanes that are not written, but got {}",
                                 4 * bind.insn.m[1], mask.imm));
  if (const Operand &scale = bind.insn.op[bind.insn.m[2] + 1u]; scale && scale.imm != 0)
    return bind.fail("scaling D by a power of two is not simulated", "scale-input-d must be 0");
  return bind.use(mmaDense);
}

} // namespace fp4::sim
