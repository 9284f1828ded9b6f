//===- CallTest.cpp - Device functions, branch tables, printf -------------===//
#include "SimFixture.h"
#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using ::testing::HasSubstr;

namespace {

/// Functions in front of a kernel whose body stores %r1 of each lane.
std::string withFunctions(const std::string &functions, const std::string &body) {
  std::string text = kernel(body + R"(
mul.wide.u32 %rd60, %lane, 4;
add.u64 %rd60, %rd60, %p0;
st.global.u32 [%rd60], %r1;)",
                            1);
  size_t entry = text.find(".visible");
  return text.substr(0, entry) + functions + text.substr(entry);
}

std::vector<uint32_t> results(const std::string &ptx) {
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<uint32_t>(32, 0), "out");
  auto stats = run(simulator, ptx, {out});
  EXPECT_TRUE(stats) << messageOf(stats);
  return download<uint32_t>(simulator, out, 32);
}

std::string failure(const std::string &ptx) {
  Simulator simulator;
  uint64_t out = upload(simulator, std::vector<uint32_t>(32, 0), "out");
  return messageOf(run(simulator, ptx, {out}));
}

const char *kAddOne = R"(
.func (.param .b32 result) addOne(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  add.u32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
)";

TEST(Call, PassesParametersAndResults) {
  auto values = results(withFunctions(kAddOne, R"(
{ .param .b32 param0; .param .b32 retval0;
  st.param.b32 [param0], %lane;
  call.uni (retval0), addOne, (param0);
  ld.param.b32 %r1, [retval0]; }
{ .param .b32 param0; .param .b32 retval0;
  st.param.b32 [param0], %r1;
  call (retval0), addOne, (param0);
  ld.param.b32 %r1, [retval0]; })"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane + 2);
}

TEST(Call, RegistersAsParameters) {
  auto values = results(withFunctions(R"(
.func (.reg .b32 sum) plus(.reg .b32 a, .reg .b32 b) { add.u32 sum, a, b; ret; }
)",
                                      "call (%r1), plus, (%lane, 100);"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane + 100);
}

TEST(Call, CallsNestAndKeepTheirRegisters) {
  auto values = results(withFunctions(std::string(kAddOne) + R"(
.func (.param .b32 result) twice(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  { .param .b32 p; .param .b32 q;
    st.param.b32 [p], %r1;
    call (q), addOne, (p);
    ld.param.b32 %r2, [q]; }
  mad.lo.u32 %r3, %r1, 1000, %r2;
  st.param.b32 [result], %r3;
}
)",
                                      R"(
{ .param .b32 p; .param .b32 q;
  st.param.b32 [p], %lane;
  call (q), twice, (p);
  ld.param.b32 %r1, [q]; })"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane * 1000 + lane + 1) << "the body ends without ret";
}

TEST(Call, LanesReturnToWhereTheyCameFrom) {
  auto values = results(withFunctions(kAddOne, R"(
.param .b32 p; .param .b32 q;
and.b32 %r2, %lane, 1;
setp.eq.u32 %pr1, %r2, 0;
@%pr1 bra EVEN;
st.param.b32 [p], 50;
call (q), addOne, (p);
ld.param.b32 %r1, [q];
bra DONE;
EVEN:
st.param.b32 [p], 70;
call (q), addOne, (p);
ld.param.b32 %r1, [q];
DONE:)"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane % 2 ? 51u : 71u);
}

TEST(Call, AGuardedCallLeavesTheOthers) {
  auto values = results(withFunctions(kAddOne, R"(
.param .b32 p; .param .b32 q;
st.param.b32 [p], %lane;
mov.u32 %r1, 7;
setp.lt.u32 %pr1, %lane, 5;
@%pr1 call (q), addOne, (p);
@%pr1 ld.param.b32 %r1, [q];)"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane < 5 ? lane + 1 : 7u);
}

TEST(Call, StructuresGoByBytes) {
  auto values = results(withFunctions(R"(
.func (.param .align 16 .b8 result[24]) rotate(.param .align 16 .b8 value[24]) {
  .reg .b64 %rd<8>;
  ld.param.v2.u64 {%rd1, %rd2}, [value];
  ld.param.u64 %rd3, [value+16];
  st.param.v2.b64 [result], {%rd2, %rd3};
  st.param.b64 [result+16], %rd1;
  ret;
}
)",
                                      R"(
.param .align 16 .b8 p[24]; .param .align 16 .b8 q[24];
mov.u64 %rd1, 1; mov.u64 %rd2, 20; mov.u64 %rd3, 300;
st.param.v2.b64 [p], {%rd1, %rd2};
st.param.b64 [p+16], %rd3;
call (q), rotate, (p);
ld.param.u64 %rd4, [q];
ld.param.u64 %rd5, [q+8];
sub.u64 %rd6, %rd5, %rd4;
cvt.u32.u64 %r1, %rd6;)"));
  EXPECT_EQ(values[0], 280u);
  EXPECT_EQ(values[31], 280u);
}

const char *kTwoFunctions = R"(
.func (.param .b32 result) first(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value]; add.u32 %r2, %r1, 1000; st.param.b32 [result], %r2; ret;
}
.func (.param .b32 result) second(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value]; mul.lo.u32 %r2, %r1, 2; st.param.b32 [result], %r2; ret;
}
.global .align 8 .u64 table[2] = {first, second};
)";

