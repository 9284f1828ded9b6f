//===- Library.cpp - The functions of libfp4 that calls need --------------===//

#include "Library.h"

#include <dlfcn.h>

namespace fp4::python {

Library library;

std::string Library::load(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); // never closed, as the package's own
  if (!handle)
    return dlerror();
  Library found;
#define FP4_FIND(name)                                                                             \
  found.name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));                          \
  if (!found.name)                                                                                 \
    return std::string(path) + " has no function " #name;
  FP4_LIBRARY_FUNCTIONS(FP4_FIND)
#undef FP4_FIND
  *this = found;
  return "";
}

} // namespace fp4::python
