//===- KernelRun.h - Compiles a tensor function and launches its kernel ---===//
//
// Kernels are launched directly, without the host code around them, so that a test chooses the grid
// and owns every byte of every buffer. FP4_TEST_DEVICE picks the device (default: the simulator).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/Compiler/Compiler.h"
#include "fp4/Runtime/OpenDevice.h"

#include <charconv>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sstream>
#include <string_view>

namespace fp4::test {

/// A device buffer that is freed with the device.
struct Buffer {
  rt::DevicePtr address = 0;
  size_t bytes = 0;
};

class KernelRun {
public:
  /// Compiles `text`, a module whose functions become one kernel or more.
  explicit KernelRun(const std::string &text, const std::string &target = "sm_100a")
      : target(target) {
    CompilerOptions options;
    options.target = target;
    std::ostringstream diagnostics;
    options.diagnostics = &diagnostics;
    Compiler compiler(options);
    Status status = compiler.loadText(text, "test.mlir");
    if (status)
      status = compiler.compileTo(Phase::Ptx);
    EXPECT_TRUE(status) << status.error().message << "\n" << diagnostics.str();
    kernels = compiler.kernels();
    const char *selector = std::getenv("FP4_TEST_DEVICE");
    auto opened = rt::openDevice(selector ? selector : "sim", {});
    EXPECT_TRUE(opened) << opened.error().message;
    if (opened)
      device = std::move(*opened);
  }

  template <typename T> Buffer upload(const std::vector<T> &values) {
    Buffer buffer = allocate(values.size() * sizeof(T));
    if (buffer.bytes)
      check(device->copyToDevice(buffer.address, std::as_bytes(std::span(values))));
    return buffer;
  }

  /// A buffer whose every byte is `fill`: what a kernel leaves alone stays visible.
  Buffer allocate(size_t bytes, uint8_t fill = 0xEE) {
    auto address = device->allocate(bytes);
    EXPECT_TRUE(address);
    check(device->memset(*address, fill, bytes));
    return {*address, bytes};
  }

  template <typename T> std::vector<T> download(const Buffer &buffer) {
    std::vector<T> values(buffer.bytes / sizeof(T));
    check(device->copyToHost(std::as_writable_bytes(std::span(values)), buffer.address));
    return values;
  }

  /// Launches the kernel of module `module`; operands are addresses (Buffer), i32 and f32.
  template <typename... Operands>
  void launch(const std::string &module, uint32_t blocks, Operands... operands) {
    std::vector<void *> params = {parameter(operands)...};
    launchWith(module, blocks, params);
  }

  /// Launches with buffers and, at the end, a number of rows where the kernel takes one.
  void launchBuffers(const std::string &module, uint32_t blocks, std::vector<Buffer> buffers,
                     std::optional<int32_t> rows) {
    std::vector<void *> params;
    for (Buffer &buffer : buffers)
      params.push_back(parameter(buffer));
    if (rows)
      params.push_back(parameter(*rows));
    launchWith(module, blocks, params);
  }

private:
  void launchWith(const std::string &module, uint32_t blocks, std::span<void *> params) {
    auto kernel = std::find_if(kernels.begin(), kernels.end(),
                               [&](const KernelCode &code) { return code.module == module; });
    ASSERT_NE(kernel, kernels.end()) << "there is no module " << module;
    fp4rt_module code{};
    code.name = kernel->module.c_str();
    code.target = target.c_str();
    code.ptx = kernel->ptx.data();
    code.ptx_size = kernel->ptx.size();
    auto loaded = device->loadModule(code);
    ASSERT_TRUE(loaded) << loaded.error().message;
    rt::LaunchShape shape;
    shape.grid.x = blocks;
    shape.block.x = threadsOf(kernel->ptx);
    check(device->launch(*loaded, "kernel", shape, params));
    check(device->synchronize());
  }

  /// Threads of a CTA, which the plan chose and the kernel requires.
  static uint32_t threadsOf(std::string_view ptx) {
    constexpr std::string_view directive = ".reqntid ";
    size_t place = ptx.find(directive);
    uint32_t threads = 0;
    if (place != ptx.npos)
      std::from_chars(ptx.data() + place + directive.size(), ptx.data() + ptx.size(), threads);
    EXPECT_NE(threads, 0u) << "the kernel has no .reqntid";
    return threads;
  }

  static void check(const Status &status) {
    EXPECT_TRUE(status) << status.error().message << "\n" << status.error().note;
  }
  void *parameter(Buffer &buffer) { return &buffer.address; }
  void *parameter(int32_t &value) { return &value; }
  void *parameter(float &value) { return &value; }

  std::string target;
  std::vector<KernelCode> kernels;
  std::unique_ptr<rt::Device> device;
};

} // namespace fp4::test
