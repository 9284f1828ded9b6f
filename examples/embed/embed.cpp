//===- embed.cpp - fp4 inside another program -----------------------------===//
//
// Compiles a GEMM from a string, runs it on the best device there is and checks it.
//
//===----------------------------------------------------------------------===//

#include "fp4/Compiler/Compiler.h"
#include "fp4/Harness/Runner.h"

#include <iostream>

static const char *kProgram = R"(
!lhs = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>,
                   tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x256xf4E2M1FN>,
                   tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @product(%a: tensor<128x256xf4E2M1FN>, %sa: tensor<128x16xf8E4M3FN>,
                   %b: tensor<64x256xf4E2M1FN>, %sb: tensor<64x16xf8E4M3FN>)
    -> tensor<128x64xf32> {
  %ta = fp4.swizzle_scales %sa : tensor<128x16xf8E4M3FN>
      -> tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tb = fp4.swizzle_scales %sb : tensor<64x16xf8E4M3FN>
      -> tensor<64x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %lhs = fp4.scaled %a, %ta : !lhs
  %rhs = fp4.scaled %b, %tb : !rhs
  %y = fp4.matmul %lhs, %rhs : (!lhs, !rhs) -> tensor<128x64xf32>
  return %y : tensor<128x64xf32>
})";

static fp4::Expected<fp4::harness::RunReport> compileAndRun() {
  fp4::Compiler compiler({});
  FP4_TRY(compiler.loadText(kProgram, "product"));
  FP4_TRY(compiler.compileTo(fp4::Phase::Ptx));
  std::string manifest = compiler.manifest();
  FP4_ASSIGN(auto program, compiler.jit());
  auto resolve = [&](const std::string &symbol) -> fp4::Expected<fp4::harness::EntryFunction> {
    FP4_ASSIGN(auto address, program->lookup(symbol));
    return reinterpret_cast<fp4::harness::EntryFunction>(address);
  };
  FP4_ASSIGN(auto runner, fp4::harness::Runner::create(manifest, resolve));
  return runner.run({});
}

int main() {
  auto report = compileAndRun();
  if (!report) {
    std::cerr << fp4::format(report.error());
    return fp4::exitCode(report.error());
  }
  std::cout << report->text();
  return report->passed() ? 0 : 1;
}
