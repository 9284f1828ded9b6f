//===- KernelBuilder.h - One streaming kernel and its launch --------------===//
//
// A lowering makes a KernelBuilder in front of the operation it replaces, names the kernel's
// operands and the amount of work, and then writes the body of one work item:
//
//   KernelBuilder kernel(op, "quantize", context);
//   Value rows = kernel.hostRows(op.getInput());             // on the host: index
//   Value x = kernel.input(op.getInput());                   // in the kernel: !llvm.ptr<1>
//   Value data = kernel.output(op.getData(), rows);          // allocated before the launch
//   Value blocks = kernel.scalar(hostBlocks);                // in the kernel: i32
//   kernel.forEachItem(blocks, {}, [&](Value block, ValueRange) { ... });
//   kernel.launchItems(hostBlocks);
//
// Host code goes through host(), device code through body().
//
//===----------------------------------------------------------------------===//
#pragma once

#include "InlinePtx.h"
#include "Lowering.h"
#include "SmallBuilders.h"

#include "fp4/Dialect/Pipe/IR/Pipe.h"
#include "fp4/Plans/KernelPlans.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"

namespace fp4 {

/// The places of the rows of an operand: one after the other, or where the caller placed them
/// (StridedArguments.h).
struct InputRows {
  mlir::Value base = {};        ///< !llvm.ptr<1>
  int64_t bytes = 0;            ///< bytes of a row; 0 where its columns are dynamic
  mlir::Value pitch = {};       ///< i64, bytes from a row to the next; null: `bytes`
  int64_t rowsOfMatrix = 0;     ///< rows of a matrix of a batch
  mlir::Value matrixPitch = {}; ///< i64, bytes from a matrix to the next; null where there is one

  mlir::Value table =
      {}; ///< pointer to the row numbers (i64) of a gather; null: the row is its own

  int64_t unit = 16; ///< bytes at multiples of which rows with a pitch begin

  /// Bytes that one access may take.
  int64_t widestAccess(int64_t widest) const { return pitch ? std::min(widest, unit) : widest; }
  /// The address of a row, an unsigned i32.
  mlir::Value at(mlir::ImplicitLocOpBuilder &b, mlir::Value row) const;
};

/// The attribute of a launch whose plan asks for PDL; empty: none.
mlir::NamedAttrList pdlOf(const KernelPlan &plan, mlir::MLIRContext *context);

class KernelBuilder {
public:
  /// A kernel for `op`, named after the function, `kind` and a number. The plan in `context` says
  /// how many threads and CTAs per SM it has.
  KernelBuilder(mlir::Operation *op, llvm::StringRef kind, LoweringContext &context);

  /// The launch neither leads nor follows another one (fp4-pdl-launches), but for what the plan
  /// asks for: the kernel is one that `op` needs beside its own.
  void standAlone() { overlap = pdlOf(plan, op->getContext()); }

  /// Threads of a CTA.
  int64_t numThreads() const { return *plan.threads; }
  /// CTAs that have a row together.
  int64_t ctasOfRow() const { return std::max<int64_t>(plan.cluster[1], 1); }
  /// Rows of a thread in kernels by rows.
  int64_t rowsOfThread() const { return plan.stream.itemsPerThread.value_or(1); }
  /// CTAs that a reduction launches for each SM at most.
  int64_t ctasPerSm() const { return *plan.stream.grid; }
  /// CTAs of a kernel by rows take several, one after the other (RowStrip.h).
  bool hasStrips() const { return plan.strip.has_value(); }
  int64_t rowsOfStrip() const { return *plan.strip; }
  /// The next row of a strip waits in shared memory, else in registers.
  bool hasStages() const { return plan.pipeline.stages.has_value(); }
  /// Rows at the end that have a CTA each.
  int64_t singleRows() const { return plan.stream.singleRows.value_or(0); }
  /// Rows of the strips that all SMs have at a time, where the plan says how many CTAs an SM has,
  /// and these are so few that they end together.
  std::optional<int64_t> rowsOfWave() const {
    constexpr int64_t few = 4;
    if (plan.ctasPerSm.value_or(INT64_MAX) > few)
      return std::nullopt;
    return rowsOfStrip() * *plan.ctasPerSm * int64_t(target.sms);
  }
  /// The cache policy (i64) of loads that nobody repeats, in a kernel of `units` (i32) units with
  /// so many bytes of loads each; null where they need none. An H200 writes lines back in a better
  /// order where loads outlast stores: 127 us in place of 132 for RMSNorm of 16384 x 8192 bf16, and
  /// a copy takes 128. Fewer bytes than the L2 cache has leave room there for the next kernel.
  /// Loads of a kernel that stores numbers alone leave first: 70.9 us in place of 73.5 for a cross
  /// entropy of 16384 x 8192 bf16, and 66.2 in place of 67.2 behind reads.
  mlir::Value policyOfLoads(mlir::Value units, int64_t bytes, Eviction eviction = Eviction::Last);
  /// Lanes, or threads, that have a scale block together; none where the plan leaves it open.
  std::optional<int64_t> lanesOfBlock() const { return plan.stream.lanesPerBlock; }
  /// Launches take turns: the kernel begins long before it may read, and asks the L2 cache for what
  /// it will (prefetch).
  bool takesTurns() const {
    return plan.family != KernelFamily::TileGemm &&
           launchDependentsOf(plan).value_or(LaunchDependents::AtEnd) != LaunchDependents::AtEnd;
  }
  /// Asks the L2 cache for `bytes` at `pointer`, where launches take turns and `condition` (i1;
  /// null: always) holds. One thread should ask for a place: an H200 takes 4.5 us for RMSNorm of 64
  /// x 7168 to NVFP4, and not 2.4, where all threads ask for the amax. Prefetches stand in front of
  /// the first access of the kernel, and so of the wait for the kernel before it
  /// (fp4-pdl-launches), which may write that memory still.
  void prefetch(mlir::Value pointer, int64_t bytes, mlir::Value condition);
  /// Work items of the threads of a CTA.
  int64_t itemsPerCta() const { return *plan.threads * *plan.stream.itemsPerThread; }

