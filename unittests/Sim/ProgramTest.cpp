//===- ProgramTest.cpp - PTX that is accepted, and places of errors -------===//
#include "SimFixture.h"
#include <fmt/format.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

std::string parseError(const std::string &text) { return messageOf(Program::parse(text, "t.ptx")); }

TEST(Program, ListsKernelsAndTheirParameters) {
  auto program = Program::parse(header() + R"(
.visible .entry two(.param .u32 n, .param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 p)
.reqntid 192, 1, 1
.minnctapersm 1
{ ret; }
.entry one(.param .f32 x, .param .u64 .ptr .global .align 1 p) { ret; }
)",
                                "t.ptx");
  ASSERT_TRUE(program) << messageOf(program);
  ASSERT_EQ((*program)->kernels().size(), 2u);
  const KernelInfo &info = *(*program)->findKernel("two");
  ASSERT_EQ(info.params.size(), 3u);
  EXPECT_EQ(info.params[1].offset, 64u);
  EXPECT_EQ(info.params[1].size, 128u);
  EXPECT_EQ(info.params[2].offset, 192u);
  EXPECT_EQ(info.paramBytes, 200u);
  EXPECT_EQ(info.requiredCta[0], 192u);
  // The alignment behind .ptr is the pointee's.
  EXPECT_EQ((*program)->findKernel("one")->params[1].offset, 8u);
  EXPECT_EQ((*program)->target(), "sm_100a");
}

TEST(Program, ARegisterHasANameOfItsOwn) {
  const auto with = [](const char *name, const char *inner) {
    return parseError(header() + ".entry k(.param .u32 n)\n{\n  .reg .b32 " + name + ";\n" + inner +
                      "  ret;\n}\n");
  };
  EXPECT_EQ(with("m", "{ .reg .b32 m; .reg .b32 n; }"), "no error");
  EXPECT_NE(with("n", "").find("duplicate definition of 'n'"), std::string::npos);
  EXPECT_NE(with("m", ".reg .b64 m;").find("duplicate definition of 'm'"), std::string::npos);
}

TEST(Program, UnknownInstructionIsLocated) {
  std::string error =
      parseError(header() + ".entry k()\n{\n  .reg .b32 %r<2>;\n  frobnicate.b32 %r1, %r0;\n}\n");
  EXPECT_NE(error.find("t.ptx:7:3: unknown instruction 'frobnicate.b32'"), std::string::npos)
      << error;
}

TEST(Program, UnknownModifierIsNamed) {
  std::string error = parseError(kernel("add.wrong.u32 %r1, %r2, %r3;"));
  EXPECT_NE(error.find("'add.wrong.u32' does not accept the modifier '.wrong'"), std::string::npos)
      << error;
  EXPECT_EQ(parseError(kernel("add.u32 %r1, %r2, %r3;")), "no error");
}

TEST(Program, VectorRegisters) {
  const auto run = [](const std::string &body) {
    Simulator simulator;
    const uint64_t out = upload(simulator, std::vector<uint32_t>{1, 2, 3, 4}, "out");
    auto stats = sim::test::run(simulator, kernel(body, 1), {out}, blocks(1));
    EXPECT_TRUE(stats) << messageOf(stats);
    return download<uint32_t>(simulator, out, 4);
  };
  EXPECT_EQ(run(".reg .v2 .b32 a, b;\n.reg .v4 .u32 c;\nld.global.v4.u32 c, [%p0];\n"
                "add.u32 a.x, c.w, c.x;\nmov.b32 a.y, c.z;\n{\n.reg .v2 .u32 a;\n"
                "add.u32 a.x, c.y, 10;\nmov.u32 a.y, a.x;\nst.global.v2.u32 [%p0], a;\n}\n"
                "st.global.v2.b32 [%p0+8], a;\n"),
            (std::vector<uint32_t>{12, 12, 5, 3}));
  // A scope ends, or a scalar has the name inside, and behind it the vector is there again.
  EXPECT_EQ(run("{\n.reg .v4 .b32 t;\nmov.b32 t.x, 1;\n}\n{\n.reg .b32 t;\nmov.b32 t, 7;\n"
                "add.u32 t, t, 1;\nst.global.u32 [%p0], t;\n}\n"
                ".reg .v2 .b32 a;\nmov.b32 a.x, 20;\nmov.b32 a.y, 30;\n"
                "{\n.reg .b32 a;\nmov.b32 a, 9;\nst.global.u32 [%p0+4], a;\n}\n"
                "st.global.v2.b32 [%p0+8], a;\n"),
            (std::vector<uint32_t>{8, 9, 20, 30}));
  const std::string error = parseError(kernel(".reg .v2 .f32 v;\nmov.f32 v.z, 0f00000000;\n"));
  EXPECT_NE(error.find("'v.z'"), std::string::npos) << error;
}

