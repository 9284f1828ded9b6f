//===- PipeDialect.td - The pipe dialect: kernels as tiles in channels ----===//
//
// The dialect, and the attributes of its enumerations.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
#define FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD

include "fp4/Dialect/Pipe/IR/PipeEngines.td"
include "fp4/Dialect/Pipe/IR/PipeFragments.td"
include "fp4/Dialect/Pipe/IR/PipeLayouts.td"
include "fp4/Dialect/Pipe/IR/PipeModifiers.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::fp4::pipe";
  let summary = "Kernels as tiles that flow between warp roles through typed channels";
  let description = [{
    A pipe kernel is a `gpu.func` whose tiles are SSA values of types that carry the hardware
    layout. A kernel goes through three forms, each of them legal, printable and verified:

    1. *sequential*: loops over output tiles and over k, without synchronization. An op that fills a
       tile returns it.
    2. *specialized*: a `pipe.role` region per role of the plan (`pipe.role_plan`). An op that fills
       a tile fills one of a channel that its role acquired (`into`). 3. *pipelined*: every channel
       has a depth and a place in memory, and every channel op carries an iteration counter `[%it]`:
       `stage = it mod depth`, `phase = (it / depth) mod 2`.

    Passes of phase `scheduled` make a fourth form of the third: they take away waits, fences and
    divisions, and write at each op what is left (`pipe.scheduled` at the `gpu.func`).
    `pipe-verify-sync` runs the channels of this form.

    `convert-pipe-to-nvvm` lowers the fourth form. Loops, scalar and vector arithmetic are those of
    `scf`, `arith` and `vector`; counters, coordinates and sizes in a kernel are `i32`. Elements
    behind the `blocks` blocks of 4 scale columns that exist (default: all) must be zeros. A buffer
    that an op loads with PTX's ld.global.nc must not be written while the kernel runs.

    A `gpu.func` may bound the depth of its channels until `pipe-pipeline` has chosen it:
    `pipe.max_stages` in shared memory, `pipe.max_accumulators` in tensor memory. With the unit
    attribute `pipe.alone`, the launches of the module ask for so much shared memory that an SM
    holds one CTA; `pipe.shared_bytes` stays what a CTA uses.

    Attributes of a pipelined `gpu.func`: `pipe.shared_bytes` (dynamic shared memory of a CTA),
    `pipe.tmem_columns` (tensor memory columns to allocate), `pipe.tmem_slot` (byte offset in shared
    memory of the word that receives the address of the allocation). If the schedule of its work
    asks for it (`#pipe.cluster_launch`), also `pipe.work_ring`: the byte offset of the ring of
    responses in shared memory, and their number d. Behind d times 16 bytes are the full and then
    the empty barriers, 8 bytes each.
  }];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::LLVM::LLVMDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Refuses former names of operations with a note that has the present one.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    /// The role plan of a sequential kernel, a RolePlanAttr on the gpu.func.
    static constexpr ::llvm::StringLiteral kRolePlanAttr = "pipe.role_plan";
    /// The name of the role that executes an op of a sequential kernel, a StringAttr; none for the
    /// role that drives the op's engine and is not auxiliary.
    static constexpr ::llvm::StringLiteral kRoleAttr = "pipe.role";
    /// Most stages of the channels of a kernel in shared and in tensor memory, on a gpu.func that
    /// pipe-pipeline has not seen; optional.
    static constexpr ::llvm::StringLiteral kMaxStagesAttr = "pipe.max_stages";
    static constexpr ::llvm::StringLiteral kMaxAccumulatorsAttr = "pipe.max_accumulators";
    /// Unit attribute of such a gpu.func: its launches leave an SM no room for two CTAs.
    static constexpr ::llvm::StringLiteral kAloneAttr = "pipe.alone";
    /// Byte size of a CTA's dynamic shared memory, set by pipe-pipeline on the gpu.func.
    static constexpr ::llvm::StringLiteral kSharedBytesAttr = "pipe.shared_bytes";
    /// Columns of the tensor memory allocation, a power of two from 32 to 512.
    static constexpr ::llvm::StringLiteral kTmemColumnsAttr = "pipe.tmem_columns";
    /// Byte offset in shared memory of the 4-byte word that receives the allocation's address.
    static constexpr ::llvm::StringLiteral kTmemSlotAttr = "pipe.tmem_slot";
    /// Byte offset of the ring of responses to requests for work, and their number:
    /// DenseI64ArrayAttr.
    static constexpr ::llvm::StringLiteral kWorkRingAttr = "pipe.work_ring";
    /// Unit attribute of a loop over work that pipe-expand-work has made.
    static constexpr ::llvm::StringLiteral kWorkAttr = "pipe.work";
    /// Unit attribute of a kernel in the scheduled form.
    static constexpr ::llvm::StringLiteral kScheduledAttr = "pipe.scheduled";
    void registerAttributes();
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Pipe_EngineAttr : EnumAttr<Pipe_Dialect, Pipe_Engine, "engine">;
def Pipe_EngineArrayAttr : TypedArrayAttrBase<Pipe_EngineAttr, "engines">;

def Pipe_RowCombinationAttr : EnumAttr<Pipe_Dialect, Pipe_RowCombination, "row_combination">;

def Pipe_DirectionAttr : EnumAttr<Pipe_Dialect, Pipe_Direction, "direction">;

def Pipe_ScopeAttr : EnumAttr<Pipe_Dialect, Pipe_Scope, "scope">;

def Pipe_ArrivalAttr : EnumAttr<Pipe_Dialect, Pipe_Arrival, "arrival">;

def Pipe_MmaDepthAttr : EnumAttr<Pipe_Dialect, Pipe_MmaDepth, "mma_depth">;

def Pipe_MmaChainAttr : EnumAttr<Pipe_Dialect, Pipe_MmaChain, "mma_chain">;

#endif // FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
