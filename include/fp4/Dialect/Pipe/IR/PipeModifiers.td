//===- PipeModifiers.td - Modifiers of operations -------------------------===//
//
// Operations have defaults of most of them, so that their enumerators are in Pipe.h.
//
//===----------------------------------------------------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPEMODIFIERS_TD
#define FP4_DIALECT_PIPE_IR_PIPEMODIFIERS_TD

include "fp4/Dialect/Pipe/IR/PipeEnum.td"

def Pipe_RowCombination : Pipe_Enum<"RowCombination", "combination of the elements of a row", [
  I32EnumAttrCase<"Add", 0, "add">,
  I32EnumAttrCase<"Maximum", 1, "maximum">]>;

def Pipe_Direction : Pipe_Enum<"Direction", "direction in which a cluster has several CTAs", [
  I32EnumAttrCase<"M", 0, "m">,
  I32EnumAttrCase<"N", 1, "n">,
  I32EnumAttrCase<"Pairs", 2, "pairs">]>;

def Pipe_Scope : Pipe_Enum<"Scope", "CTAs that share the barriers of a channel", [
  I32EnumAttrCase<"Cta", 0, "cta">,
  I32EnumAttrCase<"Cluster", 1, "cluster">]>;

def Pipe_Arrival : Pipe_Enum<"Arrival", "threads of a role that arrive at a barrier", [
  I32EnumAttrCase<"Threads", 0, "threads">,
  I32EnumAttrCase<"Warps", 1, "warps">,
  I32EnumAttrCase<"AlignedWarps", 2, "aligned_warps">,
  I32EnumAttrCase<"Nobody", 3, "nobody">]>;

def Pipe_Turns : Pipe_Enum<"Turns", "work that the warpgroups of a role have in turn", [
  I32EnumAttrCase<"Nothing", 0, "nothing">,
  I32EnumAttrCase<"Stages", 1, "stages">,
  I32EnumAttrCase<"Products", 2, "products">]>;

def Pipe_MmaChain
    : Pipe_Enum<"MmaChain", "place of an MMA among those before and behind it",
                [I32EnumAttrCase<"Alone", 0, "alone">, I32EnumAttrCase<"Replaces", 1, "replaces">,
                 I32EnumAttrCase<"Leads", 2, "leads">, I32EnumAttrCase<"Follows", 3, "follows">,
                 I32EnumAttrCase<"UntilMma", 4, "until_mma">,
                 I32EnumAttrCase<"UntilIteration", 5, "until_iteration">]>;

def Pipe_MmaDepth
    : Pipe_Enum<"MmaDepth", "K of the instructions of an MMA",
                [I32EnumAttrCase<"Single", 0, "single">, I32EnumAttrCase<"K96", 1, "k96">,
                 I32EnumAttrCase<"Double", 2, "double">]>;

#endif // FP4_DIALECT_PIPE_IR_PIPEMODIFIERS_TD