TEST(Call, ByPointerLanesCallDifferentFunctions) {
  auto values = results(withFunctions(kTwoFunctions, R"(
.param .b32 p; .param .b32 q;
st.param.b32 [p], %lane;
and.b32 %r2, %lane, 1;
mul.wide.u32 %rd1, %r2, 8;
mov.u64 %rd2, table;
add.u64 %rd2, %rd2, %rd1;
ld.global.u64 %rd3, [%rd2];
prototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);
call (q), %rd3, (p), prototype_0;
ld.param.b32 %r1, [q];)"));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], lane % 2 ? 2 * lane : lane + 1000);
}

TEST(Call, ByPointerOfAMove) {
  auto values = results(withFunctions(kTwoFunctions, R"(
.param .b32 p; .param .b32 q;
st.param.b32 [p], 21;
mov.u64 %rd3, second;
proto : .callprototype (.param .b32 _) _ (.param .b32 _);
call (q), %rd3, (p), proto;
ld.param.b32 %r1, [q];)"));
  EXPECT_EQ(values[3], 42u);
}

TEST(Call, ErrorsNameTheFunction) {
  EXPECT_THAT(failure(withFunctions(kTwoFunctions, R"(
.param .b32 p; .param .b32 q;
mov.u64 %rd3, 4660;
proto : .callprototype (.param .b32 _) _ (.param .b32 _);
call (q), %rd3, (p), proto;)")),
              HasSubstr("calls 0x1234, which is not the address of a device function"));
  EXPECT_THAT(failure(withFunctions(".func down(.param .b32 n);\n"
                                    ".func down(.param .b32 n) {\n"
                                    "{ .param .b32 p; st.param.b32 [p], 1; call down, (p); }\n"
                                    "ret; }\n",
                                    ".param .b32 p;\nst.param.b32 [p], 3;\ncall down, (p);")),
              HasSubstr("calls 'down' recursively, which is not simulated"));
  EXPECT_THAT(failure(withFunctions(".extern .func far(.param .b32 n);\n",
                                    ".param .b32 p;\ncall far, (p);")),
              HasSubstr("function 'far' is not defined in this module"));
  EXPECT_THAT(failure(withFunctions(kAddOne, ".param .b32 p;\ncall addOne, (p);")),
              HasSubstr("'addOne' expects 1 arguments and 1 results, but got 1 and 0"));
  EXPECT_THAT(failure(withFunctions("", "st.param.b32 [p0], 3;")),
              HasSubstr("the parameters are 8 read-only bytes"));
}

// The callee's parameter is larger than what is passed, which lies last in local memory.
TEST(Call, APassedVariableThatIsTooSmallIsNotLeft) {
  const std::string callee = R"(
.func take(.param .b8 big[4096]) {
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [big];
  ret;
}
)";
  const std::string passes = "{{ .param .b8 p[{0}]; st.param.b8 [p+{1}], 1; call take, (p); }}";
  EXPECT_EQ(failure(withFunctions(callee, fmt::format(fmt::runtime(passes), 4096, 4095))), "no error");
  EXPECT_EQ(failure(withFunctions(callee, fmt::format(fmt::runtime(passes), 1, 0))), "no error");
}

TEST(Call, ARegisterParameterIsOneRegister) {
  const std::string callee = ".func take(.reg .b32 value{}) {{ ret; }}\n";
  const std::string call = "mov.u32 %r1, 1; call take, (%r1);";
  EXPECT_EQ(failure(withFunctions(fmt::format(fmt::runtime(callee), ""), call)), "no error");
  EXPECT_THAT(failure(withFunctions(fmt::format(fmt::runtime(callee), "[9]"), call)),
              HasSubstr("'value' in .reg must be one register, but is an array"));
}

TEST(Program, NamesForMessages) {
  EXPECT_EQ(displayName("gemm"), "gemm");
  EXPECT_EQ(displayName("_Z5stuckPi"), "stuck");
  EXPECT_EQ(displayName("_ZN7cutlass13device_kernelIfEEvNT_6ParamsE"),
            "cutlass::device_kernel<...>");
  EXPECT_EQ(displayName("_Zwrong"), "_Zwrong");
  EXPECT_EQ(displayName("_Z9k"), "_Z9k");
  EXPECT_EQ(displayName("_ZN12_GLOBAL__N_11kEv"), "_GLOBAL__N_1::k");
}

TEST(Call, BranchTable) {
  std::string body = R"(
and.b32 %r2, %lane, 3;
targets: .branchtargets L0, L1, L2, L1;
brx.idx %r2, targets;
L0: mov.u32 %r1, 10; bra DONE;
L1: mov.u32 %r1, 11; bra DONE;
L2: mov.u32 %r1, 12;
DONE:)";
  auto values = results(withFunctions("", body));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(values[lane], std::vector<uint32_t>({10, 11, 12, 11})[lane % 4]);
  std::string beyond = body;
  beyond.replace(beyond.find("and.b32 %r2, %lane, 3"), 21, "mov.b32 %r2, 4       ");
  EXPECT_THAT(failure(withFunctions("", beyond)),
              HasSubstr("index 4 is not below the 4 targets of brx.idx"));
}

