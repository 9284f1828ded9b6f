//===- LaunchAttributes.h - Attributes of launches ------------------------===//
#pragma once

#include "Context.h"

namespace fp4::simcuda {

/// The name of an attribute in the runtime's or the driver's header; its number if it has none
/// here.
FP4_HOST_API std::string attributeName(int id, bool driver);

FP4_HOST_API bool isKnownAttribute(int id);
/// Says once that the simulator does without an attribute.
FP4_HOST_API void warnOfAttribute(const char *function, int id, bool driver);

/// The owner of an attribute: a launch, or a node of a graph, which gets its dependences as edges.
enum class AttributeOf : uint8_t { Launch, Node };

/// Sets what the attribute asks for. An attribute without the effect that it should have is
/// reported once.
FP4_HOST_API Code applyAttribute(const char *function, const LaunchAttribute &attribute,
                                 AttributeOf target, bool driver, LaunchAttributes &asked);

} // namespace fp4::simcuda