/// ptxas takes them so, and CUTLASS writes them so.
TEST(Program, OrderScopeAndSpaceComeInAnySequence) {
  for (const char *line :
       {"ld.global.acquire.gpu.b32 %r1, [%rd1];", "st.global.release.gpu.b32 [%rd1], %r1;",
        "atom.global.add.acquire.gpu.u32 %r1, [%rd1], %r2;",
        "ld.v2.L1::no_allocate.global.nc.b32 {%r1, %r2}, [%rd1];", "ld.global.b32 {%r1}, [%rd1];",
        "mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [%r1], %r2;"})
    EXPECT_EQ(parseError(kernel(line)), "no error") << line;
  const std::string error = parseError(kernel("ld.global.acquire.wrong.b32 %r1, [%rd1];"));
  EXPECT_NE(error.find("'ld.global.acquire.wrong.b32' does not accept the modifier '.wrong'"),
            std::string::npos)
      << error;
}

/// As ptxas has it: white space may stand before a modifier and before a component, not behind the
/// dot or around '::'.
TEST(Program, WhiteSpaceBeforeModifiers) {
  const std::string vector = ".reg .v4 .b32 v;\n";
  for (const char *line : {"mov .b32 %r1, 0;", "mov\n  .b32 %r1, 0;", "mov /* move */ .b32 %r1, 0;",
                           "ld .global .b32 %r1, [%rd1 + 4];", "ld.shared::cta .b32 %r1, [%r2];",
                           "mov.b32 %r1, %tid .x;", "mov.b32 %r1, %tid\n.x;", "mov.b32 %r1, v .y;",
                           "mov .b32 v .w, v.x;"})
    EXPECT_EQ(parseError(kernel(vector + line)), "no error") << line;
  for (const char *line :
       {"mov. b32 %r1, 0;", "ld.shared ::cta.b32 %r1, [%r2];", "ld.shared:: cta.b32 %r1, [%r2];",
        "mov.b32 %r1, %tid. x;", "mov.b32 %r1, v .q;", "mov.b32 %r1, 0 .x;"})
    EXPECT_NE(parseError(kernel(vector + line)), "no error") << line;
}

TEST(Program, UnknownRegisterIsLocated) {
  std::string error = parseError(kernel("add.u32 %r1, %r2, %nope;"));
  EXPECT_NE(error.find("unknown register '%nope'"), std::string::npos) << error;
}

TEST(Program, RegisterWidthMustFit) {
  std::string error = parseError(kernel("add.u32 %r1, %rd2, %r3;"));
  EXPECT_NE(error.find("register '%rd2' must have 32 bits, but got .b64"), std::string::npos)
      << error;
}

TEST(Program, SyntaxErrorsAreLocated) {
  EXPECT_NE(parseError(header() + ".entry k() { ret }")
                .find("t.ptx:4:18: expects an operand, but got '}'"),
            std::string::npos)
      << parseError(header() + ".entry k() { ret }");
  EXPECT_NE(parseError(header() + ".entry k() {").find("the body of 'k' expects '}'"),
            std::string::npos);
  EXPECT_NE(parseError("hello").find("t.ptx:1:1: expects a directive, but got 'hello'"),
            std::string::npos);
  EXPECT_NE(parseError("\x93NUMPY").find("expects a directive, but got the byte 0x93"),
            std::string::npos);
}