/// Returns the text that `body` prints, with two local variables of 8 bytes for the arguments.
std::string printed(const std::string &format, const std::string &arguments) {
  std::string bytes;
  for (char c : format)
    bytes += std::to_string(static_cast<int>(c)) + ", ";
  std::string ptx = withFunctions(
      ".extern .func (.param .b32 result) vprintf(.param .b64 f, .param .b64 a);\n"
      ".global .align 1 .b8 text[" +
          std::to_string(format.size() + 1) + "] = {" + bytes +
          "0};\n.global .align 1 .b8 word[4] = {97, 98, 99, 0};\n",
      ".local .align 8 .b8 buffer[32];\n.reg .b64 %l;\nmov.u64 %l, buffer;\n" + arguments + R"(
setp.ne.u32 %pr1, %lane, 3;
@%pr1 bra SKIP;
{ .param .b64 p; .param .b64 q; .param .b32 r;
  mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1; st.param.b64 [p], %rd2;
  cvta.local.u64 %rd3, %l; st.param.b64 [q], %rd3;
  call.uni (r), vprintf, (p, q);
  ld.param.b32 %r1, [r]; }
SKIP:)");
  std::string out;
  SimOptions options;
  options.print = [&](std::string_view text) { out += text; };
  Simulator simulator(options);
  uint64_t memory = upload(simulator, std::vector<uint32_t>(32, 0), "out");
  auto stats = run(simulator, ptx, {memory});
  EXPECT_TRUE(stats) << messageOf(stats);
  EXPECT_EQ(download<uint32_t>(simulator, memory, 32)[3], out.size());
  return out;
}

