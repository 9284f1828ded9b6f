//===- RolePlans.cpp - Roles and schedules of kernels on tiles ------------===//

#include "RolePlans.h"
#include "fp4/Dialect/Pipe/IR/Engines.h"
#include "fp4/Plans/KernelPlans.h"

using namespace mlir;
using fp4::pipe::Engine;
using fp4::pipe::RoleAttr;
using fp4::pipe::RolePlanAttr;
using fp4::pipe::Turns;

/// A role of threads that run the ops alone that name it.
static RoleAttr auxiliaryRole(MLIRContext *context, StringRef name, int32_t first, int32_t end,
                              int32_t registers, Turns turns = Turns::Nothing) {
  return RoleAttr::get(context, name, first, end, {Engine::Threads}, registers, turns,
                       /*auxiliary=*/true);
}

/// Roles of tensor memory. The epilogue has the first warps because a warp reaches the TMEM lanes
/// of its index modulo 4.
RolePlanAttr fp4::tensorMemoryRoles(MLIRContext *context, int32_t mmaWarps, bool storesTiles,
                                    bool requestsWork, int32_t epilogueWarps) {
  int32_t next = epilogueWarps + mmaWarps;
  SmallVector<RoleAttr> roles = {
      RoleAttr::get(context, "load", next, next + 1, {Engine::Tma}, 0),
      RoleAttr::get(context, "mma", epilogueWarps, next, {Engine::Tensor, Engine::ScaleCopy}, 0),
      RoleAttr::get(context, "epilogue", 0, epilogueWarps, {Engine::Threads}, 0)};
  auto addWarp = [&](StringRef name, Engine engine) {
    ++next;
    roles.push_back(RoleAttr::get(context, name, next, next + 1, {engine}, 0));
  };
  if (storesTiles)
    addWarp("store", Engine::BulkStore);
  if (requestsWork)
    addWarp("scheduler", Engine::WorkQueue);
  return RolePlanAttr::get(context, roles);
}

RolePlanAttr fp4::withRegisters(RolePlanAttr plan, const RegisterShares &shares) {
  constexpr int32_t threads = 8, end = 12; // warps of two warpgroups, and of three
  int32_t warps = plan.getNumThreads() / 32;
  if (warps <= threads || warps > end)
    return plan;
  MLIRContext *context = plan.getContext();
  SmallVector<RoleAttr> roles;
  for (RoleAttr role : plan.getRoles())
    roles.push_back(RoleAttr::get(context, role.getName(), role.getFirstWarp(), role.getEndWarp(),
                                  role.getEngines(),
                                  role.getFirstWarp() < threads ? shares.math : shares.others,
                                  role.getTurns(), role.getAuxiliary()));
  if (warps < end)
    roles.push_back(RoleAttr::get(context, "idle", warps, end, {}, shares.others));
  return RolePlanAttr::get(context, roles);
}

RolePlanAttr fp4::laneRoles(MLIRContext *context, int32_t groups) {
  int32_t threads = 4 * groups;
  auto [most, few] = groups > 1 ? kMoreBeside : RegisterShares();
  return RolePlanAttr::get(
      context, {RoleAttr::get(context, "load", threads + 1, threads + 2, {Engine::Tma}, few),
                RoleAttr::get(context, "mma", threads, threads + 1, {Engine::Tensor}, few),
                RoleAttr::get(context, "promote", 0, threads, {Engine::Threads}, most),
                auxiliaryRole(context, "clear", threads + 2, threads + 4, few)});
}

RolePlanAttr fp4::attentionLaneRoles(MLIRContext *context, int32_t parts, bool copiesScales) {
  constexpr int32_t group = 4;
  int32_t threads = group * parts;
  SmallVector<Engine> engines = {Engine::Tensor};
  if (copiesScales)
    engines.push_back(Engine::ScaleCopy);
  constexpr RegisterShares shares[] = {RegisterShares(), kMoreBeside, {160, 32}};
  auto [most, few] = shares[parts - 1];
  SmallVector<RoleAttr> roles = {
      RoleAttr::get(context, "load", threads + 1, threads + 2, {Engine::Tma}, few),
      RoleAttr::get(context, "mma", threads, threads + 1, engines, few),
      RoleAttr::get(context, "softmax", 0, group, {Engine::Threads}, most)};
  for (int32_t part = 1; part < parts; ++part)
    roles.push_back(auxiliaryRole(context, "softmax" + std::to_string(part), group * part,
                                  group * (part + 1), most));
  if (few)
    roles.push_back(RoleAttr::get(context, "idle", threads + 2, threads + group, {}, few));
  return RolePlanAttr::get(context, roles);
}

RolePlanAttr fp4::byteAttentionRoles(MLIRContext *context, int32_t groups) {
  int32_t math = 4 * groups;
  constexpr RegisterShares shares[] = {RegisterShares(), kMoreBeside, {160, 32}};
  auto [most, few] = shares[groups - 1];
  return RolePlanAttr::get(
      context, {RoleAttr::get(context, "load", math, math + 1, {Engine::Tma}, few),
                auxiliaryRole(context, kTransposeRole, math + 1, math + 4, few),
                RoleAttr::get(context, "math", 0, math, {Engine::Tensor, Engine::Threads}, most)});
}

