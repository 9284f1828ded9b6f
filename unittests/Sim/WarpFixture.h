//===- WarpFixture.h - Kernels of one warp, for tests ---------------------===//
//
// Words of a buffer in registers of the lanes and back, and a tile of 32 rows of 16 bytes in shared
// memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SimFixture.h"

namespace fp4::sim::test {

/// Loads one register per lane and index i: word 32 i + lane of p1 into %r<i>.
inline std::string loadWords(unsigned count, unsigned firstRegister = 0) {
  std::string text = "shl.b64 %rd50, %lane64, 2;\nadd.u64 %rd50, %rd50, %p1;\n";
  for (unsigned i = 0; i < count; ++i)
    text += "ld.global.u32 %r" + std::to_string(firstRegister + i) + ", [%rd50+" +
            std::to_string(128 * i) + "];\n";
  return text;
}

inline std::string storeWords(unsigned count, unsigned firstRegister) {
  std::string text = "shl.b64 %rd51, %lane64, 2;\nadd.u64 %rd51, %rd51, %p0;\n";
  for (unsigned i = 0; i < count; ++i)
    text += "st.global.u32 [%rd51+" + std::to_string(128 * i) + "], %r" +
            std::to_string(firstRegister + i) + ";\n";
  return text;
}

/// Runs `body` on the words; p0 gets `results` words per lane.
inline std::vector<uint32_t> words(const std::string &body, const std::vector<uint32_t> &input,
                                   unsigned results, const std::string &policy = "eager") {
  SimOptions options;
  options.policy = *parseCompletionPolicy(policy);
  Simulator simulator(options);
  uint64_t out = upload(simulator, std::vector<uint32_t>(32 * results, 0xABABABAB), "out");
  uint64_t in = upload(simulator, input, "in");
  auto stats = run(simulator, kernel(body, 2), {out, in});
  EXPECT_TRUE(stats) << messageOf(stats);
  return download<uint32_t>(simulator, out, 32 * results);
}

inline const char *kShared =
    ".shared .align 128 .b8 tile[512];\n.reg .b32 %base;\n.reg .b32 %row;\n"
    "mov.u32 %base, tile;\n";

/// 16-bit element e of the four 8x8 matrices is e.
inline std::vector<uint32_t> numbered() {
  std::vector<uint32_t> out(128);
  for (uint32_t i = 0; i < 128; ++i)
    out[i] = 2 * i | (2 * i + 1) << 16;
  return out;
}

inline const char *kFill = R"(
shl.b32 %row, %lane, 4; add.u32 %row, %row, %base;
shl.b64 %rd1, %lane64, 4; add.u64 %rd1, %rd1, %p1;
ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd1];
st.shared.v4.u32 [%row], {%r0, %r1, %r2, %r3};
bar.warp.sync 0xFFFFFFFF;
)";

} // namespace fp4::sim::test
