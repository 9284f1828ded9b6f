//===- RolePlans.h - Roles and schedules of kernels on tiles --------------===//
//
// A kernel builder writes a sequential kernel; the role plan beside it says how many warps execute
// it. A plan is chosen per target and kernel family, here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Dialect/Pipe/IR/Pipe.h"

namespace fp4 {

/// Registers of a thread that multiplies, or reads accumulators, and of one of those beside them;
/// zero leaves those that the launch gives.
struct RegisterShares {
  int32_t math = 0, others = 0;
};
/// Shares of the 168 registers of each of 384 threads, for two warpgroups and one beside them. The
/// warpgroup beside needs more if it has sizes of a GEMM that the host alone knows, or scales of
/// FP8.
inline constexpr RegisterShares kFewBeside = {240, 24}, kMoreBeside = {232, 40},
                                kManyBeside = {224, 56}, kMostBeside = {216, 72};

/// The plan of two warpgroups and up to four more warps with `shares`, so that these warps release
/// registers to the warpgroups. All other plans stay as they are.
pipe::RolePlanAttr withRegisters(pipe::RolePlanAttr plan, const RegisterShares &shares);

/// Roles for accumulators in tensor memory: one warp loads, one issues matrix instructions, four
/// read accumulators and store. The second of two `mmaWarps` copies scale factors. With
/// `storesTiles` another warp stores the tiles that the four leave in shared memory, and with
/// `requestsWork` another one asks for tiles.
pipe::RolePlanAttr tensorMemoryRoles(mlir::MLIRContext *context, int32_t mmaWarps = 1,
                                     bool storesTiles = false, bool requestsWork = false,
                                     int32_t epilogueWarps = 4);

/// Roles for sums that `groups` warpgroups add up from tensor memory: one warp loads, one issues
/// matrix instructions, and two beside them only release their registers to two warpgroups.
pipe::RolePlanAttr laneRoles(mlir::MLIRContext *context, int32_t groups);

/// Roles for attention with products in tensor memory: `parts` warpgroups, each a role, have 128
/// rows of queries each, one warp issues matrix instructions, and one loads. Beside two parts two
/// warps only release their registers. The others keep enough for a number of the tile of their
/// own (pipe-place-scalars), without which ptxas keeps one for all roles in memory.
/// Scales of blocks are copied by the warp that issues.
pipe::RolePlanAttr attentionLaneRoles(mlir::MLIRContext *context, int32_t parts, bool copiesScales);

/// Roles for attention of bytes with products in registers: `groups` warpgroups multiply and store,
/// one warp loads, and three beside it transpose values.
pipe::RolePlanAttr byteAttentionRoles(mlir::MLIRContext *context, int32_t groups);

/// Roles for attention whose values are columns of keys: a warpgroup computes powers and has half
/// of the columns, another one has the other half, and one warp loads. Values of bytes have warps
/// that transpose them.
pipe::RolePlanAttr latentRoles(mlir::MLIRContext *context, bool transposes);

/// Roles for weights that `groups` warpgroups make 16-bit floats of in tensor memory, each a k tile
/// in turn: four warps read accumulators and store, one issues matrix instructions, and one loads.
/// If two or four warpgroups convert, the first warpgroup takes registers from the last one, two of
/// whose warps only release theirs.
pipe::RolePlanAttr weightLaneRoles(mlir::MLIRContext *context, int32_t groups);

/// Returns true when CTAs that work by `schedule` ask for tiles while the kernel runs.
bool requestsWork(mlir::Attribute schedule);

/// Roles for accumulators in registers: two warpgroups multiply and store; in a third and a fourth,
/// one warp loads, and seven convert operand B, or both of a dual GEMM. With `hasManyPlaces` these
/// warps also have places of groups, or sizes, in registers.
pipe::RolePlanAttr warpgroupRoles(mlir::MLIRContext *context, bool hasManyPlaces);

/// Roles for accumulators in registers, with operands as they are in shared memory: `groups`
/// warpgroups multiply and store, and one warp loads. With shares, three warps beside it release
/// their registers. With `storesTiles` one of them stores the tiles that multiplying warps leave in
/// shared memory. With `turns` warpgroups begin their MMAs one after the other.
pipe::RolePlanAttr fragmentRoles(mlir::MLIRContext *context, int32_t groups,
                                 const RegisterShares &shares, bool storesTiles = false,
                                 pipe::Turns turns = pipe::Turns::Nothing);

/// Roles for `slices` k slices of a tile: two warpgroups multiply each, those of the first slice
/// add the sums of all and store, and one warp loads.
pipe::RolePlanAttr slicedRoles(mlir::MLIRContext *context, int32_t slices);

/// The schedule in which neighbouring CTAs work on tiles of one column at the same time.
pipe::WorkScheduleAttrInterface neighboursAlongM(mlir::MLIRContext *context);
/// The schedule in panels of `width` columns of tiles.
pipe::WorkScheduleAttrInterface inPanels(mlir::MLIRContext *context, int64_t width);

} // namespace fp4
