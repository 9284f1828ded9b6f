//===- Passes.td - From the pipelined to the scheduled form ---------------===//
#ifndef FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD
#define FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandWork : Pass<"pipe-expand-work", "::mlir::ModuleOp"> {
  let summary = "Turn schedules into the loops by which a CTA finds its tiles";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def PlaceScalars : Pass<"pipe-place-scalars", "::mlir::ModuleOp"> {
  let summary = "Let each role compute the scalars that it needs";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def SplitWarps : Pass<"pipe-split-warps", "::mlir::ModuleOp"> {
  let summary = "Give the copies of scales a warp of their own";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ElectThreads : Pass<"pipe-elect-threads", "::mlir::ModuleOp"> {
  let summary = "Keep warps whole that issue for an engine";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def Unroll : Pass<"pipe-unroll", "::mlir::ModuleOp"> {
  let summary = "Replace short loops, and loops over sets of scales, by their iterations";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def FoldAwaits : Pass<"pipe-fold-awaits", "::mlir::ModuleOp"> {
  let summary = "Make the wait for a set of scales a part of the wait for a stage";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def CarryStages : Pass<"pipe-carry-stages", "::mlir::ModuleOp"> {
  let summary = "Carry stages and phases of channels through loops";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def DeferReleases : Pass<"pipe-defer-releases", "::mlir::ModuleOp"> {
  let summary = "Release a stage behind the MMAs of the next one";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ElideSync : Pass<"pipe-elide-sync", "::mlir::ModuleOp"> {
  let summary = "Leave out waits, arrivals and fences that others imply";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ChainMmas : Pass<"pipe-chain-mmas", "::mlir::ModuleOp"> {
  let summary = "Let MMAs follow each other without a gap";
  let description = [{
    TODO
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD
