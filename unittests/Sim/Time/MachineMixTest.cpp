//===- MachineMixTest.cpp - Counting machine instructions -----------------===//
#include "Sim/Time/MachineMix.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(lines.at(4).pipes[PipeHeavy], 1u);
  EXPECT_EQ(lines.at(4).anchors, 1u);
  EXPECT_EQ(lines.at(6).issue, 2u);
  EXPECT_EQ(lines.at(6).anchors, 2u);
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
