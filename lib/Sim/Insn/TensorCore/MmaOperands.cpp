//===- MmaOperands.cpp - Operands of tcgen05.mma --------------------------===//
#include "Sim/Insn/TensorCore/MmaOperands.h"
#include "Sim/Async/Fail.h"
#include "Sim/Insn/TensorCore/KeptTiles.h"
#include "fp4/ISA/TargetModel.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fp4::sim {
namespace {

using hw::AccumulatorLayout;

/// The rectangles of D in one CTA. The 16-lane organizations take TMEM lanes 0-15 or 16-31 of each
/// 32.
std::vector<TmemRange> accumulatorRanges(const MmaRequest &mma) {
  const unsigned columns = hw::accumulatorColumns(mma.layout, mma.n);
  if (mma.layout != AccumulatorLayout::F && mma.layout != AccumulatorLayout::C)
    return {{mma.d.lane, hw::tmemLaneCount, mma.d.column, columns}};
  std::vector<TmemRange> ranges;
  for (uint32_t lane = 0; lane < hw::tmemLaneCount; lane += 32)
    ranges.push_back({lane + mma.d.lane, 16, mma.d.column, columns});
  return ranges;
}

bool usesHalfOfLanes(const MmaRequest &mma) {
  return mma.layout == AccumulatorLayout::F || mma.layout == AccumulatorLayout::C;
}

Status checkShape(MmaRequest &mma) {
  FP4_TRY(hw::validateMmaShape(mma.kind, mma.ctaGroup, mma.m, mma.n, mma.variant));
  const auto layout =
      hw::accumulatorLayout(mma.ctaGroup, mma.m, mma.variant.sparse, mma.variant.weightStationary);
  if (!layout)
    return fail(
        fmt::format("there is no tcgen05.mma of M = {} with cta_group::{}", mma.m, mma.ctaGroup));
  mma.layout = *layout;
  const bool halfLanes = usesHalfOfLanes(mma);
  if (mma.d.lane != 0 && !(halfLanes && mma.d.lane == 16))
    return fail(fmt::format("expects an accumulator at TMEM lane 0{}, but got lane {}",
                            halfLanes ? " or 16" : "", mma.d.lane));
  const auto checkLane = [&](std::string_view name, uint32_t lane) -> Status {
    if (lane == (halfLanes ? mma.d.lane : 0))
      return {};
    return fail(fmt::format("expects {} at TMEM lane {}{}, but got lane {}", name,
                            halfLanes ? mma.d.lane : 0, halfLanes ? ", like D," : "", lane));
  };
  if (mma.aTmem)
    FP4_TRY(checkLane("A", mma.aTmem->lane));
  if (mma.variant.sparse)
    FP4_TRY(checkLane("sparsity metadata", mma.sparsity.metadata.lane));
  if (mma.shiftA && mma.m < 128)
    return fail(fmt::format(".ashift expects M = 128 or 256, but got {}", mma.m));
  return {};
}

/// Bytes of an element that a transposed operand may have; 0 where it must be K-major.
unsigned transposableBytes(hw::MmaType type) {
  switch (type) {
  case hw::MmaType::TF32:
    return 4;
  case hw::MmaType::F16:
  case hw::MmaType::BF16:
    return 2;
  case hw::MmaType::E4M3:
  case hw::MmaType::E5M2:
  case hw::MmaType::U8:
  case hw::MmaType::S8:
    return 1;
  default:
    return 0;
  }
}

/// PTX ISA, "Valid combinations of type size, major-ness and swizzling", and N of 8-bit types.
Status checkMajorness(const hw::SmemDescriptor &tile, hw::MmaType type, bool transposed,
                      std::string_view name, unsigned rows) {
  const bool atom32 = tile.swizzle == hw::SwizzleMode::B128Atom32;
  if (!transposed)
    return {};
  const unsigned bytes = transposableBytes(type);
  if (bytes == 0)
    return fail(fmt::format("a transposed {} must have 8, 16 or 32 bits per element, but got {}",
                            name, stringify(type)));
  if (atom32 != (bytes == 4))
    return fail(fmt::format("a transposed {} of {} expects {}, but got {}", name, stringify(type),
                            bytes == 4 ? "swizzle_128B_atom_32B" : "a swizzle of 16-byte chunks",
                            stringify(tile.swizzle)));
  if (rows % (16 / bytes))
    return fail(
        fmt::format("a transposed {} of {} expects a multiple of {} in each CTA, but got {}", name,
                    stringify(type), 16 / bytes, rows));
  return {};
}

/// A slice of 48 bytes may end in another line than it begins in, whose address LBO is.
Status checkK96Operand(const hw::SmemDescriptor &tile, std::string_view name) {
  if (tile.swizzle == hw::SwizzleMode::B128 && tile.lboAbsolute && tile.baseOffset == 0)
    return {};
  return fail(
      fmt::format("K = 96 expects {} of swizzle_128B with base offset 0 and an absolute leading "
                  "address (bit 52 of its descriptor)",
                  name));
}

/// The double K has rows of 64 bytes in a line. No text says how smaller elements than bytes lie
/// there.
Status checkDoubleOperands(const MmaRequest &mma) {
  const bool hasBytes = mma.kind == hw::MmaKind::F8F6F4 || mma.kind == hw::MmaKind::MXF8F6F4;
  for (hw::MmaType type : {mma.a.type, mma.b.type})
    if (hasBytes && type != hw::MmaType::E4M3 && type != hw::MmaType::E5M2)
      return fail(fmt::format("the double K of kind::{} expects e4m3 and e5m2, but got {}",
                              stringify(mma.kind), stringify(type)));
  for (const hw::SmemDescriptor *tile : {&mma.a.tile, &mma.b.tile})
    if (tile->swizzle == hw::SwizzleMode::B32)
      return fail("the double K expects 64 bytes of K in a line, but got swizzle_32B",
                  "use swizzle_64B or swizzle_128B");
  return {};
}

Status checkOperandLayouts(const MmaRequest &mma) {
  if (mma.variant.depth != hw::MmaDepth::Single && mma.aTmem)
    return fail(mma.variant.depth == hw::MmaDepth::K96 ? "K = 96 expects A in shared memory"
                                                       : "the double K expects A in shared memory");
  if (mma.variant.depth == hw::MmaDepth::Double)
    FP4_TRY(checkDoubleOperands(mma));
  if (mma.variant.depth == hw::MmaDepth::K96) {
    FP4_TRY(checkK96Operand(mma.a.tile, "A"));
    FP4_TRY(checkK96Operand(mma.b.tile, "B"));
  }
  if (mma.aTmem && mma.a.transpose)
    return fail("A in tensor memory must not be transposed");
  if (!mma.aTmem)
    FP4_TRY(checkMajorness(mma.a.tile, mma.a.type, mma.a.transpose, "A", mma.rows()));
  // Bytes behind the line of a swizzled row are not documented.
  if (mma.variant.sparse && !mma.b.transpose && mma.b.tile.swizzle == hw::SwizzleMode::B32)
    return fail("a sparse product expects 64 bytes of K in a line of B, but got swizzle_32B",
                "use swizzle_64B or swizzle_128B");
  return checkMajorness(mma.b.tile, mma.b.type, mma.b.transpose, "B", mma.n / mma.ctaGroup);
}

/// Returns the offsets of the 16-byte chunks of the rows: for each row those of its K; for a
/// transposed tile, those of every k for each group of as many rows as fit in 16 bytes.
std::vector<uint32_t> chunkOffsets(const hw::SmemDescriptor &tile, const TileRows &rows) {
  const unsigned bytes = rows.elementBytes, perRow = rows.rowBytes / 16;
  std::vector<uint32_t> offsets(size_t(perRow) * rows.count);
  const unsigned perChunk = bytes ? 16 / bytes : 0, k = bytes ? rows.rowBytes / bytes : 0;
  for (unsigned i = 0; i < offsets.size(); ++i)
    offsets[i] = bytes ? tile.transposedAddress(rows.first + i / k * perChunk, i % k, bytes)
                       : tile.operandAddress(rows.first + i / perRow, 16 * (i % perRow));
  return offsets;
}

/// The offsets of a tile's chunks, where they begin and end, and the bytes that they make.
struct TileOffsets {
  uint32_t base = 0; ///< of the CTA's shared memory
  hw::SmemDescriptor tile;
  TileRows rows;
  std::vector<uint32_t> offsets;
  uint32_t low = 0, high = 0;
  std::vector<SharedRange> runs; ///< by shared::cluster address, in order
};

/// Returns the runs of bytes that chunks make, of which each has `bytes`.
std::vector<SharedRange> runsOf(uint32_t base, std::vector<uint32_t> offsets, uint32_t bytes) {
  std::ranges::sort(offsets);
  std::vector<SharedRange> runs;
  for (const uint32_t offset : offsets) {
    const uint32_t address = base | offset;
    if (!runs.empty() && address <= runs.back().address + runs.back().bytes)
      runs.back().bytes = address + bytes - runs.back().address;
    else
      runs.push_back({address, bytes});
  }
  return runs;
}

/// The stages of a loop are gathered again and again: a host thread keeps the offsets of some
/// tiles.
const TileOffsets &offsetsOf(uint32_t base, const hw::SmemDescriptor &tile, const TileRows &rows) {
  constexpr unsigned bits = 9;
  thread_local std::array<TileOffsets, 1u << bits> kept;
  TileOffsets &entry = kept[keptPlace(uint64_t(base | tile.startAddress) << 32 | rows.first, bits)];
  if (!entry.offsets.empty() && entry.base == base && entry.tile == tile && entry.rows == rows)
    return entry;
  entry = {base, tile, rows, chunkOffsets(tile, rows), 0, 0, {}};
  const auto [least, most] = std::minmax_element(entry.offsets.begin(), entry.offsets.end());
  entry.low = *least;
  entry.high = *most + 16;
  entry.runs = runsOf(base, entry.offsets, rows.usedBytes);
  return entry;
}

/// Turns chunks in the order of a transposed tile's chunkOffsets into rows.
template <typename T>
void transposeChunks(std::span<const uint8_t> chunks, const TileRows &rows, uint8_t *out) {
  constexpr unsigned perChunk = 16 / sizeof(T);
  const unsigned k = rows.rowBytes / sizeof(T);
  const uint8_t *from = chunks.data();
  for (size_t groups = chunks.size() / 16 / k; groups; --groups, out += perChunk * rows.rowBytes)
    for (unsigned column = 0; column < k; ++column, from += 16)
      for (unsigned j = 0; j < perChunk; ++j)
        std::memcpy(out + j * rows.rowBytes + column * sizeof(T), from + j * sizeof(T), sizeof(T));
}

void transposeChunks(std::span<const uint8_t> chunks, const TileRows &rows, uint8_t *out) {
  switch (rows.elementBytes) {
  case 1:
    return transposeChunks<uint8_t>(chunks, rows, out);
  case 2:
    return transposeChunks<uint16_t>(chunks, rows, out);
  default:
    return transposeChunks<uint32_t>(chunks, rows, out);
  }
}

/// Returns how many of the 16 bytes 16 elements take; kinds whose elements are all narrow pack
/// them.
unsigned usedBytes(hw::MmaKind kind, hw::MmaType type) {
  if (kind != hw::MmaKind::F8F6F4 && kind != hw::MmaKind::MXF8F6F4)
    return 16;
  switch (type) {
  case hw::MmaType::E2M1:
    return 8;
  case hw::MmaType::E2M3:
  case hw::MmaType::E3M2:
    return 12;
  default:
    return 16;
  }
}

} // namespace

