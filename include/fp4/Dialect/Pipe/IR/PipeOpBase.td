//===- PipeOpBase.td - Base classes of the dialect's ops ------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEOPBASE_TD
#define FP4_DIALECT_PIPE_IR_PIPEOPBASE_TD

include "fp4/Dialect/Fp4/IR/Fp4Attrs.td"
include "fp4/Dialect/Pipe/IR/PipeAttrs.td"
include "fp4/Dialect/Pipe/IR/PipeInterfaces.td"
include "fp4/Dialect/Pipe/IR/PipeSchedules.td"
include "fp4/Dialect/Pipe/IR/PipeTypes.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

/// Results print as %tile, %acc, %channel, ...: kernels are read more often than written.
def Pipe_NamedResults : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

/// A tensor whose elements the threads of a role have in registers (`#pipe.distribution`).
class Pipe_Distributed<list<Type> elements>
    : RankedTensorOf<elements, [CPred<"::fp4::pipe::distributionOf($_self)">,
                                CPred<"!::fp4::pipe::areRowNumbers($_self)">],
                     "tensor with a #pipe.distribution and more than one number a row">;
/// Such a tensor, or the numbers of rows, one column of which all threads of a row have a copy.
class Pipe_DistributedOrRows<list<Type> elements>
    : RankedTensorOf<elements, [CPred<"::fp4::pipe::distributionOf($_self)">],
                     "tensor with a #pipe.distribution">;

/// An op that `engine` executes (see EngineOpInterface).
class Pipe_EngineOp<string mnemonic, string engine, list<Trait> traits = []>
    : Pipe_Op<mnemonic, traits # [Pipe_EngineOpInterface]> {
  code engineDecl = "::fp4::pipe::Engine getEngine();\n";
  let extraClassDeclaration = engineDecl;
  let extraClassDefinition =
      "::fp4::pipe::Engine $cppClass::getEngine() { return ::fp4::pipe::Engine::" # engine # "; }\n";
}

/// An op with a channel operand that does `use` (see ChannelUse).
class Pipe_ChannelUse<string use> {
  code useDecl = "::fp4::pipe::ChannelUse getChannelUse() { return ::fp4::pipe::ChannelUse::" # use # "; }\n";
}

#endif // FP4_DIALECT_PIPE_IR_PIPEOPBASE_TD
