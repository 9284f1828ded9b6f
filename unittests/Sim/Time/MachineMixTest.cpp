//===- MachineMixTest.cpp - Counting machine instructions -----------------===//
#include "Sim/Time/MachineMix.h"
#include "../Async/KernelHarness.h"
#include "fp4/Sim/Predictor.h"
#include "fp4/Support/OutputFile.h"
#include <algorithm>
#include <filesystem>

namespace fp4::sim {
namespace {

/// As nvdisasm -g -c prints it: line 5 has a slow path that is called, line 6 is unrolled twice.
constexpr const char *kListing = R"(
//--------------------- .text.kernel              --------------------------
	.section	.text.kernel,"ax",@progbits
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "ptx", line 4
        /*0010*/                   IMAD.WIDE.U32 R4, R33, 0x20, R4 ;
        /*0020*/                   LDG.E.128 R12, desc[UR6][R4.64] ;
	//## File "ptx", line 5
        /*0030*/                   MUFU.RCP R7, R2 ;
        /*0040*/                   FFMA R0, -R2, R7, 1 ;
        /*0050*/              @!P0 BRA `(.L_x_0) ;
        /*0060*/                   MOV R4, 0x170 ;
        /*0070*/                   CALL.REL.NOINC `($__internal_1_$slowpath) ;
        /*0080*/                   IMAD.MOV.U32 R0, RZ, RZ, R3 ;
.L_x_0:
        /*0090*/                   LOP3.LUT R0, R0, R1, RZ, 0xc0, !PT ;
	//## File "ptx", line 6
        /*00a0*/                   STS [R1], R0 ;
        /*00b0*/                   STS [R1+0x4], R0 ;
        /*00c0*/                   NOP ;
        .weak           $__internal_1_$slowpath
$__internal_1_$slowpath:
	//## File "ptx", line 5
        /*00d0*/                   LOP3.LUT R0, R0, R1, RZ, 0xc0, !PT ;
)";

TEST(MachineMix, CountsByLineAndPipe) {
  const auto kernels = countMachineCode(kListing);
  ASSERT_EQ(kernels.count("kernel"), 1u);
  const auto &lines = kernels.at("kernel").lines;
  ASSERT_EQ(lines.size(), 3u); // instructions of no line of PTX do not count
  EXPECT_EQ(lines.at(4).issue, 2u);
  EXPECT_EQ(lines.at(4).pipes[PipeHeavy], 0u);
  EXPECT_EQ(lines.at(4).wide, 1u);
  EXPECT_EQ(lines.at(4).anchors, 1u);
  EXPECT_EQ(lines.at(6).issue, 2u);
  EXPECT_EQ(lines.at(6).anchors, 2u);
  EXPECT_EQ(lines.at(4).places, 1u + 2u); // they begin with the first that a line made
  EXPECT_EQ(lines.at(6).places, 10u + 11u);
}

/// A line that takes a parameter or a spilled register too is there once all the same.
TEST(MachineMix, CountsCopiesByWhatPtxasDoesNotAdd) {
  const auto kernels = countMachineCode(R"(
//--------------------- .text.kernel              --------------------------
	//## File "ptx", line 4
        /*0000*/                   LDC.64 R4, c[0x0][0x210] ;
        /*0010*/                   LDCU.64 UR4, c[0x0][0x358] ;
        /*0020*/                   LDL R6, [R1+0x8] ;
        /*0030*/                   STG.E desc[UR4][R4.64], R6 ;
)");
  EXPECT_EQ(kernels.at("kernel").lines.at(4).issue, 4u);
  EXPECT_EQ(kernels.at("kernel").lines.at(4).anchors, 1u);
}

/// The first line of 64 bytes comes with the launch. Registers may have a part of an address, which
/// is then not known.
TEST(MachineMix, KnowsTheLinesOfParametersThatInstructionsRead) {
  const auto kernels = countMachineCode(R"(
//--------------------- .text.kernel              --------------------------
	//## File "ptx", line 4
        /*0000*/                   LDC.64 R4, c[0x0][0x210] ;
        /*0010*/                   ULDC.64 UR4, c[0x0][0x238] ;
	//## File "ptx", line 5
        /*0020*/                   IMAD R6, R6, c[0x0][0x240], R7 ;
        /*0030*/                   ULDC UR4, c[0x0][0x2fc] ;
        /*0040*/                   LOP3.LUT R6, R6, c[0x3][0x240], RZ, 0x3c, !PT ;
)");
  EXPECT_EQ(kernels.at("kernel").lines.at(4).parameters, 0u);
  EXPECT_EQ(kernels.at("kernel").lines.at(5).parameters, 0b1010u);
}

/// A call behind the target of the last branch is no slow path that the branch leaves out.
TEST(MachineMix, GoesOnBehindACallThatNoBranchPasses) {
  const auto listing = [](const std::string &target) {
    return fmt::format(R"(
//--------------------- .text.kernel              --------------------------
	//## File "ptx", line 4
.L_x_0:
        /*0000*/                   MOV R4, R5 ;
        /*0010*/               @P0 BRA `({}) ;
.L_x_1:
        /*0020*/                   MOV R4, R5 ;
        /*0030*/                   CALL.REL.NOINC `($__internal_0_$__trap) ;
.L_x_2:
        /*0040*/                   MOV R4, R5 ;
	//## File "ptx", line 5
        /*0050*/                   MOV R4, R5 ;
.L_x_3:
)",
                       target);
  }; // a slow path, which is left out, ends within its line
  for (const auto &[target, issue] : {std::pair(".L_x_0", 5u), std::pair(".L_x_1", 5u),
                                      std::pair(".L_x_2", 3u), std::pair(".L_x_3", 2u)}) {
    const auto kernels = countMachineCode(listing(target));
    EXPECT_EQ(kernels.at("kernel").lines.at(4).issue, issue) << target;
    EXPECT_EQ(kernels.at("kernel").lines.at(5).issue, 1u) << target;
  }
}

