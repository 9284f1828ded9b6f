//===- ModuleTest.cpp - Programs of other compilers as modules ------------===//

#include "fp4/Compiler/Compiler.h"
#include "fp4/Dialect/Fp4/IR/Fp4Dialect.h"
#include "fp4/Dialect/Fp4/Transforms/Islands.h"
#include "fp4/Dialect/Fp4/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <gmock/gmock.h>

using namespace fp4;
using namespace mlir;
using testing::HasSubstr;
using testing::Not;

namespace {

/// A context that knows the dialects of a host and fp4, and nothing of fp4's lowerings.
class ModuleTest : public testing::Test {
protected:
  ModuleTest() {
    context.loadDialect<func::FuncDialect, arith::ArithDialect, Fp4Dialect>();
    module = ModuleOp::create(builder.getUnknownLoc());
  }

  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  }

  /// A function whose body is open.
  func::FuncOp function(StringRef name, TypeRange arguments) {
    builder.setInsertionPointToEnd(module->getBody());
    auto function = func::FuncOp::create(builder, builder.getUnknownLoc(), name,
                                         builder.getFunctionType(arguments, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    return function;
  }

  void close(func::FuncOp function, ValueRange results) {
    func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    function.setFunctionType(
        builder.getFunctionType(function.getArgumentTypes(), results.getTypes()));
  }

  /// Activations and weights quantized and multiplied.
  void buildLinear() {
    Location loc = builder.getUnknownLoc();
    auto linear = function("linear", {tensor({ShapedType::kDynamic, 64}, builder.getBF16Type()),
                                      tensor({32, 64}, builder.getBF16Type())});
    SmallVector<Value> data, scales, amaxes;
    for (Value x : linear.getArguments()) {
      amaxes.push_back(AmaxOp::create(builder, loc, x));
      auto quantized = QuantizeOp::create(builder, loc, x, amaxes.back(), Format::NVFP4);
      data.push_back(quantized.getData());
      scales.push_back(SwizzleScalesOp::create(builder, loc, quantized.getScales()));
    }
    Value alpha = MatmulAlphaOp::create(builder, loc, amaxes[0], amaxes[1]);
    Value product =
        BlockScaledMatmulOp::create(builder, loc, data[0], scales[0], data[1], scales[1], alpha,
                                    Format::NVFP4, builder.getF32Type())
            .getResult();
    close(linear, product);
  }

  MLIRContext context;
  OpBuilder builder{&context};
  OwningOpRef<ModuleOp> module;
};

TEST_F(ModuleTest, BuildersInferTypes) {
  buildLinear();
  auto restored = function("restored", {tensor({8, 32}, Float4E2M1FNType::get(&context)),
                                        tensor({8, 1}, Float8E8M0FNUType::get(&context))});
  Value x =
      DequantizeOp::create(builder, builder.getUnknownLoc(), restored.getArgument(0),
                           restored.getArgument(1), Value(), Format::MXFP4, builder.getBF16Type());
  auto again = QuantizeOp::create(builder, builder.getUnknownLoc(), x, Value(), Format::MXFP4);
  EXPECT_EQ(again.getRecipe().getText(), "ocp_floor");
  EXPECT_EQ(again.getScales().getType(), restored.getArgument(1).getType());
  close(restored, again.getData());
  ASSERT_TRUE(succeeded(verify(*module)));
  auto linear = module->lookupSymbol<func::FuncOp>("linear");
  EXPECT_EQ(linear.getResultTypes()[0], tensor({ShapedType::kDynamic, 32}, builder.getF32Type()));
}

TEST_F(ModuleTest, IsCompiledInItsContextAndStaysAsItWas) {
  buildLinear();
  std::string before, after;
  llvm::raw_string_ostream(before) << *module;
  Compiler compiler({});
  ASSERT_TRUE(compiler.loadModule(*module));
  ASSERT_TRUE(compiler.compileTo(Phase::Ptx));
  // Quantizers have a kernel more, with the amax in it, for small tensors.
  EXPECT_EQ(compiler.kernels().size(), 8u);
  EXPECT_THAT(compiler.manifest(), HasSubstr(R"("symbol":"fp4_entry_linear")"));
  auto program = compiler.jit();
  ASSERT_TRUE(program) << format(program.error());
  EXPECT_TRUE((*program)->lookup("fp4_entry_linear"));
  EXPECT_TRUE((*program)->lookup("_mlir_ciface_linear"));
  llvm::raw_string_ostream(after) << *module;
  EXPECT_EQ(before, after);
}

/// Inlining needs an interface of func's that nobody but fp4 adds to this context.
TEST_F(ModuleTest, FindsItsInterfacesInAContextWithoutThem) {
  Type matrix = tensor({8, 32}, builder.getF32Type());
  auto helper = function("helper", {matrix});
  Value amax = AmaxOp::create(builder, builder.getUnknownLoc(), helper.getArgument(0));
  close(helper, amax);
  helper.setPrivate();
  auto caller = function("caller", {matrix});
  auto call = func::CallOp::create(builder, builder.getUnknownLoc(), helper,
                                   ValueRange(caller.getArguments()));
  close(caller, call.getResults());
  Compiler compiler({});
  ASSERT_TRUE(compiler.loadModule(*module));
  ASSERT_TRUE(compiler.compileTo(Phase::Tiles));
  EXPECT_THAT(compiler.ir(), Not(HasSubstr("helper")));
}

TEST_F(ModuleTest, ErrorsGoToTheHandlersOfItsContext) {
  auto broken = function("broken", {tensor({8, 30}, builder.getBF16Type())});
  // 30 elements are no whole number of blocks of mxfp4.
  auto quantize = QuantizeOp::create(builder, FileLineColLoc::get(&context, "host.c", 7, 3),
                                     broken.getArgument(0), Value(), Format::MXFP4);
  close(broken, quantize.getData());
  std::string heard;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(heard) << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return success();
  });
  Compiler compiler({});
  Status status = compiler.loadModule(*module);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Compile);
  EXPECT_EQ(status.error().message, "'<module>' was not compiled");
  EXPECT_THAT(heard, HasSubstr("host.c\":7:3"));
  EXPECT_THAT(heard, HasSubstr("multiple of 32"));
  Status second = compiler.loadModule(*module);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "a Compiler holds one program, but got a second");
}

TEST_F(ModuleTest, IslandsAreAProgram) {
  buildLinear();
  PassManager manager(&context);
  manager.addPass(createOutlineIslands());
  ASSERT_TRUE(succeeded(manager.run(*module)));
  OwningOpRef<ModuleOp> islands = takeIslands(*module);
  ASSERT_TRUE(islands);
  EXPECT_FALSE(takeIslands(*module)) << "they are taken";
  EXPECT_TRUE(succeeded(verify(*module)));
  Compiler compiler({});
  ASSERT_TRUE(compiler.loadModule(*islands));
  ASSERT_TRUE(compiler.compileTo(Phase::Tiles));
  EXPECT_THAT(compiler.manifest(), HasSubstr(R"("name":"linear_fp4_0")"));
}

} // namespace
