//===- SessionTest.cpp - The C ABI's session ------------------------------===//

#include "LateDevice.h"
#include "SimulatorDevice.h"

#include "fp4/Sim/Instruments.h"

#include <array>

namespace fp4::rt {
namespace {

using testing::HasSubstr;

TEST(Session, CallsWithoutASessionDoNothing) {
  EXPECT_EQ(fp4rt_alloc(16), nullptr);
  EXPECT_EQ(fp4rt_multiprocessor_count(), 1);
  fp4rt_free(nullptr);
  fp4rt_memset(nullptr, 0, 16);
  fp4rt_fail("nobody hears this", nullptr);
  fp4rt_module module{};
  fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, nullptr, 0);
}

TEST(Session, OwnsWhatWasAllocated) {
  auto device = simulator();
  uint64_t address = 0;
  {
    Session session(*device);
    Session::Scope scope(session);
    address = reinterpret_cast<uint64_t>(fp4rt_alloc(1024));
    ASSERT_NE(address, 0u);
    EXPECT_EQ(session.allocatedBytes(), 1024u);
    fp4rt_memset(reinterpret_cast<void *>(address), 7, 1024);
    void *other = fp4rt_alloc(8);
    fp4rt_free(other);
    EXPECT_EQ(session.allocatedBytes(), 1024u);
    EXPECT_EQ(fp4rt_multiprocessor_count(), device->smCount());
    EXPECT_TRUE(session.finish());
  }
  EXPECT_FALSE(device->memset(address, 0, 1)) << "freed with the session";
}

TEST(Session, CopiesAConstantOnceAndOwnsIt) {
  auto device = simulator();
  const std::array<std::byte, 3> bytes{std::byte(1), std::byte(2), std::byte(3)}, other = bytes;
  EXPECT_EQ(fp4rt_constant(bytes.data(), 3), nullptr) << "there is no session";
  uint64_t address = 0;
  {
    Session session(*device);
    Session::Scope scope(session);
    void *constant = fp4rt_constant(bytes.data(), 3);
    address = reinterpret_cast<uint64_t>(constant);
    ASSERT_NE(constant, nullptr);
    std::array<std::byte, 3> read{};
    ASSERT_TRUE(device->copyToHost(read, address));
    EXPECT_EQ(read, bytes);
    EXPECT_EQ(fp4rt_constant(bytes.data(), 3), constant);
    EXPECT_EQ(session.allocatedBytes(), 3u);
    EXPECT_NE(fp4rt_constant(other.data(), 3), constant) << "another address";
    EXPECT_TRUE(session.finish());
    fp4rt_free(constant);
    EXPECT_THAT(session.finish().error().message, HasSubstr("not the start of a live allocation"));
    EXPECT_EQ(fp4rt_constant(bytes.data(), 3), nullptr) << "after an error";
  }
  EXPECT_FALSE(device->memset(address, 0, 1)) << "freed with the session";
}

TEST(Session, TheFirstErrorSticksAndTheRestIsSkipped) {
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  void *memory = fp4rt_alloc(64);
  fp4rt_fail("first", "do this");
  fp4rt_fail("second", nullptr);
  EXPECT_EQ(fp4rt_alloc(64), nullptr);
  EXPECT_EQ(fp4rt_multiprocessor_count(), 1);
  fp4rt_memset(nullptr, 0, 1 << 20);
  fp4rt_free(memory);
  Status status = session.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "first");
  EXPECT_EQ(status.error().note, "do this");
}

TEST(Session, ScopesNest) {
  auto device = simulator();
  Session outer(*device), inner(*device);
  Session::Scope a(outer);
  {
    Session::Scope b(inner);
    EXPECT_EQ(Session::current(), &inner);
  }
  EXPECT_EQ(Session::current(), &outer);
}

