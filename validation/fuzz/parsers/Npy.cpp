//===- Npy.cpp - .npy files ----------------------------------------------===//
#include "../Parsers.h"
#include "fp4/Harness/Npy.h"

using namespace fp4;

void fp4::fuzz::parseNpy(Bytes bytes) { (void)harness::parseNpy(bytes, "fuzz.npy"); }
