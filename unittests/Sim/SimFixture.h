//===- SimFixture.h - Run a few lines of PTX from a test ------------------===//
#pragma once

#include "fp4/Sim/Simulator.h"
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace fp4::sim::test {

inline std::string header(const std::string &target = "sm_100a") {
  return ".version 9.0\n.target " + target + "\n.address_size 64\n";
}

/// A kernel of one warp: parameters are 64-bit pointers p0, p1, ..., already loaded into %p0, ... ;
/// %lane is the lane, and %pr, %rs, %r, %rd, %f, %fd are register ranges of the usual types.
inline std::string kernel(const std::string &body, unsigned pointers = 3) {
  std::string text = header() + ".visible .entry k(";
  for (unsigned i = 0; i < pointers; ++i)
    text += (i ? ", " : "") + std::string(".param .b64 p") + std::to_string(i);
  text += ")\n{\n.reg .pred %pr<32>;\n.reg .b16 %rs<64>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n"
          ".reg .f32 %f<32>;\n.reg .f64 %fd<32>;\n.reg .b64 %p<8>;\n.reg .b32 %lane;\n"
          ".reg .b64 %lane64;\n";
  for (unsigned i = 0; i < pointers; ++i)
    text += "ld.param.b64 %p" + std::to_string(i) + ", [p" + std::to_string(i) + "];\n";
  text += "mov.u32 %lane, %laneid;\ncvt.u64.u32 %lane64, %lane;\n";
  return text + body + "\nret;\n}\n";
}

inline Expected<LaunchStats> run(Simulator &simulator, const std::string &ptx,
                                 const std::vector<uint64_t> &params,
                                 LaunchConfig config = {{1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0},
                                 const std::string &kernelName = "k") {
  auto program = Program::parse(ptx, "test.ptx");
  if (!program)
    return tl::unexpected<Error>(program.error());
  std::vector<std::byte> bytes(params.size() * 8);
  if (!bytes.empty())
    std::memcpy(bytes.data(), params.data(), bytes.size());
  return simulator.launch(**program, kernelName, config, bytes);
}

template <typename T>
uint64_t upload(Simulator &simulator, const std::vector<T> &values, std::string name = "") {
  uint64_t address = simulator.memory().allocate(values.size() * sizeof(T), std::move(name));
  (void)simulator.memory().write(address, values.data(), values.size() * sizeof(T));
  return address;
}

template <typename T>
std::vector<T> download(Simulator &simulator, uint64_t address, size_t count) {
  std::vector<T> values(count);
  auto status = simulator.memory().read(address, values.data(), count * sizeof(T));
  EXPECT_TRUE(status) << status.error().message;
  return values;
}

/// The error of something that must fail.
template <typename T> std::string messageOf(const Expected<T> &result) {
  return result ? "no error" : result.error().message + "\n" + result.error().note;
}

inline LaunchConfig blocks(uint32_t threads, uint32_t grid = 1, uint32_t cluster = 0) {
  return {{grid, 1, 1}, {threads, 1, 1}, {cluster, cluster ? 1u : 0u, cluster ? 1u : 0u}, 0};
}

/// Runs a body that stores %r0 of thread i to out[i].
inline std::vector<uint32_t> perThread(const std::string &body, LaunchConfig config = blocks(32),
                                       SimOptions options = {}) {
  Simulator simulator(options);
  size_t count = size_t(config.grid[0]) * config.block[0];
  uint64_t out = upload(simulator, std::vector<uint32_t>(count), "out");
  auto stats = run(simulator,
                   kernel(body + R"(
mov.u32 %r60, %ctaid.x;
mov.u32 %r61, %ntid.x;
mov.u32 %r62, %tid.x;
mad.lo.u32 %r63, %r60, %r61, %r62;
mad.wide.u32 %rd63, %r63, 4, %p0;
st.global.b32 [%rd63], %r0;)",
                          1),
                   {out}, config);
  EXPECT_TRUE(stats) << messageOf(stats);
  return download<uint32_t>(simulator, out, count);
}

/// The error of a body that must fail.
inline std::string failure(const std::string &body, LaunchConfig config = blocks(32),
                           SimOptions options = {}) {
  Simulator simulator(options);
  uint64_t out = upload(simulator, std::vector<uint32_t>(64), "out");
  return messageOf(run(simulator, kernel(body, 1), {out}, config));
}

} // namespace fp4::sim::test

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