/// ptxas gives an MMA of a warpgroup no line, so that it seems to be of the line before it.
TEST(MachineMix, AMmaOfAWarpgroupIsOfNoLine) {
  const auto kernels = countMachineCode(R"(
//--------------------- .text.kernel              --------------------------
	//## File "ptx", line 4
        /*0000*/                   LOP3.LUT R4, R4, R5, RZ, 0x3c, !PT ;
        /*0010*/                   HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], R24 ;
	//## File "ptx", line 7
        /*0020*/                   HMMA.16816.F32.BF16 R8, R4, R2, R8 ;
)");
  const MachineKernel &kernel = kernels.at("kernel");
  EXPECT_EQ(kernel.lines.at(4).issue, 1u);
  EXPECT_EQ(kernel.lines.at(4).places, 1u);
  EXPECT_EQ(kernel.lines.at(4).wgmma, 1u);
  EXPECT_EQ(kernel.lines.at(7).issue, 1u); // a warp's has its own
  ASSERT_EQ(kernel.mmas.size(), 1u);
  EXPECT_EQ(kernel.mmas[0].line, 4u);
  EXPECT_EQ(kernel.mmas[0].place, 2u);
}

/// Instructions of the module's functions count where their lines are, those of ptxas' own
/// functions do not.
TEST(MachineMix, CountsTheFunctionsThatAKernelCalls) {
  const std::string listing = std::string(kListing) + R"(
$kernel$helper:
        /*00e0*/                   MOV R5, R4 ;
	//## File "ptx", line 12
        /*00f0*/                   IMAD R3, R2, R2, RZ ;
$kernel$__internal_2_$slowpath:
	//## File "ptx", line 12
        /*0100*/                   LOP3.LUT R0, R0, R1, RZ, 0xc0, !PT ;
)";
  const auto kernels = countMachineCode(listing);
  const auto &lines = kernels.at("kernel").lines;
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines.at(5).issue, 4u);
  EXPECT_EQ(lines.at(12).issue, 1u);
  EXPECT_EQ(lines.at(12).pipes[PipeHeavy], 1u);
  EXPECT_EQ(lines.at(12).places, 12u);
}

/// The first results of what `body` becomes when its lines have these places; 0: none. `mmas`: MMAs
/// of warpgroups without a line, by the number of the line before them.
std::string sorted(const std::string &body, const std::vector<uint64_t> &places,
                   const std::vector<MachineMma> &mmas = {}) {
  const auto program = test::parse(test::kernelText(body, "", "sm_90a"));
  Kernel kernel = *program->impl().find("test");
  MachineKernel machine;
  const size_t before = kernel.code.size() - places.size() - 2; // behind them ret, and the end
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i])
      machine.lines[kernel.code[before + i].line] = {.issue = 1, .places = places[i]};
  const uint32_t first = kernel.code[before].line;
  for (const MachineMma &mma : mmas)
    machine.mmas.push_back({first + mma.line, mma.place});
  TimedCode(program->impl(), kernel, &machine).sortAsMachine(kernel, machine);
  std::string order;
  for (const Insn &insn : kernel.code)
    if (insn.line >= first && insn.line < first + places.size())
      order += char('A' + insn.line - first);
  return order;
}