Status gatherTile(TicketQueue &queue, const Ticket &self, uint32_t rank,
                  const hw::SmemDescriptor &tile, const TileRows &rows, uint8_t *out) {
  const uint32_t base = rank << kSharedRankShift;
  const auto &[ofBase, ofTile, ofRows, offsets, low, high, runs] = offsetsOf(base, tile, rows);
  thread_local std::vector<uint8_t> chunks;
  chunks.resize(rows.elementBytes ? 16 * offsets.size() : 0);
  uint8_t *to = rows.elementBytes ? chunks.data() : out;
  FP4_TRY(queue.checkShared(base | low, high - low));
  SharedMemory &shared = queue.cluster().ctas[rank]->shared;
  const bool allValid = shared.valid(low, high - low); // then no row is checked
  if (queue.cluster().launch->ticketObserver())
    for (const SharedRange &run : runs)
      queue.emitAccess(self, AccessKind::Read, Space::SharedCluster, run.address, run.bytes,
                       Proxy::Async);
  for (size_t i = 0; !allValid && i < offsets.size(); ++i)
    FP4_TRY(queue.sharedSource(base | offsets[i], rows.usedBytes, self));
  for (size_t i = 0; i < offsets.size(); ++i)
    std::memcpy(to + 16 * i, shared.at(offsets[i]), 16); // the padding has no meaning
  if (rows.elementBytes)
    transposeChunks(chunks, rows, out);
  return {};
}

