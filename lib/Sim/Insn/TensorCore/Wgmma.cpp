//===- Wgmma.cpp - Matrix multiply of a warpgroup (sm_90a) ----------------===//
//
// PTX ISA, "wgmma.mma_async" and its fence, commit_group and wait_group. Four warps multiply a
// 64 x K by a K x N matrix; each holds 16 rows of D in registers, so each warp's execution is a
// ticket of its own that computes those rows. Registers of D stay claimed until the warp has waited
// for the ticket: only further wgmma may name them. A and B are read when it runs, as on the
// device.
//
// Register i of lane l (PTX ISA, "Register fragments"), row r of the warp's 16:
//   D, 32-bit   r = l / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (l % 4) + i % 2
//   D, 16-bit   two such columns in one register
//   A           r = l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) .. + 3 of the 32 of its row
//
// The stored half of K of a sparse A (.sp) lies like that, and B has 64 bytes of K.
//
// wgmma.fence: what it orders is checked for observers alone (Async/WgmmaRegisters.h).
//
// Arithmetic: fp4/Numerics/DenseMma.h, DenseRow.h, SparseMma.h.
//
//===----------------------------------------------------------------------===//
#include "Sim/Async/SparseMma.h"
#include "Sim/Insn/Copy/AsyncOperands.h"
#include "Sim/Insn/TensorCore/KeptTiles.h"
#include "Sim/Insn/TensorCore/MmaOperands.h"
#include "Sim/Insn/TensorCore/WarpgroupWait.h"
#include "fp4/ISA/FragmentLayout.h"
#include "fp4/Numerics/WarpGemm.h"
#include "fp4/Sim/Events/FenceEvent.h"
#include "fp4/Sim/Observer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <ranges>

namespace fp4::sim {
using namespace numerics;
namespace {

using hw::MmaType;

constexpr unsigned warpRows = 16;

/// One warp's part.
struct WarpMma {
  const Insn *insn = nullptr;
  uint32_t rank = 0, warp = 0;
  std::byte *registers = nullptr; ///< bank 0 of the warp
  const Operand *d = nullptr, *aRegisters = nullptr;
  hw::SmemDescriptor a, b;
  bool accumulate = false;
  std::array<uint32_t, 32> metadata{}; ///< metadata of a sparse A, by lane

  const WgmmaModifiers &how() const { return insn->as<WgmmaModifiers>(); }
  unsigned n() const { return how().n; }
  unsigned columnBytes() const { return (how().sparse ? 2 : 1) * hw::mmaRowBytes; }
};

/// The operand that says whether D is added to.
unsigned scaleOperand(const Insn &insn) { return insn.as<WgmmaModifiers>().sparse ? 5 : 3; }

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The 32 bytes of each of the warp's rows of A.
Status readA(TicketQueue &queue, const Ticket &self, const WarpMma &mma,
             std::vector<uint8_t> &out) {
  out.resize(warpRows * hw::mmaRowBytes);
  if (!mma.aRegisters)
    return gatherTile(
        queue, self, mma.rank, mma.a,
        {warpRows * (mma.warp % warpsPerGroup), warpRows, mma.how().transposeA ? 2u : 0},
        out.data());
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned lane = 0; lane < 32; ++lane)
      std::memcpy(&out[(lane / 4 + 8 * (i % 2)) * hw::mmaRowBytes + 4 * (lane % 4) + 16 * (i / 2)],
                  mma.registers + mma.aRegisters[i].offset + 4 * lane, 4);
  return {};
}

/// Returns the k for which the elements of a sparse A stand; nothing for a dense one.
Expected<std::vector<SparseRow>> selectionsOf(const WarpMma &mma, const std::vector<uint8_t> &a) {
  std::vector<SparseRow> rows(mma.how().sparse ? warpRows : 0);
  const SparseFormat format{containerBits(mma.how().aType)};
  for (unsigned row = 0; row < rows.size(); ++row) {
    const uint64_t nonZero = nonZeroElements(
        std::span(a).subspan(row * hw::mmaRowBytes, hw::mmaRowBytes), format.elementBits);
    const uint64_t bits =
        warpMetadata(mma.metadata.data(), format, true, unsigned(mma.insn->op[4].imm), row);
    FP4_TRY(decodeSparseRow(format, bits, nonZero, row, rows[row]));
  }
  return rows;
}

/// The warp's 16 rows of D as a matrix of 32-bit cells, between its registers and back.
class Accumulator {
public:
  explicit Accumulator(const WarpMma &mma)
      : mma(mma), half(mma.how().halfResult), matrix(size_t(warpRows) * mma.n()) {
    for (unsigned row = 0; row < warpRows; ++row)
      for (unsigned column = 0; column < hw::fragmentTileColumns; ++column) {
        const auto [lane, element] =
            hw::fragmentPlace(hw::FragmentKind::Wgmma, row, column, hw::fragmentTileColumns);
        cellOf[element][lane] = row * mma.n() + column;
      }
    if (!mma.accumulate)
      return;
    if (half)
      forEachHalf([](uint32_t &cell, std::byte *place) { std::memcpy(&cell, place, 2); });
    else
      forEachPair([](uint32_t *cells, uint32_t *even, uint32_t *odd) {
        for (unsigned c = 0; c < 4; ++c)
          cells[2 * c] = even[c], cells[2 * c + 1] = odd[c];
      });
  }
  std::span<uint32_t> row(unsigned index) {
    return std::span(matrix).subspan(size_t(index) * mma.n(), mma.n());
  }
  void writeBack() {
    if (!half)
      return forEachPair([](uint32_t *cells, uint32_t *even, uint32_t *odd) {
        for (unsigned c = 0; c < 4; ++c)
          even[c] = cells[2 * c], odd[c] = cells[2 * c + 1];
      });
    forEachHalf([](uint32_t &cell, std::byte *place) { std::memcpy(place, &cell, 2); });
  }

private:
  /// Elements of a tile of the fragment that a lane has.
  static constexpr unsigned tileElements = warpRows * hw::fragmentTileColumns / 32;

