//===- Handles.cpp - Handles of live objects ------------------------------===//
#include "Handles.h"
#include "Context.h"
#include <fmt/format.h>
#include <set>

using namespace fp4::simcuda;

namespace {
/// Never destroyed, since programs call CUDA in their own exit handlers.
struct Registry {
  std::mutex mutex;
  std::set<std::pair<HandleKind, const void *>> live;
};

Registry &registry() {
  static Registry *only = new Registry;
  return *only;
}

bool isKnown(HandleKind kind, const void *handle) {
  std::lock_guard guard(registry().mutex);
  return registry().live.contains({kind, handle});
}
} // namespace

void fp4::simcuda::setLive(HandleKind kind, const void *object, bool live) {
  std::lock_guard guard(registry().mutex);
  if (live)
    registry().live.insert({kind, object});
  else
    registry().live.erase({kind, object});
}

bool fp4::simcuda::isLive(const Stream *stream) {
  constexpr uintptr_t lastDefault = 2;
  return reinterpret_cast<uintptr_t>(stream) <= lastDefault || isKnown(HandleKind::Stream, stream);
}
bool fp4::simcuda::isLive(const Event *event) { return isKnown(HandleKind::Event, event); }
bool fp4::simcuda::isLive(const GraphHandle *graph) { return isKnown(HandleKind::Graph, graph); }
bool fp4::simcuda::isLive(const GraphNode *node) { return isKnown(HandleKind::Node, node); }
bool fp4::simcuda::isLive(const Module *module) { return Context::get().isLoaded(module); }
bool fp4::simcuda::isLive(const Function *function) {
  return function && Context::get().resolve(function) == function;
}

Code fp4::simcuda::refuseDead(const char *function, Code code, const void *handle) {
  return Context::get().fail(function, code,
                             fmt::format("{} must be the handle of a live object", handle),
                             "it was destroyed before, or is of another kind");
}
