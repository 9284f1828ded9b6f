//===- load.cpp - An emitted library in a program of one's own ------------===//
//
// Loads what fp4-runner --emit=so made of amax.mlir and calls its entry point: docs/Libraries.md.
//
//===----------------------------------------------------------------------===//

#include "fp4/Runtime/OpenDevice.h"
#include "fp4/Runtime/Session.h"

#include <cstdio>
#include <dlfcn.h>

template <int Rank> struct Descriptor {
  void *allocated, *aligned;
  int64_t offset = 0, sizes[Rank ? Rank : 1], strides[Rank ? Rank : 1];
};

static fp4::Expected<float> amax(void (*entry)(void **)) {
  auto device = fp4::rt::openDevice("auto", {}); // for sm_100a
  if (!device)
    return tl::unexpected(device.error());
  fp4::rt::Session session(**device);
  const float x[2][4] = {{1, -2, 3, -4}, {5, -6, 7, -8}};
  void *memory = session.allocate(sizeof(x));
  auto address = reinterpret_cast<fp4::rt::DevicePtr>(memory);
  FP4_TRY((*device)->copyToDevice(address, std::as_bytes(std::span(x))));
  Descriptor<2> argument{memory, memory, 0, {2, 4}, {4, 1}};
  struct {
    void *allocated, *aligned;
    int64_t offset;
  } result{};
  {
    fp4::rt::Session::Scope scope(session); // the fp4rt_ calls of this thread act on this session
    void *arguments[] = {&result, &argument};
    entry(arguments);
  }
  FP4_TRY(session.finish()); // waits; the first error, if any
  float amax = 0;
  FP4_TRY((*device)->copyToHost(std::as_writable_bytes(std::span(&amax, 1)),
                                reinterpret_cast<fp4::rt::DevicePtr>(result.aligned)));
  return amax;
}

int main(int, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void *entry = library ? dlsym(library, "fp4_entry_amax") : nullptr;
  if (!entry) {
    std::fprintf(stderr, "error: %s\n", dlerror());
    return 2;
  }
  auto result = amax(reinterpret_cast<void (*)(void **)>(entry));
  if (!result) {
    std::fputs(fp4::format(result.error()).c_str(), stderr);
    return fp4::exitCode(result.error());
  }
  std::printf("amax %g\n", *result);
  return *result == 8 ? 0 : 1;
}
