//===- RowTeam.h - The threads that have a row together -------------------===//
//
// A team has a row of a matrix, in chunks of 16 elements (fp4/Plans/RowTeams.h). Thread t of T has
// chunks t, t + T and so on. A team may have several rows at once, so that all their loads are in
// flight, their sums meet at one barrier, and threads load columns once.
//
// Numbers of a row meet in the order of numerics::reduceRow: halves of a chunk in the thread,
// halves of a segment by shuffles, and segments through shared memory. Every thread has the result.
//
// The team may be all threads of a cluster. A warp then stores its segment in the shared memory of
// each CTA, and threads meet at a barrier of the cluster. A CTA stores nothing in another one
// before that has begun, nor behind the last barrier, so that a CTA may end behind it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Int32.h"
#include "KernelBuilder.h"

#include "fp4/Numerics/Elementwise.h"

#include <functional>

namespace fp4 {

class RowTeam {
public:
  /// A chunk of the row of this thread.
  struct Chunk {
    int64_t index = 0;  ///< number of the chunk among those that are unrolled together
    Int32 number;       ///< number of the chunk in the row
    mlir::Value exists; ///< i1: the row has an element of it; null: always
    mlir::Value isLast; ///< i1: the row ends within it; null: never
    bool isOther = false; ///< a chunk of another thread perhaps: no registers hold its words
  };

  /// `columns` are the elements of a row, and `rows` (i32) those of the matrix. A team has at least
  /// `chunks` chunks, and there are at least `hostRows` (an index) rows: padding has numbers, too.
  /// With `halves`, a thread has the same chunks of both halves of the row where these fit: a team
  /// of them within a warp can reduce rows.
  RowTeam(KernelBuilder &kernel, int64_t columns, int64_t chunks, mlir::Value rows, bool halves);

  /// Rows of a thread, of which one is selected. Calls `body` with each of them selected.
  int64_t rowsOfThread() const { return int64_t(places.size()); }
  void forEachRow(llvm::function_ref<void()> body);
  /// The number of the selected row among those of the thread.
  size_t selectedRow() const { return selected; }
  /// The selected row: padding counts, and for loads a row that exists.
  Int32 paddedRow() const { return places[selected].padded; }
  Int32 row() const { return places[selected].inMatrix; }
  /// The selected row exists (i1).
  mlir::Value isRow() const { return places[selected].exists; }
  Int32 lane() const { return *laneOfTeam; }
  mlir::ImplicitLocOpBuilder &builder() { return b; }
  int64_t columns() const { return numColumns; }
  /// Returns true when no CTA has two rows, so that its threads have a row or padding together.
  bool isCta() const { return teamsOfCta() == 1 && rowsOfThread() == 1; }
  /// Has the team, all threads of a CTA, go on with `row`, in a loop over rows. `turn` (i32) counts
  /// them, so that a row does not wait until all threads have done with the one before.
  void take(Int32 row, Int32 turn);
  /// Calls `body` with `row` in place of that of the team.
  void withRow(Int32 row, llvm::function_ref<void()> body);
  int64_t chunksPerThread() const { return perThread; }
  /// Barriers of all threads of the CTA that were emitted.
  int barriers() const { return numBarriers; }
  /// Has `body` emitted behind the next of these barriers. expectBarrier() is where no other one
  /// comes: it emits a barrier if `body` still waits for one.
  void atBarrier(std::function<void()> body) { behindBarrier = std::move(body); }
  void expectBarrier();
  /// Elements of the chunk within which a row ends; 0 where rows are whole chunks.
  int64_t residue() const { return numColumns % kChunk; }

  static constexpr int64_t kChunk = 16;

  /// Has the steps of loops over chunks visit `count` chunks, for which `prepare` is called first:
  /// loads of all of them are in flight before the first one is used.
  using Prepare = std::function<void(llvm::ArrayRef<Chunk>)>;
  void visitTogether(int64_t count, Prepare prepare);
  /// Emits `body` for each chunk of the selected row: `unrolled`, or in a loop. `index` of a chunk
  /// counts those of the thread, or of a step of the loop.
  void forEachChunk(bool unrolled, llvm::function_ref<void(const Chunk &)> body);

  /// The combinations of `initial` and all elements of each row of the thread. `elements` gives
  /// those of a chunk of the selected row, vector<16xf32>, with anything behind the end of the row.
  /// All threads of the CTA are here, outside of loops.
  llvm::SmallVector<mlir::Value>
  combine(numerics::ElementOp combination, float initial, bool unrolled,
          llvm::function_ref<mlir::Value(const Chunk &)> elements);