TEST(Session, MisuseIsReported) {
  auto device = simulator();
  auto errorOf = [&](auto call) {
    Session session(*device);
    Session::Scope scope(session);
    call();
    Status status = session.finish();
    return status ? "no error" : status.error().message;
  };
  EXPECT_THAT(errorOf([] { fp4rt_free(reinterpret_cast<void *>(0x1234)); }),
              HasSubstr("not the start of a live allocation"));
  EXPECT_THAT(errorOf([] {
                char *p = static_cast<char *>(fp4rt_alloc(64));
                fp4rt_memcpy_2d(p + 32, 2, p, 4, 4, 2);
              }),
              HasSubstr("must have pitches of at least that, but got source pitch 4 and "
                        "destination pitch 2"));
  EXPECT_THAT(
      errorOf([] { fp4rt_tensor_map(nullptr, nullptr, 0, 0, 9, nullptr, nullptr, nullptr); }),
      HasSubstr("expects a rank of 1 to 5"));
  EXPECT_THAT(errorOf([] { fp4rt_memset(fp4rt_alloc(16), 0, 17); }), HasSubstr("out of bounds"));
  EXPECT_EQ(errorOf([] {
              fp4rt_module module{"m", "sm_100a", "", 0, nullptr, 0};
              fp4rt_launch(&module, "k", 0, 1, 1, 1, 1, 1, 0, nullptr, 0);
            }),
            "no error"); // an empty grid launches nothing
  EXPECT_THAT(errorOf([] {
                fp4rt_module module{"m", "sm_100a", "", 0, nullptr, 0};
                fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, nullptr, 0);
              }),
              HasSubstr("module 'm' carries no PTX"));
}

TEST(Session, LaunchesPassEveryParameter) {
  auto device = simulator();
  const fp4rt_module module{"m", "sm_100a", kTwoParameters, sizeof(kTwoParameters) - 1, nullptr, 0};
  auto launch = [&](uint32_t count) {
    Session session(*device);
    Session::Scope scope(session);
    void *memory = fp4rt_alloc(4);
    uint32_t value = 77, result = 0;
    void *params[] = {&memory, &value, &value};
    fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, params, count);
    Status status = session.finish();
    if (!status)
      return status.error().message;
    EXPECT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(&result, 1)),
                                   reinterpret_cast<uint64_t>(memory)));
    EXPECT_EQ(result, 77u);
    return std::string();
  };
  EXPECT_EQ(launch(2), "");
  EXPECT_THAT(launch(1), HasSubstr("kernel 'k' expects 2 parameters, but got 1"));
  EXPECT_THAT(launch(3), HasSubstr("kernel 'k' expects 2 parameters, but got 3"));
}

TEST(Session, MemsetWritesItsByte) {
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  auto *memory = static_cast<uint8_t *>(fp4rt_alloc(8));
  fp4rt_memset(memory, 0x11, 8);
  fp4rt_memset(memory + 2, 0xAB, 3);
  std::array<uint8_t, 8> bytes{};
  ASSERT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(bytes)),
                                 reinterpret_cast<uint64_t>(memory)));
  EXPECT_THAT(bytes, testing::ElementsAre(0x11, 0x11, 0xAB, 0xAB, 0xAB, 0x11, 0x11, 0x11));
}

// An error of the device in a free is kept.
TEST(Session, ErrorsOfFreeAreKept) {
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  void *memory = fp4rt_alloc(64), *other = fp4rt_alloc(64);
  fp4rt_free(other);
  ASSERT_TRUE(device->free(reinterpret_cast<uint64_t>(memory))); // behind the session's back
  EXPECT_FALSE(session.failed());
  fp4rt_free(memory);
  EXPECT_TRUE(session.failed());
  Status status = session.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Device);
}

// Both sides of a 2-D copy are checked to the end of their last row.
TEST(Session, CopiesOfRowsStayInBounds) {
  auto device = simulator();
  auto errorOf = [&](uint64_t dstBytes, uint64_t dstPitch, uint64_t srcBytes, uint64_t srcPitch) {
    Session session(*device);
    Session::Scope scope(session);
    void *dst = fp4rt_alloc(dstBytes), *src = fp4rt_alloc(srcBytes);
    fp4rt_memset(src, 0, srcBytes);
    fp4rt_memcpy_2d(dst, dstPitch, src, srcPitch, 16, 4);
    Status status = session.finish();
    return status ? "no error" : status.error().message;
  };
  EXPECT_EQ(errorOf(112, 32, 64, 16), "no error");
  EXPECT_THAT(errorOf(111, 32, 64, 16), HasSubstr("the destination is out of bounds"));
  EXPECT_EQ(errorOf(64, 16, 112, 32), "no error");
  EXPECT_THAT(errorOf(64, 16, 111, 32), HasSubstr("the source is out of bounds"));
}

