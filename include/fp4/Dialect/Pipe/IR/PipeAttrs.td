//===- PipeAttrs.td - Roles of a kernel -----------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEATTRS_TD
#define FP4_DIALECT_PIPE_IR_PIPEATTRS_TD

include "fp4/Dialect/Pipe/IR/PipeDialect.td"
include "mlir/IR/TensorEncoding.td"

class Pipe_Attr<string name, string attrMnemonic> : AttrDef<Pipe_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Pipe_RoleAttr : Pipe_Attr<"Role", "role"> {
  let summary = "warps that run one instruction stream, and the engines they drive";
  let description = [{
    The warps from `firstWarp` to, not including, `endWarp` of a CTA. A role that drives `threads`
    runs on all of its threads; any other role has one warp, and one elected thread of it issues
    what the engines execute. Any number of roles may drive `threads`: all but one are `auxiliary`,
    and run the ops alone that name them (`pipe.role` of `pipe-specialize-warps`). One that drives
    `tensor` too multiplies a further k slice. A role that drives `tensor` and `scale_copy` may have
    two warps: the first multiplies, and the second copies scales before it. `registers` is the
    number of registers per thread that the role asks for when it begins (PTX: setmaxnreg); 0 keeps
    what the launch gave. A role that drives nothing gives registers away, where others of its
    warpgroup do. The warp of a role that is `whole` stays together: all lanes wait and compute
    addresses, and one is elected for each instruction that must be issued once
    (`pipe-elect-threads`). The n warpgroups of a role `in_turn stages` have every n-th stage each.
    Warpgroups of a role `in_turn products` have all stages together, and begin their MMAs one after
    the other, so that the tensor core works for one while others compute.

    Example: `#pipe.role<mma warps 4 to 5 drives [tensor, scale_copy]>`,
    `#pipe.role<math warps 0 to 8 drives [tensor, threads] registers 240>`,
    `#pipe.role<math warps 0 to 8 drives [tensor, threads] in_turn products>`,
    `#pipe.role<convert warps 4 to 20 drives [threads] in_turn stages auxiliary>`.
  }];
  let parameters = (ins StringRefParameter<"word for messages and labels">:$name,
                        "int32_t":$firstWarp, "int32_t":$endWarp,
                        ArrayRefParameter<"::fp4::pipe::Engine">:$engines,
                        DefaultValuedParameter<"int32_t", "0">:$registers,
                        DefaultValuedParameter<"::fp4::pipe::Turns", "::fp4::pipe::Turns::Nothing">:$turns,
                        DefaultValuedParameter<"bool", "false">:$auxiliary,
                        DefaultValuedParameter<"bool", "false">:$whole);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name, "int32_t":$firstWarp,
                                   "int32_t":$endWarp,
                                   "::llvm::ArrayRef<::fp4::pipe::Engine>":$engines,
                                   "int32_t":$registers,
                                   CArg<"::fp4::pipe::Turns", "::fp4::pipe::Turns::Nothing">:$turns,
                                   CArg<"bool", "false">:$auxiliary),
                              [{ return $_get($_ctxt, name, firstWarp, endWarp, engines, registers,
                                              turns, auxiliary, /*whole=*/false); }]>];
  let extraClassDeclaration = [{
    int32_t getNumWarps() const { return getEndWarp() - getFirstWarp(); }
    int32_t getNumThreads() const { return 32 * getNumWarps(); }
    /// The warps of the role are those of one warpgroup.
    bool isOneWarpgroup() const;
    /// Threads that have a stage together: all of the role, or those of a warpgroup.
    int32_t getStageThreads() const { return getTurns() == Turns::Stages ? 128 : getNumThreads(); }
    bool drives(Engine engine) const;
    /// One elected thread runs the role.
    bool isElected() const;
    /// This role with its warp together, or with one thread elected for all of its code.
    RoleAttr withWhole(bool whole) const;
    /// The kind of completion of this role's side of a channel whose tiles `engine` fills or uses:
    /// the bytes of `tma`, the commits of `tensor`, or the arrivals of all `threads` where the role
    /// has some.
    Engine getCompletion(Engine engine) const;
    /// Arrivals of one side that `completion` completes.
    int32_t getArrivals(Engine completion) const;
    /// `mma warps 4 to 5 drives [tensor, scale_copy]`, as in `pipe.role`.
    static ::mlir::FailureOr<RoleAttr> parseHeader(::mlir::AsmParser &parser);
    void printHeader(::mlir::AsmPrinter &printer) const;
  }];
}

def Pipe_RolePlanAttr : Pipe_Attr<"RolePlan", "role_plan"> {
  let summary = "the roles of a kernel";
  let description = [{
    Says which role drives which engine. `pipe-specialize-warps` gives every op to the role that it
    names, or else to the role that drives its engine and is not `auxiliary`; the CTA has as many
    warps as the roles name.

    Example:
    ```mlir
    #pipe.role_plan<epilogue warps 0 to 4 drives [threads],
                    mma warps 4 to 5 drives [tensor, scale_copy],
                    load warps 5 to 6 drives [tma]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::fp4::pipe::RoleAttr">:$roles);
  let extraClassDeclaration = [{
    /// The role that drives `engine` and is not auxiliary, or null.
    RoleAttr getDriver(Engine engine) const;
    /// The first auxiliary role that drives threads alone, or null.
    RoleAttr getAuxiliary() const;
    /// The auxiliary roles that multiply: one for each k slice behind the first.
    ::llvm::SmallVector<RoleAttr> getSlices() const;
    /// The role of this name, or null.
    RoleAttr getRole(::llvm::StringRef name) const;
    /// Threads of a CTA.
    int32_t getNumThreads() const;
  }];
}

def Pipe_DistributionAttr : AttrDef<Pipe_Dialect, "Distribution",
                                    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "distribution";
  let summary = "encoding of a tensor in registers: the thread that has an element";
  let description = [{
    The tensor is a part of a tile, of which each thread of a role has some elements in registers.
    `wgmma` shares 64 rows among the threads of a warpgroup, as the accumulator of the instruction,
    and `mma_sync` 16 rows among those of a warp. With `lanes`, thread r of a warpgroup has row r of
    128, as TMEM lane r does. With `columns`, which `pipe.transpose` makes, thread l of a warp has
    column l of 32 in the rows of its warp, a quarter of all. The law of the distributions is
    `include/fp4/ISA/FragmentLayout.h`.

    Operations of arith and math take such tensors as they are. `convert-pipe-to-nvvm` makes a
    vector of each, the elements of one thread.

    Example: `tensor<64x32xf32, #pipe.distribution<wgmma>>`.
  }];
  let parameters = (ins "::fp4::pipe::FragmentKind":$kind);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The accumulator of an instruction, of which a thread has elements of several rows.
    bool isFragment() const;
    /// The tensor of the distribution with `columns` columns in the rows of one instruction.
    static ::mlir::RankedTensorType tensorOf(FragmentKind kind, int64_t columns,
                                             ::mlir::Type elementType);
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEATTRS_TD
