//===- PipeSchedules.td - Work of the CTAs of a grid ----------------------===//
//
// A schedule is an attribute that implements WorkScheduleAttrInterface. A new one is a definition
// here and one file in lib/Dialect/Pipe/IR/Schedules.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD
#define FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD

include "fp4/Dialect/Pipe/IR/PipeDialect.td"
include "fp4/Dialect/Pipe/IR/PipeRasters.td"

def Pipe_WorkScheduleAttrInterface : AttrInterface<"WorkScheduleAttrInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    Gives the output tiles of a CTA, and their order.
  }];
  let methods = [
    InterfaceMethod<[{
      Replaces `work`, a pipe.for_each_work, by loops and arithmetic that find the tiles of this
      CTA. Code that does not depend on the tile is emitted at `shared`, a place before all roles of
      the kernel where the operands of `work` are visible.
    }], "void", "expand", (ins "::mlir::RewriterBase &":$rewriter,
                               "::mlir::Operation *":$work,
                               "::mlir::OpBuilder::InsertPoint":$shared)>,
    InterfaceMethod<[{
      Responses to `pipe.request_work` that the ring in shared memory has room for; 0 where blocks know
      their tiles without asking.
    }], "int64_t", "getRingDepth", (ins), "", [{ return 0; }]>,
  ];
}
def Pipe_WorkScheduleAttr
    : Attr<CPred<"::llvm::isa<::fp4::pipe::WorkScheduleAttrInterface>($_self)">, "a work schedule"> {
  let storageType = "::fp4::pipe::WorkScheduleAttrInterface";
  let returnType = "::fp4::pipe::WorkScheduleAttrInterface";
  let convertFromStorage = "$_self";
}

def Pipe_StaticPersistentAttr
    : AttrDef<Pipe_Dialect, "StaticPersistent",
              [DeclareAttrInterfaceMethods<Pipe_WorkScheduleAttrInterface>]> {
  let mnemonic = "static_persistent";
  let summary = "CTAs, or clusters, that take every tile whose number is theirs modulo their count";
  let description = [{
    CTA b of g works on the tiles b, b + g, b + 2 g, ... CTAs run at the same time on neighbouring
    SMs, so consecutive tiles share operands in the L2 cache. The raster says which tile has number
    t:

    - `along_m`: m = t mod num_m, n = t / num_m. Consecutive tiles share their B tile.
    - `along_n`: n = t mod num_n, m = t / num_n. Consecutive tiles share their A tile.
    - `panels<w>`: the grid is cut into panels of w columns of tiles. Within a panel, n runs fastest.
      About w tiles share each A tile, and the B tiles of a panel are used again by every row.

    With `serpentine` every other round of tiles goes to the CTAs in the opposite order. If the tiles
    are the shorter the higher their number, each CTA then has about as much work.

    In a kernel with clusters, a cluster takes tiles, and all of its CTAs see each of them.

    Example: `#pipe.static_persistent<along_m>`, `#pipe.static_persistent<panels<8>>`,
    `#pipe.static_persistent<along_n serpentine = true>`.
  }];
  let parameters = (ins EnumParameter<Pipe_Raster>:$raster,
                        DefaultValuedParameter<"int64_t", "0">:$width,
                        DefaultValuedParameter<"bool", "false">:$serpentine);
  let builders = [AttrBuilder<(ins "::fp4::pipe::Raster":$raster, "int64_t":$width,
                                   CArg<"bool", "false">:$serpentine), [{
    return $_get($_ctxt, raster, width, serpentine);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat =
      "`<` custom<TileOrder>($raster, $width) (`serpentine` `=` $serpentine^)? `>`";
  let genVerifyDecl = 1;
}

def Pipe_ClusterLaunchAttr
    : AttrDef<Pipe_Dialect, "ClusterLaunch",
              [DeclareAttrInterfaceMethods<Pipe_WorkScheduleAttrInterface, ["getRingDepth"]>]> {
  let mnemonic = "cluster_launch";
  let summary = "CTAs, or clusters, that take over tiles of others which have not started";
  let description = [{
    The grid has a CTA, or a cluster, for each tile. A running CTA works on its own tile first. Then
    it asks the hardware for a CTA that has not started: that CTA will never start, and its tile is
    done here. The work is thus shared out while the kernel runs, to whichever CTA is ready. The
    raster says which tile has number t, as in `#pipe.static_persistent`.

    `pipe.request_work` asks, in a role of its own. Responses arrive in a ring in shared memory, in
    every CTA of a cluster; each role takes each of them, in order. Up to `depth` responses wait
    there, so the role that asks is that many tiles before the slowest. PTX: clusterlaunchcontrol.

    Example: `#pipe.cluster_launch<along_m>`, `#pipe.cluster_launch<panels<8> depth 4>`.
  }];
  let parameters = (ins EnumParameter<Pipe_Raster>:$raster,
                        DefaultValuedParameter<"int64_t", "0">:$width,
                        DefaultValuedParameter<"int64_t", "3">:$depth);
  let assemblyFormat = "`<` custom<TileOrder>($raster, $width) (`depth` $depth^)? `>`";
  let genVerifyDecl = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD
