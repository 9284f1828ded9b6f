//===- CompilerTest.cpp - The compile driver ------------------------------===//

#include "fp4/Compiler/Compiler.h"
#include "fp4-c/Runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <link.h>
#include <sstream>

using namespace fp4;
using testing::HasSubstr;

namespace {

constexpr const char *kQuantize = R"(
func.func @f(%x: tensor<?x64xbf16> {fp4.name = "x", fp4.dims = ["M", "K"]})
    -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU> {fp4.name = "scales"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_rceil>}
      : (tensor<?x64xbf16>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  return %q, %s : tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>
})";

/// A function without kernels, so that these tests need no code generation for GPUs.
constexpr const char *kCopy = R"(
func.func @copy(%x: tensor<?x8xbf16> {fp4.name = "x"}) -> tensor<?x8xbf16> {
  return %x : tensor<?x8xbf16>
})";

/// A memref descriptor of rank 2, as entry points take it.
struct Descriptor {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
};

class CompilerTest : public testing::Test {
protected:
  CompilerTest() { options.diagnostics = &diagnostics; }

  Error errorOf(const Status &status) { return status ? Error{} : status.error(); }

  std::stringstream diagnostics;
  CompilerOptions options;
};

} // namespace

TEST_F(CompilerTest, ManifestRecordsTheProgramAsWritten) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kQuantize, "q.mlir"));
  ASSERT_TRUE(compiler.compileTo(Phase::Tiles));
  std::string manifest = compiler.manifest();
  EXPECT_THAT(manifest, HasSubstr(R"("schema":1)"));
  EXPECT_THAT(manifest, HasSubstr(R"("symbol":"fp4_entry_f")"));
  EXPECT_THAT(manifest, HasSubstr(R"("arguments":[{"dims":["M","K"],"layout":"linear","name":"x",)"
                                  R"("shape":[-1,64],"type":"bf16"}])"));
  EXPECT_THAT(manifest, HasSubstr(R"("operand_segments":"1,0,0,0,0")"));
  EXPECT_THAT(manifest, HasSubstr(R"("fused":[{)"));
  EXPECT_THAT(manifest, HasSubstr(R"("recipe":"ocp_rceil")"));
  EXPECT_THAT(manifest, HasSubstr(R"("rounding":"nearest_even")"));
  EXPECT_THAT(manifest, HasSubstr(R"("op":"fp4.quantize","operands":["a0"])"));
  EXPECT_THAT(manifest, HasSubstr(R"("returns":["v0","v1"])"));
  EXPECT_THAT(manifest, HasSubstr(R"("name":"scales")"));
}

/// Else the reference would run what a fold made, and agree with it.
TEST_F(CompilerTest, ManifestRecordsWhatFoldsTakeAway) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(R"(
func.func @f(%s: tensor<4x2xf8E4M3FN>) -> tensor<4x2xf8E4M3FN> {
  %t = fp4.swizzle_scales %s : tensor<4x2xf8E4M3FN> -> tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %u = fp4.unswizzle_scales %t : tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> -> tensor<4x2xf8E4M3FN>
  return %u : tensor<4x2xf8E4M3FN>
})",
                                "fold.mlir"));
  ASSERT_TRUE(compiler.compileTo(Phase::Fused));
  EXPECT_THAT(compiler.ir(), testing::Not(HasSubstr("fp4.unswizzle_scales")));
  EXPECT_THAT(compiler.manifest(), HasSubstr(R"("op":"fp4.unswizzle_scales","operands":["v0"])"));
}

TEST_F(CompilerTest, HostCodeWantsAPublicFunction) {
  for (const char *text : {"func.func private @f() { return }", "func.func private @f()", ""}) {
    Compiler compiler(options);
    ASSERT_TRUE(compiler.loadText(text, "none.mlir"));
    auto program = compiler.jit();
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().kind, ErrorKind::Compile);
    EXPECT_EQ(program.error().message, "'none.mlir' must have a public function with a body");
  }
}

