//===- PipeOps.td - Operations of the pipe dialect ------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPEOPS_TD

include "fp4/Dialect/Pipe/IR/PipeChannelOps.td"
include "fp4/Dialect/Pipe/IR/PipeFragmentOps.td"
include "fp4/Dialect/Pipe/IR/PipeHostOps.td"
include "fp4/Dialect/Pipe/IR/PipeReductionOps.td"
include "fp4/Dialect/Pipe/IR/PipeResultOps.td"
include "fp4/Dialect/Pipe/IR/PipePromotionOps.td"
include "fp4/Dialect/Pipe/IR/PipeScheduledOps.td"
include "fp4/Dialect/Pipe/IR/PipeTileOps.td"
include "fp4/Dialect/Pipe/IR/PipeWorkOps.td"

#endif // FP4_DIALECT_PIPE_IR_PIPEOPS_TD