constexpr const char *kMoves = R"(  add.u32 %r1, %t, 1;
  add.u32 %r2, %r1, 1;
  st.global.b32 [%out], %r2;
  ld.global.b32 %r3, [%out+8];
  xor.b32 %r4, %t, 5;
  mul.lo.u32 %r5, %t, 3;
  st.global.b32 [%out+4], %r5;
)";

TEST(MachineOrder, InstructionsComeWherePtxasPutThem) {
  EXPECT_EQ(sorted(kMoves, {1, 2, 3, 4, 5, 6, 7}), "ABCDEFG");
  EXPECT_EQ(sorted(kMoves, {5, 6, 7, 8, 1, 2, 9}), "EFABCDG");
}

TEST(MachineOrder, WhatTheyNeedComesBefore) {
  // B needs A, D does not pass the store C, and F, which is in no place, comes where what needs it is
  EXPECT_EQ(sorted(kMoves, {10, 5, 20, 1, 3, 0, 30}), "EABCDFG");
  EXPECT_EQ(sorted(kMoves, {10, 11, 40, 1, 3, 0, 30}), "EABFCDG");
}

/// The carry is in no operand.
TEST(MachineOrder, CarriesReachWhoAddsThem) {
  const auto body = [](const char *cc, const char *c) {
    std::string text;
    for (int i = 0; i < 2; ++i)
      text += fmt::format("  add{}.u32 %r{}, %t, {};\n  add{}.u32 %r{}, %t, 0;\n", cc, 1 + 2 * i,
                          i + 1, c, 2 + 2 * i);
    return text + "  sub.cc.u32 %r5, %t, 1;\n  madc.lo.u32 %r6, %t, %t, %t;\n";
  };
  EXPECT_EQ(sorted(body(".cc", "c"), {1, 4, 2, 5, 3, 6}), "ABCDEF");
  EXPECT_EQ(sorted(body("", ""), {1, 4, 2, 5, 3, 6}), "ACEBDF");
}

/// These instructions are no memory accesses and cost as much as arithmetic, but lanes, or the
/// stack, know where they are.
TEST(MachineOrder, WhatIsMoreThanArithmeticStays) {
  const auto between = [](const std::string &line) {
    return "  st.global.b32 [%out], %t;\n" + line + "  st.global.b32 [%out+4], %t;\n";
  };
  for (const char *fixed : {"  bar.warp.sync -1;\n", "  activemask.b32 %r1;\n",
                            "  fence.acquire.sync_restrict::shared::cluster.cluster;\n",
                            "  stacksave.u32 %r1;\n", "  mov.u32 %r1, %clock;\n"})
    EXPECT_EQ(sorted(between(fixed), {2, 1, 3}), "ABC") << fixed;
  EXPECT_EQ(sorted(between("  mov.u32 %r1, %laneid;\n"), {2, 1, 3}), "BAC");
}

TEST(MachineOrder, ABranchEndsItsBlock) {
  const std::string jump = "  bra NEXT;\nNEXT:\n";
  EXPECT_EQ(sorted(kMoves + jump, {5, 6, 7, 8, 9, 10, 11, 1}), "ABCDEFGH");
}

/// An MMA has its registers in use until the wait; A is the fence, B the MMA, D the wait.
TEST(MachineOrder, ArithmeticMovesAroundAMmaThatDoesNotUseIt) {
  const auto product = [](const char *before, const char *behind) {
    return fmt::format("  wgmma.fence.sync.aligned;\n"
                       "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%v0, %v1, %v2, %v3}}, "
                       "%rd4, %rd4, 1, 1, 1, 0, 0;\n{}  wgmma.wait_group.sync.aligned 0;\n{}",
                       before, behind);
  };
  const char *other = "  add.u32 %r1, %t, 1;\n", *sum = "  add.f32 %v1, %v1, %v1;\n";
  EXPECT_EQ(sorted(product(other, sum), {2, 3, 5, 4, 6}), "ABDCE");
  EXPECT_EQ(sorted(product(other, sum), {2, 3, 1, 4, 6}), "CABDE");
  EXPECT_EQ(sorted(product(other, sum), {3, 4, 5, 6, 1}), "ABCDE");
  EXPECT_EQ(sorted(product("", other), {3, 4, 5, 1}), "DABC");
}

