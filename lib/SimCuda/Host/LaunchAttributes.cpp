//===- LaunchAttributes.cpp - Attributes of launches ----------------------===//
#include "LaunchAttributes.h"
#include <algorithm>
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::simcuda;

namespace {

enum class Effect : uint8_t { Executed, Hint, Unsupported };

struct Row {
  int number;
  const char *runtime, *driver;
  Effect effect;
};
constexpr Row rows[] = {
#define FP4_ATTRIBUTE(number, runtime, driver, effect) {number, #runtime, driver, Effect::effect},
#include "LaunchAttributes.def"
#undef FP4_ATTRIBUTE
};

const Row *findRow(int id) {
  const Row *found = std::ranges::find(rows, id, &Row::number);
  return found == std::end(rows) ? nullptr : found;
}

Code refuse(const char *function, int id, bool driver, std::string why, std::string note = "") {
  return Context::get().fail(function, InvalidValue,
                             fmt::format("launch attribute {} {}", attributeName(id, driver), why),
                             std::move(note));
}

/// The event of a launch that triggers or begins.
Code setEvent(const char *function, const LaunchAttribute &attribute, bool driver,
              LaunchAttributes &asked) {
  Event *event = attribute.recorded.event;
  if (!event)
    return refuse(function, attribute.id, driver, "must have an event, but got null");
  FP4_LIVE_IN(function, event);
  constexpr unsigned disableTiming = 2;
  if (!(event->flags & disableTiming))
    return refuse(function, attribute.id, driver, "must have an event without timing",
                  "create it with cudaEventDisableTiming");
  asked.dependence.event = event;
  asked.dependence.eventAttribute = attribute.id;
  return Success;
}

} // namespace

std::string fp4::simcuda::attributeName(int id, bool driver) {
  const Row *row = findRow(id);
  if (!row)
    return std::to_string(id);
  return driver ? std::string("CU_LAUNCH_ATTRIBUTE_") + row->driver
                : std::string("cudaLaunchAttribute") + row->runtime;
}

bool fp4::simcuda::isKnownAttribute(int id) { return findRow(id) != nullptr; }

void fp4::simcuda::warnOfAttribute(const char *function, int id, bool driver) {
  warnOnce(
      function,
      fmt::format("launch attribute {} is not known to the simulator", attributeName(id, driver)),
      "the launch is simulated without it");
}

Code fp4::simcuda::applyAttribute(const char *function, const LaunchAttribute &attribute,
                                  AttributeOf target, bool driver, LaunchAttributes &asked) {
  asked.dependence.driver = driver;
  const Row *row = findRow(attribute.id);
  if (!row || (row->effect == Effect::Unsupported && attribute.flag)) {
    warnOfAttribute(function, attribute.id, driver);
    return Success;
  }
  const bool overlaps = attribute.id == AttributeProgrammaticStreamSerialization ||
                        attribute.id == AttributeProgrammaticEvent ||
                        attribute.id == AttributeLaunchCompletionEvent;
  if (overlaps && target == AttributeOf::Node)
    return refuse(function, attribute.id, driver, "is one of launches, and not of nodes",
                  "add an edge of type cudaGraphDependencyTypeProgrammatic");
  switch (attribute.id) {
  case AttributeClusterDimension:
    asked.cluster = attribute.dim;
    return Success;
  case AttributePreferredClusterDimension:
    asked.preferredCluster = attribute.dim;
    return Success;
  case AttributeCooperative:
    asked.cooperative = attribute.flag != 0;
    return Success;
  case AttributeProgrammaticStreamSerialization:
    asked.dependence.serialized = attribute.flag != 0;
    return Success;
  case AttributeProgrammaticEvent:
  case AttributeLaunchCompletionEvent:
    return setEvent(function, attribute, driver, asked);
  default:
    return Success;
  }
}