TEST(Session, SizesFromTheLeastToTheMost) {
  auto device = simulator();
  auto errorOf = [&](int64_t found, int64_t min, int64_t max) {
    Session session(*device);
    Session::Scope scope(session);
    fp4rt_expect_size("x", found, min, max, nullptr);
    Status status = session.finish();
    return status ? "no error" : status.error().message;
  };
  EXPECT_EQ(errorOf(1, 1, 8), "no error");
  EXPECT_EQ(errorOf(8, 1, 8), "no error");
  EXPECT_EQ(errorOf(0, 1, 8), "x must be from 1 to 8, but got 0");
  EXPECT_EQ(errorOf(9, 1, 8), "x must be from 1 to 8, but got 9");
  EXPECT_EQ(errorOf(7, 8, 8), "x must be 8, but got 7");
}

TEST(Session, StridedResultsHaveThePitchOfTheirBuffer) {
  auto device = simulator();
  auto buffer = device->allocate(1024);
  ASSERT_TRUE(buffer);
  auto errorOf = [&](ResultBuffer result, uint64_t expected, uint64_t rows) {
    Session session(*device, {.results = {result}});
    Session::Scope scope(session);
    uint64_t pitch = fp4rt_result_pitch(0, 40);
    fp4rt_alloc_result(0, rows * pitch);
    Status status = session.finish();
    EXPECT_TRUE(!status || pitch == expected) << pitch;
    return status ? "no error" : status.error().message;
  };
  EXPECT_EQ(errorOf({}, 48, 4), "no error");
  EXPECT_EQ(errorOf({*buffer, 4 * 48}, 48, 4), "no error");
  EXPECT_EQ(errorOf({*buffer, 3 * 64 + 40, 64}, 64, 4), "no error");
  EXPECT_THAT(errorOf({*buffer, 3 * 64 + 39, 64}, 64, 4),
              HasSubstr("must have at least 232 bytes"));
  EXPECT_THAT(
      errorOf({*buffer, 1024, 56}, 56, 4),
      HasSubstr("the pitch of result 0 must be a multiple of 16 from 40 bytes on, but got 56"));
  EXPECT_THAT(errorOf({*buffer, 1024, 32}, 32, 4), HasSubstr("but got 32"));
}

constexpr char kReader[] = R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1+16];
  st.global.u32 [%rd1], %r1;
  ret;
})";

// The strict check reports reads of what nobody wrote; the rows of a copy are written.
TEST(Session, RowsOfACopyAreWritten) {
  for (uint64_t rows : {1, 2}) {
    DeviceOptions options;
    options.check = "strict";
    auto device = openDevice("sim", options);
    ASSERT_TRUE(device);
    Session session(**device);
    Session::Scope scope(session);
    void *dst = fp4rt_alloc(32), *src = fp4rt_alloc(32);
    fp4rt_memset(src, 1, 32);
    fp4rt_memcpy_2d(dst, 16, src, 16, 16, rows);
    const fp4rt_module module{"m", "sm_100a", kReader, sizeof(kReader) - 1, nullptr, 0};
    void *params[] = {&dst};
    fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, params, 1);
    ASSERT_TRUE(session.finish());
    EXPECT_EQ((*device)->instruments()->hazards().size(), rows == 1 ? 1u : 0u);
  }
}

TEST(Session, ALaunchMayHaveClustersOfTwoSizes) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  uint32_t value = 1;
  void *params[] = {&value};
  for (uint32_t dependent : {0u, 1u}) {
    fp4rt_launch_clusters(&module, "k", 8, 2, 1, 32, 1, 1, 0, params, 1, dependent, 2, 1, 4, 2);
    const LaunchShape &shape = device.lastShape;
    EXPECT_EQ(std::tuple(shape.cluster.x, shape.cluster.y, shape.cluster.z), std::tuple(2, 1, 1));
    EXPECT_EQ(std::tuple(shape.preferredCluster.x, shape.preferredCluster.y,
                         shape.preferredCluster.z),
              std::tuple(4, 2, 1));
    EXPECT_EQ(shape.dependent, dependent != 0);
  }
  EXPECT_TRUE(session.finish());
}

TEST(Session, LateErrorsNameTheirLaunches) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  const fp4rt_module first{"first", "sm_90a", "", 0, nullptr, 0},
      second{"second", "sm_90a", "", 0, nullptr, 0};
  launchValue(first, 1);
  launchValue(second, 2);
  device.outcome = makeError(ErrorKind::Device, "it crashed");
  Status status = session.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "it crashed; launched were first, second");
}

TEST(Session, EveryLaunchHasItsTime) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  launchValue(module, 1);
  launchValue(module, 2);
  ASSERT_TRUE(session.finish());
  ASSERT_EQ(session.launches().size(), 2u);
  EXPECT_EQ(session.launches()[0].milliseconds, 1);
  EXPECT_EQ(session.launches()[1].milliseconds, 23);
}