/// A is the fence, B and C are MMAs, G is the wait. Each MMA begins where the one of the machine
/// code is, which has the line of the arithmetic before it, so that arithmetic runs beside it.
/// Copies of a loop that was unrolled count together; an MMA that ptxas left out leaves all where
/// they need.
TEST(MachineOrder, MmasBeginWherePtxasPutThem) {
  const std::string mma = "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                          "{%v0, %v1, %v2, %v3}, %rd4, %rd4, 1, 1, 1, 0, 0;\n",
                    body = "  wgmma.fence.sync.aligned;\n" + mma + mma +
                           "  add.u32 %r1, %t, 1;\n  add.u32 %r2, %t, 2;\n"
                           "  add.u32 %r3, %t, 3;\n  wgmma.wait_group.sync.aligned 0;\n"
                           "  st.global.b32 [%out], %v0;\n";
  const std::vector<uint64_t> places = {1, 0, 0, 3, 5, 7, 9, 11};
  EXPECT_EQ(sorted(body, places), "ADEFBCGH");
  EXPECT_EQ(sorted(body, places, {{0, 2}, {3, 4}}), "ABDCEFGH");
  EXPECT_EQ(sorted(body, places, {{3, 4}, {4, 6}}), "ADBECFGH");
  EXPECT_EQ(sorted(body, places, {{0, 2}, {3, 4}, {3, 6}, {4, 8}}), "ADBECFGH");
  EXPECT_EQ(sorted(body, places, {{0, 2}, {3, 4}, {4, 6}}), "ADEFBCGH");
}

/// Two MMAs: B and G are their fences, C and H the MMAs, D and J the waits. E makes an operand of
/// the second one, and comes before the wait for the first unless the wait A left it in flight. F
/// makes one of the first, behind the wait for it and before the next fence.
TEST(MachineOrder, OperandsOfAMmaMoveAroundTheWaitForAnother) {
  const auto product = [](const char *sums, const char *a) {
    return fmt::format("  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{{0}}}, "
                       "{{{1}, {1}, {1}, {1}}}, %rd4, 1, 1, 1, 0;\n",
                       sums, a);
  };
  const std::string fence = "  wgmma.fence.sync.aligned;\n",
                    wait = "  wgmma.wait_group.sync.aligned ",
                    body = fence + product("%v0, %v1, %v2, %v3", "%r1") + wait + "0;\n" +
                           "  add.u32 %r2, %t, 1;\n  add.u32 %r1, %t, 3;\n" + fence +
                           product("%v4, %v5, %v6, %v7", "%r2") + "  add.u32 %r3, %t, 1;\n" + wait +
                           "0;\n";
  EXPECT_EQ(sorted(wait + "0;\n" + body, {1, 3, 4, 7, 5, 10, 9, 11, 6, 12}), "ABCEIDFGHJ");
  EXPECT_EQ(sorted(wait + "1;\n" + body, {1, 3, 4, 7, 5, 10, 9, 11, 6, 12}), "ABCIDEFGHJ");
}

/// F is an operand of the MMA, and I its result.
TEST(MachineOrder, ASynchronousMmaMovesLikeArithmetic) {
  const std::string product = "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                              "{%v0, %v1, %v2, %v3}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, "
                              "{%v0, %v1, %v2, %v3};\n",
                    sum = "  add.f32 %v1, %v1, %v1;\n";
  EXPECT_EQ(sorted(kMoves + product + sum, {4, 5, 6, 7, 8, 1, 9, 2, 3}), "FHIABCDEG");
  EXPECT_EQ(sorted(kMoves + product + sum, {4, 5, 6, 7, 8, 2, 9, 3, 1}), "FHIABCDEG");
}

/// A barrier of lanes is C, and the MMA D.
TEST(MachineOrder, ASynchronousMmaStaysBehindABarrier) {
  const auto behind = [](const char *line) {
    return fmt::format("  add.u32 %r1, %t, 1;\n  xor.b32 %r2, %t, 1;\n{}"
                       "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                       "{{%v0, %v1, %v2, %v3}}, {{%r1, %r1, %r1, %r1}}, {{%r1, %r1}}, "
                       "{{%v0, %v1, %v2, %v3}};\n",
                       line);
  };
  EXPECT_EQ(sorted(behind("  bar.warp.sync -1;\n"), {1, 3, 4, 2}), "ABCD");
  EXPECT_EQ(sorted(behind("  st.global.b32 [%out], %t;\n"), {1, 3, 4, 2}), "ADBC");
}