TEST_F(CompilerTest, SpecializesNamedDimensions) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kQuantize, "q.mlir"));
  EXPECT_THAT(compiler.dimNames(), testing::ElementsAre("M", "K"));
  ASSERT_TRUE(compiler.specialize({{"M", 5}, {"K", 96}}));
  EXPECT_THAT(compiler.ir(), HasSubstr("tensor<?x96xbf16>"));
  EXPECT_EQ(errorOf(compiler.specialize({{"K", 40}})).kind, ErrorKind::Compile);
  EXPECT_THAT(diagnostics.str(), HasSubstr("q.mlir:4:12: error: 'fp4.quantize' op"));
}

TEST_F(CompilerTest, KeepsAFunctionAndThoseThatItUses) {
  const char *program = R"(
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
func.func @called(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @inner(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @called(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @unused()
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = call @main(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
})";
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(program, "calls.mlir"));
  for (const char *name : {"", "missing", "inner"}) { // only a public function can be run
    ASSERT_TRUE(compiler.keepFunction(name));
    EXPECT_THAT(compiler.ir(), HasSubstr("@other"));
  }
  ASSERT_TRUE(compiler.keepFunction("main"));
  EXPECT_THAT(compiler.ir(), AllOf(HasSubstr("@main"), HasSubstr("@called"), HasSubstr("@inner"),
                                   Not(HasSubstr("@other")), Not(HasSubstr("@unused"))));
}

TEST_F(CompilerTest, DimensionsAreNamedOnce) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(R"(
func.func @f(%x: tensor<?x64xbf16> {fp4.dims = ["M", "K"]},
             %s: tensor<?x4xf8E4M3FN> {fp4.dims = ["M", "K/16"]},
             %t: tensor<?x64xbf16> {fp4.dims = ["", "K"]}) {
  return
})",
                                "dims.mlir"));
  EXPECT_THAT(compiler.dimNames(), testing::ElementsAre("M", "K"));
}

TEST_F(CompilerTest, FormerSpellingsAreUpgradedWithAWarning) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(R"(
!scales = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
func.func @gemm(%a: tensor<128x256xf4E2M1FN>, %sa: !scales) -> tensor<128x128xf32> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %a scaled %sa {format = #fp4.format<nvfp4>}
      : (tensor<128x256xf4E2M1FN>, !scales, tensor<128x256xf4E2M1FN>, !scales)
      -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
})",
                                "former.mlir"));
  EXPECT_THAT(compiler.ir(), HasSubstr("fp4.matmul"));
  EXPECT_THAT(compiler.ir(), testing::Not(HasSubstr("blockscaled_matmul")));
  EXPECT_THAT(diagnostics.str(), HasSubstr("warning: fp4.blockscaled_matmul is a former"));
  ASSERT_TRUE(compiler.compileTo(Phase::Planned)) << diagnostics.str();
}

TEST_F(CompilerTest, ManifestStatesWhatKernelsTake) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(R"(
!scales = tensor<128x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !scales>
func.func @gemm(%a: tensor<128x256xf4E2M1FN>, %sa: !scales, %b: tensor<128x256xf4E2M1FN>,
                %sb: !scales) -> tensor<128x128xf32> {
  %lhs = fp4.scaled %a, %sa : !operand
  %rhs = fp4.scaled %b, %sb : !operand
  %y = fp4.matmul %lhs, %rhs : (!operand, !operand) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
})",
                                "gemm.mlir"));
  ASSERT_TRUE(compiler.compileTo(Phase::Pipelined)) << diagnostics.str();
  const std::string ir = compiler.ir(), attribute = "pipe.shared_bytes = ";
  const size_t at = ir.find(attribute);
  ASSERT_NE(at, std::string::npos);
  const long shared = std::stol(ir.substr(at + attribute.size()));
  EXPECT_GT(shared, 32768);
  ASSERT_TRUE(compiler.compileTo(Phase::Ptx)) << diagnostics.str();
  const auto kernels = compiler.kernels();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_THAT(kernels[0].ptx, HasSubstr(".visible .entry"));
  EXPECT_EQ(kernels[0].cubin, "");
  const std::string manifest = compiler.manifest();
  EXPECT_THAT(manifest, HasSubstr(R"("shared_bytes":)" + std::to_string(shared)));
  EXPECT_THAT(manifest,
              HasSubstr(R"("ptx_bytes":)" + std::to_string(kernels[0].ptx.size())));
  EXPECT_THAT(manifest, HasSubstr(R"("cubin_bytes":0)"));
  EXPECT_THAT(manifest, HasSubstr(R"("layout":"tiled_128x4","name":"a1")"));
}

