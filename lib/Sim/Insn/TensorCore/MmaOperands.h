//===- MmaOperands.h - Operands of tcgen05.mma ----------------------------===//
//
// The common part of all kinds: decoding of descriptors and addresses, gathering of operand rows,
// and the accumulator in its data path organization. Layouts come from lib/ISA.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Sim/Async/SparseMma.h"
#include "Sim/Insn/TensorCore/Tcgen05.h"
#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/SmemDescriptor.h"
#include <optional>

namespace fp4::sim {

/// A or B as the instruction descriptor has it, and its tile in shared memory.
struct MmaFactor {
  hw::MmaType type{};
  bool negate = false, transpose = false;
  hw::SmemDescriptor tile;
};

/// The scales of a block-scaled kind.
struct MmaScales {
  hw::ScaleVector vector = hw::ScaleVector::X1;
  hw::ScaleType type{};
  unsigned aId = 0, bId = 0; ///< SFA_ID and SFB_ID of the instruction descriptor
  bool inLanes = false;      ///< of A: row r in TMEM lane r
  uint32_t a = 0, b = 0;     ///< addresses in TMEM
};

/// The metadata of .sp.
struct MmaSparsity {
  hw::TmemAddress metadata;
  unsigned selector = 0; ///< of its columns
};

/// The columns of B that .ws with a mask reads.
struct MmaColumns {
  unsigned shift = 0;     ///< B begins at this column
  std::vector<bool> zero; ///< columns that count as zero; or empty
};

/// One tcgen05.mma, decoded. Sizes are those of the pair for cta_group::2.
struct MmaRequest {
  hw::MmaKind kind{};
  uint32_t ctaGroup = 1;
  unsigned m = 0, n = 0;
  MmaFactor a, b;
  std::optional<hw::TmemAddress> aTmem; ///< A in tensor memory, and not in a tile
  hw::AccumulatorType dType = hw::AccumulatorType::F32;
  bool saturate = false, accumulate = false;
  hw::MmaVariant variant; ///< .sp, .ws, depth
  hw::AccumulatorLayout layout{};
  std::vector<uint32_t> ranks; ///< CTAs, even first
  hw::TmemAddress d;
  std::vector<uint32_t> disabled; ///< one bit per unwritten TMEM lane of each CTA; or empty
  bool shiftA = false;            ///< .ashift
  int scaleD = 0;                 ///< D counts 2^-scaleD of itself when it is added to
  MmaSparsity sparsity;
  MmaColumns columns;
  MmaScales scales;

  unsigned rows() const { return m / ctaGroup; } ///< of one CTA
  /// Bytes of K in a row of A and in a column of B.
  unsigned rowBytes() const { return hw::mmaRowBytesOf(variant.depth); }
  unsigned columnBytes() const { return (variant.sparse ? 2 : 1) * rowBytes(); }
  SparseFormat sparseFormat() const;
};

/// Fills and returns the modifiers that all forms have.
Tcgen05MmaModifiers &decodeMmaModifiers(BindContext &bind, bool sparse);
/// Operand `index` of the form without metadata, which comes after B.
inline const Operand &mmaOperand(const Insn &insn, unsigned index) {
  return insn.op[index + insn.as<Tcgen05MmaModifiers>().sparse];
}
/// A request with what the modifiers say.
std::shared_ptr<MmaRequest> makeRequest(const Insn &insn);

/// Reads D, A, B and metadata (operands 0 to 3) once m and n are set, and checks the shape; false
/// after cx.fail.
bool decodeOperands(ExecContext &cx, const Insn &insn, int lane, MmaRequest &mma);

/// Fails when the target of the launch lacks what the instruction descriptor asks for.
Status checkMmaTarget(ExecContext &cx, const MmaRequest &mma);

/// A ticket that claims D.
Ticket mmaTicket(ExecContext &cx, const Insn &insn, int lane, const MmaRequest &mma);

/// Rows of a tile in shared memory.
struct TileRows {
  unsigned first = 0, count = 0;
  unsigned elementBytes = 0;           ///< of a transposed tile; 0: K-major
  unsigned rowBytes = hw::mmaRowBytes; ///< of K; twice as many for the B of a sparse A
  unsigned usedBytes = 16;             ///< of 16; behind narrow elements padding follows
  bool operator==(const TileRows &) const = default;
};

Status gatherTile(TicketQueue &queue, const Ticket &self, uint32_t rank,
                  const hw::SmemDescriptor &tile, const TileRows &rows, uint8_t *out);

/// Columns of D, and the copy of A in tensor memory that they are made from.
struct PartOfD {
  unsigned copy = 0, first = 0, columns = 0;
};
/// Returns the parts of D. Every part of the data path reads the rows of A from lanes of its own;
/// there is one part where the copies agree.
std::vector<PartOfD> partsOfD(TicketQueue &queue, const MmaRequest &mma, unsigned member);

/// The bytes of K of each operand row, row major. A: the rows of one CTA, 32 bytes each, 48 or 64.
/// B: all N columns.
Status gatherA(TicketQueue &queue, const Ticket &self, const MmaRequest &mma, unsigned member,
               const PartOfD &part, std::vector<uint8_t> &out);
Status gatherB(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
               std::vector<uint8_t> &out);
/// Gathers the k for which the elements of a sparse A stand, for one CTA's rows. `nonZero`: by row,
/// a bit for each stored element.
Status gatherSelections(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
                        unsigned member, std::span<const uint64_t> nonZero,
                        std::vector<SparseRow> &out);
/// Scale bytes of a block-scaled MMA, four per row (one per quarter of K, repeated as needed); six
/// with K = 96; with the double K eight, or two of mxf8f6f4.
Status gatherScaleBytes(TicketQueue &queue, const Ticket &self, uint32_t rank,
                        const MmaRequest &mma, bool ofA, std::vector<uint8_t> &out);

/// Fails when an accumulating MMA would read cells never written or still in flight.
Status checkAccumulator(TicketQueue &queue, const Ticket &self, const MmaRequest &mma,
                        unsigned member);

/// The rows of D that one CTA holds, as a row major matrix of 32-bit words: tensor memory itself
/// where a row is a TMEM lane, else a copy.
class Accumulator {
public:
  Accumulator(TicketQueue &queue, const MmaRequest &mma, unsigned member, const PartOfD &part);
  float *data() { return reinterpret_cast<float *>(words()); }
  uint32_t *words() { return copy.empty() ? tmem.cell(mma.d.lane, mma.d.column) : copy.data(); }
  size_t pitch() const { return copy.empty() ? TensorMemory::pitch : mma.n; }
  /// Puts the columns of the part back where there is a copy, and what lanes that are not written
  /// had.
  void writeBack();

private:
  template <typename F> void forEachCell(const PartOfD &of, F &&f);
  template <typename F> void forEachDisabledLane(F &&f);

  TensorMemory &tmem;
  const MmaRequest &mma;
  unsigned member;
  PartOfD part;
  std::vector<uint32_t> copy;
  std::vector<uint32_t> kept; ///< of TMEM lanes that are not written: all columns of D
};

/// All kinds but fp4 block-scaled (Tcgen05Mma.cpp).
Status runDense(TicketQueue &queue, const Ticket &self, const MmaRequest &mma);

} // namespace fp4::sim