TEST(MachineMix, LeavesOutSlowPathsThatAreCalled) {
  const auto kernels = countMachineCode(kListing);
  const MachineCount &count = kernels.at("kernel").lines.at(5);
  EXPECT_EQ(count.issue, 4u); // MUFU, FFMA, BRA, LOP3
  EXPECT_EQ(count.rejoins, 1u);
  EXPECT_EQ(count.pipes[PipeMufu], 1u);
  EXPECT_EQ(count.pipes[PipeAlu], 1u);
  EXPECT_EQ(count.pipes[PipeHeavy], 0u);
  EXPECT_EQ(count.fp32, 1u);
}

TEST(MachineMix, ChecksOfDivisionsTakeThePipeOfReciprocals) {
  const auto kernels = countMachineCode("//--- .text.test ---\n//## File \"ptx\", line 4\n"
                                        "/*0*/ FCHK P0, R26, R3 ;\n");
  EXPECT_EQ(kernels.at("test").lines.at(4).pipes[PipeMufu], 1u);
  EXPECT_EQ(kernels.at("test").lines.at(4).rejoins, 0u);
}

/// Returns the reads of even registers and of odd ones.
std::array<uint32_t, kBanks> readsOf(const std::string &instructions) {
  const std::string text = "//--- .text.test ---\n//## File \"ptx\", line 4\n";
  return countMachineCode(text + instructions).at("test").lines.at(4).reads;
}

TEST(MachineMix, CountsTheRegistersThatAreReadByBank) {
  using Reads = std::array<uint32_t, kBanks>;
  EXPECT_EQ(readsOf("/*0*/ FFMA R1, R2, R4, R6 ;\n"), (Reads{3, 0}));
  EXPECT_EQ(readsOf("/*0*/ @!P0 FFMA R2, -R2, |R3|, ~R5 ;\n"), (Reads{1, 2}));
  EXPECT_EQ(readsOf("/*0*/ FADD R1, R3, R3 ;\n"), (Reads{0, 1})); // one register
  EXPECT_EQ(readsOf("/*0*/ LOP3.LUT R1, R3, 0x4, RZ, 0xc0, !PT ;\n"), (Reads{0, 1}));
  EXPECT_EQ(readsOf("/*0*/ ISETP.NE.U32.AND P0, PT, R4, UR6, P1 ;\n"), (Reads{1, 0}));
  EXPECT_EQ(readsOf("/*0*/ IADD3 R4, P0, R6, -R11, RZ ;\n"), (Reads{1, 1}));
  EXPECT_EQ(readsOf("/*0*/ HADD2.F32 R5, -RZ, R2.H0_H0 ;\n"), (Reads{1, 0}));
  EXPECT_EQ(readsOf("/*0*/ IMAD.WIDE.U32 R4, R33, 0x20, R6 ;\n"), (Reads{1, 2})); // a pair
  EXPECT_EQ(readsOf("/*0*/ STG.E desc[UR4][R2.64], R4 ;\n"), (Reads{0, 0}));      // no pipe
}

TEST(MachineMix, ARegisterThatIsKeptIsReadOnce) {
  using Reads = std::array<uint32_t, kBanks>;
  const std::string first = "/*0*/ FMUL R1, R2.reuse, R4 ;\n";
  EXPECT_EQ(readsOf(first + "/*10*/ FMUL R3, R2, R6 ;\n"), (Reads{3, 0}));
  EXPECT_EQ(readsOf(first + "/*10*/ FMUL R3, R6, R2 ;\n"), (Reads{3, 0})); // another operand
  EXPECT_EQ(readsOf(first + "/*10*/ FMUL R3, R4, R2 ;\n"), (Reads{3, 0})); // without .reuse
  EXPECT_EQ(readsOf(first + "/*10*/ FMUL R3, R8, R6 ;\n/*20*/ FMUL R3, R2, R6 ;\n"), (Reads{6, 0}));
  // the third operand's place is free until an instruction has one
  const std::string three = "/*0*/ FFMA R1, R2, R4, R6.reuse ;\n/*10*/ FMUL R3, R8, R10 ;\n";
  EXPECT_EQ(readsOf(three + "/*20*/ FADD R3, R12, R6 ;\n"), (Reads{6, 0}));
  EXPECT_EQ(readsOf(three + "/*20*/ FFMA R3, R12, R14, R16 ;\n/*30*/ FADD R3, R18, R6 ;\n"),
            (Reads{10, 0}));
}

/// An executable script.
std::unique_ptr<TemporaryFile> script(const std::string &text) {
  auto file = TemporaryFile::create("sh");
  EXPECT_TRUE(file && writeFile((*file)->path(), "#!/bin/sh\n" + text));
  std::filesystem::permissions((*file)->path(), std::filesystem::perms::owner_all);
  return std::move(*file);
}