// The caller's parameters are gone when the recording is played.
TEST(Session, RecordedLaunchesKeepTheirParameters) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  session.record();
  const fp4rt_module module{"m", "sm_90a", "", 0, nullptr, 0};
  launchValue(module, 0x12345678);
  launchValue(module, 0x9ABCDEF0);
  for (RecordedOp &op : session.takeRecording())
    ASSERT_TRUE(op.issue(device));
  EXPECT_THAT(device.launched,
              testing::ElementsAre(0x12345678, 0x9ABCDEF0, 0x12345678, 0x9ABCDEF0));
}

TEST(Session, OperandsOfTheAbi) {
  auto device = simulator();
  const fp4rt_module module{"m", "sm_100a", kTwoParameters, sizeof(kTwoParameters) - 1, nullptr, 0};
  auto errorOf = [&](auto call) {
    Session session(*device);
    Session::Scope scope(session);
    call();
    Status status = session.finish();
    return status ? "no error" : status.error().message;
  };
  EXPECT_EQ(errorOf([] { fp4rt_free(nullptr); }), "no error");
  EXPECT_THAT(errorOf([&] { fp4rt_launch(&module, "k", 1, 1, 1, 1, 1, 1, 0, nullptr, 2); }),
              HasSubstr("expects a module, a kernel name and its parameters"));
  EXPECT_THAT(errorOf([] { fp4rt_alloc(uint64_t(1) << 41); }),
              HasSubstr("more than any device has"));
  for (int32_t swizzle : {-1, 5})
    EXPECT_THAT(errorOf([&] {
                  std::array<std::byte, 128> map{};
                  const uint64_t dims[2] = {64, 16}, strides[1] = {64};
                  const uint32_t box[2] = {16, 16};
                  fp4rt_tensor_map(map.data(), fp4rt_alloc(4096), 0, swizzle, 2, dims, strides,
                                   box);
                }),
                HasSubstr("swizzle must be 0 to 4, but got " + std::to_string(swizzle)));
  for (int32_t rank : {0, 6}) {
    std::array<std::byte, 128> map{};
    const std::array<uint64_t, 6> sizes = {64, 64, 64, 64, 64, 64};
    const std::array<uint32_t, 6> box = {16, 16, 1, 1, 1, 1};
    EXPECT_THAT(errorOf([&] {
                  fp4rt_tensor_map(map.data(), nullptr, 0, 0, rank, sizes.data(), sizes.data(),
                                   box.data());
                }),
                HasSubstr("expects a rank of 1 to 5"));
  }
}

// A map of rank 2 has one stride: what lies behind it in the caller's memory is nobody's.
TEST(Session, TensorMapsHaveOneStrideLess) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  std::array<std::byte, 128> map{};
  const uint64_t dims[2] = {64, 16}, strides[2] = {64, 128};
  const uint32_t box[2] = {16, 16};
  fp4rt_tensor_map(map.data(), fp4rt_alloc(4096), 0, 0, 2, dims, strides, box);
  EXPECT_TRUE(session.finish());
  EXPECT_EQ(device.strides, std::vector<uint64_t>{64});
}

// The driver refuses a map without elements, and the buffer of no rows may have no address.
TEST(Session, TensorMapsMayBeEmpty) {
  LateDevice device;
  Session session(device);
  Session::Scope scope(session);
  std::array<std::byte, 128> map{};
  const uint64_t strides[1] = {0};
  const uint32_t box[2] = {16, 16};
  for (auto [columns, rows] : {std::pair<uint64_t, uint64_t>{64, 0}, {0, 16}, {0, 0}}) {
    const uint64_t dims[2] = {columns, rows};
    fp4rt_tensor_map(map.data(), nullptr, 0, 0, 2, dims, strides, box);
    EXPECT_EQ(device.dims, (std::vector<uint64_t>{1, 1}));
    EXPECT_EQ(device.strides, std::vector<uint64_t>{16});
    EXPECT_EQ(device.base, 16u);
  }
  const uint64_t one[2] = {64, 1}, pitch[1] = {64};
  fp4rt_tensor_map(map.data(), fp4rt_alloc(64), 0, 0, 2, one, pitch, box);
  EXPECT_EQ(device.dims, (std::vector<uint64_t>{64, 1}));
  EXPECT_TRUE(session.finish());
}

} // namespace
} // namespace fp4::rt
