//===- CApi.cpp - The C ABI on top of the current session -----------------===//

#include "fp4-c/Runtime.h"

#include "fp4/Runtime/Session.h"

using namespace fp4;
using namespace fp4::rt;

namespace {
DevicePtr toDevice(const void *pointer) { return reinterpret_cast<DevicePtr>(pointer); }

/// The error of an operand check that no device should have to repeat.
Error misuse(const char *message) { return {ErrorKind::Internal, message, ""}; }
} // namespace

namespace {
void launchIn(Session *session, const fp4rt_module *module, const char *kernel,
              const LaunchShape &shape, void **params, uint32_t numParams) {
  if (!session)
    return;
  if (!module || !kernel || (numParams && !params))
    return session->fail(misuse("fp4rt_launch expects a module, a kernel name and its parameters"));
  session->launch(*module, kernel, shape, {params, numParams});
}
} // namespace

extern "C" {

void *fp4rt_alloc(uint64_t bytes) {
  Session *session = Session::current();
  return session ? session->allocate(bytes) : nullptr;
}

void *fp4rt_alloc_result(uint32_t index, uint64_t bytes) {
  Session *session = Session::current();
  return session ? session->allocateResult(index, bytes) : nullptr;
}

uint64_t fp4rt_result_pitch(uint32_t index, uint64_t bytes) {
  Session *session = Session::current();
  return session ? session->resultPitch(index, bytes) : bytes;
}

void fp4rt_free(void *device) {
  if (Session *session = Session::current())
    session->free(device);
}

void *fp4rt_constant(const void *bytes, uint64_t size) {
  Session *session = Session::current();
  return session ? session->constant(bytes, size) : nullptr;
}

void *fp4rt_counters(uint64_t bytes) {
  Session *session = Session::current();
  return session ? session->counters(bytes) : nullptr;
}

void fp4rt_memset(void *device, uint8_t value, uint64_t bytes) {
  if (Session *session = Session::current())
    session->memset(device, value, bytes);
}

void fp4rt_memcpy_2d(void *dst, uint64_t dstPitch, const void *src, uint64_t srcPitch,
                     uint64_t width, uint64_t height) {
  if (Session *session = Session::current())
    session->copy2D({toDevice(dst), dstPitch, toDevice(src), srcPitch, width, height});
}

void fp4rt_tensor_map(void *out128, void *base, int32_t elementType, int32_t swizzle, int32_t rank,
                      const uint64_t *dims, const uint64_t *strides, const uint32_t *box) {
  Session *session = Session::current();
  if (!session)
    return;
  if (rank < 1 || rank > 5 || !out128)
    return session->fail(
        misuse("fp4rt_tensor_map expects a rank of 1 to 5 and a place to write to"));
  size_t n = static_cast<size_t>(rank);
  session->encodeTensorMap(
      out128, {toDevice(base), elementType, swizzle, {dims, n}, {strides, n - 1}, {box, n}});
}

int32_t fp4rt_multiprocessor_count(void) {
  Session *session = Session::current();
  return session ? session->smCount() : 1;
}

void fp4rt_fail(const char *message, const char *note) {
  if (Session *session = Session::current())
    session->fail({ErrorKind::Usage, message ? message : "host code failed", note ? note : ""});
}

void fp4rt_expect_size(const char *what, int64_t found, int64_t min, int64_t max,
                       const char *note) {
  Session *session = Session::current();
  if (!session || (min <= found && found <= max))
    return;
  std::string expected = min == max ? std::to_string(min)
                                    : "from " + std::to_string(min) + " to " + std::to_string(max);
  session->fail({ErrorKind::Usage,
                 std::string(what ? what : "a size") + " must be " + expected + ", but got " +
                     std::to_string(found),
                 note ? note : ""});
}

void fp4rt_launch(const fp4rt_module *module, const char *kernel, uint32_t gridX, uint32_t gridY,
                  uint32_t gridZ, uint32_t blockX, uint32_t blockY, uint32_t blockZ,
                  uint32_t sharedBytes, void **params, uint32_t numParams) {
  launchIn(Session::current(), module, kernel,
           {.grid = {gridX, gridY, gridZ},
            .block = {blockX, blockY, blockZ},
            .dynamicSharedBytes = sharedBytes},
           params, numParams);
}

void fp4rt_launch_dependent(const fp4rt_module *module, const char *kernel, uint32_t gridX,
                            uint32_t gridY, uint32_t gridZ, uint32_t blockX, uint32_t blockY,
                            uint32_t blockZ, uint32_t sharedBytes, void **params,
                            uint32_t numParams) {
  launchIn(Session::current(), module, kernel,
           {.grid = {gridX, gridY, gridZ},
            .block = {blockX, blockY, blockZ},
            .dynamicSharedBytes = sharedBytes,
            .dependent = true},
           params, numParams);
}

void fp4rt_launch_cooperative(const fp4rt_module *module, const char *kernel, uint32_t gridX,
                              uint32_t gridY, uint32_t gridZ, uint32_t blockX, uint32_t blockY,
                              uint32_t blockZ, uint32_t sharedBytes, void **params,
                              uint32_t numParams) {
  launchIn(Session::current(), module, kernel,
           {.grid = {gridX, gridY, gridZ},
            .block = {blockX, blockY, blockZ},
            .dynamicSharedBytes = sharedBytes,
            .cooperative = true},
           params, numParams);
}

void fp4rt_launch_clusters(const fp4rt_module *module, const char *kernel, uint32_t gridX,
                           uint32_t gridY, uint32_t gridZ, uint32_t blockX, uint32_t blockY,
                           uint32_t blockZ, uint32_t sharedBytes, void **params, uint32_t numParams,
                           uint32_t dependent, uint32_t clusterX, uint32_t clusterY,
                           uint32_t preferredX, uint32_t preferredY) {
  launchIn(Session::current(), module, kernel,
           {.grid = {gridX, gridY, gridZ},
            .block = {blockX, blockY, blockZ},
            .cluster = {clusterX, clusterY, 1},
            .dynamicSharedBytes = sharedBytes,
            .dependent = dependent != 0,
            .preferredCluster = {preferredX, preferredY, 1}},
           params, numParams);
}

void *fp4rt_group_report(const char *what) {
  Session *session = Session::current();
  return session ? session->groupReport(what ? what : "operand 'offsets'") : nullptr;
}

void fp4rt_call(fp4_entry_function entry, void *const *buffers, const fp4rt_memref_type *types,
                uint32_t numArguments, uint32_t numResults) {
  if (Session *session = Session::current())
    session->call(entry, buffers, types, numArguments, numResults);
}
}

namespace {
constexpr fp4rt_api kApi = {
    .size = sizeof(fp4rt_api),
#define FP4RT_FUNCTION(name) .name = fp4rt_##name,
#include "fp4/Runtime/AbiFunctions.def"
};
} // namespace

const fp4rt_api *fp4rt_get_api(void) { return &kApi; }

std::span<const AbiSymbol> fp4::rt::abiSymbols() {
  static const AbiSymbol symbols[] = {
#define FP4RT_FUNCTION(name) {"fp4rt_" #name, reinterpret_cast<void *>(&fp4rt_##name)},
#include "fp4/Runtime/AbiFunctions.def"
  };
  return symbols;
}
