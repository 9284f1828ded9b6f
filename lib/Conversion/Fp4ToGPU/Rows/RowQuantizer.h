//===- RowQuantizer.h - Codes and scales of a row kernel ------------------===//
//
// Quantizes the words of chunks of a row, with random words where the quantizer has some. Blocks of
// 16 elements are one chunk, blocks of 32 those of two neighbouring lanes, and blocks of 128 those
// of eight, which exchange their maxima. A block that is a whole row has the maximum of the team.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "BlockQuantizer.h"
#include "Philox.h"
#include "Rows/RowTurns.h"
#include "Rowwise/RowBlocks.h"
#include "ScaleTable.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp4 {

class RowQuantizer {
public:
  using Chunk = RowTeam::Chunk;

  /// Chunks that a row has with the padding of its scales.
  static int64_t chunksOf(QuantizeOp op);
  /// Rows of `rows` (an index on the host), with the padding of scales.
  static mlir::Value paddedRows(QuantizeOp op, mlir::ImplicitLocOpBuilder &host, mlir::Value rows);

  /// `amax` is the pointer of the operand, or null, and `rows` (i32) are those of the matrix.
  RowQuantizer(QuantizeOp op, KernelBuilder &kernel, RowElements &row,
               const LoweringContext &context, mlir::Value rows, mlir::Value amax);

  /// The pointer of a result, and its rows.
  struct Result {
    mlir::Value base;
    RowElements::ResultRows rows;
  };
  void setResults(Result data, Result scales) {
    this->data.emplace(std::move(data));
    this->scales.emplace(std::move(scales));
  }
  /// Has the kernel compute the amax of each row that is the operand.
  void computeAmax(NanPolicy nan) { nanOfAmax = nan; }
  /// Begins a branch for rows of the matrix, where there may be others that pad scales and a CTA
  /// has one row: those have zeros for scales, without a load. endRow() closes the branch.
  void beginRow();
  void endRow();
  /// Has the CTA take several rows, one after the other, where the plan says so. endRow() closes
  /// the loop. `hostRows` (an index) are the rows of the matrix.
  void beginStrip(mlir::Value hostRows);
  /// Begins the copy of the next row to shared memory, where the plan says so and no barrier came
  /// since beginRow().
  void copyNext() { strip.turns.copyNext(); }
  /// The CTAs (an index) of the launch.
  mlir::Value hostCtas(mlir::Value hostRows);
  /// Emits what only needs the amax of the tensor, while the row is loaded: its scale, or the
  /// factors of scales where a CTA looks them up.
  void beginTensor();
  /// Emits what comes before the chunks. All threads are here.
  void begin();
  /// The amax behind which codes of the selected row are (f32), after begin().
  mlir::Value tensorAmax() {
    return ofTensor.empty() ? s.constant(0) : ofTensor[ofSelected(ofTensor.size())];
  }
  /// Quantizes the words of a chunk, and stores its codes and scale.
  void quantize(llvm::ArrayRef<mlir::Value> words, const Chunk &chunk);

private:
  /// The place of the selected row in a list of one for all rows, or one for each.
  size_t ofSelected(size_t count) { return count == 1 ? 0 : row.team().selectedRow(); }
  BlockQuantizer &quantizer() { return *quantizers[ofSelected(quantizers.size())]; }
  int64_t lanesOfBlock() const;
  bool isOfWholeRows() const;
  RowBlocks::Shape shapeOf(int64_t blockSize) const;
  RowBlocks::Position positionOf(const RowBlocks::Shape &shape, const Chunk &chunk, Int32 block,
                                 const RowElements::ResultRow &to);
  void loadAmaxes();
  bool skipsPadding() const;
  void endMatrix();
  bool looksFactorsUp();
  void quantizeTogether();
  llvm::SmallVector<mlir::Value> drawnFor(const Chunk &chunk);
  mlir::Value blockAmax(llvm::ArrayRef<mlir::Value> words);
  mlir::Value larger(mlir::Value x, mlir::Value y);
  void storeBlock(const BlockQuantizer::Block &block, const Chunk &chunk);
  void storeF32Scale(mlir::Value bits, const Chunk &chunk);
  void storeScale(mlir::Value scale, const Chunk &chunk, const RowElements::ResultRow &to);

  QuantizeOp op;
  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  RowElements &row;
  /// Turns on the rows of a strip, and their scales where these are tiled.
  struct Strip {
    RowTurns turns;
    std::optional<StripScales> scales;
  } strip;
  mlir::Value input; ///< the operand as it is before it has a buffer
  Scalars s;
  mlir::Type element;
  bool noArithmetic;
  std::optional<NanPolicy> nanOfAmax;
  mlir::Value rows, amaxes;                           ///< amaxes: pointer to those of rows, or null
  mlir::scf::IfOp ofMatrix = {};                      ///< begun, with zeros in its else region
  llvm::SmallVector<mlir::Value> ofTensor, rowAmaxes; ///< one, or one for each row of a thread
  std::optional<Result> data, scales;
  std::vector<std::unique_ptr<BlockQuantizer>> quantizers; ///< one for each amax of `ofTensor`
  std::optional<GroupRandom> random;                       ///< a chunk is a group
  /// Chunks that wait to be quantized together.
  struct Waiting {
    llvm::SmallVector<mlir::Value> words;
    Chunk chunk;
  };
  /// Factors that a CTA looks up.
  struct Factors {
    std::optional<ScaleTable> table;
    int barriersBefore = 0;
    llvm::SmallVector<Waiting> waiting;
  } factors;
};

} // namespace fp4