  /// f(8 cells of a row, and 4 lanes of the registers of its even and of its odd columns), of 32
  /// bits each: what `cellOf` says, row by row.
  template <typename F> void forEachPair(F &&f) {
    for (unsigned element = 0; element < matrix.size() / 32; element += 2) {
      const unsigned first = element / tileElements * hw::fragmentTileColumns;
      const auto &even = cellOf[element % tileElements];
      auto *evens = reinterpret_cast<uint32_t *>(mma.registers + mma.d[element].offset);
      auto *odds = reinterpret_cast<uint32_t *>(mma.registers + mma.d[element + 1].offset);
      for (unsigned lane = 0; lane < 32; lane += 4)
        f(&matrix[first + even[lane]], evens + lane, odds + lane);
    }
  }

  /// f(cell, its place in a register) of 16-bit cells: register by register.
  template <typename F> void forEachHalf(F &&f) {
    for (unsigned element = 0; element < matrix.size() / 32; ++element) {
      uint32_t *tile = &matrix[element / tileElements * hw::fragmentTileColumns];
      const auto &cells = cellOf[element % tileElements];
      std::byte *reg = mma.registers + mma.d[element / 2].offset + 2 * (element % 2);
      for (unsigned lane = 0; lane < 32; ++lane)
        f(tile[cells[lane]], reg + 4 * lane);
    }
  }

