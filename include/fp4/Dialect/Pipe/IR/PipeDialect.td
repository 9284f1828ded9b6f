//===- PipeDialect.td - The pipe dialect: kernels as tiles in channels ----===//
//
// The dialect and its enumerations.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
#define FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"
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

def Pipe_Layout : Pipe_Enum<"Layout", "placement of a tile's bytes", [
  I32EnumAttrCase<"Linear", 0, "linear">,
  I32EnumAttrCase<"Swizzle32B", 1, "swizzle_32B">,
  I32EnumAttrCase<"Swizzle64B", 2, "swizzle_64B">,
  I32EnumAttrCase<"Swizzle128B", 3, "swizzle_128B">,
  I32EnumAttrCase<"Tiled128x4", 4, "tiled_128x4">,
  I32EnumAttrCase<"Swizzle128BPadded", 5, "swizzle_128B_b4x16_p64">,
  I32EnumAttrCase<"Swizzle128BPadded6", 6, "swizzle_128B_b6x16_p32">,
  I32EnumAttrCase<"Halves128x4", 7, "halves_128x4">]>;

def Pipe_Engine : Pipe_Enum<"Engine", "part of the hardware that executes an operation", [
  I32EnumAttrCase<"Tma", 0, "tma">,
  I32EnumAttrCase<"Tensor", 1, "tensor">,
  I32EnumAttrCase<"ScaleCopy", 2, "scale_copy">,
  I32EnumAttrCase<"Threads", 3, "threads">,
  I32EnumAttrCase<"BulkStore", 4, "bulk_store">,
  I32EnumAttrCase<"WorkQueue", 5, "work_queue">]>;
def Pipe_EngineAttr : EnumAttr<Pipe_Dialect, Pipe_Engine, "engine">;
def Pipe_EngineArrayAttr : TypedArrayAttrBase<Pipe_EngineAttr, "engines">;

def Pipe_FragmentKind : Pipe_Enum<"FragmentKind", "thread that has an element in its registers", [
  I32EnumAttrCase<"Wgmma", 0, "wgmma">,
  I32EnumAttrCase<"MmaSync", 1, "mma_sync">,
  I32EnumAttrCase<"Lanes", 2, "lanes">,
  I32EnumAttrCase<"Columns", 3, "columns">]>;

def Pipe_RowCombination : Pipe_Enum<"RowCombination", "combination of the elements of a row", [
  I32EnumAttrCase<"Add", 0, "add">,
  I32EnumAttrCase<"Maximum", 1, "maximum">]>;
def Pipe_RowCombinationAttr : EnumAttr<Pipe_Dialect, Pipe_RowCombination, "row_combination">;

def Pipe_Direction : Pipe_Enum<"Direction", "direction in which a cluster has several CTAs", [
  I32EnumAttrCase<"M", 0, "m">,
  I32EnumAttrCase<"N", 1, "n">,
  I32EnumAttrCase<"Pairs", 2, "pairs">]>;
def Pipe_DirectionAttr : EnumAttr<Pipe_Dialect, Pipe_Direction, "direction">;

def Pipe_Scope : Pipe_Enum<"Scope", "CTAs that share the barriers of a channel", [
  I32EnumAttrCase<"Cta", 0, "cta">,
  I32EnumAttrCase<"Cluster", 1, "cluster">]>;
def Pipe_ScopeAttr : EnumAttr<Pipe_Dialect, Pipe_Scope, "scope">;

def Pipe_Arrival : Pipe_Enum<"Arrival", "threads of a role that arrive at a barrier", [
  I32EnumAttrCase<"Threads", 0, "threads">,
  I32EnumAttrCase<"Warps", 1, "warps">,
  I32EnumAttrCase<"AlignedWarps", 2, "aligned_warps">,
  I32EnumAttrCase<"Nobody", 3, "nobody">]>;
def Pipe_ArrivalAttr : EnumAttr<Pipe_Dialect, Pipe_Arrival, "arrival">;

def Pipe_MmaChain
    : Pipe_Enum<"MmaChain", "place of an MMA among those of its sums",
                [I32EnumAttrCase<"Alone", 0, "alone">, I32EnumAttrCase<"Replaces", 1, "replaces">,
                 I32EnumAttrCase<"Leads", 2, "leads">, I32EnumAttrCase<"Follows", 3, "follows">]>;
def Pipe_MmaChainAttr : EnumAttr<Pipe_Dialect, Pipe_MmaChain, "mma_chain">;

def Pipe_MmaAwaiter
    : Pipe_Enum<"MmaAwaiter", "operation behind which the sums of an MMA are complete",
                [I32EnumAttrCase<"Itself", 0, "itself">, I32EnumAttrCase<"NextMma", 1, "next_mma">,
                 I32EnumAttrCase<"NextIteration", 2, "next_iteration">]>;
def Pipe_MmaAwaiterAttr : EnumAttr<Pipe_Dialect, Pipe_MmaAwaiter, "mma_awaiter">;

#endif // FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
