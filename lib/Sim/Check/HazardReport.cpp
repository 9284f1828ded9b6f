//===- HazardReport.cpp - Words of the hazard checker ---------------------===//
#include "fp4/Sim/HazardChecker.h"

#include <fmt/format.h>

namespace fp4::sim {

std::string_view stringify(HazardRule rule) {
  switch (rule) {
  case HazardRule::SharedRace:
    return "shared-race";
  case HazardRule::UnwaitedCopy:
    return "unwaited-copy";
  case HazardRule::OverwrittenWhileRead:
    return "overwritten-while-read";
  case HazardRule::MissingProxyFence:
    return "missing-proxy-fence";
  case HazardRule::RelaxedSync:
    return "relaxed-sync";
  case HazardRule::MbarrierInit:
    return "mbarrier-init";
  case HazardRule::MbarrierInitFence:
    return "mbarrier-init-fence";
  }
  return "unknown";
}

std::string HazardReport::text() const {
  const auto note = [&](std::string_view order, const HazardAccess &access) {
    return fmt::format("note: {}:{}: {}: {}: {}\n", program, access.line, order, access.what,
                       access.source);
  };
  return fmt::format("error: {}:{}: kernel '{}': {} [{}]\n", program, second.line, kernel, message,
                     stringify(rule)) +
         note("one", first) + note("other", second) + fmt::format("note: {}\n", remedy);
}

} // namespace fp4::sim
