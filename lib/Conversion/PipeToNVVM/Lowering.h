//===- Lowering.h - What the files of this conversion share ---------------===//
//
// convert-pipe-to-nvvm lowers one gpu.func at a time. The prologue (Roles.cpp) runs first and
// stores the base addresses of all other code in a KernelState; then the patterns of each op family
// rewrite the ops. Lowered types:
//
//   !pipe.global      !llvm.ptr<1>   the buffer
//   !pipe.tensor_map  !llvm.ptr      the grid constant, 128 bytes in parameter space, or 256 with a
//                                    tail, whose map is the second
//   !pipe.shared      !llvm.ptr<3>   first byte of the tile
//   !pipe.tmem        i32            tensor memory address (lane 0) of the first column
//   !pipe.fragment    !llvm.ptr      the thread's elements, an array that becomes registers
//   !pipe.channel     !llvm.ptr<3>   barrier full[0]; full[0..depth), then empty[0..depth), and
//   where
//                                    a warp of its own copies scales (ScaleWarps.cpp),
//                                    copied[0..depth) and one barrier for all copies
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Cluster.h"
#include "fp4/ISA/TargetModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

namespace fp4 {

/// Address spaces of the NVPTX backend.
enum : unsigned { kGlobalSpace = 1, kSharedSpace = 3, kTmemSpace = 6, kClusterSpace = 7 };

/// What a join of a cluster says of itself while its role and its kernel are around it.
struct JoinSizes {
  int64_t pieceBytes; ///< of a piece of one block
  int64_t barriers;   ///< where they are in shared memory
  int64_t adding;     ///< blocks that add pieces
};

/// A stage of a channel that a loop carries, and its phase, or the other one.
struct CarriedStage {
  mlir::Value stage, phase; ///< i32
  bool inverted = false;
};

/// The values that the prologue of one kernel defined; null if the kernel has no such thing.
struct KernelState {
  mlir::Value threadIndex;  ///< i32, thread of the block
  mlir::Value warpIndex;    ///< i32, threadIndex / 32
  mlir::Value sharedBase;   ///< !llvm.ptr<3>, dynamic shared memory
  mlir::Value tmemBase;     ///< i32, the tensor memory allocation
  int64_t tmemColumns = 0;  ///< its size
  int32_t numThreads = 0;   ///< threads of the block, 0 where the kernel does not say
  int32_t launchRegisters = 0; ///< registers per thread at the launch, where roles ask for others
  const hw::TargetModel *target = nullptr;
  bool pairs = false;       ///< tensor memory belongs to pairs of blocks
  hw::ClusterShape cluster; ///< of the kernel
  mlir::Value clusterRank;  ///< i32, of the block in its cluster; null without clusters
  std::optional<hw::ClusterShape> fallback; ///< of smaller clusters that run some of the blocks
  mlir::Value inFallback;                   ///< i1, whether they run this one; null without them
  /// Channels of scope cluster. Their loads tell how they are shared, so it is found before these
  /// are lowered.
  llvm::DenseMap<mlir::Operation *, pipe::ChannelSharing> sharing;
  llvm::SmallPtrSet<mlir::Operation *, 4> unawaited;   ///< channels whose releases nobody awaits
  llvm::SmallPtrSet<mlir::Operation *, 4> fencedWaits; ///< see findFencedWaits
  llvm::SmallPtrSet<mlir::Operation *, 4> partlyReleased; ///< see findPartlyReleased
  llvm::SmallPtrSet<mlir::Operation *, 4> continuedProducts; ///< see findContinuedProducts
  llvm::SmallPtrSet<mlir::Operation *, 4> replacingProducts;  ///< see describePromotion
  /// Promotions of sums that one of these replaces, and the last of a tile.
  llvm::SmallPtrSet<mlir::Operation *, 4> awaitedPromotions;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> nextProducts; ///< which begin with their key
  llvm::SmallPtrSet<mlir::Operation *, 4> begunProducts;             ///< these
  /// Registers of a thread for fragments, and for scales of their sums that are held four blocks ahead.
  int64_t fragmentRegisters = 0, scaleRegisters = 0;
  llvm::SmallPtrSet<mlir::Operation *, 4> loopedProducts;    ///< see deferReleases
  llvm::SmallPtrSet<mlir::Operation *, 4> fencedReleases; ///< see findFencedReleases
  llvm::SmallPtrSet<mlir::Operation *, 4> fencingProducts; ///< the same: these have the fence
  llvm::SmallPtrSet<mlir::Operation *, 4> warpReleases;   ///< the same
  llvm::SmallPtrSet<mlir::Operation *, 4> alignedReleases;  ///< the same: each warp is complete
  llvm::DenseMap<mlir::Operation *, pipe::Engine> releases; ///< what completes each release
  int64_t workRing = 0, workDepth = 0; ///< place of the responses to requests for work; their number
  bool splitsWarps = false; ///< threads store segments behind guards of their own
  bool hasSizes = false;    ///< sizes or groups of a call, and roles that set their registers
  bool hidesPlaces = false; ///< the same; but promotion needs places in both loops
  bool keepsLanes = false;  ///< threads add sums of tensor memory to those in their registers
  llvm::DenseMap<mlir::Operation *, JoinSizes> joins;
  /// Around each op that an engine executes, that uses a channel, or that takes work. Roles may be
  /// lowered before the ops in them.
  llvm::DenseMap<mlir::Operation *, pipe::RoleAttr> roles;
  llvm::SmallDenseSet<pipe::RoleAttr> wholeRoles; ///< see findWholeRoles
  llvm::SmallPtrSet<mlir::Operation *, 4> warpEntries; ///< that whole warps load
  /// By the value of a counter and what is added to it; see carryStages.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, CarriedStage> carriedStages;
  llvm::DenseMap<mlir::Operation *, int64_t> scaleSets; ///< see unrollScaleSets
  llvm::SmallPtrSet<mlir::Operation *, 4> countedProducts; ///< channels; see foldAwaits
  /// Channels out of whose stages a warp of its own copies scales; see splitScaleWarps.
  llvm::SmallPtrSet<mlir::Operation *, 4> copiedAhead;
  int64_t allCopied = 0; ///< where the barrier is at which that warp waits in the end

