//===- DeviceUnderTest.cpp - The device of the conformance suite ----------===//

#include "DeviceUnderTest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace fp4::cts {
namespace {
std::unique_ptr<rt::Device> deviceUnderTest;

std::string environment(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}
} // namespace

rt::Device *device() { return deviceUnderTest.get(); }

Status openDeviceUnderTest() {
  rt::DeviceOptions options;
  options.target = "sm_90a";
  options.policy = environment("FP4_POLICY", "eager");
  options.seed = std::strtoull(environment("FP4_SEED", "0").c_str(), nullptr, 10);
  FP4_ASSIGN(auto opened, rt::openDevice(environment("FP4_DEVICE", "sim"), options));
  deviceUnderTest = std::move(opened);
  return {};
}

void saveImage(const std::string &name, std::span<const std::byte> bytes) {
  std::string folder = environment("FP4_IMAGES", "");
  if (folder.empty())
    return;
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/" + name + ".bin", std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), std::streamsize(bytes.size()));
  EXPECT_TRUE(file.good()) << "cannot write the image " << name;
}

Bytes patternBytes(size_t count, uint32_t seed) {
  Bytes bytes(count);
  uint32_t state = seed * 2654435761u + 12345;
  for (std::byte &byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = std::byte(state >> 24);
  }
  return bytes;
}

Buffer::Buffer(size_t bytes, std::optional<uint8_t> fill) : size_(bytes) {
  auto address = device()->allocate(bytes);
  EXPECT_TRUE(address.has_value()) << format(address.error());
  address_ = address.value_or(0);
  if (fill) {
    Status status = device()->memset(address_, *fill, bytes);
    EXPECT_TRUE(status.has_value()) << format(status.error());
  }
}

Buffer::Buffer(std::span<const std::byte> contents) : Buffer(contents.size()) {
  Status status = device()->copyToDevice(address_, contents);
  EXPECT_TRUE(status.has_value()) << format(status.error());
}

Buffer::~Buffer() { (void)device()->free(address_); }

Bytes Buffer::read() const {
  Bytes bytes(size_);
  Status status = device()->copyToHost(bytes, address_);
  EXPECT_TRUE(status.has_value()) << format(status.error());
  return bytes;
}

Params &Params::addBytes(std::span<const std::byte> bytes) {
  values_.push_back(std::make_unique<std::byte[]>(bytes.size()));
  std::memcpy(values_.back().get(), bytes.data(), bytes.size());
  return *this;
}

std::vector<void *> Params::pointers() {
  std::vector<void *> pointers;
  for (auto &value : values_)
    pointers.push_back(value.get());
  return pointers;
}

std::string ptxModule(const std::string &body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + body;
}

std::string fillCopyDump(const std::string &fill, const std::string &copy) {
  return R"(
  mov.u32 %t, %tid.x;
  shl.b32 %t, %t, 2;
FILL:
  add.u32 %at, %region, %t;
  mov.u32 %v, )" +
         fill + R"(;
  st.shared.u32 [%at], %v;
  add.u32 %t, %t, 512;
  setp.lt.u32 %p, %t, 16384;
  @%p bra FILL;
  fence.proxy.async;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%bar], 1;
  fence.proxy.async;
READY:
  bar.sync 0;
  @%p bra WAIT;
)" + copy +
         R"(WAIT:
  mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;
  @!%done bra WAIT;
  shl.b32 %t, %t, 2;
DUMP:
  add.u32 %at, %region, %t;
  ld.shared.u32 %v, [%at];
  cvt.u64.u32 %o, %t;
  add.u64 %o, %out, %o;
  st.global.u32 [%o], %v;
  add.u32 %t, %t, 512;
  setp.lt.u32 %p, %t, 16384;
  @%p bra DUMP;
  ret;
}
)";
}

Expected<rt::ModuleId> loadPtx(const std::string &ptx, const std::string &name) {
  // FP4_PTX collects the kernels' text, to assemble them with ptxas.
  if (std::string folder = environment("FP4_PTX", ""); !folder.empty()) {
    std::filesystem::create_directories(folder);
    static int number = 0;
    std::ofstream(folder + "/" + std::to_string(number++) + "_" + name + ".ptx") << ptx;
  }
  fp4rt_module module{name.c_str(), "sm_90", ptx.c_str(), ptx.size(), nullptr, 0};
  return device()->loadModule(module);
}

testing::AssertionResult runKernel(const std::string &ptx, const std::string &kernel,
                                   const rt::LaunchShape &shape, Params &params) {
  auto module = loadPtx(ptx, kernel);
  if (!module)
    return testing::AssertionFailure() << format(module.error());
  Status status = device()->launch(*module, kernel, shape, params.pointers());
  if (status)
    status = device()->synchronize();
  if (!status)
    return testing::AssertionFailure() << format(status.error());
  return testing::AssertionSuccess();
}

testing::AssertionResult runKernel(const std::string &ptx, const std::string &kernel,
                                   const rt::LaunchShape &shape, const Buffer &buffer) {
  Params params;
  params.add(buffer.address());
  return runKernel(ptx, kernel, shape, params);
}

} // namespace fp4::cts