/// The lines of the module are replaced by those of its text, and nothing else of it.
TEST(MachineMix, AssemblesTheModuleWithLinesOfItsOwn) {
  const std::string ptx = ".version 9.0\n.address_size 64\n.file 1 \"a.cu\"\n"
                          "  .local .b32 depot;\n  .loc 1 7 0\n  ret;\n";
  const auto ptxas =
      script("echo \"Compiling entry function 'test' for 'sm_90a'\"\n"
             "echo '24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads'\n"
             "echo 'Used 40 registers'\ncp \"$4\" \"$6\"\n");
  // The listing has an instruction for each of these lines.
  const auto nvdisasm = script("echo '//--- .text.test ---'\necho '//## File \"ptx\", line 6'\n"
                               "grep -e '^  .local' -e '^.loc 1 6 0$' -e '^.file 1 \"ptx\"$' "
                               "-e 'loc 1 7' -e 'a.cu' \"$3\" |\n"
                               "while read -r line; do echo '/*0*/ EXIT ;'; done\n");
  setenv("FP4_PTXAS", ptxas->path().c_str(), 1);
  setenv("NVDISASM", nvdisasm->path().c_str(), 1);
  const auto kernels = assembleMix(ptx, {6}, "sm_90a");
  unsetenv("FP4_PTXAS");
  unsetenv("NVDISASM");
  ASSERT_TRUE(kernels) << kernels.error().message;
  EXPECT_EQ(kernels->at("test").lines.at(6).issue, 3u);
  EXPECT_EQ(kernels->at("test").registers, 40u);
  EXPECT_EQ(kernels->at("test").spilledBytes, 16u);
}

/// The prediction for two chains with a store between them that races, with a listing that has them
/// so or instruction by instruction. `checked`: the reports come with it.
struct Listed {
  double cycles = 0;
  std::vector<HazardReport> reports;
};

Listed predictListed(bool together, bool checked) {
  constexpr unsigned length = 16;
  std::string chains[2];
  for (unsigned i = 0; i < length; ++i)
    for (unsigned c = 0; c < 2; ++c)
      chains[c] += fmt::format("  mul.lo.u32 %r{0}, %r{0}, %r{0};\n", c);
  const std::string begin = together ? "// together\n" : "// in turn\n", stored = "[%out], %t;\n";
  const std::string ptx = test::kernelText(
      begin + "  mov.u32 %r0, %t;\n  mov.u32 %r1, %t;\n" + chains[0] + "  st.global.b32 " + stored +
          chains[1] + "  add.u32 %r0, %r0, %r1;\n  st.global.b32 [%out+4], %r0;\n",
      "", "sm_90a");
  const auto first = uint32_t(std::count(ptx.begin(), ptx.begin() + ptx.find("  mul"), '\n') + 1);
  std::string listing = "//--- .text.test ---\n";
  for (unsigned i = 0; i < 2 * length; ++i) {
    const unsigned of = together ? i % 2 * length + i / 2 : i, line = first + of + (of >= length);
    listing += fmt::format("//## File \"ptx\", line {}\n/*0*/ IMAD R0, R0, R0, RZ ;\n", line);
  }
  const auto ptxas = script(": > \"$6\"\n"), nvdisasm = script("cat <<'END'\n" + listing + "END\n");
  setenv("FP4_PTXAS", ptxas->path().c_str(), 1);
  setenv("NVDISASM", nvdisasm->path().c_str(), 1);
  Listed result;
  SimOptions options;
  options.target = "sm_90a";
  std::unique_ptr<Instruments> instruments;
  if (checked)
    instruments = test::instrument("strict", options);
  options.policy = CompletionPolicy::Timed;
  Predictor predictor{.mix = InstructionMix::Cubin};
  predictor.receive = [&](KernelTime time, std::string) { result.cycles = time.cycles; };
  options.predicted = predictor;
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(64, "out");
  const auto stats = simulator.launch(*test::parse(ptx), "test", {.block = {64, 1, 1}},
                                      test::Params().add(out).span());
  EXPECT_TRUE(stats) << stats.error().message;
  unsetenv("FP4_PTXAS");
  unsetenv("NVDISASM");
  if (instruments)
    result.reports = instruments->hazards();
  return result;
}

/// An instruction of PTX, a line of it, and what the listing says that it became.
struct ListedInsn {
  std::string ptx, machine;
};

