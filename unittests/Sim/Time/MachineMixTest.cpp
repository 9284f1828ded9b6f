//===- MachineMixTest.cpp - Counting machine instructions -----------------===//
#include "Sim/Time/MachineMix.h"
#include "../Async/KernelHarness.h"

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
  ASSERT_EQ(lines.size(), 3u); // what no line of PTX made does not count
  EXPECT_EQ(lines.at(4).issue, 2u);
  EXPECT_EQ(lines.at(4).pipes[PipeHeavy], 0u);
  EXPECT_EQ(lines.at(4).wide, 1u);
  EXPECT_EQ(lines.at(4).anchors, 1u);
  EXPECT_EQ(lines.at(6).issue, 2u);
  EXPECT_EQ(lines.at(6).anchors, 2u);
  EXPECT_EQ(lines.at(4).places, 1u + 2u); // they begin with the first that a line made
  EXPECT_EQ(lines.at(6).places, 10u + 11u);
}

/// The first results of what `body` becomes when its lines have these places; 0: none.
std::string sorted(const std::string &body, const std::vector<uint64_t> &places) {
  const auto program = test::parse(test::kernelText(body, "", "sm_90a"));
  Kernel kernel = *program->impl().find("test");
  MachineKernel machine;
  const size_t before = kernel.code.size() - places.size() - 2; // behind them ret, and the end
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i])
      machine.lines[kernel.code[before + i].line] = {.issue = 1, .places = places[i]};
  const uint32_t first = kernel.code[before].line;
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

TEST(MachineOrder, ABranchEndsItsBlock) {
  const std::string jump = "  bra NEXT;\nNEXT:\n";
  EXPECT_EQ(sorted(kMoves + jump, {5, 6, 7, 8, 9, 10, 11, 1}), "ABCDEFGH");
}

TEST(MachineOrder, BlocksOfProductsStay) {
  const std::string commit = "  wgmma.commit_group.sync.aligned;\n";
  EXPECT_EQ(sorted(commit + kMoves, {1, 6, 7, 8, 9, 2, 3, 10}), "ABCDEFGH");
}

TEST(MachineMix, LeavesOutSlowPathsThatAreCalled) {
  const auto kernels = countMachineCode(kListing);
  const MachineCount &count = kernels.at("kernel").lines.at(5);
  EXPECT_EQ(count.issue, 4u); // MUFU, FFMA, BRA, LOP3
  EXPECT_EQ(count.pipes[PipeMufu], 1u);
  EXPECT_EQ(count.pipes[PipeAlu], 1u);
  EXPECT_EQ(count.pipes[PipeHeavy], 0u);
  EXPECT_EQ(count.fp32, 1u);
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
