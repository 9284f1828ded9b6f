//===- InlinePtx.h - The PTX that no operation of MLIR can express --------===//
//
// All inline assembly of the compiler is made here, so that the code generator's blind spots are
// listed in one file. The emission marks it convergent (lib/Target/PtxEmission.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fp4 {

/// tcgen05.wait::ld through which `registers` (i32 each) flow, so that nothing reads what a
/// tcgen05.ld loaded before the wait. Returns the registers to use from here on.
llvm::SmallVector<mlir::Value> waitForLoaded(mlir::OpBuilder &, mlir::Location,
                                             mlir::ValueRange registers);

/// `registers` (i32 each) as values that are computed here. LLVM moves the computation of a value
/// into the branch that uses it, and then keeps what it is computed from, which may take more
/// registers.
llvm::SmallVector<mlir::Value> computeHere(mlir::OpBuilder &, mlir::Location,
                                           mlir::ValueRange registers);

/// The address of `symbol`, of which ptxas knows here that it is the same in all lanes.
mlir::Value addressHere(mlir::OpBuilder &, mlir::Location, mlir::Type type, llvm::StringRef symbol);

/// Returns `numbers` (f32 each), which are computed before everything that follows.
llvm::SmallVector<mlir::Value> finishHere(mlir::OpBuilder &, mlir::Location, mlir::ValueRange numbers);

/// Selects, for each bit, `ones` where `mask` has it, else `zeros` (i32), in one lop3. Written as
/// and, and, or, the selection would be two instructions where LLVM sees that not all bits of
/// `zeros` matter, and leaves masks that are not each other's complement.
mlir::Value lop3Select(mlir::ImplicitLocOpBuilder &b, mlir::Value mask, mlir::Value ones,
                       mlir::Value zeros);

/// Lanes of a vector (f32) as i32, toward zero: saturated, and 0 of NaN, where LLVM may do what it
/// likes.
mlir::Value toIntegers(mlir::ImplicitLocOpBuilder &b, mlir::Value numbers, bool isSigned);
/// Lanes of a vector (i32) as f32, to nearest even. MLIR would make one rounding of this one and of
/// that to 16 bits, which gives other numbers.
mlir::Value toNumbers(mlir::ImplicitLocOpBuilder &b, mlir::Value integers, bool isSigned);

enum class Shift { Left, RightSigned, RightUnsigned };
/// Lanes of a vector (i32), shifted by those of another. Shifts by 32 and more leave nothing but
/// signs, where LLVM may do what it likes.
mlir::Value shiftLanes(mlir::ImplicitLocOpBuilder &b, Shift kind, mlir::Value values,
                       mlir::Value amounts);

/// 2 to the power of a number (f32), to 2 ulp; subnormal results are 0.
mlir::Value approximateExp2(mlir::ImplicitLocOpBuilder &b, mlir::Value number);
/// The logarithm of a number (f32) to base 2, to 2^-22, or that part of it outside of (1/2, 2);
/// minus infinity of 0.
mlir::Value approximateLog2(mlir::ImplicitLocOpBuilder &b, mlir::Value number);

/// Two f32 as e4m3 (i16), `low` in the low byte; to nearest even, saturating. The operation of MLIR
/// may have side effects, as it says, so that no role of a kernel could execute it.
mlir::Value packE4M3(mlir::ImplicitLocOpBuilder &b, mlir::Value low, mlir::Value high);
/// Four f32 as e4m3 (i32), the first in the lowest byte.
mlir::Value packE4M3(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange four);

/// Eight E2M1 codes (i32) as four pairs of f16 (vector<2xf16>), for targets that convert E2M1. With
/// one operation for each byte, ptxas shifts and masks the word before every conversion; of a word
/// that is taken apart into bytes, the conversion reads the byte.
llvm::SmallVector<mlir::Value> widenE2M1(mlir::ImplicitLocOpBuilder &b, mlir::Value codes);
/// Eight E2M1 codes times `low` (the first four) and `high` (the others), both f16, as four pairs
/// of bf16 (vector<2xbf16>), for targets whose products of f16 may give f32.
llvm::SmallVector<mlir::Value> scaleE2M1(mlir::ImplicitLocOpBuilder &b, mlir::Value codes,
                                         mlir::Value low, mlir::Value high);

