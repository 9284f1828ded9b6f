//===- Lanewise.h - One instruction against a function on the host --------===//
//
// evaluate<D>("add.u32 %d, %a, %b;", a, b) runs the instruction over vectors, one element per lane,
// and returns the results; expectLanes compares them bit for bit with a host function.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "SimFixture.h"
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>

namespace fp4::sim::test {

template <typename T> const char *bitsType() {
  return sizeof(T) == 1 ? "b8" : sizeof(T) == 2 ? "b16" : sizeof(T) == 4 ? "b32" : "b64";
}

/// The elements of an operand of every lane, as bytes.
struct LaneBytes {
  std::vector<std::byte> bytes;
  unsigned width; ///< bytes of an element
  const char *type;
};

template <typename T> LaneBytes laneBytes(const std::vector<T> &values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{bytes.begin(), bytes.end()}, sizeof(T), bitsType<T>()};
}

/// The results of `instruction`, which take the place of the bytes of `results`. Types and host
/// functions of an operand are no part of this code, which a compiler then sees once.
inline void evaluateBytes(const std::string &instruction, const std::vector<LaneBytes> &inputs,
                          LaneBytes &results) {
  Simulator simulator;
  const size_t count = results.bytes.size() / results.width;
  std::vector<uint64_t> params;
  std::string declarations = ".reg .b64 %base, %index;\n.reg .b32 %cta;\n", loads,
              names = "abcefgh";
  for (const LaneBytes &input : inputs) {
    const std::string reg = std::string("%") + names[params.size()], type = input.type;
    declarations += ".reg ." + type + " " + reg + ";\n";
    loads += "mad.lo.u64 %base, %index, " + std::to_string(input.width) + ", %p" +
             std::to_string(params.size()) + ";\nld.global." + type + " " + reg + ", [%base];\n";
    params.push_back(upload(simulator, input.bytes));
  }
  const std::string type = results.type;
  declarations += ".reg ." + type + " %d;\n";
  const std::string body = declarations +
                           "mov.u32 %cta, %ctaid.x;\ncvt.u64.u32 %index, %cta;\n"
                           "mad.lo.u64 %index, %index, 32, %lane64;\n" +
                           loads + instruction + "\nmad.lo.u64 %base, %index, " +
                           std::to_string(results.width) + ", %p" + std::to_string(params.size()) +
                           ";\nst.global." + type + " [%base], %d;\n";
  params.push_back(upload(simulator, results.bytes));
  LaunchConfig config;
  config.grid[0] = static_cast<uint32_t>(count / 32);
  config.block[0] = 32;
  auto stats = run(simulator, kernel(body, static_cast<unsigned>(params.size())), params, config);
  EXPECT_TRUE(stats) << instruction << "\n" << messageOf(stats);
  results.bytes = download<std::byte>(simulator, params.back(), results.bytes.size());
}

/// `instruction` names %d, %a, %b, %c; all vectors have the same length, a multiple of 32.
template <typename D, typename... S>
std::vector<D> evaluate(const std::string &instruction, const std::vector<S> &...inputs) {
  std::vector<D> results(std::get<0>(std::tie(inputs...)).size());
  LaneBytes bytes = laneBytes(results);
  evaluateBytes(instruction, {laneBytes(inputs)...}, bytes);
  std::memcpy(results.data(), bytes.bytes.data(), bytes.bytes.size());
  return results;
}

template <typename T> auto bitsOfValue(T x) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(x);
  else if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(x);
  else
    return x;
}

/// The first lane whose result is not the wanted one fails the test.
template <typename D, typename... S>
void expectEqualLanes(const std::string &instruction, const std::vector<D> &wanted,
                      const std::vector<S> &...inputs) {
  const std::vector<D> results = evaluate<D>(instruction, inputs...);
  for (size_t i = 0; i < results.size(); ++i) {
    if (bitsOfValue(wanted[i]) != bitsOfValue(results[i])) {
      std::string text;
      ((text += std::to_string(inputs[i]) + " (" + std::to_string(bitsOfValue(inputs[i])) + ") "),
       ...);
      ADD_FAILURE() << instruction << " of " << text << ": expected " << +wanted[i] << " ("
                    << +bitsOfValue(wanted[i]) << "), got " << +results[i] << " ("
                    << +bitsOfValue(results[i]) << ")";
      return;
    }
  }
}

template <typename D, typename F, typename... S>
void expectLanes(const std::string &instruction, F &&host, const std::vector<S> &...inputs) {
  std::vector<D> wanted(std::get<0>(std::tie(inputs...)).size());
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = host(inputs[i]...);
  expectEqualLanes(instruction, wanted, inputs...);
}

/// Corner cases of an integer type, then random bits; `salt` makes independent operands.
template <typename T> std::vector<T> integers(unsigned salt = 0, size_t count = 1024) {
  using L = std::numeric_limits<T>;
  std::vector<T> corners = {
      0,    1,     2,     3,     T(-1), T(-2), L::min(), L::max(), T(L::min() + 1), T(L::max() - 1),
      T(7), T(31), T(32), T(33), T(63), T(64), T(0x55),  T(0x80),  T(0xFF),         T(100)};
  std::mt19937_64 random(17 + salt);
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i) {
    size_t pick = salt == 0 ? i : salt == 1 ? i / corners.size() : i / corners.size() / 3;
    values.push_back(i < count / 2 ? corners[pick % corners.size()]
                                   : static_cast<T>(random() >> (random() % 64)));
  }
  return values;
}

/// Corner cases of f32 and random bit patterns.
inline std::vector<float> floats(unsigned salt = 0, size_t count = 2048) {
  const std::vector<float> corners = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -1.0f,
                                      0.5f,
                                      3.0f,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-126f,
                                      -0x1p-126f,
                                      0x1p-149f,
                                      -0x1p-149f,
                                      0x1.fffffep-127f,
                                      0x1.fffffep127f,
                                      -0x1.fffffep127f,
                                      6.0f,
                                      448.0f,
                                      0.25f,
                                      2.5f,
                                      -3.5f,
                                      65504.0f,
                                      65520.0f,
                                      0x1.000002p0f,
                                      0x1.fffffep-1f,
                                      1e-8f,
                                      2147483648.0f,
                                      -2147483648.0f,
                                      4294967296.0f};
  std::mt19937_64 random(23 + salt);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    size_t pick = salt == 0 ? i : salt == 1 ? i / corners.size() : i / 7;
    uint32_t bits = static_cast<uint32_t>(random());
    if (i % 2) // magnitudes near 1 meet more often
      bits = (bits & 0x807FFFFF) | (118u + bits % 20) << 23;
    values.push_back(i < count / 2 ? corners[pick % corners.size()] : std::bit_cast<float>(bits));
  }
  return values;
}

inline std::vector<double> doubles(unsigned salt = 0, size_t count = 1024) {
  std::vector<double> values;
  std::mt19937_64 random(29 + salt);
  std::vector<float> narrow = floats(salt, count);
  for (size_t i = 0; i < count; ++i)
    values.push_back(i % 3 ? double(narrow[i])
                           : std::bit_cast<double>((random() & ~(0x7FFull << 52)) |
                                                   (1000 + random() % 50) << 52));
  return values;
}

} // namespace fp4::sim::test