TEST(Program, DigitsBelongToTheBase) {
  for (const char *number : {"0b12", "0899", "0x", "0b", "0xg"})
    EXPECT_NE(parseError(kernel(std::string("mov.u32 %r1, ") + number + ";")), "no error") << number;
  for (const char *number : {"0b11", "0777", "0x9aF", "0", "899", "9U"})
    EXPECT_EQ(parseError(kernel(std::string("mov.u32 %r1, ") + number + ";")), "no error") << number;
}

// FlashInfer writes "0." for an element of C.
TEST(Program, DigitsBehindAPointMayBeAbsent) {
  EXPECT_EQ(perThread("mov.f32 %f1, 2.; add.f32 %f1, %f1, 0.;\nmov.b32 %r0, %f1;")[0], 0x40000000u);
  EXPECT_CONTAINS(failure("mov.f32 %f1, 2.x;"), "test.ptx:");
}

TEST(Program, AModuleSaysWhatItIsOf) {
  EXPECT_CONTAINS(parseError(""), "t.ptx:1:1: a module must have a .version, but got none");
  EXPECT_CONTAINS(parseError(".version 8.7\n.address_size 64\n"),
                  "a module must have a .target, but got none");
  EXPECT_EQ(parseError(".version 8.7\n.target sm_100a\n"), "no error");
}

/// Output of nvcc -rdc=true, one file behind the other.
TEST(Program, SeveralModulesInOneText) {
  const std::string inlined = ".weak .func (.param .b32 r) same() { st.param.b32 [r], 1; ret; }\n";
  const std::string first = header() +
                            ".extern .global .align 4 .u32 offset;\n"
                            ".extern .func (.param .b32 r) other();\n" +
                            inlined +
                            ".entry k(.param .u64 out) {\n  .reg .b32 %r<3>;\n  .reg .b64 %rd<2>;\n"
                            "  .param .b32 p;\n  call.uni (p), other, ();\n"
                            "  ld.param.b32 %r1, [p];\n  ld.global.u32 %r2, [offset];\n  ret;\n}\n";
  const std::string second = header() + ".visible .global .align 4 .u32 offset = 7;\n" + inlined +
                             ".visible .func (.param .b32 r) other() { ret; }\n";
  EXPECT_NE(parseError(first).find("not defined in this module"), std::string::npos);
  auto linked = Program::parse(first + second, "t.ptx");
  ASSERT_TRUE(linked) << messageOf(linked);
  EXPECT_EQ((*linked)->variables().size(), 1u);
}

TEST(Program, AttributesOfVariablesAreSkipped) {
  EXPECT_EQ(parseError(header() + ".global .attribute(.managed) .align 4 .u32 x = 1;\n"
                                  ".global .attribute(.unified(19, 95)) .b32 y;"),
            "no error");
  EXPECT_NE(parseError(header() + ".global .attribute(.managed .b32 x;").find("expects ')'"),
            std::string::npos);
}

// ptxas calls the type of such a variable incomplete.
TEST(Program, VariablesOfAModuleHaveElements) {
  for (const char *size : {"[]", "[0]", "[4][0]"})
    EXPECT_NE(parseError(header() + ".global .b32 x" + size + ";")
                  .find("variable 'x' at module scope must have at least one element"),
              std::string::npos)
        << size;
  EXPECT_EQ(parseError(header() + ".global .b32 x[] = {1, 2};\n.global .b32 y;"), "no error");
}

TEST(Program, AbsurdSizesAreErrors) {
  EXPECT_TRUE(Program::parse(header() + ".const .align 4 .b32 x[4] = {1, 2};", "t.ptx"));
  EXPECT_NE(parseError(header() + ".const .align 4 .b32 x[4294967296] = {1, 2};")
                .find("must have at most"),
            std::string::npos);
  EXPECT_NE(parseError(header() + ".global .b8 x[999999999999999];").find("must have at most"),
            std::string::npos);
  EXPECT_NE(parseError(header() + ".global .b8 x[9999999999][9999999999];")
                .find("array 'x' is too large"),
            std::string::npos);
  EXPECT_NE(
      parseError(kernel(".shared .b8 x[99999999];\nmov.u32 %r1, x;")).find("must have at most"),
      std::string::npos);
  EXPECT_EQ(parseError(header() + ".global .b8 x[99][99];"), "no error");
  EXPECT_CONTAINS(parseError(header() + ".global .b8 x[1073741824];\n.global .b8 y[1073741824];\n"
                                        ".global .b8 z[1];"),
                  "must have at most 2147483648 bytes together, but have 2147483649 up to 'z'");
  EXPECT_CONTAINS(parseError(header() + ".file 4294967297 \"x.cu\""),
                  "a file index must have at most 32 bits, but got 4294967297");
}