/// Cycles of a scheduler for all of `insns`, which a loop that is unrolled repeats, four warps
/// each.
double cyclesOfListed(const std::vector<ListedInsn> &insns) {
  constexpr unsigned length = 64, warps = 4;
  static int modules = 0; // of which each is assembled once
  std::string body = fmt::format("// {}\n  mov.u32 %r0, %t;\n// here\n", ++modules),
              listing = "//--- .text.test ---\n";
  for (unsigned i = 0; i < length; ++i)
    for (const ListedInsn &insn : insns)
      body += fmt::format(fmt::runtime(insn.ptx), 1 + i % 8);
  const std::string ptx = test::kernelText(body, "", "sm_90a");
  const auto first = uint32_t(std::count(ptx.begin(), ptx.begin() + ptx.find("// here"), '\n') + 2);
  for (unsigned i = 0; i < length * insns.size(); ++i)
    listing += fmt::format("//## File \"ptx\", line {}\n/*0*/ {} ;\n", first + i,
                           insns[i % insns.size()].machine);
  const auto ptxas = script(": > \"$6\"\n"), nvdisasm = script("cat <<'END'\n" + listing + "END\n");
  setenv("FP4_PTXAS", ptxas->path().c_str(), 1);
  setenv("NVDISASM", nvdisasm->path().c_str(), 1);
  SimOptions options;
  options.target = "sm_90a";
  options.policy = CompletionPolicy::Timed;
  Predictor predictor{.mix = InstructionMix::Cubin};
  double cycles = 0;
  predictor.receive = [&](KernelTime time, std::string) { cycles = time.cycles; };
  options.predicted = predictor;
  Simulator simulator(options);
  const uint64_t out = simulator.memory().allocate(64, "out");
  EXPECT_TRUE(simulator.launch(*test::parse(ptx), "test", {.block = {warps * 128, 1, 1}},
                               test::Params().add(out).span()));
  unsetenv("FP4_PTXAS");
  unsetenv("NVDISASM");
  return cycles / (length * warps);
}

double cyclesOfListed(const std::string &machine) {
  return cyclesOfListed({{"  prmt.b32 %r{}, %r0, %t, 12816;\n", machine}});
}

/// As benchmarks/micro/registers.py measures it on an H200.
TEST(MachineMix, RegistersOfOneBankAreReadOneAfterTheOther) {
  const double one = cyclesOfListed("FADD R1, R2, R3"), two = cyclesOfListed("FADD R1, R2, R4"),
               three = cyclesOfListed("FFMA R1, R2, R4, R6");
  EXPECT_NEAR(two - one, 1, 0.1);
  EXPECT_NEAR(three - two, 1, 0.1);
  EXPECT_NEAR(cyclesOfListed("FADD R1, R2, R2"), one, 0.1);
  // a pipe that is busy for two cycles hides the second
  EXPECT_NEAR(cyclesOfListed("LOP3.LUT R1, R2, R4, R3, 0x1e, !PT"),
              cyclesOfListed("LOP3.LUT R1, R2, R3, RZ, 0x1e, !PT"), 0.1);
  // two pipes that read four registers of a bank between them do not
  const std::string other = " ;\n/*10*/ IMAD R5, ";
  EXPECT_NEAR(cyclesOfListed("PRMT R1, R2, 0x5, R4" + other + "R6, 0x5, R8"), 4 + one - 1, 0.2);
  EXPECT_NEAR(cyclesOfListed("PRMT R1, R2, 0x5, R4" + other + "R7, 0x5, R9"), 2 + one - 1, 0.2);
}

/// On an H200 a m16n8k16 takes 6.0 clk of a scheduler, and 13.4 with four LOP3 behind it (micro:
/// conversions): a LOP3 takes its pipe 2 clk, and waits while the product reads registers.
TEST(MachineMix, AMmaReadsItsRegistersWhileItHasTheTensorCore) {
  const std::string product =
      "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%v0, %v1, %v2, %v3}}, "
      "{{%t, %t, %t, %t}}, {{%t, %t}}, {{%v0, %v1, %v2, %v3}};\n";
  const auto behind = [&](const std::string &machine) {
    std::vector<ListedInsn> insns{{product, "HMMA.16816.F32.BF16 R16, R8, R4, R16"}};
    insns.resize(5, {"  prmt.b32 %r{}, %r0, %t, 12816;\n", machine});
    return cyclesOfListed(insns);
  };
  const double alone = behind("UMOV UR4, 0x1"); // reads no registers
  EXPECT_NEAR(behind("LOP3.LUT R24, R25, R26, R27, 0x1e, !PT") - alone, 13.4 - 6, 0.8);
  EXPECT_NEAR(
      cyclesOfListed({{product, "HMMA.16816.F32.BF16 R16, R8, R4, R16"}}),
      cyclesOfListed({{product, "HMMA.16816.F32.BF16 R16, R8, R4, R16 ;\n/*10*/ MOV R4, R8"}}),
      1.5); // moves of its line are no products
}