  mlir::ImplicitLocOpBuilder &host() { return hostBuilder; }
  mlir::ImplicitLocOpBuilder &body() { return bodyBuilder; }

  /// The device buffer of a tensor, before the launch.
  mlir::Value buffer(mlir::Value tensor);
  /// Logical rows of a row-major matrix as an index, before the launch.
  mlir::Value hostRows(mlir::Value tensor);
  /// Columns of a matrix, an index; null where they are static.
  mlir::Value hostColumns(mlir::Value tensor);
  /// Makes the host program fail where `columns`, those of operand `name`, are no positive multiple
  /// of `multiple`.
  void expectColumns(llvm::StringRef name, mlir::Value columns, int64_t multiple);
  /// Makes the host program fail where `found`, which is `what` of operand `name`, is not
  /// `expected`.
  void expectSize(llvm::StringRef what, llvm::StringRef name, mlir::Value found,
                  mlir::Value expected, llvm::StringRef note);
  /// Checks the number of amaxes, one for each of `lines` rows, or columns. Null lines are static.
  void expectAmaxes(llvm::StringRef name, mlir::Value amaxes, mlir::Value lines);
  /// Makes the host program fail where `rows`, those of `tensor`, are no multiple of `multiple`;
  /// static rows the verifiers have checked.
  void expectMultiple(mlir::Value tensor, mlir::Value rows, int64_t multiple);
  /// Allocates the buffer of `result`, which has `rows` logical rows and `columns` columns (null
  /// where static) unless the kernel of another case has, and replaces every use of `result` by it.
  /// Returns the buffer.
  mlir::Value allocate(mlir::Value result, mlir::Value rows, mlir::Value columns = {});

  /// Adds a kernel operand for a buffer that holds a tensor of `type`. Returns the pointer.
  mlir::Value pointer(mlir::Value buffer, mlir::RankedTensorType type);
  /// Adds a kernel operand for the buffer of an operand tensor. Returns the pointer.
  mlir::Value input(mlir::Value tensor);
  /// Adds a kernel operand for the buffer, and one for each stride if the operand is a strided
  /// argument.
  InputRows inputRows(mlir::Value tensor);
  /// Adds a kernel operand for the buffer of a result that it allocates. Returns the pointer.
  mlir::Value output(mlir::Value result, mlir::Value rows, mlir::Value columns = {});
  /// Adds kernel operands for the rows of a result of static shape whose caller places them
  /// (stridedMatrixOf); nothing where no caller does.
  std::optional<InputRows> stridedOutput(mlir::Value result);
  /// Adds a scalar kernel operand; an index becomes an i32. Returns it in the kernel.
  mlir::Value scalar(mlir::Value hostValue);

  /// Launches `blocks` (an index) CTAs and closes the kernel. CTAs of a cooperative launch may wait
  /// for each other.
  void launch(mlir::Value blocks, bool cooperative = false);
  /// Launches `ctas` CTAs in clusters of `size` (indices), or one cluster, and closes the kernel.
  void launchClusters(mlir::Value ctas, mlir::Value size);
  void launchCluster(mlir::Value ctas) { launchClusters(ctas, ctas); }
  /// Launches enough CTAs for `items` (an index) work items; see forEachItem.
  void launchItems(mlir::Value items);

  /// Number of the CTA, i32, in the order that the plan asks for.
  mlir::Value ctaIndex();
  /// Thread number within the grid, and threads in the grid; i32.
  mlir::Value globalThread();
  mlir::Value gridThreads();

  /// In the kernel: for (item = globalThread; item < items; item += gridThreads) carried =
  /// item(carried). Work items are numbered with i32.
  using ItemBody =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  mlir::ValueRange forEachItem(mlir::Value items, mlir::ValueRange carried, ItemBody item);
  /// Emits for (item = first; item < end; item += step).
  mlir::ValueRange forEachItem(mlir::Value first, mlir::Value end, mlir::Value step,
                               mlir::ValueRange carried, ItemBody item);

  /// An uninitialized array of `count` i32 in static shared memory; its address. Call it outside of
  /// loops and branches of the body.
  mlir::Value sharedWords(int64_t count, llvm::StringRef name);

private:
  mlir::Value addOperand(mlir::Value hostValue);
  /// Adds a kernel operand for a buffer of rows of `element` with strides. Returns the pointer.
  mlir::Value stridedPointer(mlir::Value buffer, mlir::Type element);
  mlir::gpu::LaunchFuncOp emitLaunch(mlir::Value ctas,
                                     std::optional<mlir::gpu::KernelDim3> cluster = {});

  mlir::Operation *op;
  const hw::TargetModel &target;
  KernelPlan plan;
  llvm::DenseMap<mlir::Value, mlir::Value> &buffers; ///< LoweringContext::buffers
  mlir::NamedAttrList overlap; ///< the attribute of the launch (LaunchAttributes.h), if any
  mlir::ImplicitLocOpBuilder hostBuilder, bodyBuilder;
  mlir::gpu::GPUModuleOp module;
  mlir::gpu::GPUFuncOp function;
  llvm::SmallVector<mlir::Value> operands;
};

/// KernelBuilder::hostRows.
mlir::Value hostRows(mlir::ImplicitLocOpBuilder &host, mlir::Value tensor);

/// The device buffer of `tensor`: the one it was cast from, or a cast.
mlir::Value deviceBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor);

} // namespace fp4
