//===- Ptx.cpp - PTX text ------------------------------------------------===//
#include "../Parsers.h"
#include "fp4/Sim/Program.h"

using namespace fp4;

void fp4::fuzz::parsePtx(Bytes bytes) {
  (void)sim::Program::parseAvailable(textOf(bytes), "fuzz.ptx");
}
