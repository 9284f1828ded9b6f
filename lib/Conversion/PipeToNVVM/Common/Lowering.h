//===- Lowering.h - State that this conversion's files share --------------===//
//
// convert-pipe-to-nvvm lowers one gpu.func at a time. The prologue (Roles.cpp) runs first and
// stores the base addresses of all other code in a KernelState; then the patterns of each op family
// rewrite the ops. Lowered types:
//
//   !pipe.global      !llvm.ptr<1>   the buffer
//   !pipe.tensor_map  !llvm.ptr      the grid constant, 128 bytes in parameter space, or 256 with a
//                                    residue, whose map is the second
//   !pipe.shared      !llvm.ptr<3>   first byte of the tile
//   !pipe.tmem        i32            tensor memory address (TMEM lane 0) of the first column
//   !pipe.fragment    !llvm.ptr      the thread's elements, an array that becomes registers
//   tensor of threads vector         the thread's elements (Registers.cpp)
//   !pipe.channel     !llvm.ptr<3>   barrier full[0]; full[0..depth), then empty[0..depth), and if
//                                    a warp of its own copies scales (ScaleWarps.cpp),
//                                    copied[0..depth) and one barrier for all copies
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/Dialect/Pipe/IR/Scheduled.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

/// Address spaces of the NVPTX backend.
enum : unsigned { kGlobalSpace = 1, kSharedSpace = 3, kTmemSpace = 6, kClusterSpace = 7 };

/// Returns true when `target` has no wgmma, so that warps multiply its fragments.
inline bool multipliesByWarps(const hw::TargetModel &target) {
  return !route::hasCore(target, route::Core::Wgmma);
}

/// Sizes of a reduction in a cluster, as its role and its kernel around it give them.
struct ReductionSizes {
  int64_t pieceBytes; ///< bytes of a piece of one CTA
  int64_t barriers;   ///< their place in shared memory
  int64_t adding;     ///< CTAs that add pieces
};

/// The cluster of a kernel, and the place of a CTA in it.
struct ClusterState {
  hw::ClusterShape shape;
  mlir::Value rank;                         ///< i32, of the CTA; null without clusters
  bool pairs = false;                       ///< tensor memory belongs to pairs of CTAs
  std::optional<hw::ClusterShape> fallback; ///< smaller clusters that run some of the CTAs
  mlir::Value inFallback; ///< i1, true when smaller clusters run this CTA; null without them
};

/// The ring of responses to requests for work: its place in shared memory, and their number.
struct WorkRing {
  int64_t place = 0, depth = 0;
};

/// Registers of a thread at the launch, where roles ask for others; those of its fragments; and of
/// scales of their sums that are loaded four scale blocks early.
struct RegisterCounts {
  int64_t launch = 0, fragments = 0, scales = 0;
};

/// Facts of a kernel on which the code of other operations depends.
struct KernelFacts {
  bool splitsWarps = false; ///< threads store segments behind guards of their own
  bool hasSizes = false;    ///< sizes or groups of a call, and roles that set their registers
  bool hidesPlaces = false; ///< like hasSizes, unless promotion needs places in both loops
  bool keepsLanes = false;  ///< threads add sums of tensor memory to those in their registers
};

/// The values that the prologue of one kernel defined; null if the kernel has no such thing.
struct KernelState {
  /// Scales that a thread has of a scale block: one of each of its two rows, and one of B.
  static constexpr int64_t kHeldScales = 3;

  mlir::Value threadIndex; ///< i32, thread of the CTA
  mlir::Value warpIndex;   ///< i32, threadIndex / 32
  mlir::Value sharedBase;  ///< !llvm.ptr<3>, dynamic shared memory
  mlir::Value tmemBase;    ///< i32, the tensor memory allocation
  int64_t tmemColumns = 0; ///< size of the allocation
  int32_t numThreads = 0;  ///< threads of the CTA, 0 where the kernel does not say
  const hw::TargetModel *target = nullptr;
  ClusterState cluster;
  WorkRing ring;
  RegisterCounts registers;
  KernelFacts facts;
  /// Channels of scope cluster and how they are shared, found from their loads before these are
  /// lowered.
  llvm::DenseMap<mlir::Operation *, pipe::ChannelSharing> sharing;
  llvm::DenseMap<mlir::Operation *, ReductionSizes> reductions;
  /// The role around each op that an engine executes, that uses a channel, or that takes work.
  /// Roles may be lowered before the ops in them.
  llvm::DenseMap<mlir::Operation *, pipe::RoleAttr> roles;
  int64_t allCopied = 0; ///< place of the barrier at which that warp waits in the end

  mlir::NVVM::CTAGroupKind ctaGroup() const {
    return cluster.pairs ? mlir::NVVM::CTAGroupKind::CTA_2 : mlir::NVVM::CTAGroupKind::CTA_1;
  }
};

/// Name of the external symbol for dynamic shared memory in every gpu.module.
inline constexpr llvm::StringLiteral kSharedSymbol = "fp4_dynamic_shared";

class PipeTypeConverter : public mlir::TypeConverter {
public:
  PipeTypeConverter();
};

/// A pattern that can ask for the kernel's state.
template <typename OpT> struct PipePattern : mlir::OpConversionPattern<OpT> {
  PipePattern(const mlir::TypeConverter &converter, mlir::MLIRContext *context,
              const KernelState &state)
      : mlir::OpConversionPattern<OpT>(converter, context), state(state) {}
  const KernelState &state;
};

void populateBoundaryPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateRolePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateChannelPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);
void populateLoadPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateResiduePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);
void populateMmaPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                         const KernelState &);
void populateFloatMmaPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateTransposePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateFragmentRowPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                 const KernelState &);
void populateFragmentPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateElementPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);
void populateDequantizedPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                 const KernelState &);
void populatePrepackedPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populatePrepackedBytePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                   const KernelState &);
void populateResidentBytePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                  const KernelState &);
void populatePrepackedFewPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                  const KernelState &);
void populatePromotionPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateLanePromotionPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                   const KernelState &);
void populateReadPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateWeightLanePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                const KernelState &);
void populateWarpMmaPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);
void populateWarpSharedPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                const KernelState &);
void populateGatherPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                            const KernelState &);
void populateQuantizePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateResultPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                            const KernelState &);
void populateStagedStorePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                 const KernelState &);
void populateClearRowsPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateCountPartialPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                  const KernelState &);
void populateWorkPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateReduceFragmentPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                    const KernelState &);
void populateReduceTmemPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                const KernelState &);
void populateEpiloguePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);

/// Gives values of other dialects the elements of one thread in place of a tile (Registers.cpp).
llvm::LogicalResult takeVectors(mlir::gpu::GPUFuncOp kernel);
void populateRegisterPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &);

/// Lets the lanes of a warp meet again behind the last store of a segment that pipe.gather_rows has
/// given, because aligned instructions follow. Lanes whose rows or columns do not exist store
/// nothing (GatherRows.cpp).
void meetBehindSegments(mlir::gpu::GPUFuncOp kernel);

/// Makes the code of roles in turn that of each of their warpgroups (Turns.cpp).
llvm::LogicalResult takeTurns(mlir::gpu::GPUFuncOp kernel, const KernelState &state);

struct MmaTurn;
/// The turn in which the warpgroup of a thread begins `op`, and MMAs that it leads (Turns.cpp).
MmaTurn turnOf(mlir::ImplicitLocOpBuilder &b, pipe::MmaOp op, const KernelState &state);

/// Gives roles that multiply 16-bit floats an address of shared memory of their own. ptxas keeps a
/// common one in registers of threads where another role is the code of one thread, and then moves
/// every address that follows from it to registers of the warp, three for each MMA. Before and
/// after patterns lower the code of roles.
llvm::SmallVector<mlir::Value> emitOwnBases(mlir::gpu::GPUFuncOp kernel, const KernelState &state);
void useOwnBases(llvm::ArrayRef<mlir::Value> bases, const KernelState &state);

/// Returns true when roles have numbers that come with a call, or with a table of groups.
bool hasSizes(mlir::gpu::GPUFuncOp kernel);

/// Arrives for the first stage of `channel`, behind the initialization of its barriers.
void arriveForFirstStage(mlir::OpBuilder &, pipe::ChannelOp channel, const KernelState &state);

/// Lowers `await`, whose channel counts MMAs: those issued up to now arrive at the next stage.
void countMmas(mlir::OpBuilder &, pipe::AwaitReleaseOp await, mlir::Value barriers,
               mlir::Value iteration, const KernelState &state);

