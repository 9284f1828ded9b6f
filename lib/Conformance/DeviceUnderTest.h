//===- DeviceUnderTest.h - The device of the conformance suite ------------===//
//
// The cases run the same PTX text on the device that FP4_DEVICE names ("sim", the default, or
// "cuda:0"). If FP4_IMAGES names a folder, every case also writes there the bytes that it read
// back: the images of two devices must be equal, file by file (integration_test/cuda-sm90). Cases
// are GoogleTests in files such as MmaCases.cpp; tools/fp4-cts runs all of them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Runtime/OpenDevice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fp4::cts {

using Bytes = std::vector<std::byte>;

/// The device under test, opened once per process; null when it cannot be opened (main says why).
rt::Device *device();
/// Opens the device under test. The error goes to main.
Status openDeviceUnderTest();

/// Stores `bytes` as FP4_IMAGES/NAME.bin; does nothing without FP4_IMAGES.
void saveImage(const std::string &name, std::span<const std::byte> bytes);

/// Deterministic bytes for a test: the same on every machine.
Bytes patternBytes(size_t count, uint32_t seed);

/// Device memory for the length of a test.
class Buffer {
public:
  explicit Buffer(size_t bytes, std::optional<uint8_t> fill = std::nullopt);
  explicit Buffer(std::span<const std::byte> contents);
  ~Buffer();
  Buffer(const Buffer &) = delete;

  rt::DevicePtr address() const { return address_; }
  size_t size() const { return size_; }
  Bytes read() const;

private:
  rt::DevicePtr address_ = 0;
  size_t size_ = 0;
};

/// Kernel parameters: values are copied in, pointers to the copies come out.
class Params {
public:
  template <typename T> Params &add(const T &value) {
    return addBytes({reinterpret_cast<const std::byte *>(&value), sizeof(value)});
  }
  Params &addBytes(std::span<const std::byte> bytes);
  std::vector<void *> pointers();

private:
  std::vector<std::unique_ptr<std::byte[]>> values_;
};

/// Prefixes `.version`, `.target` and `.address_size`.
std::string ptxModule(const std::string &body);

/// The end of a kernel for 128 threads: fills 16 KiB from %region on with words `fill`, lets thread
/// 0 issue `copy` behind a proxy fence, waits for phase 0 of the mbarrier at %bar and writes the 16
/// KiB to %out. Uses the registers %t, %at, %v (32 bits), %o (64), %p and %done (predicates).
std::string fillCopyDump(const std::string &fill, const std::string &copy);

/// Loads PTX, launches one kernel and waits; failures are test failures that carry the message.
testing::AssertionResult runKernel(const std::string &ptx, const std::string &kernel,
                                   const rt::LaunchShape &shape, Params &params);
/// Loads and runs a kernel whose only parameter is the address of a buffer.
testing::AssertionResult runKernel(const std::string &ptx, const std::string &kernel,
                                   const rt::LaunchShape &shape, const Buffer &buffer);

/// Loads PTX only.
Expected<rt::ModuleId> loadPtx(const std::string &ptx, const std::string &name);

template <typename T> std::span<const T> view(const Bytes &bytes) {
  return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T> std::span<const std::byte> bytesOf(const std::vector<T> &values) {
  return std::as_bytes(std::span(values));
}

/// ASSERT_TRUE for Status and Expected, with the message.
#define FP4_ASSERT_OK(expr)                                                                        \
  do {                                                                                             \
    auto &&ctsResult = (expr);                                                                     \
    ASSERT_TRUE(ctsResult.has_value()) << ::fp4::format(ctsResult.error());                        \
  } while (false)

} // namespace fp4::cts
