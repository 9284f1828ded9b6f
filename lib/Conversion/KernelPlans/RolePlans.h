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
/// What two warpgroups and one beside them make of the 168 registers for each of 384 threads. Those
/// beside need more where they have sizes of a product, which the host alone knows, or scales of
/// FP8.
inline constexpr RegisterShares kFewBeside = {240, 24}, kMoreBeside = {232, 40};

/// The same roles of two warpgroups and up to four warps more, which give registers to these. Other
/// plans stay as they are.
pipe::RolePlanAttr withRegisters(pipe::RolePlanAttr plan, const RegisterShares &shares);

/// For accumulators in tensor memory: one warp loads, one issues matrix instructions, four read
/// accumulators and store. Of two `mmaWarps` the second copies scale factors, with `storesTiles`
/// another one issues the stores of what the four leave in shared memory, and with `requestsWork`
/// another one asks for tiles.
pipe::RolePlanAttr tensorMemoryRoles(mlir::MLIRContext *context, int32_t mmaWarps = 1,
                                     bool storesTiles = false, bool requestsWork = false,
                                     int32_t epilogueWarps = 4);

/// For sums that `groups` warpgroups add up from tensor memory: one warp loads, one issues matrix
/// instructions, and two beside them are spare. Two warpgroups take registers from these.
pipe::RolePlanAttr laneRoles(mlir::MLIRContext *context, int32_t groups);

/// For weights that `groups` warpgroups make 16-bit floats of in tensor memory, each a k tile in
/// turn: four warps read accumulators and store, one issues matrix instructions, and one loads.
/// Beside two and four, the first warpgroup takes registers from the last one, of which two warps
/// are spare.
pipe::RolePlanAttr weightLaneRoles(mlir::MLIRContext *context, int32_t groups);

/// Blocks that work by `schedule` ask for tiles while the kernel runs.
bool requestsWork(mlir::Attribute schedule);

/// For accumulators in registers: two warpgroups multiply and store; of a third and a fourth, one
/// warp loads, and seven convert operand B, or both of a dual product. With `hasManyPlaces` these
/// have places of groups, or sizes, in registers besides.
pipe::RolePlanAttr warpgroupRoles(mlir::MLIRContext *context, bool hasManyPlaces);

/// For accumulators in registers, operands as they are in shared memory: `groups` warpgroups
/// multiply and store, and one warp loads. With shares, three warps beside it give their registers
/// away. With `storesTiles` one of them stores what multiplying ones leave in shared memory.
pipe::RolePlanAttr fragmentRoles(mlir::MLIRContext *context, int32_t groups,
                                 const RegisterShares &shares, bool storesTiles = false);

/// Neighbouring blocks work on tiles of one column at the same time.
pipe::WorkScheduleAttrInterface neighboursAlongM(mlir::MLIRContext *context);

} // namespace fp4
