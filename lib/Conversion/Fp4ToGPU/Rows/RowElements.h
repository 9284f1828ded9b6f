//===- RowElements.h - The values that a row kernel computes --------------===//
//
// Gives the elements of matrices and the numbers of rows on which the last operation of a row
// kernel works: memory has them, or prologues compute them (fp4/Dialect/Fp4/IR/Prologue.h). A
// thread keeps the words of its chunks in registers where there are few, so that the row is read
// once; else it reads them again for every reduction.
//
//   RowElements row(kernel, op, rows, chunks, noArithmetic);
//   row.begin();                              // loads, and computes the numbers of the row
//   row.forEachChunk([&](const RowElements::Chunk &chunk) {
//     SmallVector<Value> words = row.words(op.getInput(), chunk);
//     ...
//   });
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Rows/IndexedRows.h"

#include "llvm/ADT/MapVector.h"

namespace fp4 {

struct LoweringContext;

/// A kernel by rows of `op`, which overlaps with no launch: the one before may write what is read.
KernelBuilder makeRowKernel(mlir::Operation *op, llvm::StringRef kind, LoweringContext &context);

class RowElements {
public:
  using Chunk = RowTeam::Chunk;

  /// The values behind the operands of `op`, the last operation of `kernel` or an fp4.top_k before
  /// that one; null: no operation has operands. `rows` (i32) and `columns` are those of the matrix,
  /// and a team has at least `chunks` chunks. The results of `op` are allocated afterwards.
  RowElements(KernelBuilder &kernel, mlir::Operation *op, mlir::Value rows, int64_t columns,
              int64_t chunks, bool noArithmetic);

  RowTeam &team() { return rowTeam; }
  /// The chunks of a thread are unrolled, and their words in registers.
  bool isKept() const { return kept; }

  /// Gives the elements (vector<16xf32>) of a matrix of one chunk that the kernel computes before.
  void give(mlir::Value tensor, mlir::Value elements) { given[tensor] = elements; }
  /// Loads what is kept, and computes the numbers of the row. `hostRows` (an index) are the rows of
  /// stored prologues. `meanwhile` emits what does not need these loads.
  void begin(mlir::Value hostRows, llvm::function_ref<void()> meanwhile = [] {});
  /// Loads the words of the selected row that begin() would, and gives them to begin().
  llvm::SmallVector<mlir::Value> loadRow();
  void keep(mlir::ValueRange words);
  /// Begins, in one thread, bulk copies of the selected row to shared memory. All threads of the
  /// CTA wait for the copy number `turn` in copiedRow(), which loads the words that loadRow()
  /// would. A barrier of the CTA is between beginCopies() and the first wait, and between a wait
  /// and the next copy, which has the same place.
  void beginCopies();
  void copyRow();
  llvm::SmallVector<mlir::Value> copiedRow(Int32 turn);
  /// Has each thread leave the columns of its chunks in shared memory, for several rows: as f32, or
  /// as they are beside copied rows.
  void shareColumns();
  /// Emits `body` for each chunk of the thread, those of each row after the other.
  void forEachChunk(llvm::function_ref<void(const Chunk &)> body);
  /// Stores the elements of stored prologues, and the numbers of the row that are stored.
  void storeChunk(const Chunk &chunk);
  void storeNumbers();

  /// Elements of a matrix as a vector<16xf32>; anything behind the end of the row.
  mlir::Value elements(mlir::Value tensor, const Chunk &chunk);
  /// Packed words of these elements, zero behind the end of the row.
  llvm::SmallVector<mlir::Value> words(mlir::Value tensor, const Chunk &chunk);
  /// The number of the selected row, or of the tensor (f32).
  mlir::Value number(mlir::Value tensor);

  /// Computes the results of an operation on matrices that is no prologue.
  llvm::SmallVector<mlir::Value> results(mlir::linalg::GenericOp op, const Chunk &chunk);
  /// RowTeam::combine over the chunks of each row.
  llvm::SmallVector<mlir::Value>
  combine(numerics::ElementOp combination, float initial,
          llvm::function_ref<mlir::Value(const Chunk &)> elementsOf);
  /// RowTeam::largest over the chunks of each row.
  llvm::SmallVector<mlir::Value>
  largest(llvm::function_ref<mlir::Value(const Chunk &)> magnitudesOf);
  /// The row of a result of the kernel, which is scattered perhaps, and whether it is written (i1).
  struct ResultRow {
    Int32 number;
    mlir::Value exists;
  };
  /// The rows of `result` that the thread writes, before its buffer is allocated.
  using ResultRows = llvm::SmallVector<ResultRow>;
  ResultRows rowsOfResult(mlir::Value result);
  const ResultRow &selectedOf(const ResultRows &rows) { return rows[rowTeam.selectedRow()]; }
  ResultRow ownRow() { return {rowTeam.row(), rowTeam.isRow()}; }

  /// Stores `elements` (vector<16xf32>, or of i32) of a matrix of `type` at `base`; those of a twin
  /// without arithmetic may be null.
  void store(mlir::Value base, mlir::RankedTensorType type, mlir::Value elements,
             const Chunk &chunk, const ResultRow &to);
  /// A number in which every bit that is loaded takes part: that of a twin without arithmetic.
  mlir::Value mixedNumber();
  /// Computes a reduction of rows that is no prologue: the number of each row of the thread.
  llvm::SmallVector<mlir::Value> reduce(mlir::linalg::GenericOp op);
  /// Has one thread of the selected row store `number` (f32) at `base`, which has one of `type` for
  /// each row.
  void storeNumber(mlir::Value base, mlir::RankedTensorType type, mlir::Value number,
                   const ResultRow &to);

private:
  /// An operand of a step: its value, the loops that index it, and the expressions of these where
  /// they are more than loops (IndexExpressions.h).
  struct Operand {
    mlir::Value tensor;
    bool hasRows, hasColumns;
    mlir::AffineExpr row = {}, column = {};

