//===- throughput.cpp - Warp instructions per second of the simulator -----===//
//
// Small loops, one instruction family each, on one host thread: millions of warp instructions (32
// lanes each) per second and core, without and with the strict hazard checker.
//
//===----------------------------------------------------------------------===//
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Simulator.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

using namespace fp4::sim;

namespace {

struct Loop {
  const char *name;
  const char *body; ///< repeated 16 times inside the loop
};

const Loop kLoops[] = {
    {"integer: add, xor, shl",
     "add.u32 %r1, %r1, %r2;\nxor.b32 %r3, %r1, %r4;\nshl.b32 %r2, %r3, 3;\n"},
    {"64-bit: mad.wide, add", "mad.wide.u32 %rd1, %r1, 3, %rd2;\nadd.u64 %rd2, %rd1, %rd3;\n"},
    {"f32: fma, add, mul",
     "fma.rn.f32 %f1, %f1, %f2, %f3;\nadd.f32 %f2, %f1, %f4;\nmul.f32 %f3, %f2, %f5;\n"},
    {"f32: min, max, abs", "max.f32 %f1, %f1, %f2;\nabs.f32 %f3, %f1;\nmin.f32 %f2, %f3, %f4;\n"},
    {"f32: div.rn", "div.rn.f32 %f1, %f1, %f2;\n"},
    {"setp, selp", "setp.lt.s32 %p1, %r1, %r2;\nselp.b32 %r1, %r3, %r4, %p1;\n"},
    {"cvt: bf16, f32", "cvt.rn.bf16.f32 %h1, %f1;\ncvt.f32.bf16 %f1, %h1;\n"},
    {"cvt: e2m1x2", "cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;\n"},
    {"mov pack, unpack", "mov.b32 {%h1, %h2}, %r1;\nmov.b32 %r1, {%h2, %h1};\n"},
    {"ld.global.v4, st.global.v4", "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, "
                                   "[%rd5];\nst.global.v4.b32 [%rd5], {%r2, %r3, %r4, %r1};\n"},
    {"ld.shared, st.shared", "ld.shared.b32 %r1, [%r7];\nst.shared.b32 [%r7], %r1;\n"},
    {"shfl.bfly", "shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n"},
    {"guarded add, half the lanes", "@%p2 add.u32 %r1, %r1, %r2;\n@!%p2 add.u32 %r1, %r1, %r3;\n"},
};

std::string program(const Loop &loop) {
  std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .b64 p)\n{\n"
      ".reg .b8 %b<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .f32 "
      "%f<8>;\n.reg .pred %p<4>;\n"
      ".shared .align 16 .b8 buffer[4096];\n"
      "ld.param.b64 %rd4, [p];\nmov.u32 %r8, %laneid;\nmov.u32 %r10, %tid.x;\n"
      "mov.u32 %r11, %ctaid.x;\nmad.lo.u32 %r12, %r11, 128, %r10;\n"
      "mad.wide.u32 %rd5, %r12, 16, %rd4;\n"
      "mov.u32 %r9, buffer;\nmad.lo.u32 %r7, %r10, 4, %r9;\nst.shared.b32 [%r7], %r8;\n"
      "mov.u32 %r1, %laneid;\nmov.u32 %r2, 7;\nmov.u32 %r3, 11;\nmov.u32 %r4, 13;\n"
      "setp.lt.u32 %p2, %r8, 16;\n"
      "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F400000;\nmov.f32 %f3, 0f3F000000;\nmov.f32 %f4, "
      "0f3E800000;\nmov.f32 %f5, 0f3F7FFFFF;\n"
      "mov.u32 %r15, 0;\nL:\n";
  for (int i = 0; i < 16; ++i)
    text += loop.body;
  return text + "add.u32 %r15, %r15, 1;\nsetp.lt.u32 %p3, %r15, 4000;\n@%p3 bra L;\nst.global.b32 "
                "[%rd5], %r1;\nst.global.f32 [%rd5], %f1;\nret;\n}\n";
}

/// Millions of warp instructions per second; the errors end the program.
double measure(const Program &program, Observer *observer) {
  SimOptions options;
  options.hostThreads = 1;
  options.observer = observer;
  Simulator simulator(options);
  uint64_t data = simulator.memory().allocate(4 * 4096, "data");
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &data, 8);
  const std::clock_t start = std::clock();
  auto stats = simulator.launch(program, "k", {{4, 1, 1}, {128, 1, 1}, {0, 0, 0}, 0}, params);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!stats) {
    std::fputs(fp4::format(stats.error()).c_str(), stderr);
    std::exit(1);
  }
  return double(stats->warpInstructions) / seconds / 1e6;
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view filter = argc > 1 ? argv[1] : "";
  std::printf("%-32s %10s %10s %8s   M warp instructions/s\n", "", "unchecked", "checked", "ratio");
  for (const Loop &loop : kLoops) {
    if (std::string_view(loop.name).find(filter) == std::string_view::npos)
      continue;
    auto parsed = Program::parse(program(loop), "loop.ptx");
    if (!parsed) {
      std::fputs(fp4::format(parsed.error()).c_str(), stderr);
      return 1;
    }
    HazardChecker checker({.strict = true});
    const double off = measure(**parsed, nullptr), on = measure(**parsed, &checker);
    std::printf("%-32s %10.1f %10.1f %8.2f\n", loop.name, off, on, off / on);
    for (const HazardReport &report : checker.reports()) // its warps share nothing
      std::fputs(report.text().c_str(), stderr);
  }
  return 0;
}