  const WarpMma &mma;
  const bool half;
  std::vector<uint32_t> matrix;
  uint32_t cellOf[tileElements][32]; ///< cell of each element and lane in the first 8 columns
};

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

uint32_t integerSum(const WarpMma &mma, const uint8_t *a, const uint8_t *b, uint32_t c) {
  const WgmmaModifiers &how = mma.how();
  if (how.aType != FactorType::B1)
    return integerElement(a, b, isSigned(how.aType), isSigned(how.bType), how.saturate, c);
  return bitElement(a, b, false, c);
}

/// The columns of B, decoded. The four warps of a group multiply by the same bytes, a few MMAs each
/// at a time: those that a host thread has decoded last are kept by their places.
const DenseColumns &decodeColumns(const WarpMma &mma, const std::vector<uint8_t> &bytes) {
  struct Decoded {
    uint32_t mode = ~0u;
    std::vector<uint8_t> bytes;
    std::optional<DenseColumns> columns;
  };
  constexpr unsigned bits = 6;
  thread_local std::array<Decoded, 1u << bits> kept;
  Decoded &entry = kept[keptPlace(mma.b.startAddress, bits)];
  const FactorType type = mma.how().bType;
  const bool negate = mma.how().negateB;
  const uint32_t mode = uint32_t(type) << 16 | negate << 8 | mma.columnBytes();
  if (entry.mode != mode || entry.bytes != bytes) {
    entry.mode = mode;
    entry.bytes = bytes;
    entry.columns.emplace(mmaType(type), bytes, mma.columnBytes(), false, negate);
  }
  return *entry.columns;
}

bool isFp8(MmaType type) { return type == MmaType::E4M3 || type == MmaType::E5M2; }

/// Common MMAs, into registers (fp4/Numerics/WarpGemm.h).
bool multiplyAtOnce(const WarpMma &mma, const std::vector<uint8_t> &a,
                    const std::vector<uint8_t> &b) {
  constexpr unsigned most = 256;
  const WgmmaModifiers &how = mma.how();
  const MmaType aType = mmaType(how.aType), bType = mmaType(how.bType);
  const bool half = aType == MmaType::F16 || aType == MmaType::BF16;
  if (how.halfResult || how.sparse || how.negateA || how.negateB || !(half || isFp8(aType)))
    return false;
  std::array<uint32_t *, most / 2> d;
  for (unsigned i = 0; i < mma.n() / 2; ++i)
    d[i] = reinterpret_cast<uint32_t *>(mma.registers + mma.d[i].offset);
  return multiplyTiles({aType, bType, a, b, mma.accumulate, std::span(d.data(), mma.n() / 2)});
}

void multiplyFloats(const WarpMma &mma, const std::vector<uint8_t> &aBytes,
                    const std::vector<uint8_t> &bBytes, const std::vector<SparseRow> &selections) {
  if (multiplyAtOnce(mma, aBytes, bBytes))
    return;
  const MmaType aType = mmaType(mma.how().aType), bType = mmaType(mma.how().bType);
  const bool fp8 = isFp8(aType);
  const DenseRows a(aType, aBytes, false, mma.how().negateA);
  const DenseColumns &b = decodeColumns(mma, bBytes);
  Accumulator d(mma);
  std::array<DenseRow, warpRows> rows;
  for (unsigned row = 0; row < warpRows; ++row)
    rows[row] = {d.row(row).data(), nullptr, selections.empty() ? nullptr : selections[row].data()};
  denseRows(a, b, rows,
            {fractionBits(aType) + fractionBits(bType),
             mma.how().halfResult ? hw::AccumulatorType::F16 : hw::AccumulatorType::F32,
             fp8 ? hopperFP8 : DensePrecision{}});
  d.writeBack();
}

void multiplyIntegers(const WarpMma &mma, const std::vector<uint8_t> &a,
                      const std::vector<uint8_t> &b, const std::vector<SparseRow> &selections) {
  Accumulator d(mma);
  for (unsigned row = 0; row < warpRows; ++row) {
    const std::span<uint32_t> cells = d.row(row);
    for (size_t column = 0; column < cells.size(); ++column) {
      const uint8_t *factors = &b[column * mma.columnBytes()];
      std::array<uint8_t, hw::mmaRowBytes> chosen;
      if (!selections.empty()) {
        selectElements(selections[row], 8, factors, chosen.data());
        factors = chosen.data();
      }
      cells[column] = integerSum(mma, &a[row * hw::mmaRowBytes], factors, cells[column]);
    }
  }
  d.writeBack();
}

Status multiply(TicketQueue &queue, const Ticket &self, const WarpMma &mma) {
  thread_local std::vector<uint8_t> a, b;
  b.resize(mma.columnBytes() * mma.n());
  FP4_TRY(readA(queue, self, mma, a));
  FP4_TRY(gatherTile(queue, self, mma.rank, mma.b,
                     {0, mma.n(), mma.how().transposeB ? 2u : 0, mma.columnBytes()}, b.data()));
  FP4_ASSIGN(auto selections, selectionsOf(mma, a));
  if (isInteger(mma.how().aType))
    multiplyIntegers(mma, a, b, selections);
  else
    multiplyFloats(mma, a, b, selections);
  queue.cluster().mmas += mma.warp % warpsPerGroup == 0;
  return {};
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// A descriptor that all lanes agree on; false after cx.fail.
bool descriptor(ExecContext &cx, const Operand &o, std::string_view name, hw::SmemDescriptor &out) {
  const uint64_t bits = cx.scalar(o);
  for (uint32_t rest = cx.mask; rest; rest &= rest - 1)
    if (cx.scalar(o, std::countr_zero(rest)) != bits) {
      cx.fail(fmt::format("expects the same descriptor of {} in all lanes", name));
      return false;
    }
  auto decoded = hw::SmemDescriptor::decodeWgmma(bits);
  if (!decoded) {
    failHere(cx, std::move(decoded.error()));
    return false;
  }
  out = *decoded;
  return true;
}

BulkGroups &groupsOf(ExecContext &cx) {
  return TicketQueue::of(cx).state(cx.cta().rank).wgmmaGroups[cx.warp().index];
}

Outcome mmaAsync(ExecContext &cx, const Insn &insn);

/// A row of 64 bytes of K must lie in one line of a swizzled K-major tile: what follows the line is
/// not documented.
Status checkSparseB(const WarpMma &mma) {
  if (!mma.how().transposeB && mma.b.swizzle == hw::SwizzleMode::B32)
    return makeError(ErrorKind::Simulation,
                     "a sparse product expects 64 bytes of K in a line of B, but got swizzle_32B",
                     "use swizzle_64B or swizzle_128B");
  return {};
}

/// Adds a register, most of which lie behind each other.
void claim(Ticket &ticket, const Operand &reg) {
  constexpr uint32_t bytes = 128;
  if (!ticket.writes.registers.empty() && ticket.writes.registers.back().end == reg.offset)
    ticket.writes.registers.back().end += bytes;
  else
    ticket.writes.registers.push_back({reg.offset, reg.offset + bytes});
}

/// The registers that it holds.
void claimRegisters(ExecContext &cx, const WarpMma &mma, Ticket &ticket) {
  for (unsigned i = 0; i < cx.elementCount(mma.insn->op[0]); ++i)
    claim(ticket, mma.d[i]);
  for (unsigned i = 0; mma.aRegisters && i < 4; ++i) // read, but as little to be touched
    if (mma.aRegisters[i].bank == kRegBank)
      claim(ticket, mma.aRegisters[i]);
}

Ticket makeMmaTicket(ExecContext &cx, const Insn &insn, const WarpMma &mma) {
  TicketQueue &queue = TicketQueue::of(cx);
  Ticket ticket = queue.makeTicket(cx, insn, TicketKind::Wgmma, cx.firstLane());
  ticket.sharedReads = 1u << cx.cta().rank;
  ticket.chained = mmaAsync;
  ticket.work.bytes = 128ull * cx.elementCount(insn.op[0]);
  ticket.work.flops =
      2ull * warpRows * mma.n() * 8 * mma.columnBytes() / containerBits(mma.how().aType);
  // MMAs of a warp are in order: this one comes after the last, which comes after the others.
  const auto isOfWarp = [&](const auto &other) {
    return other.second.kind == TicketKind::Wgmma &&
           other.second.issuer.rank == ticket.issuer.rank &&
           other.second.issuer.warp == ticket.issuer.warp;
  };
  const auto newestFirst = queue.tickets() | std::views::reverse;
  if (const auto last = std::ranges::find_if(newestFirst, isOfWarp); last != newestFirst.end())
    ticket.after.push_back(last->first);
  return ticket;
}

/// MMAs of one shape need no fence between them: N, and what says K.
uint32_t shapeOf(const Insn &insn) {
  const auto &how = insn.as<WgmmaModifiers>();
  return uint32_t(how.n) << 8 | containerBits(how.aType) << 1 | how.sparse;
}

/// Tells the observer of registers that were used since the last wgmma.fence.
void checkFence(ExecContext &cx, const Insn &insn) {
  auto &watched = TicketQueue::of(cx).state(cx.cta().rank).wgmmaRegisters;
  auto it = watched.find(cx.warp().index);
  std::optional<WgmmaRegisters::Access> used;
  if (it != watched.end()) {
    const bool fromRegisters = insn.op[1].kind == OperandKind::Vector;
    used = it->second.multiply(insn.op[0], fromRegisters ? &insn.op[1] : nullptr,
                               cx.kernel().operandPool.data(), shapeOf(insn), cx.pc,
                               cx.launch().options->judgement == Judgement::Practice);
    if (!used)
      return;
  }
  FenceEvent event;
  event.actor = cx.actor();
  event.at = cx.here();
  event.kind = FenceKind::WgmmaUnfenced;
  event.laneMask = cx.mask;
  if (used) {
    event.groups = used->pc + 1;
    event.reg = used->offset;
    event.use = used->use;
  }
  cx.observer->onFence(event);
}

/// An MMA that takes its time, and does nothing else.
Outcome issueIdle(ExecContext &cx, const Insn &insn) {
  WarpMma timed;
  timed.insn = &insn;
  Ticket ticket = makeMmaTicket(cx, insn, timed);
  groupsOf(cx).open.push_back(ticket.id);
  return finish(cx, TicketQueue::of(cx).issue(std::move(ticket)));
}

Outcome mmaAsync(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  if (cx.warp().index / warpsPerGroup * warpsPerGroup + warpsPerGroup > cx.cta().warps.size())
    return cx.fail(fmt::format("expects a whole warpgroup of 4 warps, but warp {} is in a group of "
                               "{}",
                               cx.warp().index, cx.cta().warps.size() % warpsPerGroup));
  if (cx.observer)
    checkFence(cx, insn);
  TicketQueue &queue = TicketQueue::of(cx);
  if (queue.idle(TicketKind::Wgmma))
    return issueIdle(cx, insn);
  auto mma = std::make_shared<WarpMma>();
  mma->insn = &insn;
  mma->rank = cx.cta().rank;
  mma->warp = cx.warp().index;
  mma->registers = cx.warp().registers;
  mma->d = cx.elements(insn.op[0]);
  if (insn.op[1].kind == OperandKind::Vector)
    mma->aRegisters = cx.elements(insn.op[1]);
  else if (!descriptor(cx, insn.op[1], "A", mma->a))
    return Outcome::Error;
  if (!descriptor(cx, insn.op[2], "B", mma->b))
    return Outcome::Error;
  mma->accumulate = cx.predicate(insn.op[scaleOperand(insn)]) >> cx.firstLane() & 1;
  if (mma->how().sparse) {
    std::copy_n(cx.src<uint32_t>(insn.op[3]), 32, mma->metadata.begin());
    if (Status fits = checkSparseB(*mma); !fits)
      return failHere(cx, std::move(fits.error()));
  }
  Ticket ticket = makeMmaTicket(cx, insn, *mma);
  claimRegisters(cx, *mma, ticket);
  ticket.stages.push_back(
      [&queue, mma](const Ticket &self) { return multiply(queue, self, *mma); });
  groupsOf(cx).open.push_back(ticket.id);
  return finish(cx, queue.issue(std::move(ticket)));
}

Outcome fence(ExecContext &cx, const Insn &) {
  if (!cx.converged())
    return Outcome::Retry;
  if (cx.launch().options->observer) { // somebody's, not the one of a prediction
    TicketQueue &queue = TicketQueue::of(cx);
    queue.watchRegisters(cx.warp());
    queue.state(cx.cta().rank).wgmmaRegisters[cx.warp().index].fence();
  }
  return Outcome::Next;
}

/// The warps of a group wait for what each of them has committed.
void touchGroups(ExecContext &cx, uint32_t warp, Policy::Touch how, uint64_t group) {
  cx.cluster().policy->touches(Policy::Shared::MmaGroups, how, cx.cta().rank << 8 | warp, group);
}

Outcome commitGroup(ExecContext &cx, const Insn &) {
  if (!cx.converged())
    return Outcome::Retry;
  BulkGroups &groups = groupsOf(cx);
  touchGroups(cx, cx.warp().index, Policy::Touch::Arrive, groups.committed.size());
  groups.committed.push_back(std::move(groups.open));
  groups.open.clear();
  return Outcome::Next;
}

/// Waits until all but the N newest groups are done. Groups that were waited for stay, empty: their
/// number counts.
Outcome waitGroup(ExecContext &cx, const Insn &insn) {
  if (!cx.converged())
    return Outcome::Retry;
  BulkGroups &mine = groupsOf(cx);
  auto &groups = mine.committed;
  const auto keep = std::min<uint64_t>(uint64_t(insn.op[0].imm), groups.size());
  const size_t count = groups.size() - keep;
  auto wait = std::make_unique<WarpgroupWait>(cx, count);
  if (!wait->ready())
    return cx.block(std::move(wait));
  const uint32_t first = cx.warp().index / warpsPerGroup * warpsPerGroup;
  for (uint32_t warp = first; count && warp < first + warpsPerGroup; ++warp)
    touchGroups(cx, warp, Policy::Touch::Await, count - 1);
  for (; mine.waited < count; ++mine.waited) {
    for (uint64_t id : groups[mine.waited])
      emitWaited(cx, id);
    TicketQueue::of(cx).productsWaited(cx.warp(), groups[mine.waited]);
    groups[mine.waited].clear();
  }
  return Outcome::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// N of "m64n<N>k<K>"; integers have fewer widths.
Status decodeShape(BindContext &bind, WgmmaModifiers &how) {
  const std::string_view shape = bind.match.text("shape");
  uint32_t n = 0;
  std::from_chars(shape.data() + 4, shape.data() + shape.size(), n);
  const bool coarse = isInteger(how.aType) && n > 32 && n % 16;
  if (n < 8 || n > 256 || n % 8 || coarse)
    return bind.fail(fmt::format("there is no shape .{} for .{}", shape, bind.match.text("atype")),
                     "N is a multiple of 8 up to 256; of 16 above 32 for integer factors");
  how.n = uint16_t(n);
  return {};
}

/// imm-scale-a and -b (1 or -1), imm-trans-a and -b (0 or 1), as far as the form has them.
Status decodeImmediates(BindContext &bind, WgmmaModifiers &how) {
  const bool fromRegisters = bind.insn.op[1].kind == OperandKind::Vector;
  const unsigned first = scaleOperand(bind.insn) + 1;
  for (unsigned i = 0; i < 2 && bind.insn.op[first + i]; ++i) {
    const int64_t scale = bind.insn.op[first + i].imm;
    if (scale != 1 && scale != -1)
      return bind.fail(fmt::format("imm-scale-{} must be 1 or -1, but got {}", "ab"[i], scale));
    (i ? how.negateB : how.negateA) = scale < 0;
  }
  for (unsigned i = 0; i < (fromRegisters ? 1 : 2); ++i) {
    const Operand &operand = bind.insn.op[first + 2 + i];
    if (!operand)
      continue;
    const unsigned which = i + fromRegisters;
    if (operand.imm != 0 && operand.imm != 1)
      return bind.fail(
          fmt::format("imm-trans-{} must be 0 or 1, but got {}", "ab"[which], operand.imm));
    (which ? how.transposeB : how.transposeA) = operand.imm != 0;
  }
  return {};
}

Status checkVectors(BindContext &bind, const WgmmaModifiers &how) {
  const uint64_t expected = how.n / (how.halfResult ? 4 : 2);
  if (uint64_t(bind.insn.op[0].imm) != expected)
    return bind.fail(fmt::format("D of .{} expects {} registers, but got {}",
                                 bind.match.text("shape"), expected, bind.insn.op[0].imm));
  if (bind.insn.op[1].kind == OperandKind::Vector && bind.insn.op[1].imm != 4)
    return bind.fail(fmt::format("A expects 4 registers, but got {}", bind.insn.op[1].imm));
  return {};
}

Status bindProduct(BindContext &bind, bool sparse) {
  const std::string_view a = bind.match.text("atype"), b = bind.match.text("btype");
  auto &how = bind.insn.make<WgmmaModifiers>({0, factorType(a), factorType(b)});
  how.halfResult = bind.match.text("dtype") == "f16";
  how.saturate = bind.match.has("satfinite");
  how.sparse = sparse;
  const bool halves = a == "f16" || a == "bf16";
  if (halves && a != b)
    return bind.fail(fmt::format("expects A and B of one type, but got .{} and .{}", a, b));
  if (a == "bf16" && how.halfResult)
    return bind.fail(".bf16 factors expect a result of .f32, but got .f16");
  FP4_TRY(decodeShape(bind, how));
  FP4_TRY(decodeImmediates(bind, how));
  FP4_TRY(checkVectors(bind, how));
  return bind.use(mmaAsync);
}

} // namespace

Status bindWgmma(BindContext &bind) { return bindProduct(bind, false); }

/// wgmma.mma_async.sp: metadata and the selector of the lanes that hold it come after B.
Status bindWgmmaSparse(BindContext &bind) {
  FP4_TRY(bindProduct(bind, true));
  const SparseFormat format{containerBits(bind.insn.as<WgmmaModifiers>().aType)};
  const unsigned selectors = warpSelectors(format, true);
  if (uint64_t(bind.insn.op[4].imm) >= selectors)
    return bind.fail(fmt::format("the sparsity selector of .{} must be below {}, but got {}",
                                 bind.match.text("shape"), selectors, bind.insn.op[4].imm));
  return {};
}

Status bindWgmmaFence(BindContext &bind) { return bind.use(fence); }
Status bindWgmmaCommit(BindContext &bind) { return bind.use(commitGroup); }
Status bindWgmmaWait(BindContext &bind) { return bind.use(waitGroup); }

} // namespace fp4::sim