Tcgen05MmaModifiers &decodeMmaModifiers(BindContext &bind, bool sparse) {
  auto &mma = bind.insn.make<Tcgen05MmaModifiers>();
  mma.kind = *hw::parseMmaKind(bind.match.text("kind").substr(6));
  mma.ctaGroup = ctaGroupOf(bind);
  mma.sparse = sparse;
  mma.shiftA = bind.match.has("ashift");
  return mma;
}

std::shared_ptr<MmaRequest> makeRequest(const Insn &insn) {
  const auto &how = insn.as<Tcgen05MmaModifiers>();
  auto mma = std::make_shared<MmaRequest>();
  mma->kind = how.kind;
  mma->ctaGroup = how.ctaGroup;
  mma->variant = {how.sparse, how.stationary};
  mma->shiftA = how.shiftA;
  return mma;
}

bool decodeOperands(ExecContext &cx, const Insn &insn, int lane, MmaRequest &mma) {
  mma.d = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[0], lane)));
  if (insn.op[1].kind == OperandKind::Address) {
    mma.aTmem = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[1], lane)));
  } else {
    auto a = hw::SmemDescriptor::decode(cx.scalar(insn.op[1], lane), hasWideDescriptors(cx));
    if (!a)
      return failHere(cx, std::move(a.error()), lane), false;
    mma.a.tile = *a;
  }
  auto b = hw::SmemDescriptor::decode(cx.scalar(insn.op[2], lane), hasWideDescriptors(cx));
  if (!b)
    return failHere(cx, std::move(b.error()), lane), false;
  mma.b.tile = *b;
  if (mma.variant.sparse)
    mma.sparsity.metadata = hw::TmemAddress::unpack(uint32_t(cx.address(insn.op[3], lane)));
  if (Status ok = checkShape(mma); !ok)
    return failHere(cx, std::move(ok.error()), lane), false;
  if (Status ok = checkOperandLayouts(mma); !ok)
    return failHere(cx, std::move(ok.error()), lane), false;
  mma.ranks = groupRanks(cx, mma.ctaGroup);
  return !mma.ranks.empty();
}

