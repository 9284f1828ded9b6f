//===- PipeSchedules.td - How the blocks of a grid share the work -----------===//
//
// A schedule is an attribute that implements WorkScheduleAttrInterface. A new one is a definition here
// and one file in lib/Dialect/Pipe/IR/Schedules.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD
#define FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD

include "fp4/Dialect/Pipe/IR/PipeDialect.td"

def Pipe_WorkScheduleAttrInterface : AttrInterface<"WorkScheduleAttrInterface"> {
  let cppNamespace = "::fp4::pipe";
  let description = [{
    Says which output tiles a block works on, and in which order.
  }];
  let methods = [
    InterfaceMethod<[{
      Replaces `work`, a pipe.for_each_work, by loops and arithmetic that find the tiles of this block. What does not depend
      on the tile is emitted at `shared`, a place before all roles of the kernel where the operands
      of `work` are visible.
    }], "void", "expand", (ins "::mlir::RewriterBase &":$rewriter,
                               "::mlir::Operation *":$work,
                               "::mlir::OpBuilder::InsertPoint":$shared)>,
  ];
}
def Pipe_WorkScheduleAttr
    : Attr<CPred<"::llvm::isa<::fp4::pipe::WorkScheduleAttrInterface>($_self)">, "a work schedule"> {
  let storageType = "::fp4::pipe::WorkScheduleAttrInterface";
  let returnType = "::fp4::pipe::WorkScheduleAttrInterface";
  let convertFromStorage = "$_self";
}

def Pipe_Raster : Pipe_Enum<"Raster", "order of the tiles of a grid", [
  I32EnumAttrCase<"AlongM", 0, "along_m">,
  I32EnumAttrCase<"AlongN", 1, "along_n">,
  I32EnumAttrCase<"Panels", 2, "panels">]>;

def Pipe_StaticPersistentAttr
    : AttrDef<Pipe_Dialect, "StaticPersistent",
              [DeclareAttrInterfaceMethods<Pipe_WorkScheduleAttrInterface>]> {
  let mnemonic = "static_persistent";
  let summary = "blocks, or clusters, that take every tile whose number is theirs modulo how many they are";
  let description = [{
    Block b of g works on the tiles b, b + g, b + 2 g, ... Blocks run at the same time on neighbouring
    multiprocessors, so consecutive tiles share operands in the L2 cache. The raster says which tile
    has number t:

    - `along_m`: m = t mod num_m, n = t / num_m. Consecutive tiles share their B tile.
    - `along_n`: n = t mod num_n, m = t / num_n. Consecutive tiles share their A tile.
    - `panels<w>`: the grid is cut into panels of w columns of tiles. Within a panel, n runs fastest.
      About w tiles share each A tile, and the B tiles of a panel are used again by every row.

    Where the kernel runs in clusters, a cluster is what takes tiles, and all of its blocks see each
    of them.

    Constraints: (C146) only the raster `panels` has a width, which is at least 1.

    Example: `#pipe.static_persistent<along_m>`, `#pipe.static_persistent<panels<8>>`.
  }];
  let parameters = (ins EnumParameter<Pipe_Raster>:$raster,
                        DefaultValuedParameter<"int64_t", "0">:$width);
  let assemblyFormat = "`<` $raster (`<` $width^ `>`)? `>`";
  let genVerifyDecl = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPESCHEDULES_TD