  mlir::NVVM::CTAGroupKind ctaGroup() const {
    return pairs ? mlir::NVVM::CTAGroupKind::CTA_2 : mlir::NVVM::CTAGroupKind::CTA_1;
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
void populateTailPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateMmaPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                         const KernelState &);
void populateFragmentPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateElementPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                             const KernelState &);
void populatePrepackedPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populatePrepackedBytePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                   const KernelState &);
void populateHeldBytePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populatePrepackedFewPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                   const KernelState &);
void populatePromotionPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateQuantizePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);
void populateResultPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                            const KernelState &);
void populateStagedStorePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                 const KernelState &);
void populateClearRowsPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateJoinPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateWorkPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                          const KernelState &);
void populateJoinFragmentPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                                  const KernelState &);
void populateJoinLanesPatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                               const KernelState &);
void populateEpiloguePatterns(const mlir::TypeConverter &, mlir::RewritePatternSet &,
                              const KernelState &);

/// Gives each warp of a role that multiplies and copies scales its own code (ScaleWarps.cpp).
/// Whatever looks for roles comes later.
void splitScaleWarps(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Makes the code of roles in turn that of each of their warpgroups (Turns.cpp).
llvm::LogicalResult takeTurns(mlir::gpu::GPUFuncOp kernel, const KernelState &state);

/// Whether roles have numbers that come with a call, or with a table of groups.
bool hasSizes(mlir::gpu::GPUFuncOp kernel);

/// Lets each role compute what follows from these and from the place of its block, where all have
/// the registers (RoleScalars.cpp).
void computeInRoles(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target);

/// Collects the roles without threads that run with all lanes of their warp and elect one for each
/// instruction that must be issued once (Roles.cpp).
void findWholeRoles(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Carries the stages of channels through loops of whole roles (CarriedStages.cpp).
void carryStages(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Keeps LLVM from computing what follows from the stages of a ring in front of a loop that uses the
/// same ones in every iteration (KnownStages.cpp).
void hideKnownStages(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Unrolls loops over k tiles whose scales have two sets, and finds the set of each copy that is
/// known (CarriedStages.cpp). Whatever looks for channels and products comes later.
void unrollScaleSets(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Collects the channels at whose full barriers products arrive for the next set of scales
/// (FoldedAwaits.cpp), whatever the roles of these products are then.
void foldAwaits(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Behind the initialization of the barriers of `channel`: the arrival of its first stage.
void arriveForFirstStage(mlir::OpBuilder &, pipe::ChannelOp channel, const KernelState &state);

/// Lowers `await`, whose channel counts products: those issued up to now arrive at the next stage.
void countProducts(mlir::OpBuilder &, pipe::AwaitReleaseOp await, mlir::Value barriers,
                   mlir::Value iteration, const KernelState &state);

/// The stage and phase of the iteration after `at`.
CarriedStage nextStage(mlir::OpBuilder &, mlir::Location, const CarriedStage &at, int64_t depth);

/// Collects the waits that a tcgen05.fence::after_thread_sync follows; unawaited is set.
void findFencedWaits(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Collects the releases of stages of which a part was released before, which arrived for both.
void findPartlyReleased(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Collects the releases of tiles that nobody has read but wgmma, which needs no fence, and products
/// that fence their own reads; and those of tiles that wgmma alone has read, for which one thread of
/// each warp arrives.
void findFencedReleases(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Collects the products that another product of the same B follows, which waits for both.
void findContinuedProducts(mlir::gpu::GPUFuncOp kernel, KernelState &state);
/// The tensor core goes on between the iterations of a loop over the stages of a channel that is as deep
/// as three: an iteration releases the stage of the one before, whose products its own have waited for,
/// and the last stage is released behind the loop. Whatever looks for releases comes later.
void deferReleases(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Replaces loops over the blocks of k whose scales are in a tile by their iterations, and adds the
/// last sums of these later (PromotionLoops.cpp). Whatever looks for products and releases comes
/// later.
void unrollPromotion(mlir::gpu::GPUFuncOp kernel);

/// Finds which products of tiles in shared memory give the sums of another part in the place of those
/// of the part before, which of them can begin with the one before because their tiles are there, and
/// what fragments and their scales take.
void describePromotion(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Initializes the barriers of the ring of responses to requests for work; false where there is none.
bool initializeWorkRing(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);
/// Initializes the barriers of a channel that say which scales are copied, and that all are.
void initializeCopied(mlir::OpBuilder &, pipe::ChannelOp channel, const KernelState &state);
/// Initializes the barriers of a join of a cluster.
void initializeJoin(mlir::OpBuilder &, mlir::Location, mlir::Operation *join,
                    const KernelState &state);
/// The loop over tiles in each turn of which `join` is executed; null where there is a loop in a loop.
mlir::scf::ForOp loopOfJoins(mlir::Operation *join);

/// Inserts the prologue and the teardown of `kernel` and returns its state.
KernelState emitPrologue(mlir::gpu::GPUFuncOp kernel, const hw::TargetModel &target);
/// Clears the rows of tiles that loads through the tails of tensor maps leave out (Tails.cpp).
void clearBehindTails(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);
/// The map of a load: its tail where fewer rows exist than the box has.
mlir::Value mapOfLoad(mlir::OpBuilder &, pipe::LoadOp load, mlir::Value map, mlir::Value rows);
/// Asks the L2 cache for the weights of the first stages (FirstRows.cpp).
void prefetchFirstRows(mlir::OpBuilder &, mlir::gpu::GPUFuncOp kernel, const KernelState &state);

/// `value`, which all lanes of a warp have, as ptxas can tell where a role is one of whole warps.
mlir::Value ofWarp(mlir::OpBuilder &, mlir::Location, const KernelState &state, mlir::Value value);

//===--- Small builders ---------------------------------------------------===//

mlir::Value constantI32(mlir::OpBuilder &, mlir::Location, int64_t value);
mlir::Value constantI64(mlir::OpBuilder &, mlir::Location, int64_t value);
/// `base + bytes` for a pointer of any address space.
mlir::Value offsetPointer(mlir::OpBuilder &, mlir::Location, mlir::Value base, int64_t bytes);
/// `base + index * stride`, where `index` is an i32 that is not negative.
mlir::Value stridedPointer(mlir::OpBuilder &, mlir::Location, mlir::Value base, mlir::Value index,
                           int64_t stride);
/// The accumulator lane of this thread of the epilogue: thread index mod 128.
mlir::Value accumulatorLane(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// The 32-bit tensor memory address as the pointer that nvvm ops take.
mlir::Value tmemPointer(mlir::OpBuilder &, mlir::Location, mlir::Value address);

/// Stores `count` elements of the vector `value` from number `first` on at `pointer`, in one access.
void storePiece(mlir::OpBuilder &, mlir::Location, mlir::Value value, int64_t first, int64_t count,
                mlir::Value pointer);

/// `if (condition) body()`; what `b` makes next is behind it.
void emitIf(mlir::OpBuilder &, mlir::Location, mlir::Value condition,
            llvm::function_ref<void()> body);
/// `if (index < bound) body()`, or just the body when `bound` is null: the guard of a tail.
void emitGuarded(mlir::OpBuilder &, mlir::Location, int64_t index, mlir::Value bound,
                 llvm::function_ref<void()> body);

/// Runs `body`, which issues one instruction for `op`, in one thread of its role: the elected one
/// of a whole warp. A role that is not whole has elected it already.
void emitOnce(mlir::OpBuilder &, mlir::Location, const KernelState &state, mlir::Operation *op,
              llvm::function_ref<void()> body);

//===--- Channels -----------------------------------------------------------===//

/// One iteration of a channel: where its barriers are and which parity they wait for.
struct ChannelStage {
  mlir::Value stage; ///< i32, iteration mod depth
  mlir::Value phase; ///< i32, (iteration / depth) mod 2; null if `other` is known
  mlir::Value other; ///< i32, 1 - phase; null if `phase` is known
  mlir::Value full;  ///< !llvm.ptr<3>
  mlir::Value empty; ///< !llvm.ptr<3>
  int64_t depth;     ///< of the channel

  /// !llvm.ptr<3>: there is one where a warp of its own copies scales (ScaleWarps.cpp).
  mlir::Value copied(mlir::OpBuilder &, mlir::Location) const;
  /// The parity that a consumer waits for at `full` or `copied`, and a producer at `empty`.
  mlir::Value fullParity(mlir::OpBuilder &, mlir::Location) const;
  mlir::Value emptyParity(mlir::OpBuilder &, mlir::Location) const;
};

/// Adds to state.unawaited the channels whose stages are empty when what the producer has waited
/// for before is; fencedReleases is set.
void findImpliedReleases(mlir::gpu::GPUFuncOp kernel, KernelState &state);

/// Every stage of `channel`, pipelined, is filled once: each acquire names a constant iteration
/// below the depth.
bool isFilledOnce(pipe::ChannelOp channel);

/// The stage of `offset` after `iteration`; `barriers` is the lowered channel.
ChannelStage channelStage(mlir::OpBuilder &, mlir::Location, const KernelState &,
                          pipe::ChannelOp channel, mlir::Value barriers, mlir::Value iteration,
                          int64_t offset = 0);

/// Waits until the phase of parity `parity` has completed; other blocks may arrive at a barrier of
/// a `cluster`. What they did to shared memory is then seen; to global memory only on sm_90a.
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

/// Whether `wait` is of a warp behind one that copies scales out of the stages of `channel`.
bool followsScaleWarp(mlir::Operation *wait, pipe::ChannelOp channel, const KernelState &state);
/// The warp that copies scales, where `release` is of it, says that those of the stage `at` are on
/// their way.
void arriveCopied(mlir::OpBuilder &, mlir::Operation *release, pipe::ChannelOp channel,
                  const ChannelStage &at, const KernelState &state);
/// Waits for all copies of the warp of `region`, which does nothing else.
void awaitCopies(mlir::OpBuilder &, pipe::RoleRegionOp region, const KernelState &state);

/// The engine that completes the consumer's end of `channel` at which `op` stands.
pipe::Engine consumerEngine(pipe::ChannelOp channel, mlir::Operation *op);

/// The channel op that defines `channel`; fails on a channel that is a block argument.
mlir::FailureOr<pipe::ChannelOp> definingChannel(mlir::ConversionPatternRewriter &,
                                                 mlir::Operation *user, mlir::Value channel);

//===--- Clusters (Clusters.cpp) --------------------------------------------===//

/// i1: this block leads its pair.
mlir::Value isLeader(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// i32: the place of this block along `direction`.
mlir::Value placeInCluster(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                           hw::ClusterDirection direction);
/// i16 masks of ranks: the blocks along `direction`, this pair, and the producers of `sharing` that
/// wait for this block.
mlir::Value multicastMask(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          hw::ClusterDirection direction);
mlir::Value pairMask(mlir::OpBuilder &, mlir::Location, const KernelState &state);
mlir::Value producersMask(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          const pipe::ChannelSharing &sharing);
/// The leader's `barrier`, as an operand of a copy.
mlir::Value leaderBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                          mlir::Value barrier);
/// `pointer`, into the shared memory of this block, of block `rank`.
mlir::Value inBlock(mlir::OpBuilder &, mlir::Location, mlir::Value pointer, mlir::Value rank);
/// The target has fences of shared memory alone. A wait or an arrival of scope cluster makes ptxas
/// drop the L1 cache or wait for all of device memory; with such a fence it need not.
bool hasRestrictedFences(const KernelState &);
/// This thread arrives at `barrier` of each block of `ranks`. What it did in the shared memory of
/// its own block before is seen by who waits there, and no more where there are restricted fences.
/// One of them may stand before: then it `isFenced`, and what the thread did since is not seen.
void arriveAtBlocks(mlir::OpBuilder &, mlir::Location, const KernelState &, mlir::Value barrier,
                    mlir::ValueRange ranks, bool isFenced = false);
/// This thread arrives at `barrier` of the leader, or of all producers that wait for its block.
void arriveAtLeader(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                    mlir::Value barrier);
void arriveAtProducers(mlir::OpBuilder &, mlir::Location, const KernelState &state,
                       const pipe::ChannelSharing &sharing, mlir::Value barrier,
                       bool isFenced = false);
/// The barrier behind the initializations of mbarriers, which all threads of the block, or of the cluster,
/// see from there on.
void emitFirstBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state);
/// A barrier of all threads of the block, or of the cluster if there is one.
void emitKernelBarrier(mlir::OpBuilder &, mlir::Location, const KernelState &state);

} // namespace fp4
