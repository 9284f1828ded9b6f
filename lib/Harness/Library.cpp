//===- Library.cpp - An emitted library as a runner -------------------------===//

#include "fp4/Harness/Library.h"

#include "fp4/Program/Program.h"

namespace fp4::harness {

Expected<Runner> openLibrary(const std::string &path) {
  FP4_ASSIGN(auto program, Program::load(path));
  auto resolve = [program](const std::string &symbol) -> Expected<EntryFunction> {
    FP4_ASSIGN(void *address, program->resolve(symbol));
    return reinterpret_cast<EntryFunction>(address);
  };
  return Runner::create(program->manifestText(), resolve);
}

} // namespace fp4::harness