TEST_F(CompilerTest, RunsHostCodeInProcess) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  auto program = compiler.jit();
  ASSERT_TRUE(program) << program.error().message;
  auto entry = (*program)->lookup("fp4_entry_copy");
  ASSERT_TRUE(entry);
  EXPECT_FALSE((*program)->lookup("fp4_entry_other"));
  // Without a session the runtime's functions do nothing, and allocations are null.
  Descriptor x{nullptr, nullptr, 0, {3, 8}, {8, 1}}, y{&x, &x, 7, {7, 7}, {7, 7}};
  void *arguments[] = {&y, &x};
  reinterpret_cast<fp4_entry_function>(*entry)(arguments);
  EXPECT_EQ(y.aligned, nullptr);
  EXPECT_EQ(y.offset, 0);
  EXPECT_EQ(y.sizes[0], 3);
  EXPECT_EQ(y.sizes[1], 8);
  EXPECT_EQ(y.strides[0], 8);
}

TEST_F(CompilerTest, WritesALibraryThatStatesItsManifest) {
  std::string path = testing::TempDir() + "fp4_compiler_test.so";
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  Status written = compiler.writeLibrary(path);
  ASSERT_TRUE(written) << written.error().message;
  void *library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "fp4_entry_copy"), nullptr);
  EXPECT_EQ(dlsym(library, "copy"), nullptr);
  auto *manifest = static_cast<const char *>(dlsym(library, "fp4_manifest"));
  ASSERT_NE(manifest, nullptr);
  EXPECT_EQ(compiler.manifest(), manifest);
  Dl_info info;
  void *symbol = nullptr;
  ASSERT_NE(dladdr1(manifest, &info, &symbol, RTLD_DL_SYMENT), 0);
  EXPECT_EQ(static_cast<const ElfW(Sym) *>(symbol)->st_size, compiler.manifest().size() + 1) << "with the zero at its end";
  dlclose(library);
  std::filesystem::remove(path);
}

/// A folder with a folder where the library ought to go: everything can be written but the last name.
TEST_F(CompilerTest, LeavesNothingWhereItCannotWrite) {
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  Error error = errorOf(compiler.writeLibrary("/nonexistent-directory/copy.so"));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.message, HasSubstr("cannot write '/nonexistent-directory/copy.so'"));

  const std::string folder = testing::TempDir() + "fp4_unwritable", path = folder + "/copy.so";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(path + "/taken");
  error = errorOf(compiler.writeLibrary(path));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.message, HasSubstr("cannot write '" + path + "'"));
  const auto entries = [&] {
    std::filesystem::directory_iterator begin(folder), end;
    return std::distance(begin, end);
  };
  EXPECT_EQ(entries(), 1) << "something was left beside the target";
  EXPECT_TRUE(std::filesystem::exists(path + "/taken"));
  std::filesystem::remove_all(path);
  ASSERT_TRUE(compiler.writeLibrary(path));
  EXPECT_EQ(entries(), 1) << "something was left beside the library";
  std::filesystem::remove_all(folder);
}

TEST_F(CompilerTest, SaysThatNoLinkerWasFound) {
  std::string directory = testing::TempDir() + "fp4_no_linker";
  std::filesystem::create_directory(directory);
  std::string path = getenv("PATH");
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  setenv("PATH", directory.c_str(), 1);
  Error error = errorOf(compiler.writeLibrary(directory + "/copy.so"));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(error.kind, ErrorKind::Compile);
  EXPECT_THAT(error.message, HasSubstr("no linker was found"));
  EXPECT_THAT(error.note, HasSubstr("lld-22"));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
}