Status checkMmaTarget(ExecContext &cx, const MmaRequest &mma) {
  using hw::TargetFeatures;
  const hw::TargetModel *target = cx.launch().target;
  if (mma.variant.depth == hw::MmaDepth::K96)
    FP4_TRY(hw::requireFeature(*target, &TargetFeatures::hasFp4K96, "product of K = 96"));
  if (mma.variant.depth == hw::MmaDepth::Double)
    FP4_TRY(hw::requireFeature(*target, &TargetFeatures::hasDoubleK, "product of the double K"));
  if (mma.scales.type == hw::ScaleType::UE5M3)
    FP4_TRY(hw::requireFeature(*target, &TargetFeatures::hasUE5M3, "scales of ue5m3"));
  if (mma.scales.type == hw::ScaleType::UE4M3 && mma.scales.vector == hw::ScaleVector::X2)
    FP4_TRY(
        hw::requireFeature(*target, &TargetFeatures::hasUE5M3, "scales of ue4m3 of 32 elements"));
  const bool hasFp4 = mma.kind == hw::MmaKind::MXF4 || mma.kind == hw::MmaKind::MXF4NVF4;
  if (mma.variant.sparse && hasFp4 && target->features.hasDoubleK)
    return fail(fmt::format("sparse products of fp4 on {} choose single elements, which is not "
                            "simulated",
                            target->name),
                "earlier targets choose pairs of elements");
  if (mma.scales.inLanes)
    return fail(
        "scales of A in all TMEM lanes (bit 26 of the instruction descriptor) are not simulated",
        "no published text has their layout: clear the bit, and copy the scales to every "
        "quarter of the TMEM lanes");
  return {};
}