    bool isIndexed() const { return row || column; }
  };
  /// A tensor in memory.
  struct Source {
    Operand operand;
    InputRows rows;
    mlir::RankedTensorType type;
    llvm::SmallVector<mlir::Value> places;                  ///< addresses of the rows of a gather
    llvm::SmallVector<mlir::Value> exist;                   ///< their numbers are not negative (i1)
    llvm::SmallVector<llvm::SmallVector<mlir::Value>> kept; ///< words of each chunk, row by row
    /// f32, or the bits of an integer, for each row, where there are no columns.
    llvm::SmallVector<mlir::Value> numbers;
    mlir::Value shared; ///< columns of the chunks of all threads as f32 (shareColumns)
    mlir::Value copied; ///< words of the selected row (copyRow)
  };
  struct Stored {
    mlir::linalg::GenericOp op;
    mlir::Value base;
  };

  void addStep(mlir::linalg::GenericOp op);
  void addSource(const Operand &operand);
  int64_t wordsOfThread(bool ofRowsAlone);
  bool streamsRows(mlir::Operation *op);
  int64_t bytesOfRows();
  int64_t chunksOf(const Operand &operand);
  void visitTogether(int64_t count);
  std::optional<Chunk> halfOf(const Operand &operand, const Chunk &chunk);
  void keepWords();
  void prefetch();
  bool isKeptRow(const Source &source) const {
    return kept && source.operand.hasColumns && source.operand.hasRows;
  }
  int64_t piecesOfShared() const;
  mlir::Value placeOfShared(const Source &source, const Chunk &chunk, int64_t piece);
  mlir::Value loadShared(const Source &source, const Chunk &chunk);
  int64_t bytesOfRow(const Source &source);
  void loadNumber(Source &source);
  void loadTogether();
  void forget();
  Source &sourceOf(const Operand &operand);
  bool isOfAllRows(const Operand &operand);
  bool isOfOwnHalves(const Operand &operand);
  size_t placeOfSelected(const Source &source);
  void forEachRowOf(const Source &source, llvm::function_ref<void()> body);
  Int32 rowIndexOf(const Operand &operand);
  mlir::Value rowOf(const Source &source);
  mlir::Value placeOfRow(const Source &source);
  void findGathered(Source &source);
  mlir::Value unlessNegative(const Source &source, mlir::Value loaded);
  IndexedRow indexedRowOf(const Source &source);
  mlir::Value placeOf(const Source &source, const Chunk &chunk, int64_t element);
  llvm::SmallVector<mlir::Value> load(const Source &source, const Chunk &chunk);
  llvm::SmallVector<mlir::Value> loadRow(const Source &source, const Chunk &chunk);
  llvm::SmallVector<mlir::Value> load(const Operand &operand, const Chunk &chunk);
  mlir::Value computeIndexed(const Operand &operand, const Chunk &chunk);
  mlir::Value fromLane(mlir::Value tensor, const Chunk &chunk, Int32 number);
  mlir::Value widened(mlir::ValueRange words, mlir::RankedTensorType type);
  mlir::Value widened(mlir::Value tensor, const Chunk &chunk);
  llvm::SmallVector<mlir::Value> loopsOf(mlir::linalg::GenericOp op, const Chunk &chunk);
  mlir::Value loadElements(const Operand &operand, const Chunk &chunk);
  mlir::Value argument(const Operand &operand, const Chunk &chunk);
  mlir::Value argumentOfNumber(const Operand &operand);
  llvm::SmallVector<mlir::Value> computeNumbers(mlir::linalg::GenericOp op);
  mlir::Value computeNumber(mlir::linalg::GenericOp op);
  llvm::SmallVector<mlir::Value> mixed(mlir::RankedTensorType type, const Chunk &chunk);
  llvm::SmallVector<mlir::Value> packed(mlir::Value vector, mlir::RankedTensorType type);
  /// The chunk and the row of a result exist (i1).
  mlir::Value existsIn(const Chunk &chunk, const ResultRow &to);
  void storePairs(mlir::Value row, llvm::ArrayRef<mlir::Value> words, const Chunk &chunk,
                  const ResultRow &to);
  void storeWords(mlir::Value base, mlir::RankedTensorType type, llvm::ArrayRef<mlir::Value> words,
                  const Chunk &chunk, const ResultRow &to);
  void clearBehindRow(llvm::MutableArrayRef<mlir::Value> words, int64_t perWord,
                      const Chunk &chunk);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  RowTeam rowTeam;
  bool noArithmetic, kept = false, keepsColumns = false;
  mlir::Value copies;                               ///< the mbarrier of copyRow
  mlir::Value policy;                               ///< KernelBuilder::policyOfLoads, or null
  llvm::SmallVector<mlir::linalg::GenericOp> steps; ///< prologues, producers first
  /// Operands of operations as they are before results get their buffers.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Operand>> operandsOf;
  llvm::DenseMap<mlir::Value, mlir::linalg::GenericOp> stepOf;
  /// A tensor, and where its elements are found.
  using Key = std::pair<mlir::Value, mlir::AffineMap>;
  static Key keyOf(const Operand &operand);
  llvm::MapVector<Key, Source> sources;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> numbers; ///< one for each row
  TopKOp before; ///< top-k whose values are given
  llvm::MapVector<mlir::Value, mlir::Value> given;
  llvm::SmallVector<Stored> stored;
  /// Elements that are computed already for the chunk that is visited.
  llvm::DenseMap<mlir::Value, mlir::Value> computed;
};

} // namespace fp4