RolePlanAttr fp4::latentRoles(MLIRContext *context, bool transposes) {
  auto [most, few] = transposes ? kMoreBeside : kFewBeside;
  auto math = [&](StringRef name, int32_t first, bool isAuxiliary) {
    return RoleAttr::get(context, name, first, first + 4, {Engine::Tensor, Engine::Threads}, most,
                         Turns::Nothing, isAuxiliary);
  };
  RoleAttr rest = transposes ? auxiliaryRole(context, kTransposeRole, 9, 12, few)
                             : RoleAttr::get(context, "idle", 9, 12, {}, few);
  return RolePlanAttr::get(context, {RoleAttr::get(context, "load", 8, 9, {Engine::Tma}, few),
                                     math("math", 0, false), math(kValuesRole, 4, true), rest});
}

namespace {
/// Registers of the roles beside warpgroups that convert; 0 leaves those of the launch.
struct LaneRegisters {
  int32_t epilogue = 0, issuers = 0, convert = 0;
};
} // namespace

/// Registers beside converting warpgroups. An epilogue region has the numbers of a chunk beside its
/// sums. The epilogue gets the registers that other roles leave: of 80 for each of 768 threads if
/// four warpgroups convert, or of 128 for each of 512.
static LaneRegisters registersBeside(int32_t groups) {
  if (groups == 4)
    return {.epilogue = 184, .issuers = 40, .convert = 64};
  if (groups == 2)
    return {.epilogue = 216, .issuers = 40};
  return {};
}

RolePlanAttr fp4::weightLaneRoles(MLIRContext *context, int32_t groups) {
  int32_t end = 4 + 4 * groups;
  LaneRegisters of = registersBeside(groups);
  SmallVector<RoleAttr> roles = {
      RoleAttr::get(context, "load", end + 1, end + 2, {Engine::Tma}, of.issuers),
      RoleAttr::get(context, "mma", end, end + 1, {Engine::Tensor}, of.issuers),
      auxiliaryRole(context, "convert", 4, end, of.convert,
                    groups > 1 ? Turns::Stages : Turns::Nothing),
      RoleAttr::get(context, "epilogue", 0, 4, {Engine::Threads}, of.epilogue)};
  if (of.issuers) // a whole warpgroup releases registers
    roles.push_back(RoleAttr::get(context, "idle", end + 2, end + 4, {}, of.issuers));
  return RolePlanAttr::get(context, roles);
}

bool fp4::requestsWork(Attribute schedule) {
  auto interface = dyn_cast_or_null<fp4::pipe::WorkScheduleAttrInterface>(schedule);
  return interface && interface.getRingDepth() > 0;
}

/// Shares of the 128 registers that the launch gives each of 512 threads: two warpgroups have
/// fragments, and two the other roles. Warps that convert both operands B also have places of a
/// group, or sizes.
static constexpr fp4::RegisterShares kConvertShares = {208, 48}, kGateShares = {184, 72};

RolePlanAttr fp4::warpgroupRoles(MLIRContext *context, bool hasManyPlaces) {
  const RegisterShares &shares = hasManyPlaces ? kGateShares : kConvertShares;
  return RolePlanAttr::get(
      context,
      {RoleAttr::get(context, "load", 8, 9, {Engine::Tma}, shares.others),
       auxiliaryRole(context, "convert", 9, 16, shares.others),
       RoleAttr::get(context, "math", 0, 8, {Engine::Tensor, Engine::Threads}, shares.math)});
}

/// Roles of fragments. Warps of the loading warpgroup that do not store release their registers, and
/// clear rows that no group has.
RolePlanAttr fp4::fragmentRoles(MLIRContext *context, int32_t groups, const RegisterShares &shares,
                                bool storesTiles, Turns turns) {
  bool clears = shares.others != 0;
  int32_t math = 4 * groups, next = math + (storesTiles ? 2 : 1);
  SmallVector<RoleAttr> roles = {
      RoleAttr::get(context, "load", math, math + 1, {Engine::Tma}, shares.others),
      RoleAttr::get(context, "math", 0, math, {Engine::Tensor, Engine::Threads}, shares.math,
                    turns)};
  if (storesTiles)
    roles.push_back(
        RoleAttr::get(context, "store", math + 1, next, {Engine::BulkStore}, shares.others));
  if (clears)
    roles.push_back(auxiliaryRole(context, "clear", next, math + 4, shares.others));
  return RolePlanAttr::get(context, roles);
}

RolePlanAttr fp4::slicedRoles(MLIRContext *context, int32_t slices) {
  constexpr int32_t warps = 8;
  int32_t end = warps * slices;
  SmallVector<RoleAttr> roles = {
      RoleAttr::get(context, "load", end, end + 1, {Engine::Tma}, 0),
      RoleAttr::get(context, "math", 0, warps, {Engine::Tensor, Engine::Threads}, 0)};
  for (int32_t slice = 1; slice < slices; ++slice)
    roles.push_back(RoleAttr::get(context, "slice" + std::to_string(slice), warps * slice,
                                  warps * (slice + 1), {Engine::Tensor, Engine::Threads}, 0,
                                  Turns::Nothing, /*auxiliary=*/true));
  return RolePlanAttr::get(context, roles);
}
