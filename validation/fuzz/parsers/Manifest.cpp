//===- Manifest.cpp - Manifests of libraries -----------------------------===//
#include "../Parsers.h"
#include "fp4/Reference/Manifest.h"

using namespace fp4;

void fp4::fuzz::parseManifest(Bytes bytes) {
  auto manifest = harness::Manifest::parse(textOf(bytes));
  if (!manifest)
    return;
  for (const harness::Function &function : manifest->functions)
    for (const harness::Operand &operand : function.arguments) {
      (void)operand.type.bufferBytes();
      (void)operand.type.str();
    }
}