  /// The largest of the `magnitudes` (i32) of the chunks of each row, 0 behind its end. All threads
  /// of the CTA are here, outside of loops.
  llvm::SmallVector<mlir::Value> largest(bool unrolled,
                                         llvm::function_ref<mlir::Value(const Chunk &)> magnitudes);

  /// The chunk with column `column`, or the last one of the row where the row has no such column. A
  /// chunk of all threads: none of them has kept words of it.
  Chunk chunkOf(Int32 column);
  /// The combination of `initial` and the elements of such a chunk.
  mlir::Value combineOne(numerics::ElementOp combination, float initial, const Chunk &chunk,
                         mlir::Value elements);

  /// Returns true when each thread has one chunk and a team is within a warp, so that chunks are
  /// those of lanes.
  bool isInWarp() const;
  /// Returns true when a thread has the same chunk of both halves of the row.
  bool hasHalves() const { return halves; }
  /// The chunk of this thread in the other half of the row; none where a thread has no two halves.
  std::optional<Chunk> otherHalf(const Chunk &chunk, bool unrolled);
  /// The word (i32) of chunk `number`, where isInWarp(). All threads of the warp are here.
  mlir::Value wordOf(mlir::Value word, Int32 number);
  /// Lanes of the warp that have a row together.
  int64_t lanes() const;
  /// The word (of 32 bits) of the lane whose number differs in the bit `distance`. All threads of
  /// the warp are here.
  mlir::Value exchanged(mlir::Value word, int64_t distance);
  /// Bytes of a piece of a chunk, the widest access.
  static constexpr int64_t kPieceBytes = 16;
  /// Returns true when chunks of `bytes` come in pairs of neighbouring lanes, which may exchange
  /// their pieces.
  bool pairsPieces(int64_t bytes) const;
  /// The pieces, words of i32, that a lane stores of the two chunks that it has with its neighbour:
  /// the even lane each first piece of 32 bytes, the odd lane each second one, so that an
  /// instruction of the warp writes whole sectors of 32 bytes. `words` are those of the chunk of
  /// this lane. All threads of the warp are here.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>>
  exchangePieces(llvm::ArrayRef<mlir::Value> words);
  /// `elements` of a chunk, with those of `absent`, a vector of the same type, behind the end of
  /// the row.
  mlir::Value withAbsent(mlir::Value elements, const Chunk &chunk, mlir::Value absent);

  /// Launches the CTAs for `hostRows` (an index) rows, and closes the kernel.
  void launch(mlir::Value hostRows);

private:
  Chunk chunk(Int32 number, int64_t index);
  mlir::Value foldChunk(numerics::ElementOp combination, mlir::Value elements);
  mlir::Value foldLanes(numerics::ElementOp combination, mlir::Value folded);
  Chunk chunkOfHalves(Int32 first, int64_t index, int64_t count);
  mlir::Value foldHalves(numerics::ElementOp combination,
                         llvm::function_ref<mlir::Value(const Chunk &)> foldOf);
  mlir::Value foldLanesOf(numerics::ElementOp combination, llvm::ArrayRef<mlir::Value> folded);
  int64_t teamsOfCta() const { return std::max<int64_t>(kernel.numThreads() / threads, 1); }
  /// Words of shared memory for the segments of a row.
  int64_t wordsOfSegments() const;
  mlir::Value placesOfSegments();
  mlir::Value segmentsOfRow(mlir::Value segments);
  void beginCluster();
  void storeSegment(mlir::Value segment, mlir::Value segments, const Chunk &chunk);
  void storeSegments(numerics::ElementOp combination, llvm::ArrayRef<mlir::Value> folded,
                     mlir::Value segments);
  void waitForSegments();
  mlir::Value loadSegment(mlir::Value segments, Int32 number);
  mlir::Value meet(numerics::ElementOp combination, float initial, mlir::Value segments);
  mlir::Value meetLanes(numerics::ElementOp combination, mlir::Value segments);
  mlir::Value largestOfLanes(mlir::Value magnitude);
  mlir::Value meetLargest(mlir::Value segments, int64_t count);

  KernelBuilder &kernel;
  mlir::ImplicitLocOpBuilder &b;
  int64_t numColumns, ctas;
  bool halves;
  int64_t threads, perThread, perStep = 1;
  Prepare prepareStep;
  std::optional<Int32> laneOfTeam;
  /// A row of the thread.
  struct Place {
    Int32 padded, inMatrix;
    mlir::Value exists;
  };
  Place placeOf(Int32 padded);
  mlir::Value numRows;
  llvm::SmallVector<Place> places;
  std::optional<Int32> turn; ///< of the row in a loop over rows
  size_t selected = 0;
  int reductions = 0; ///< emitted; each has shared memory of its own
  int numBarriers = 0;
  std::function<void()> behindBarrier;
};

} // namespace fp4