Ticket mmaTicket(ExecContext &cx, const Insn &insn, int lane, const MmaRequest &mma) {
  Ticket ticket = TicketQueue::of(cx).makeTicket(cx, insn, TicketKind::Mma, lane);
  ticket.tcgen05.ctaGroup = mma.ctaGroup;
  const hw::MmaDepth depth = mma.variant.depth;
  ticket.work.flops = 2ull * mma.m * mma.n * hw::mmaK(mma.kind, mma.variant.sparse, depth);
  const uint64_t shape = uint64_t(mma.m) << 24 | mma.n << 12 | hw::mmaK(mma.kind, false, depth);
  ticket.tcgen05.pipelined = {PipelinedOp::Mma, false, shape << 25 | mma.d.pack()};
  for (uint32_t rank : mma.ranks) {
    ticket.sharedReads |= 1u << rank;
    for (const TmemRange &range : accumulatorRanges(mma))
      ticket.writes.tmem.push_back({rank, range});
  }
  return ticket;
}

namespace {

/// The rectangles of an operand in the tensor memory of one CTA: all TMEM lanes, or 16 of each 32.
std::vector<TmemRange> operandRanges(const MmaRequest &mma, hw::TmemAddress at, unsigned columns) {
  if (!usesHalfOfLanes(mma))
    return {{0, hw::tmemLaneCount, at.column, columns}};
  std::vector<TmemRange> ranges;
  for (uint32_t lane = 0; lane < hw::tmemLaneCount; lane += 32)
    ranges.push_back({lane + at.lane, 16, at.column, columns});
  return ranges;
}

Status readOperand(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, uint32_t rank,
                   hw::TmemAddress at, unsigned columns, std::string_view name) {
  for (const TmemRange &range : operandRanges(mma, at, columns)) {
    FP4_TRY(queue.checkCells(rank, range, self.id, name));
    emitTmem(queue, self, rank, range);
  }
  return {};
}

/// A row that is not the same in two copies of an operand.
struct Difference {
  unsigned row = 0;
  uint32_t first = 0, other = 0; ///< lanes
};
std::optional<Difference> findDifference(TicketQueue &queue, const MmaRequest &mma, uint32_t rank,
                                         hw::TmemAddress at, unsigned columns) {
  TensorMemory &tmem = queue.state(rank).tmem;
  for (unsigned row = 0; row < mma.rows(); ++row)
    for (unsigned copy = 1; copy < hw::operandCopies(mma.layout); ++copy) {
      const uint32_t first = hw::operandLane(mma.layout, row, 0);
      const uint32_t lane = hw::operandLane(mma.layout, row, copy);
      if (std::memcmp(tmem.cell(first, at.column), tmem.cell(lane, at.column), 4 * columns))
        return Difference{row, first, lane};
    }
  return std::nullopt;
}

/// Checks the copies of metadata: it is not known which of them counts for which columns.
Status checkCopies(TicketQueue &queue, const MmaRequest &mma, uint32_t rank, hw::TmemAddress at,
                   unsigned columns, std::string_view name) {
  const auto found = findDifference(queue, mma, rank, at, columns);
  if (!found)
    return {};
  return fail(fmt::format("the copies of {} in tensor memory differ: row {} in lanes {} and {}, "
                          "from column {} on",
                          name, found->row, found->first, found->other, at.column),
              "with this shape every part of the data path needs its own copy");
}

/// .ashift: row r of the product has row r - 1 of A, row 0 its own. [uncertain] As tcgen05.shift.
void shiftRowsDown(std::vector<uint8_t> &rows) {
  std::memmove(rows.data() + hw::mmaRowBytes, rows.data(), rows.size() - hw::mmaRowBytes);
}

/// The metadata of a row: 64 bits, or 32 for elements of 16 and 32 bits.
uint64_t metadataOf(TensorMemory &tmem, const MmaRequest &mma, unsigned row) {
  const auto word = [&](unsigned of, unsigned column) -> uint64_t {
    return *tmem.cell(mma.sparsity.metadata.lane + hw::operandLane(mma.layout, of, 0),
                      mma.sparsity.metadata.column + column);
  };
  if (mma.sparseFormat().elementBits < 16)
    return word(row, 0) | word(row, 1) << 32;
  const unsigned shift = hw::metadataShift(row);
  const auto half = [&](unsigned h) {
    return word(hw::metadataRow(row, h), mma.sparsity.selector) >> shift & 0xFFFF;
  };
  return half(0) | half(1) << 16;
}

} // namespace