/// Counts in the word of global memory at `pointer`, which is 0 at first and again after `most`
/// (i32), and returns what it was. The access releases earlier stores and acquires those that other
/// threads have released there, on the whole GPU: the code generator drops the order of an
/// atomicrmw (LLVM 22).
mlir::Value countAndSynchronize(mlir::OpBuilder &, mlir::Location, mlir::Value pointer,
                                mlir::Value most);

/// Decodes a response of cluster launch control (i64, low and high): whether there is a CTA to take
/// over (i32, 0 or 1), and its index along x (i32), which is 0 without one. LLVM takes the query of
/// the index for one that may be executed at any time; in PTX the index is undefined without a CTA.
std::pair<mlir::Value, mlir::Value> decodeResponse(mlir::OpBuilder &, mlir::Location,
                                                   mlir::Value low, mlir::Value high);

/// Four words from global memory that nobody reads again; LLVM has no way to say so to NVPTX.
llvm::SmallVector<mlir::Value> loadOnce(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer);

/// Lines that leave the L2 cache before others, or behind them.
enum class Eviction { First, Last };
/// A cache policy (i64) by which what is loaded leaves the L2 cache so where `isLarge` (i1); else
/// it is like what is stored.
mlir::Value evictionPolicy(mlir::ImplicitLocOpBuilder &b, Eviction eviction, mlir::Value isLarge);
/// Four words from global memory that nobody writes, under a cache policy.
llvm::SmallVector<mlir::Value> loadUnder(mlir::ImplicitLocOpBuilder &b, mlir::Value policy,
                                         mlir::Value pointer);

/// Asks the L2 cache for the sector at `pointer`, in global memory, where `condition` (i1) holds.
void prefetchWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, mlir::Value pointer);

/// Two or four words to global memory that nobody reads soon.
void storeOnce(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange words, mlir::Value pointer);

/// Four words (f32 each) to shared memory of a CTA of the cluster (ptr<7>), some time later. Then
/// 16 bytes more have arrived at `barrier`, which is in the same CTA.
void storeAsync(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange words, mlir::Value pointer,
                mlir::Value barrier);

/// The other side of an 8 x 8 matrix of 16-bit elements, of which a warp has two neighbours of a
/// row in the word (i32) of each thread: thread l gets elements 2 (l % 4) and one more of column l
/// / 4.
mlir::Value transposeMatrix(mlir::ImplicitLocOpBuilder &b, mlir::Value word);

/// The f32 at `pointer`, to global memory that nobody writes, or `otherwise` without the condition
/// (i1). ptxas keeps both in one register, so that a loop which carries it does not wait for the
/// load.
mlir::Value loadWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, mlir::Value pointer,
                     mlir::Value otherwise);

/// The word (i32 or i64) at `pointer`, of memory as in loadWhen, or 0. Words of one row differ in
/// what an instruction adds to their pointer; kept inside the row, each would have a pointer of its
/// own.
mlir::Value loadWordWhen(mlir::ImplicitLocOpBuilder &b, mlir::Value condition, mlir::Value pointer,
                         mlir::IntegerType word);

/// The word at `pointer`, which exists, loaded here: LLVM would move a load in front of a wait
/// behind it, to its use.
mlir::Value loadWordHere(mlir::ImplicitLocOpBuilder &b, mlir::Value pointer,
                         mlir::IntegerType word);

