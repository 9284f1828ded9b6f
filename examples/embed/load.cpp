//===- load.cpp - An emitted library in a program of one's own ------------===//
//
// Loads what fp4-runner --emit=so made of amax.mlir and calls its entry point, then its C interface
// with buffers of the host: docs/guides/libraries.md.
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

using Interface = void (*)(Descriptor<2> *argument, Descriptor<0> *destination);

static float x[2][4] = {{1, -2, 3, -4}, {5, -6, 7, -8}};

/// The entry point makes its result on the device.
static fp4::Expected<float> callEntry(fp4::rt::Device &device, fp4_entry_function entry) {
  fp4::rt::Session session(device);
  void *memory = session.allocate(sizeof(x));
  auto address = reinterpret_cast<fp4::rt::DevicePtr>(memory);
  FP4_TRY(device.copyToDevice(address, std::as_bytes(std::span(x))));
  Descriptor<2> argument{memory, memory, 0, {2, 4}, {4, 1}};
  Descriptor<0> result{};
  {
    fp4::rt::Session::Scope scope(session); // the fp4rt_ calls of this thread act on this session
    void *arguments[] = {&result, &argument};
    entry(arguments);
  }
  FP4_TRY(session.finish()); // waits; the first error, if any
  float amax = 0;
  FP4_TRY(device.copyToHost(std::as_writable_bytes(std::span(&amax, 1)),
                            reinterpret_cast<fp4::rt::DevicePtr>(result.aligned)));
  return amax;
}

/// The C interface of MLIR takes a place for the result, here in host memory like the argument.
static fp4::Expected<float> callInterface(fp4::rt::Device &device, Interface interface) {
  fp4::rt::Session session(device);
  session.setCallerMemory(fp4::rt::CallerMemory::Host);
  float amax = 0;
  Descriptor<2> argument{x, x, 0, {2, 4}, {4, 1}};
  Descriptor<0> destination{&amax, &amax};
  {
    fp4::rt::Session::Scope scope(session);
    interface(&argument, &destination);
  }
  FP4_TRY(session.finish());
  return amax;
}

static fp4::Expected<bool> callBoth(void *entry, void *interface) {
  FP4_ASSIGN(auto device, fp4::rt::openDevice("auto", {})); // for sm_100a
  FP4_ASSIGN(float made, callEntry(*device, reinterpret_cast<fp4_entry_function>(entry)));
  FP4_ASSIGN(float placed, callInterface(*device, reinterpret_cast<Interface>(interface)));
  std::printf("amax %g, and %g by the C interface\n", made, placed);
  return made == 8 && placed == 8;
}

int main(int, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void *bind = library ? dlsym(library, "fp4_bind") : nullptr;
  void *entry = bind ? dlsym(library, "fp4_entry_amax") : nullptr;
  void *interface = entry ? dlsym(library, "_mlir_ciface_amax") : nullptr;
  if (!interface) {
    std::fprintf(stderr, "error: %s\n", dlerror());
    return 2;
  }
  if (reinterpret_cast<fp4_bind_function>(bind)(fp4rt_get_api()) != 0) {
    std::fputs("error: the library was emitted by a later version of fp4\n", stderr);
    return 2;
  }
  auto right = callBoth(entry, interface);
  if (!right) {
    std::fputs(fp4::format(right.error()).c_str(), stderr);
    return fp4::exitCode(right.error());
  }
  return *right ? 0 : 1;
}
