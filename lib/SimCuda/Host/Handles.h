//===- Handles.h - Handles of live objects --------------------------------===//
//
// Programs hold streams, events, graphs and nodes by their addresses. A handle that was destroyed,
// or that nobody gave, is an error of the call, and no memory to look into. Modules and functions
// are known to the Context.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Abi.h"
#include "Report.h"
#include <cstdint>

namespace fp4::simcuda {

struct Stream;
struct Event;
struct GraphHandle;
struct GraphNode;
struct Module;
struct Function;

enum class HandleKind : uint8_t { Stream, Event, Graph, Node };

FP4_HOST_API void setLive(HandleKind kind, const void *object, bool live);

/// The first base of what handles point to: it is live as long as it exists.
template <HandleKind kind> struct Live {
  Live() { setLive(kind, this, true); }
  ~Live() { setLive(kind, this, false); }
  Live(const Live &) = delete;
  Live &operator=(const Live &) = delete;
};

/// The default streams 0, 1 and 2 are live too.
FP4_HOST_API bool isLive(const Stream *stream);
FP4_HOST_API bool isLive(const Event *event);
FP4_HOST_API bool isLive(const GraphHandle *graph);
FP4_HOST_API bool isLive(const GraphNode *node);
FP4_HOST_API bool isLive(const Module *module);
FP4_HOST_API bool isLive(const Function *function);

/// Returns the code that the driver's documentation has for a dead handle of this kind.
inline Code codeOf(const GraphHandle *) { return InvalidValue; }
inline Code codeOf(const GraphNode *) { return InvalidValue; }
template <typename T> Code codeOf(const T *) { return InvalidResourceHandle; }

/// The code of an error that was printed, or Success.
FP4_HOST_API Code refuseDead(const char *function, Code code, const void *handle);

template <typename T> Code checkLive(const char *function, const T *handle) {
  return isLive(handle) ? Success : refuseDead(function, codeOf(handle), handle);
}
/// Checks several handles: returns the code of the first that is not live.
template <typename T, typename... More>
Code checkLive(const char *function, const T *handle, const More *...more) {
  const Code code = checkLive(function, handle);
  return code == Success ? checkLive(function, more...) : code;
}

#define FP4_LIVE_IN(function, ...)                                                                 \
  do {                                                                                             \
    if (const Code liveCode = checkLive(function, __VA_ARGS__); liveCode != Success)               \
      return liveCode;                                                                             \
  } while (false)
/// The handles of an entry point.
#define FP4_REQUIRE_LIVE(...) FP4_LIVE_IN(__func__, __VA_ARGS__)

} // namespace fp4::simcuda