TEST(Call, Printf) {
  EXPECT_EQ(printed("plain 100%%\n", ""), "plain 100%\n");
  EXPECT_EQ(printed("%d %5u|%-4x|%c", "st.local.b32 [%l], -7; st.local.b32 [%l+4], 42;\n"
                                      "st.local.b32 [%l+8], 255; st.local.b32 [%l+12], 65;"),
            "-7    42|ff  |A");
  EXPECT_EQ(printed("%d %.3f %lld", "st.local.b32 [%l], 1;\nmov.f64 %fd1, 0d3FF8000000000000;\n"
                                    "st.local.f64 [%l+8], %fd1;\nst.local.b64 [%l+16], -9;"),
            "1 1.500 -9");
  EXPECT_EQ(printed("%*d [%s] %p",
                    "st.local.b32 [%l], 4; st.local.b32 [%l+4], 9;\nmov.u64 %rd1, word;\n"
                    "cvta.global.u64 %rd1, %rd1;\nst.local.b64 [%l+8], %rd1;\n"
                    "st.local.b64 [%l+16], 4096;"),
            "   9 [abc] 0x1000");
}

TEST(Call, AFailedAssertionSpeaks) {
  std::string ptx = withFunctions(R"(
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 message[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
)",
                                  R"(
{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
  mov.u64 %rd1, message; mov.u64 %rd2, file;
  st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; st.param.b32 [c], 12; st.param.b64 [d], %rd2;
  st.param.b64 [e], 1;
  call.uni __assertfail, (a, b, c, d, e); })");
  EXPECT_THAT(failure(ptx), HasSubstr("assertion failed: x > 0"));
  EXPECT_THAT(failure(ptx), HasSubstr("a.cu:12: a.cu"));
}

TEST(Stack, GrowsAndIsGivenBack) {
  Simulator simulator;
  const uint64_t out = upload(simulator, std::vector<uint64_t>(128));
  auto body = [](const std::string &bytes) {
    return "stacksave.u64 %rd1;\nmad.lo.u64 %rd2, %lane64, 8, 8;\nalloca.u64 %rd3, %rd2;\n"
           "alloca.u64 %rd4, " +
           bytes +
           ", 256;\nst.local.u64 [%rd3], %lane64;\n"
           "st.local.u64 [%rd4], 7;\ncvta.local.u64 %rd5, %rd3;\nld.u64 %rd6, [%rd5];\n"
           "and.b64 %rd7, %rd4, 255;\nsub.u64 %rd8, %rd1, %rd3;\nstackrestore.u64 %rd1;\n"
           "stacksave.u64 %rd9;\nsub.u64 %rd9, %rd9, %rd1;\nmad.lo.u64 %rd10, %lane64, 32, %p0;\n"
           "st.global.v2.u64 [%rd10], {%rd6, %rd7};\nst.global.v2.u64 [%rd10+16], {%rd8, %rd9};\n";
  };
  auto stats = run(simulator, kernel(body("64"), 1), {out});
  ASSERT_TRUE(stats) << messageOf(stats);
  const auto found = download<uint64_t>(simulator, out, 128);
  for (uint64_t lane = 0; lane < 32; ++lane) // the value, aligned, at least so many bytes, restored
    EXPECT_TRUE(found[4 * lane] == lane && found[4 * lane + 1] == 0 &&
                found[4 * lane + 2] >= 8 * lane + 8 && found[4 * lane + 3] == 0);
  EXPECT_NE(messageOf(run(simulator, kernel(body("1000000"), 1), {out})).find("stack of 65536"),
            std::string::npos);
}

} // namespace