SparseFormat MmaRequest::sparseFormat() const {
  const bool packed = kind == hw::MmaKind::MXF4 || kind == hw::MmaKind::MXF4NVF4;
  return {packed ? 4u : containerBits(a.type), SparseIndices::Tcgen05};
}

constexpr unsigned kColumnsOfA = hw::mmaRowBytes / 4; ///< columns of A in tensor memory

std::vector<PartOfD> partsOfD(TicketQueue &queue, const MmaRequest &mma, unsigned member) {
  if (!mma.aTmem || !findDifference(queue, mma, mma.ranks[member], *mma.aTmem, kColumnsOfA))
    return {{0, 0, mma.n}};
  // [uncertain] PTX wants copies. FlashMLA makes two products at once of two halves of K instead.
  const unsigned copies = hw::operandCopies(mma.layout), columns = mma.n / copies;
  std::vector<PartOfD> parts;
  for (unsigned copy = 0; copy < copies; ++copy)
    parts.push_back({copy, copy * columns, columns});
  return parts;
}

Status gatherA(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, unsigned member,
               const PartOfD &part, std::vector<uint8_t> &out) {
  const uint32_t rank = mma.ranks[member];
  out.resize(mma.rowBytes() * mma.rows());
  if (!mma.aTmem)
    return gatherTile(queue, self, rank, mma.a.tile,
                      {0, mma.rows(), mma.a.transpose ? transposableBytes(mma.a.type) : 0,
                       mma.rowBytes(), usedBytes(mma.kind, mma.a.type)},
                      out.data());
  FP4_TRY(readOperand(queue, self, mma, rank, *mma.aTmem, kColumnsOfA, "A"));
  TensorMemory &tmem = queue.state(rank).tmem;
  for (unsigned row = 0; row < mma.rows(); ++row)
    std::memcpy(
        out.data() + hw::mmaRowBytes * row,
        tmem.cell(mma.aTmem->lane + hw::operandLane(mma.layout, row, part.copy), mma.aTmem->column),
        hw::mmaRowBytes);
  if (mma.shiftA)
    shiftRowsDown(out);
  return {};
}