// Each variable alone is small enough; offsets have 32 bits.
TEST(Program, SumsOfSizesAreBounded) {
  auto variables = [](const char *declaration, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i)
      text += fmt::format("{} v{}[16777216];\n", declaration, i);
    return parseError(kernel(text));
  };
  EXPECT_EQ(variables(".shared .b8", 1), "no error");
  EXPECT_CONTAINS(variables(".shared .b8", 257), "shared variables must have at most");
  EXPECT_EQ(parseError(kernel(".local .b8 a[262144];\n.local .b8 b[262144];\n")), "no error");
  EXPECT_CONTAINS(variables(".local .b8", 257), "local variables must have at most 524288 bytes");
  auto parameter = [](unsigned bytes) {
    return parseError(header() + fmt::format(".entry k(.param .b8 p[{}]) {{ ret; }}", bytes));
  };
  EXPECT_EQ(parameter(32764), "no error");
  EXPECT_CONTAINS(parameter(32765), "t.ptx:4:8: parameters of 'k' must have at most 32764 bytes");
}

TEST(Program, NestingIsBounded) {
  auto nested = [](const std::string &before, char open, const std::string &inside, char close,
                   size_t depth, const std::string &behind) {
    return parseError(header() + before + std::string(depth, open) + inside +
                      std::string(depth, close) + behind);
  };
  const std::string body = ".entry k() {\n.reg .b32 %r<2>;\n";
  for (size_t depth : {size_t(65), size_t(50000)}) {
    EXPECT_CONTAINS(nested(body + "call f, ", '(', "%r0", ')', depth, ";\n}"),
                    "t.ptx:6:72: brackets must nest at most 64 deep");
    EXPECT_CONTAINS(nested(body + "mov.b32 %r0, ", '{', "%r1", '}', depth, ";\n}"),
                    "brackets must nest at most 64 deep");
    EXPECT_CONTAINS(nested(body + "ld.b32 %r0, ", '[', "%r1", ']', depth, ";\n}"),
                    "t.ptx:6:14: expects an operand, but got '['");
    EXPECT_CONTAINS(nested(body, '{', "ret;", '}', depth, "}"),
                    "t.ptx:6:64: brackets must nest at most 64 deep");
    EXPECT_CONTAINS(nested(".global .b32 x[4] = ", '{', "1", '}', depth, ";"),
                    "brackets must nest at most 64 deep");
    std::string address;
    for (size_t i = 0; i < depth; ++i)
      address += "[%r1, ";
    EXPECT_CONTAINS(parseError(header() + body + "ld.b32 %r0, " + address),
                    "brackets must nest at most 64 deep");
  }
  EXPECT_EQ(nested(body, '{', "ret;", '}', 63, "}"), "no error");
  EXPECT_EQ(nested(".global .b32 x[4] = ", '{', "1", '}', 63, ";"), "no error");
  EXPECT_CONTAINS(nested(body + "call f, ", '(', "%r0", ')', 20, ";\n}"),
                  "function 'f' is not defined in this module");
}

TEST(Program, NestedScopesShadowAndLabelsAreLocal) {
  EXPECT_EQ(parseError(kernel(R"({ .reg .pred P1; .reg .b32 tmp;
LAB_WAIT: mov.b32 tmp, 1; setp.ne.u32 P1, tmp, 1; @P1 bra LAB_WAIT; bra DONE;
DONE: }
{ .reg .b32 tmp;
LAB_WAIT: mov.b32 tmp, 2; bra DONE;
DONE: })")),
            "no error");
  std::string error = parseError(kernel("bra NOWHERE;"));
  EXPECT_NE(error.find("unknown label 'NOWHERE'"), std::string::npos);
}

} // namespace
