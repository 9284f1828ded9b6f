// Queries of the table of targets; its rows are in Targets.cpp.
#include "fp4/ISA/TargetModel.h"

namespace fp4::hw {

const TargetModel *lookupTarget(std::string_view name) {
  for (const TargetModel &target : targets())
    if (target.name == name)
      return &target;
  return nullptr;
}

Expected<const TargetModel *> requireTarget(std::string_view name) {
  if (const TargetModel *target = lookupTarget(name))
    return target;
  std::string known;
  for (const TargetModel &target : targets())
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  return makeError(ErrorKind::Usage, "unknown target '" + std::string(name) + "'",
                   "known targets: " + known);
}

template <typename Predicate> static std::string targetsThat(Predicate has) {
  std::string names;
  for (const TargetModel &target : targets())
    if (has(target))
      names += (names.empty() ? "" : ", ") + std::string(target.name);
  return names;
}

std::string targetsWith(bool TargetFeatures::*has) {
  return targetsThat([&](const TargetModel &target) { return target.features.*has; });
}

/// The error for a missing feature. `others` are the targets that have it.
static Status makeLack(const TargetModel &target, std::string_view feature,
                       const std::string &others) {
  return makeError(ErrorKind::Compile,
                   "target '" + std::string(target.name) + "' has no " + std::string(feature),
                   "targets with " + std::string(feature) + ": " + others);
}

Status requireFeature(const TargetModel &target, bool TargetFeatures::*has,
                      std::string_view feature) {
  if (target.features.*has)
    return {};
  return makeLack(target, feature, targetsWith(has));
}

} // namespace fp4::hw