/// Counts the registers of a thread for fragments, and for scales of their sums.
void countRegisters(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Returns true when MMAs arrive at the full barriers of `channel` for the next set of scales
/// (FoldAwaits.cpp of lib/Dialect/Pipe/Schedule).
bool countsMmas(pipe::ChannelOp channel);

/// Initializes the barriers of the ring of responses to requests for work; false where there is
/// none.
bool initializeWorkRing(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);
/// Initializes the barriers of a channel that say which scales are copied, and that all are.
void initializeCopied(mlir::OpBuilder &, pipe::ChannelOp channel, const KernelState &state);
/// Initializes the barriers of a reduction in a cluster.
void initializeJoin(mlir::OpBuilder &, mlir::Location, mlir::Operation *join,
                    const KernelState &state);
/// The loop over tiles that executes `join` in each turn; null where there is a loop in a loop.
mlir::scf::ForOp loopOfReductions(mlir::Operation *join);

/// Inserts the prologue and the teardown of `kernel` and returns its state.
KernelState emitPrologue(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target);
/// Clears the rows of tiles that loads through the residues of tensor maps leave out
/// (ResiduePatterns.cpp).
void clearBehindResidues(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);
/// The map of a load: the residue map if fewer rows exist than the box has.
mlir::Value mapOfLoad(mlir::OpBuilder &, pipe::LoadOp load, mlir::Value map, mlir::Value rows);
/// Prefetches the weights of the first stages into the L2 cache (FirstRows.cpp).
void prefetchFirstRows(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);

/// `value`, which all lanes of a warp have, in a form that ptxas knows to be uniform in a role of
/// whole warps.
mlir::Value ofWarp(mlir::OpBuilder &, mlir::Location, const KernelState &state, mlir::Value value);

//===--- Small builders ---------------------------------------------------===//

mlir::Value constantI32(mlir::OpBuilder &, mlir::Location, int64_t value);
mlir::Value constantI64(mlir::OpBuilder &, mlir::Location, int64_t value);
/// `base + bytes` for a pointer of any address space.
mlir::Value offsetPointer(mlir::OpBuilder &, mlir::Location, mlir::Value base, int64_t bytes);
/// `base + index * stride`, where `index` is an i32 that is not negative.
mlir::Value stridedPointer(mlir::OpBuilder &, mlir::Location, mlir::Value base, mlir::Value index,
                           int64_t stride);
/// The TMEM lane of this thread of the epilogue: thread index mod 128.
mlir::Value accumulatorLane(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// The 32-bit tensor memory address as the pointer that nvvm ops take.
mlir::Value tmemPointer(mlir::OpBuilder &, mlir::Location, mlir::Value address);

/// Stores `count` elements of the vector `value` from number `first` on at `pointer`, in one
/// access.
void storePiece(mlir::OpBuilder &, mlir::Location, mlir::Value value, int64_t first, int64_t count,
                mlir::Value pointer);

/// Emits `if (condition) body()`; ops that `b` makes next come behind it.
void emitIf(mlir::OpBuilder &, mlir::Location, mlir::Value condition,
            llvm::function_ref<void()> body);
/// `if (index < bound) body()`, or just the body when `bound` is null: the guard of a residue.
void emitGuarded(mlir::OpBuilder &, mlir::Location, int64_t index, mlir::Value bound,
                 llvm::function_ref<void()> body);

/// Runs `body`, which issues one instruction for `op`, in one thread of its role: the elected one
/// of a whole warp. A role that is not whole has elected it already.
void emitOnce(mlir::OpBuilder &, mlir::Location, const KernelState &state, mlir::Operation *op,
              llvm::function_ref<void()> body);

//===--- Channels -----------------------------------------------------------===//

/// An iteration of a channel: its barriers and the parity that they wait for.
struct ChannelStage {
  mlir::Value stage; ///< i32, iteration mod depth
  mlir::Value phase; ///< i32, (iteration / depth) mod 2; null if `other` is known
  mlir::Value other; ///< i32, 1 - phase; null if `phase` is known
  mlir::Value full;  ///< !llvm.ptr<3>
  mlir::Value empty; ///< !llvm.ptr<3>
  int64_t depth;     ///< depth of the channel

  /// !llvm.ptr<3>, where a warp of its own copies scales (ScaleWarps.cpp).
  mlir::Value copied(mlir::OpBuilder &, mlir::Location) const;
  /// The parity that a consumer waits for at `full` or `copied`, and a producer at `empty`.
  mlir::Value fullParity(mlir::OpBuilder &, mlir::Location) const;
  mlir::Value emptyParity(mlir::OpBuilder &, mlir::Location) const;
};

/// The stage of `offset` after `iteration`; `barriers` is the lowered channel.
ChannelStage channelStage(mlir::OpBuilder &, mlir::Location, const KernelState &,
                          pipe::ChannelOp channel, mlir::Value barriers, mlir::Value iteration,
                          int64_t offset = 0);

/// Waits until the phase of parity `parity` has completed; other CTAs may arrive at a barrier of a
/// `cluster`. Writes of these CTAs to shared memory are then seen; writes to global memory only on
/// sm_90a.
void emitBarrierWait(mlir::OpBuilder &, mlir::Location, const KernelState &, mlir::Value barrier,
                     mlir::Value parity, bool cluster);

/// Waits until the stage of `distance` iterations before is released; not if there was none.
void emitStageWait(mlir::OpBuilder &, mlir::Location, const KernelState &, pipe::ChannelOp channel,
                   mlir::Value barriers, mlir::Value iteration, int64_t distance);

/// Waits until the copies out of the stage of `iteration`, or of the one before where the channel
/// releases late, have read it, and arrives for that stage.
void releaseStored(mlir::OpBuilder &, mlir::Location, const KernelState &, pipe::ChannelOp channel,
                   mlir::Value barriers, mlir::Value iteration);

/// Orders generic accesses to shared memory before those of TMA and tensor cores that a barrier
/// orders after this thread.
void emitProxyFence(mlir::OpBuilder &, mlir::Location);

/// Returns true when the warp of `wait` follows one that copies scales out of the stages of
/// `channel`.
bool followsScaleWarp(mlir::Operation *wait, pipe::ChannelOp channel, const KernelState &state);
/// Returns true when `op` belongs to a role whose warp stays together.
bool isOfWholeRole(mlir::Operation *op, const KernelState &state);
/// Arrives, where `release` is in the warp that copies scales, for the copies out of stage `at`,
/// which are on their way.
void arriveCopied(mlir::OpBuilder &, mlir::Operation *release, pipe::ChannelOp channel,
                  const ChannelStage &at, const KernelState &state);
/// Waits for all copies of the warp of `region`, which does nothing else.
void awaitCopies(mlir::OpBuilder &, pipe::RoleRegionOp region, const KernelState &state);

/// The channel op that defines `channel`; fails on a channel that is a block argument.
mlir::FailureOr<pipe::ChannelOp> definingChannel(mlir::ConversionPatternRewriter &,
                                                 mlir::Operation *user, mlir::Value channel);

//===--- Clusters (Clusters.cpp) --------------------------------------------===//

/// An i1, true when this CTA leads its pair.
mlir::Value isLeader(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// The place of this CTA along `direction`, i32.
mlir::Value placeInCluster(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                           hw::ClusterDirection direction);
/// Masks of ranks, i16: the CTAs along `direction`, this pair, and the producers of `sharing` that
/// wait for this CTA.
mlir::Value multicastMask(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          hw::ClusterDirection direction);
mlir::Value pairMask(mlir::OpBuilder &, mlir::Location, const KernelState &state);
mlir::Value producersMask(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          const pipe::ChannelSharing &sharing);
/// The leader's `barrier`, as an operand of a copy.
mlir::Value leaderBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          mlir::Value barrier);
/// `pointer`, into the shared memory of this CTA, mapped to CTA `rank`.
mlir::Value inBlock(mlir::OpBuilder &, mlir::Location, mlir::Value pointer, mlir::Value rank);
/// Returns true when the target has fences of shared memory alone. A wait or an arrival of scope
/// cluster makes ptxas drop the L1 cache or wait for all of device memory, which such a fence
/// avoids.
bool hasRestrictedFences(const KernelState &);
/// Arrives from this thread at `barrier` of each CTA of `ranks`. Threads that wait there see what
/// this thread did in the shared memory of its own CTA before, and no more if there are restricted
/// fences. A restricted fence may stand before: then it `isFenced`, and later accesses are not
/// seen.
void arriveAtCtas(mlir::OpBuilder &, mlir::Location, const KernelState &, mlir::Value barrier,
                  mlir::ValueRange ranks, bool isFenced = false);
/// Arrives from this thread at `barrier` of the leader, or of all producers that wait for its CTA.
void arriveAtLeader(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                    mlir::Value barrier);
void arriveAtProducers(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                       const pipe::ChannelSharing &sharing, mlir::Value barrier,
                       bool isFenced = false);
/// The barrier behind the initializations of mbarriers, which all threads of the CTA, or of the
/// cluster, see from there on.
void emitFirstBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// A barrier of all threads of the CTA, or of the cluster if there is one.
void emitKernelBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state);

} // namespace fp4
