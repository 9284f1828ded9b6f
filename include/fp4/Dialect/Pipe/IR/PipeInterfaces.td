//===- PipeInterfaces.td - Interfaces of the ops of a kernel --------------===//
//
// Passes find the ops that they concern by these interfaces and know no list of op classes. A new
// load, matrix instruction or store is one op that implements them and one lowering pattern.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEINTERFACES_TD
#define FP4_DIALECT_PIPE_IR_PIPEINTERFACES_TD

include "mlir/IR/OpBase.td"

def Pipe_EngineOpInterface : OpInterface<"EngineOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op that one engine executes. The role that drives this engine runs the op.
  }];
  let methods = [
    InterfaceMethod<"The engine that executes this op.", "::fp4::pipe::Engine", "getEngine">,
  ];
}

def Pipe_StageFillerOpInterface : OpInterface<"StageFillerOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op that fills a tile of a channel's stage. The sequential form returns the tile; the other
    forms fill a slot of an acquired stage.
  }];
  let methods = [
    InterfaceMethod<"The tile that the sequential form returns, else null.", "::mlir::Value",
                    "getFilledTile">,
    InterfaceMethod<"The slot that the other forms fill, else null.", "::mlir::Value", "getSlot">,
    InterfaceMethod<[{
      Creates, before this op, its form that fills `slot`, a tile of the stage acquired from
      `channel`. The op remains.
    }], "void", "fillSlot", (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$slot,
                                 "::mlir::Value":$channel)>,
    InterfaceMethod<[{
      Bytes that the op completes on the full barrier of its stage, for each of `getUnits()`; 0 where
      the op completes none because its engine arrives.
    }], "int64_t", "getUnitBytes">,
    InterfaceMethod<"Number of completions of `getUnitBytes()`, an i32; null for one.",
                    "::mlir::Value", "getUnits">,
    InterfaceMethod<[{
      The direction of the cluster along which all blocks fill the tile together, if there is one.
    }], "::std::optional<::fp4::pipe::Direction>", "getMulticastDirection", (ins), "", [{
      return ::std::nullopt;
    }]>,
    InterfaceMethod<[{
      The op can signal a barrier of the leader of its pair.
    }], "bool", "canSignalLeader", (ins), "", [{ return false; }]>,
  ];
}

def Pipe_ChannelOpInterface : OpInterface<"ChannelOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op at one end of a channel. In the pipelined form it names the iteration that it belongs to.
  }];
  let methods = [
    InterfaceMethod<"The channel; null for a load of the sequential form.", "::mlir::Value",
                    "getChannel">,
    InterfaceMethod<"The iteration, an i32; null before the pipelined form.", "::mlir::Value",
                    "getIteration">,
    InterfaceMethod<"Gives the op its iteration.", "void", "setIteration",
                    (ins "::mlir::Value":$iteration), "", [{
      $_op.getIterationMutable().assign(iteration);
    }]>,
    InterfaceMethod<"Use of the stage by the op.", "::fp4::pipe::ChannelUse",
                    "getChannelUse">,
  ];
}

def Pipe_TmemTileOpInterface : OpInterface<"TmemTileOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op that makes a tile of tensor memory of a stage, for its own role. The pipelined form gives
    it columns, `sets` tiles side by side: iteration i of the channel uses tile i mod `sets`.
  }];
  let methods = [
    InterfaceMethod<"The tile of tensor memory.", "::mlir::Value", "getTmemTile">,
    InterfaceMethod<"The tile of a stage that it is made from.", "::mlir::Value", "getStageTile">,
    InterfaceMethod<"First column of set 0; none before the pipelined form.",
                    "::std::optional<int64_t>", "getFirstColumn">,
    InterfaceMethod<"Tiles side by side.", "int64_t", "getNumSets">,
    InterfaceMethod<"Gives the tile its columns.", "void", "setPlace",
                    (ins "int64_t":$column, "int64_t":$sets)>,
    InterfaceMethod<"The op fills the tile; false where it names one that another op fills.",
                    "bool", "fillsTile", (ins), "", [{ return true; }]>,
  ];
}

def Pipe_ClusterReductionOpInterface : OpInterface<"ClusterReductionOpInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    An op in which CTAs of a cluster add what each has of a tile. In the pipelined form it has a
    place in shared memory: room for the pieces that the other CTAs send, then two barriers.
  }];
  let methods = [
    InterfaceMethod<"Bytes of a piece of one accumulator of a CTA, of all threads of the role.",
                    "int64_t", "getPieceBytes">,
    InterfaceMethod<"Warps of `all` warps of the role that take part.", "int64_t", "getNumReducing",
                    (ins "int64_t":$all), "", [{ return all; }]>,
    InterfaceMethod<"CTAs that add pieces: the first ones of the reduction.", "int64_t",
                    "getNumAdding">,
    InterfaceMethod<"Bytes of shared memory, barriers included, from a multiple of 16 on.", "int64_t",
                    "getReductionBytes">,
    InterfaceMethod<"Place in shared memory; none before the pipelined form.",
                    "::std::optional<int64_t>", "getReductionPlace", (ins), "", [{
      ::std::optional<uint64_t> place = $_op.getPlace();
      return place ? ::std::optional<int64_t>(int64_t(*place)) : ::std::nullopt;
    }]>,
    InterfaceMethod<"Gives the op its place.", "void", "setReductionPlace", (ins "int64_t":$place), "", [{
      $_op.setPlace(place);
    }]>,
  ];
  let extraClassDeclaration = [{
    /// Alignment of the place in shared memory, and bytes of the barriers in it.
    static constexpr int64_t kReductionAlignment = 16, kReductionBarrierBytes = 16;
    /// Offset of the barriers within the place. One says that the pieces have arrived, and one that
    /// they have been added.
    int64_t getBarriersOffset() { return getReductionBytes() - kReductionBarrierBytes; }
  }];
}

#endif // FP4_DIALECT_PIPE_IR_PIPEINTERFACES_TD
