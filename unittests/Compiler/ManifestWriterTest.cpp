//===- ManifestWriterTest.cpp - Functions and kernels in manifests --------===//

#include "../../lib/Compiler/ManifestWriter.h"

#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using testing::HasSubstr;
using testing::Not;

namespace {

class ManifestWriterTest : public testing::Test {
protected:
  ManifestWriterTest() {
    context.loadDialect<fp4::Fp4Dialect, func::FuncDialect, arith::ArithDialect, gpu::GPUDialect,
                        NVVM::NVVMDialect>();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  static std::string spell(llvm::json::Array array) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(array));
    return text;
  }

  MLIRContext context;
};

} // namespace

/// Every number apart from the others.
TEST_F(ManifestWriterTest, KernelsHaveTheNumbersOfTheirTable) {
  OwningOpRef<ModuleOp> module = parse(R"(
gpu.binary @b [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", () -> (), metadata = {dynamic_shared_bytes = 4096 : i64,
      shared_bytes = 32 : i64, registers = 17 : i64, spill_bytes = 8 : i64,
      stack_bytes = 64 : i64}>]>, assembly = "12345">,
  #gpu.object<#nvvm.target, bin = "123">])");
  ASSERT_TRUE(module);
  EXPECT_EQ(spell(fp4::describeKernels(*module)),
            R"([{"cubin_bytes":3,"module":"b","name":"k","ptx_bytes":5,"registers":17,)"
            R"("shared_bytes":4128,"spill_bytes":8}])");
}

/// The reference reads the operations of fp4, and leaves functions with others alone.
TEST_F(ManifestWriterTest, OnlyWhatTheReferenceKnowsIsAProgram) {
  const auto describe = [&](StringRef sum) {
    OwningOpRef<ModuleOp> module =
        parse(("func.func @f(%x: tensor<4x32xbf16>) -> tensor<f32> {\n" + sum +
               "  %a = fp4.amax %y : tensor<4x32xbf16> -> tensor<f32>\n"
               "  return %a : tensor<f32>\n}")
                  .str());
    fp4::ConstantData data;
    return module ? spell(fp4::describeFunctions(*module, data)) : "does not parse";
  };
  EXPECT_THAT(describe("  %y = fp4.hadamard %x : tensor<4x32xbf16> -> tensor<4x32xbf16>\n"),
              HasSubstr(R"("program":[{"attributes")"));
  const std::string foreign = describe("  %z = arith.bitcast %x : tensor<4x32xbf16> to tensor<4x32xi16>\n"
                                       "  %y = arith.bitcast %z : tensor<4x32xi16> to tensor<4x32xbf16>\n");
  EXPECT_THAT(foreign, HasSubstr(R"("name":"f")"));
  EXPECT_THAT(foreign, Not(HasSubstr("program")));
}