/// A compiler driver as the only linker: one that refuses to add its start files.
TEST_F(CompilerTest, ADriverAddsNoStartFiles) {
  const std::string directory = testing::TempDir() + "fp4_driver", path = getenv("PATH");
  std::filesystem::create_directory(directory);
  std::ofstream(directory + "/cc")
      << "#!/bin/sh\ncase \" $* \" in *' -nostdlib '*) ;; *) exit 9;; esac\nPATH='" << path
      << "'\nfor name in ld.lld-22 ld.lld ld; do command -v $name >/dev/null && exec $name \"$@\";"
         " done\nexit 8\n";
  std::filesystem::permissions(directory + "/cc", std::filesystem::perms::owner_all);
  Compiler compiler(options);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  setenv("PATH", directory.c_str(), 1);
  Status written = compiler.writeLibrary(directory + "/copy.so");
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(written) << written.error().message;
  EXPECT_TRUE(std::filesystem::exists(directory + "/copy.so"));
  std::filesystem::remove_all(directory);
}

TEST_F(CompilerTest, ReportsWhatCannotBeCompiled) {
  EXPECT_EQ(errorOf(Compiler(options).loadFile("/nonexistent.mlir")).kind, ErrorKind::Usage);
  EXPECT_EQ(errorOf(Compiler(options).loadText("func.func @f(", "bad.mlir")).kind,
            ErrorKind::Compile);
  EXPECT_THAT(diagnostics.str(), HasSubstr("bad.mlir:1:13: error:"));
  options.target = "sm_99";
  Error error = errorOf(Compiler(options).loadText(kCopy, "copy.mlir"));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_THAT(error.note, HasSubstr("sm_100a"));
}

/// Every member function of a Compiler that has no program.
static void expectNoProgram(Compiler &compiler, const char *message) {
  EXPECT_EQ(compiler.ir(), "");
  EXPECT_TRUE(compiler.kernels().empty());
  EXPECT_TRUE(compiler.dimNames().empty());
  EXPECT_THAT(compiler.manifest(), HasSubstr(R"("schema":1)"));
  auto expectRefused = [&](const Status &status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::Usage);
    EXPECT_EQ(status.error().message, message);
  };
  expectRefused(compiler.specialize({{"M", 5}}));
  expectRefused(compiler.keepFunction("f"));
  expectRefused(compiler.compileTo(Phase::Fused));
  expectRefused(compiler.compileTo(Phase::Host));
  expectRefused(compiler.writeLibrary(testing::TempDir() + "fp4_no_program.so"));
  auto program = compiler.jit();
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message, message);
}

TEST_F(CompilerTest, HasNoProgramBeforeOneIsLoadedOrAfterOneIsRejected) {
  Compiler unloaded(options);
  expectNoProgram(unloaded, "a program must be loaded before it is compiled");
  EXPECT_FALSE(unloaded.loadFile("/nonexistent.mlir"));
  expectNoProgram(unloaded, "a program must be loaded before it is compiled");
  ASSERT_TRUE(unloaded.loadText(kCopy, "copy.mlir")); // nothing was loaded yet
  EXPECT_THAT(unloaded.ir(), HasSubstr("@copy"));

  Compiler malformed(options);
  EXPECT_FALSE(malformed.loadText("func.func @f(", "bad.mlir"));
  expectNoProgram(malformed, "'bad.mlir' was rejected and cannot be compiled further");

  Compiler rejected(options); // by a pass, which may have changed it already
  ASSERT_TRUE(rejected.loadText(kQuantize, "q.mlir"));
  EXPECT_FALSE(rejected.specialize({{"K", 40}}));
  expectNoProgram(rejected, "'q.mlir' was rejected and cannot be compiled further");
}

TEST_F(CompilerTest, RefusesWhatItIsNotMeantFor) {
  Compiler compiler(options);
  EXPECT_EQ(errorOf(compiler.compileTo(Phase::Fused)).kind, ErrorKind::Usage);
  ASSERT_TRUE(compiler.loadText(kCopy, "copy.mlir"));
  EXPECT_EQ(errorOf(compiler.loadText(kCopy, "copy.mlir")).kind, ErrorKind::Usage);
  ASSERT_TRUE(compiler.compileTo(Phase::Ptx));
  ASSERT_TRUE(compiler.compileTo(Phase::Fused)); // done already
  EXPECT_THAT(errorOf(compiler.compileTo(Phase::Cubin)).note, HasSubstr("instead of Phase::Ptx"));
}