/// A part of an MMA of a warpgroup with A in registers: instructions of 32 bytes of K each.
struct WarpgroupMma {
  mlir::Type element;               ///< f16, bf16 or f8E4M3FN
  int64_t columns;                  ///< columns of an instruction
  llvm::SmallVector<mlir::Value> a; ///< i32, four for each instruction
  mlir::Value b;                    ///< i64, descriptor of the tile
  llvm::SmallVector<int64_t> bOffsets; ///< offsets of each instruction, in units of the descriptor
  mlir::Value accumulate;           ///< i1, for the first instruction
  int64_t pending = 0;              ///< leave so many parts to run, this one and those before it
  /// `b` is the same in all lanes and ptxas sees that: offsets are added to its lower word, which
  /// takes one instruction.
  bool isUniform = false;
};
/// One k tile of floats as they are: A in registers, or in shared memory.
struct FloatMma {
  mlir::Type element;               ///< f16, bf16 or f8E4M3FN
  int64_t columns;                  ///< columns of the accumulator
  llvm::SmallVector<mlir::Value> a; ///< i32, four for each instruction; or one i64, the descriptor
  mlir::Value b;                    ///< i64, descriptor of the tile
  /// Offsets of each instruction, in units of the descriptors.
  llvm::SmallVector<int64_t> aOffsets, bOffsets;
  bool transposed = false; ///< B has a row for each element of K
  mlir::Value accumulate;  ///< i1, for the first instruction; null: sums are overwritten
  llvm::SmallVector<mlir::Value> sums; ///< f32, before the MMA where it accumulates
  llvm::SmallVector<mlir::Value> factors; ///< f32, of both rows of the sums; none: 1
  mlir::Value barrier, parity; ///< i64 and i32, of the phase in which B is there; null: it is there
};
/// The turn of a warpgroup among several that begin their MMAs one after the other.
struct MmaTurn {
  static constexpr int64_t threads = 256; ///< of two neighbours, which meet at a barrier
  mlir::Value own, next; ///< i32, barriers of this warpgroup and of the next one; null: no turns
};
/// The sums of a thread, f32 each, of `products` that begin one after the other: of the first one
/// complete, and of all others what awaitSums returns. The products
/// begin in the turn of the warpgroup, which is over when they run.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> multiplyFloats(mlir::ImplicitLocOpBuilder &b,
                                                                 llvm::ArrayRef<FloatMma> products,
                                                                 const MmaTurn &turn);

/// One k tile of a GEMM of e4m3 with both operands in shared memory.
struct SharedMma {
  int64_t columns;                                       ///< columns of B
  mlir::Value a, b;                                      ///< i64, descriptors of the first instruction
  llvm::SmallVector<int64_t> offsets;                    ///< one per instruction, in their units
  /// f32 each, or none: sums whose place this MMA takes. The MMA begins when nobody reads them any
  /// more, and has their registers. Without them ptxas begins the MMA earlier, with registers of
  /// its own.
  llvm::SmallVector<mlir::Value> before;
  /// While it runs, what was read before from shared memory is ordered before copies into it.
  bool fencesReads = false;
};
/// The sums of a thread, f32 each, when they are complete.
llvm::SmallVector<mlir::Value> multiplyShared(mlir::ImplicitLocOpBuilder &b,
                                              const SharedMma &product);
/// The sums of `first`, when they are complete, and those of `second`, which has as many columns
/// and runs on: they are what awaitSums returns.
std::array<llvm::SmallVector<mlir::Value>, 2>
multiplyTwo(mlir::ImplicitLocOpBuilder &b, const SharedMma &first, const SharedMma &second);

/// `count` arrivals at the barrier at `pointer` where `condition`, an i1, holds: without a branch.
void arriveWhen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition, mlir::Value pointer,
                mlir::Value count);

/// One k tile of a GEMM of e4m3 with A in registers.
struct ByteMma {
  int64_t columns;                     ///< columns of B
  llvm::SmallVector<mlir::Value> a;    ///< i32, four for each instruction
  mlir::Value b;                       ///< i64, descriptor of the tile, the same in all lanes
  llvm::SmallVector<int64_t> offsets;  ///< offsets of each instruction, in units of the descriptor
};
/// The sums of a thread, f32 each, which are complete behind awaitSums. The MMA begins without
/// sums.
llvm::SmallVector<mlir::Value> startBytes(mlir::ImplicitLocOpBuilder &b, const ByteMma &product);
/// `sums` when they are complete, and with them all MMAs that the warpgroup has issued.
llvm::SmallVector<mlir::Value> awaitSums(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);
/// awaitSums behind a branch: ptxas moves a wait in front of all that its block of code computes, so
/// that threads would compute while the tensor core has nothing to do.
llvm::SmallVector<mlir::Value> awaitSumsHere(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums);

/// `accumulator`, f32 each, plus the MMA, which is complete behind awaitSums.
llvm::SmallVector<mlir::Value> multiplyWarpgroup(mlir::ImplicitLocOpBuilder &b,
                                                 mlir::ValueRange accumulator,
                                                 const WarpgroupMma &product);

} // namespace fp4
