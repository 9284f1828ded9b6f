//===- ReportJson.cpp - Findings of the instruments, as JSON --------------===//
#include "fp4/Sim/ReportJson.h"

namespace fp4::sim {

static nlohmann::ordered_json toJson(const HazardAccess &access) {
  nlohmann::ordered_json object = {{"line", access.line},
                                   {"column", access.column},
                                   {"what", access.what},
                                   {"source", access.source}};
  if (!access.origin.empty())
    object["origin"] = access.origin;
  return object;
}

nlohmann::ordered_json toJson(const HazardReport &report) {
  return {{"rule", stringify(report.rule)},
          {"program", report.program},
          {"kernel", report.kernel},
          {"message", report.message},
          {"place", report.place},
          {"first", toJson(report.first)},
          {"second", toJson(report.second)},
          {"missing", report.remedy},
          {"count", report.count}};
}

nlohmann::ordered_json toJson(const AccessCount &count) {
  return {{"program", count.program},   {"kernel", count.kernel},
          {"line", count.line},         {"column", count.column},
          {"source", count.source},     {"memory", count.shared ? "shared" : "global"},
          {"accesses", count.accesses}, {"cost", count.cost},
          {"least", count.least}};
}

nlohmann::ordered_json toJson(const OrderReport &report) {
  static constexpr std::string_view failures[] = {"none", "error", "hazard", "result"};
  nlohmann::ordered_json object = {{"kernel", report.kernel},
                                   {"orders", report.orders},
                                   {"pruned", report.pruned},
                                   {"longest", report.longest},
                                   {"processes", report.processes},
                                   {"commuting_pairs", report.commuting},
                                   {"every_access", report.everyAccess},
                                   {"complete", report.complete},
                                   {"failure", failures[size_t(report.failure)]},
                                   {"seconds", report.seconds}};
  if (!report.order.empty())
    object["order"] = report.order;
  return object;
}

static nlohmann::ordered_json toJson(const RoleTime &role) {
  nlohmann::ordered_json shares;
  for (size_t i = 0; i < kActivities; ++i)
    shares[std::string(stringify(Activity(i)))] = role.share[i];
  return {{"name", role.name},
          {"first_warp", role.firstWarp},
          {"last_warp", role.lastWarp},
          {"instructions", role.instructions},
          {"share", std::move(shares)}};
}

static nlohmann::ordered_json toJson(const PowerUse &power) {
  nlohmann::ordered_json parts;
  for (const auto &[name, watts] : power.parts)
    parts[name] = watts;
  return {{"watts", power.watts},
          {"limit_watts", power.limit},
          {"parts", std::move(parts)},
          {"sustained_gigahertz", power.gigahertz},
          {"sustained_microseconds", power.microseconds}};
}

nlohmann::ordered_json toJson(const KernelTime &time) {
  nlohmann::ordered_json object = {{"kernel", time.kernel},   {"target", time.target},
                                   {"grid", time.grid},       {"block", time.block},
                                   {"cluster", time.cluster}, {"predicted", time.missing.empty()}};
  if (!time.missing.empty()) {
    object["unknown"] = time.missing;
    return object;
  }
  object.update({{"microseconds", time.microseconds},
                 {"launch_microseconds", time.launchMicroseconds},
                 {"cycles", time.cycles},
                 {"gigahertz", time.gigahertz},
                 {"flops", time.flops},
                 {"memory_bytes", time.memoryBytes},
                 {"l2_bytes", time.l2Bytes},
                 {"bound", time.bound()},
                 {"ctas_per_sm", time.ctasPerSm},
                 {"registers", time.registers},
                 {"spilled_bytes", time.spilledBytes},
                 {"simulated_sms", time.sample.simulated},
                 {"sms", time.sample.sms},
                 {"sampled", time.sampled()}});
  if (!time.sample.whole.empty())
    object["not_sampled"] = time.sample.whole;
  if (time.power)
    object["power"] = toJson(*time.power);
  for (const ResourceTime &resource : time.resources)
    object["busy"][resource.name] = resource.busy;
  object["roles"] = nlohmann::ordered_json::array();
  for (const RoleTime &role : time.roles)
    object["roles"].push_back(toJson(role));
  return object;
}

} // namespace fp4::sim
