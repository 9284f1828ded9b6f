//===- SharedLibrary.cpp - Code that is loaded while the program runs -----===//
#include "fp4/Support/SharedLibrary.h"

#include <dlfcn.h>

namespace fp4 {

SharedLibrary::SharedLibrary(const std::string &name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_)
    return;
  const char *reason = dlerror();
  error_ = reason ? reason : name;
}

void *SharedLibrary::find(const char *symbol) const {
  return handle_ ? dlsym(handle_, symbol) : nullptr;
}

} // namespace fp4
