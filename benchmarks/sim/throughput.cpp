//===- throughput.cpp - Speed of the simulator ----------------------------===//
//
// Small kernels on one host thread, without and with the strict hazard checker: millions of warp
// instructions (32 lanes each) per second for families and mixes of instructions, MMAs
// per second for the tensor core. Processor time, the best of three: others may use the machine.
//
// A program that waits in loops has the milliseconds of a launch.
//
//   sim-throughput [part of a name]
//
//===----------------------------------------------------------------------===//
#include "MatrixKernels.h"
#include "fp4/Sim/HazardChecker.h"
#include "fp4/Sim/Simulator.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
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
    {"ld.global, one word for all lanes", "ld.global.b32 %r1, [%rd4+8192];\n"},
    {"ld.shared, st.shared", "ld.shared.b32 %r1, [%r7];\nst.shared.b32 [%r7], %r1;\n"},
    {"shfl.bfly", "shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;\n"},
    {"guarded add, half the lanes", "@%p2 add.u32 %r1, %r1, %r2;\n@!%p2 add.u32 %r1, %r1, %r3;\n"},
    // The work of a quantizer on 8 elements per lane, in about its proportions.
    {"mix: a quantizer",
     "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5];\nmov.b32 {%h1, %h2}, %r1;\n"
     "cvt.f32.bf16 %f1, %h1;\ncvt.f32.bf16 %f2, %h2;\nmov.b32 {%h1, %h2}, %r2;\n"
     "cvt.f32.bf16 %f3, %h1;\ncvt.f32.bf16 %f4, %h2;\nabs.f32 %f5, %f1;\nabs.f32 %f6, %f2;\n"
     "max.f32 %f5, %f5, %f6;\nmax.f32 %f5, %f5, %f3;\nmax.f32 %f5, %f5, %f4;\n"
     "mov.b32 %r5, %f5;\nshfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;\nmax.u32 %r5, %r5, %r6;\n"
     "mov.b32 %f5, %r5;\nmul.f32 %f6, %f5, 0f3E2AAAAB;\nmul.f32 %f1, %f1, %f6;\n"
     "mul.f32 %f2, %f2, %f6;\nmul.f32 %f3, %f3, %f6;\nmul.f32 %f4, %f4, %f6;\n"
     "cvt.rn.satfinite.e2m1x2.f32 %b1, %f1, %f2;\ncvt.rn.satfinite.e2m1x2.f32 %b2, %f3, %f4;\n"
     "mov.b16 %h1, {%b1, %b2};\nst.global.b16 [%rd6], %h1;\n"},
};

std::string program(const Loop &loop) {
  std::string text =
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .b64 p)\n{\n"
      ".reg .b8 %b<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .f32 "
      "%f<8>;\n.reg .pred %p<4>;\n"
      ".shared .align 16 .b8 buffer[4096];\n"
      "ld.param.b64 %rd4, [p];\nmov.u32 %r8, %laneid;\nmov.u32 %r10, %tid.x;\n"
      "mov.u32 %r11, %ctaid.x;\nmad.lo.u32 %r12, %r11, 128, %r10;\n"
      "mad.wide.u32 %rd5, %r12, 16, %rd4;\nmad.wide.u32 %rd6, %r12, 2, %rd4;\n"
      "add.u64 %rd6, %rd6, 12288;\n"
      "mov.u32 %r9, buffer;\nmad.lo.u32 %r7, %r10, 4, %r9;\nst.shared.b32 [%r7], %r8;\n"
      "mov.u32 %r1, %laneid;\nmov.u32 %r2, 7;\nmov.u32 %r3, 11;\nmov.u32 %r4, 13;\n"
      "setp.lt.u32 %p2, %r8, 16;\n"
      "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F400000;\nmov.f32 %f3, 0f3F000000;\nmov.f32 %f4, "
      "0f3E800000;\nmov.f32 %f5, 0f3F7FFFFF;\n"
      "mov.u32 %r15, 0;\nL:\n";
  for (int i = 0; i < 16; ++i)
    text += loop.body;
  const size_t length = size_t(std::count(loop.body, loop.body + std::strlen(loop.body), '\n'));
  return text + "add.u32 %r15, %r15, 1;\nsetp.lt.u32 %p3, %r15, " + std::to_string(8000 / length) +
         ";\n@%p3 bra L;\nst.global.b32 [%rd5], %r1;\nst.global.f32 [%rd5], %f1;\nret;\n}\n";
}

/// Returns the memory that a kernel reads: finite numbers in fp16, fp4 and UE4M3 alike.
std::vector<uint8_t> contents() {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(32768);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = uint8_t(i % 2 ? (random() & 0x83) | 0x3C : random() & 0xBF); // no NaN of e4m3
  std::fill(bytes.begin() + matrix::offsetScales, bytes.begin() + matrix::imageBytes, 0x38);
  std::fill_n(bytes.begin() + 16384, 4, 0); // the count of gridBarrier
  return bytes;
}