Status gatherB(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
               std::vector<uint8_t> &out) {
  const unsigned count = mma.n / mma.ctaGroup, bytes = mma.columnBytes();
  out.resize(size_t(bytes) * mma.n);
  for (unsigned member = 0; member < mma.ctaGroup; ++member)
    FP4_TRY(
        gatherTile(queue, self, mma.ranks[member], mma.b.tile,
                   {mma.columns.shift, count, mma.b.transpose ? transposableBytes(mma.b.type) : 0,
                    bytes, usedBytes(mma.kind, mma.b.type)},
                   out.data() + size_t(bytes) * count * member));
  for (size_t column = 0; column < mma.columns.zero.size(); ++column)
    if (mma.columns.zero[column])
      std::fill_n(out.begin() + ptrdiff_t(column * bytes), bytes, uint8_t(0));
  return {};
}

Status gatherSelections(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
                        unsigned member, std::span<const uint64_t> nonZero,
                        std::vector<SparseRow> &out) {
  out.clear();
  if (!mma.variant.sparse)
    return {};
  const uint32_t rank = mma.ranks[member];
  const SparseFormat format = mma.sparseFormat();
  const bool wide = format.elementBits >= 16;
  const hw::TmemAddress at = {mma.sparsity.metadata.lane,
                              mma.sparsity.metadata.column + mma.sparsity.selector};
  const unsigned columns = wide ? 1 : 2;
  FP4_TRY(readOperand(queue, self, mma, rank, at, columns, "sparsity metadata"));
  FP4_TRY(checkCopies(queue, mma, rank, at, columns, "sparsity metadata"));
  out.resize(mma.rows());
  for (unsigned row = 0; row < mma.rows(); ++row)
    FP4_TRY(decodeSparseRow(format, metadataOf(queue.state(rank).tmem, mma, row), nonZero[row], row,
                            out[row]));
  return {};
}

Status checkAccumulator(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
                        unsigned member) {
  for (const TmemRange &range : accumulatorRanges(mma)) {
    if (mma.accumulate)
      FP4_TRY(queue.checkCells(mma.ranks[member], range, self.id, "the accumulator"));
  }
  return {};
}

//===----------------------------------------------------------------------===//
// The accumulator
//===----------------------------------------------------------------------===//

template <typename F> void Accumulator::forEachCell(const PartOfD &of, F &&f) {
  const unsigned rows = mma.m / mma.ctaGroup;
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = of.first; column < of.first + of.columns; ++column) {
      const auto cell = hw::accumulatorCell(mma.layout, member * rows + row, column, mma.n);
      f(copy[size_t(row) * mma.n + column],
        *tmem.cell(mma.d.lane + cell.lane, mma.d.column + cell.column));
    }
}

/// The TMEM lanes of this CTA that the instruction leaves alone, as spans of D's columns.
template <typename F> void Accumulator::forEachDisabledLane(F &&f) {
  for (uint32_t lane = 0; lane < hw::tmemLaneCount; ++lane)
    if (size_t word = 4 * member + lane / 32;
        word < mma.disabled.size() && mma.disabled[word] >> (lane % 32) & 1)
      f(std::span(tmem.cell(lane, mma.d.column), hw::accumulatorColumns(mma.layout, mma.n)));
}

Accumulator::Accumulator(TicketQueue &queue, const MmaRequest &mma, unsigned member,
                         const PartOfD &part)
    : tmem(queue.state(mma.ranks[member]).tmem), mma(mma), member(member), part(part) {
  forEachDisabledLane(
      [&](std::span<uint32_t> cells) { kept.insert(kept.end(), cells.begin(), cells.end()); });
  if (mma.layout == AccumulatorLayout::A || mma.layout == AccumulatorLayout::D)
    return;
  copy.resize(size_t(mma.m / mma.ctaGroup) * mma.n);
  if (mma.accumulate)
    forEachCell(PartOfD{0, 0, mma.n}, [](uint32_t &ours, uint32_t &cell) { ours = cell; });
}

void Accumulator::writeBack() {
  if (!copy.empty())
    forEachCell(part, [](uint32_t &ours, uint32_t &cell) { cell = ours; });
  auto from = kept.begin();
  forEachDisabledLane([&](std::span<uint32_t> cells) {
    std::copy_n(from, cells.size(), cells.begin());
    from += static_cast<ptrdiff_t>(cells.size());
  });
}

} // namespace fp4::sim
