//===- DriverEntryPoints.cpp - Functions of the driver by name ------------===//
//
// A name means the newest function of that name in the requested CUDA version: cuCtxGetDevice of
// 12.0 has one parameter, that of 13.0 has two. A request is not a call: a program may look up all
// functions of its version of CUDA, and learns which are missing.
//
//===----------------------------------------------------------------------===//
#include "EntryPoint.h"
#include <dlfcn.h>
#include <string>

using namespace fp4::simcuda;

namespace {

enum LookupResult : int { Found = 0, NotFound = 1, VersionTooOld = 2 }; // CUdriverProcAddress...

struct Versions {
  std::string_view name;
  int since[4]; ///< first versions with NAME, NAME_v2, NAME_v3, NAME_v4; 0: there is none
};

/// The suffix of the function that `version` means; null where the function came later.
const char *suffixOf(std::string_view name, int version) {
  static constexpr Versions table[] = {
#define FP4_VERSIONS(name, ...) {#name, {__VA_ARGS__}},
#include "DriverVersions.def"
#undef FP4_VERSIONS
  };
  static constexpr const char *suffixes[] = {"", "_v2", "_v3", "_v4"};
  for (const Versions &row : table) {
    if (row.name != name)
      continue;
    const char *newest = nullptr;
    for (size_t i = 0; i < std::size(suffixes); ++i)
      if (row.since[i] && row.since[i] <= version)
        newest = suffixes[i];
    return newest;
  }
  return "";
}

void *ownSymbol(const std::string &name) {
  static void *self = [] {
    Dl_info info{};
    bool found = dladdr(reinterpret_cast<void *>(&suffixOf), &info) && info.dli_fname;
    return dlopen(found ? info.dli_fname : nullptr, RTLD_NOW | RTLD_NOLOAD);
  }();
  return dlsym(self, name.c_str());
}

} // namespace

FP4_ENTRY int cuGetProcAddress_v2(const char *symbol, void **pointer, int version,
                                  unsigned long long, int *result) {
  FP4_REQUIRE(symbol && pointer);
  const char *suffix = suffixOf(symbol, version);
  *pointer = suffix ? ownSymbol(std::string(symbol) + suffix) : nullptr;
  if (result)
    *result = *pointer ? Found : suffix ? NotFound : VersionTooOld;
  return *pointer || result ? Success : SymbolNotFound;
}

FP4_ENTRY int cuGetProcAddress(const char *symbol, void **pointer, int version,
                               unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, pointer, version, flags, nullptr);
}
