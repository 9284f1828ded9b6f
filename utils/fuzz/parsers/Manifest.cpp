//===- Manifest.cpp - Manifests of libraries -----------------------------===//
#include "../Parsers.h"
#include "fp4/Tools/Manifest.h"

using namespace fp4;

void fp4::fuzz::parseManifest(Bytes bytes) {
  auto manifest = tools::Manifest::parse(textOf(bytes));
  if (!manifest)
    return;
  for (const tools::Function &function : manifest->functions)
    for (const tools::Operand &operand : function.arguments) {
      (void)operand.type.bufferBytes();
      (void)operand.type.str();
    }
}
