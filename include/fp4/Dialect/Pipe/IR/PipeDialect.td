//===- PipeDialect.td - The pipe dialect: kernels as tiles in channels ----===//
//
// The dialect, its enumerations and the interface through which an op names its warp role.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
#define FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::fp4::pipe";
  let summary = "Kernels as tiles that flow between warp roles through typed channels";
  let description = [{
    A pipe kernel is a `gpu.func` whose tiles (operands in shared memory, accumulators and scale
    factors in tensor memory) are SSA values of types that carry the hardware layout. Whatever a
    descriptor would hide in an opaque integer is part of a type and is verified here.

    A kernel goes through three forms, each of them legal, printable and verified:

    1. *sequential*: loops over output tiles and over k with straight-line tile ops, no
       synchronization. `pipe.load` and friends return the tile they fill.
    2. *specialized*: one `pipe.role` region per warp role. A tile that crosses from one role to
       another travels in a `pipe.channel`, a pair of full and empty barriers with a typed payload.
    3. *pipelined*: every channel has a depth and a place in shared memory or tensor memory, and
       every channel op carries an iteration counter `[%it]`. Stage and phase derive from it:
       `stage = it mod depth`, `phase = (it / depth) mod 2`.

    `convert-pipe-to-nvvm` lowers the third form. Loops, scalar and vector arithmetic are those of
    `scf`, `arith` and `vector`; counters, coordinates and sizes in a kernel are `i32`.

    Attributes of a pipelined `gpu.func`: `pipe.shared_bytes` (dynamic shared memory of a block),
    `pipe.tmem_columns` (tensor memory columns to allocate), `pipe.tmem_slot` (byte offset in
    shared memory of the word that receives the address of the allocation).
  }];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::LLVM::LLVMDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Byte size of a block's dynamic shared memory, set by pipe-pipeline on the gpu.func.
    static constexpr ::llvm::StringLiteral kSharedBytesAttr = "pipe.shared_bytes";
    /// Columns of the tensor memory allocation, a power of two from 32 to 512.
    static constexpr ::llvm::StringLiteral kTmemColumnsAttr = "pipe.tmem_columns";
    /// Byte offset in shared memory of the 4-byte word that receives the allocation's address.
    static constexpr ::llvm::StringLiteral kTmemSlotAttr = "pipe.tmem_slot";
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Pipe_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::fp4::pipe";
  let genSpecializedAttr = 0;
}

def Pipe_Layout : Pipe_Enum<"Layout", "placement of a tile's bytes", [
  I32EnumAttrCase<"Linear", 0, "linear">,
  I32EnumAttrCase<"Swizzle32B", 1, "swizzle_32B">,
  I32EnumAttrCase<"Swizzle64B", 2, "swizzle_64B">,
  I32EnumAttrCase<"Swizzle128B", 3, "swizzle_128B">,
  I32EnumAttrCase<"Tiled128x4", 4, "tiled_128x4">]>;

def Pipe_Role : Pipe_Enum<"Role", "warp role", [
  I32EnumAttrCase<"Load", 0, "load">,
  I32EnumAttrCase<"Mma", 1, "mma">,
  I32EnumAttrCase<"Epilogue", 2, "epilogue">,
  I32EnumAttrCase<"Scheduler", 3, "scheduler">]>;
def Pipe_RoleAttr : EnumAttr<Pipe_Dialect, Pipe_Role, "warp_role">;

def Pipe_Agent : Pipe_Enum<"Agent", "what completes one side of a channel", [
  I32EnumAttrCase<"Tma", 0, "tma">,
  I32EnumAttrCase<"Mma", 1, "mma">,
  I32EnumAttrCase<"Threads", 2, "threads">]>;
def Pipe_AgentAttr : EnumAttr<Pipe_Dialect, Pipe_Agent, "agent">;

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

def Pipe_RoleOpInterface : OpInterface<"RoleOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op that only one kind of warp can execute. Warp specialization partitions a kernel by
    nothing but these answers.
  }];
  let methods = [
    InterfaceMethod<"The role that executes this op.", "::fp4::pipe::Role", "getRole">,
  ];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEDIALECT_TD
