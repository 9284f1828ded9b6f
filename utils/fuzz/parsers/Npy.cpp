//===- Npy.cpp - .npy files ----------------------------------------------===//
#include "../Parsers.h"
#include "fp4/Tools/Npy.h"

using namespace fp4;

void fp4::fuzz::parseNpy(Bytes bytes) { (void)tools::parseNpy(bytes, "fuzz.npy"); }