/// A row of 128 bytes of spilled registers takes shared memory a cycle, which four schedulers
/// share, and who needs them waits.
TEST(MachineMix, ReloadedRegistersTakeTheWayOfSharedMemory) {
  const std::string move = "PRMT R1, R2, 0x5, R3", next = " ;\n/*10*/ ";
  const double none = cyclesOfListed(move), one = cyclesOfListed(move + next + "LDL R4, [R1+0x8]"),
               four = cyclesOfListed(move + next + "LDL.128 R4, [R1+0x10]");
  EXPECT_GT(one, none + 1);
  EXPECT_GT(four, 2 * one);
  EXPECT_NEAR(cyclesOfListed(move + next + "STL.128 [R1+0x10], R4"), none, 0.1); // nobody waits
}

TEST(MachineOrder, ACheckerChangesNoPrediction) {
  const Listed together = predictListed(true, false), checked = predictListed(true, true),
               inTurn = predictListed(false, false);
  EXPECT_GT(together.cycles, 0);
  EXPECT_LT(together.cycles, inTurn.cycles - 16);
  EXPECT_EQ(checked.cycles, together.cycles);
  ASSERT_EQ(checked.reports.size(), predictListed(false, true).reports.size());
  ASSERT_FALSE(checked.reports.empty());
  EXPECT_EQ(checked.reports[0].first.source, "st.global.b32 [%out], %t;");
}

/// Instructions of each of two sums where ptxas has `made` MMAs and 24 sums in their lines, and
/// none in those of two MMAs.
unsigned countOfSum(uint32_t made) {
  const std::string product = "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                              "{%v0, %v1, %v2, %v3}, %rd4, %rd4, 1, 1, 1, 0, 0;\n";
  const auto program = test::parse(test::kernelText(
      "  wgmma.fence.sync.aligned;\n" + product + product + "  wgmma.commit_group.sync.aligned;\n" +
          "  add.u32 %r1, %t, 1;\n  add.u32 %r2, %t, 2;\n  wgmma.wait_group.sync.aligned 0;\n"
          "  st.global.v4.b32 [%out], {%v0, %r1, %r2, %v1};\n",
      "", "sm_90a"));
  const Kernel &kernel = *program->impl().find("test");
  const auto second = uint32_t(kernel.code.size() - 5); // behind it two, ret, and the end
  MachineKernel machine;
  for (uint32_t pc : {second - 1, second})
    machine.lines[kernel.code[pc].line] = {.issue = 24, .anchors = made / 2, .wgmma = made / 2};
  return TimedCode(program->impl(), kernel, &machine)[second].count;
}

/// So ptxas 13.0 gives lines to MMAs of a loop that it unrolls.
TEST(TimedCode, MmasTellHowOftenABlockWasWritten) {
  EXPECT_EQ(countOfSum(16), 3u);
  EXPECT_EQ(countOfSum(2), 24u);
  EXPECT_EQ(countOfSum(0), 24u); // nothing tells
}

/// Numbers of 16 bits once ended at 65536, and two registers became one.
TEST(TimedCode, TellsMoreRegistersApartThan16BitsCount) {
  constexpr unsigned many = 66000, apart = 65536;
  std::string body = fmt::format("  .reg .b32 %x<{}>;\n", many);
  for (unsigned i = 0; i < many; ++i)
    body += fmt::format("  mov.u32 %x{}, %t;\n", i);
  const auto program = test::parse(test::kernelText(body, "", "sm_90a"));
  const Kernel &kernel = *program->impl().find("test");
  const TimedCode code(program->impl(), kernel);
  EXPECT_GT(code.registerCount(), many);
  const auto last = uint32_t(kernel.code.size() - 3); // behind it ret, and the end
  EXPECT_NE(code.writes(code[last])[0], code.writes(code[last - apart])[0]);
}

TEST(MachineMix, NamesTheToolThatIsMissing) {
  setenv("FP4_PTXAS", "/nonexistent/ptxas", 1);
  setenv("NVDISASM", "/nonexistent/nvdisasm", 1);
  const auto kernels = assembleMix(".version 9.0\n", {}, "sm_90a");
  unsetenv("FP4_PTXAS");
  unsetenv("NVDISASM");
  ASSERT_FALSE(kernels);
  EXPECT_NE(kernels.error().message.find("/nonexistent/ptxas"), std::string::npos);
}

} // namespace
} // namespace fp4::sim