/// CTAs that count themselves and wait until all have: one thread of each reads the count in a
/// loop, or, with `everyThread`, all do.
std::string gridBarrier(bool everyThread) {
  std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n"
                     ".visible .entry k(.param .b64 p)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<4>;\n"
                     ".reg .pred %p<4>;\nld.param.b64 %rd0, [p];\nadd.u64 %rd0, %rd0, 16384;\n"
                     "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %nctaid.x;\nmov.u32 %r2, 0;\n"
                     "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.relaxed.gpu.global.u32 [%rd0+4], %r0;\n";
  for (int round = 1; round <= 4; ++round) {
    const std::string n = std::to_string(round);
    text += "bar.sync 0;\nadd.u32 %r2, %r2, %r1;\n"
            "@%p0 red.release.gpu.global.add.u32 [%rd0], 1;\n";
    text += everyThread ? "" : "@!%p0 bra MET" + n + ";\n";
    text += "POLL" + n + ":\nld.acquire.gpu.global.u32 %r3, [%rd0];\n" +
            "setp.lt.u32 %p1, %r3, %r2;\n@%p1 bra POLL" + n + ";\nMET" + n + ":\n";
  }
  return text + "bar.sync 0;\nret;\n}\n";
}

struct Speed {
  double instructions = 0, products = 0; ///< per second
  double milliseconds = 0;               ///< of the launch
};

/// The errors end the program.
Speed measureOnce(const Program &program, Observer *observer, const LaunchConfig &config,
                  const char *target) {
  SimOptions options;
  options.hostThreads = 1;
  options.observer = observer;
  options.target = target;
  Simulator simulator(options);
  const std::vector<uint8_t> bytes = contents();
  const uint64_t data = simulator.memory().allocate(bytes.size(), "data");
  (void)simulator.memory().write(data, bytes.data(), bytes.size());
  std::vector<std::byte> params(8);
  std::memcpy(params.data(), &data, 8);
  const std::clock_t start = std::clock();
  auto stats = simulator.launch(program, "k", config, params);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!stats) {
    std::fputs(fp4::format(stats.error()).c_str(), stderr);
    std::exit(1);
  }
  return {double(stats->warpInstructions) / seconds, double(stats->mmas) / seconds, 1e3 * seconds};
}

Speed measure(const Program &program, Observer *observer, const LaunchConfig &config,
              const char *target = "sm_100a") {
  Speed best;
  for (int i = 0; i < 3; ++i) {
    const Speed speed = measureOnce(program, observer, config, target);
    best.instructions = std::max(best.instructions, speed.instructions);
    best.products = std::max(best.products, speed.products);
    best.milliseconds = i ? std::min(best.milliseconds, speed.milliseconds) : speed.milliseconds;
  }
  return best;
}

struct Both {
  Speed off, on;
};

Both compare(const std::string &text, const LaunchConfig &config, const char *target) {
  auto parsed = Program::parse(text, "loop.ptx");
  if (!parsed) {
    std::fputs(fp4::format(parsed.error()).c_str(), stderr);
    std::exit(1);
  }
  HazardChecker checker({.strict = true});
  const Both both{measure(**parsed, nullptr, config, target),
                  measure(**parsed, &checker, config, target)};
  for (const HazardReport &report : checker.reports()) // all of them are right
    std::fputs(report.text().c_str(), stderr);
  return both;
}

template <typename Wanted> void measureWaits(Wanted &&wanted) {
  std::printf("\n%-36s %10s %10s %8s\n", "milliseconds", "check off", "strict", "ratio");
  for (const bool every : {false, true}) {
    const char *name = every ? "grid barrier x 4, all threads poll" : "grid barrier x 4, one polls";
    if (!wanted(name))
      continue;
    const LaunchConfig config{{132, 1, 1}, {every ? 64u : 256u, 1, 1}, {0, 0, 0}, 0};
    const Both both = compare(gridBarrier(every), config, "sm_100a");
    const double off = both.off.milliseconds, on = both.on.milliseconds;
    std::printf("%-36s %10.2f %10.2f %8.2f\n", name, off, on, on / off);
  }
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view filter = argc > 1 ? argv[1] : "";
  const auto wanted = [&](std::string_view name) {
    return name.find(filter) != std::string_view::npos;
  };
  std::printf("%-36s %10s %10s %8s\n", "M warp instructions/s", "check off", "strict", "ratio");
  for (const Loop &loop : kLoops)
    if (wanted(loop.name)) {
      const Both both = compare(program(loop), {{4, 1, 1}, {128, 1, 1}, {0, 0, 0}, 0}, "sm_100a");
      const double off = both.off.instructions / 1e6, on = both.on.instructions / 1e6;
      std::printf("%-36s %10.1f %10.1f %8.2f\n", loop.name, off, on, off / on);
    }
  std::printf("\n%-36s %10s %10s %8s %10s\n", "thousand products/s", "check off", "strict", "ratio",
              "G mul-add");
  for (const matrix::Kernel &kernel : matrix::kernels())
    if (wanted(kernel.name)) {
      const LaunchConfig config{{1, 1, 1}, {128, 1, 1}, {0, 0, 0}, matrix::imageBytes};
      const Both both = compare(kernel.text, config, kernel.target);
      const double off = both.off.products / 1e3, on = both.on.products / 1e3;
      std::printf("%-36s %10.2f %10.2f %8.2f %10.1f\n", kernel.name, off, on, off / on,
                  off * double(kernel.multiplyAdds) / 1e6);
    }
  measureWaits(wanted);
  return 0;
}
