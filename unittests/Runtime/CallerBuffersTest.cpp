//===- CallerBuffersTest.cpp - fp4rt_call with buffers of a caller --------===//

#include "SimulatorDevice.h"

#include "fp4/Runtime/Session.h"

#include <array>
#include <numeric>

namespace fp4::rt {
namespace {

using testing::HasSubstr;

template <int Rank> struct Descriptor {
  void *allocated, *aligned;
  int64_t offset = 0;
  std::array<int64_t, Rank> sizes{}, strides{};
};
template <> struct Descriptor<0> {
  void *allocated, *aligned;
  int64_t offset = 0;
};

/// The places where `entry` made its results.
struct {
  void *copy, *first;
} made;

/// Stands for compiled code: checks its argument, and returns a copy of it and its first element.
int32_t entry(void **arguments) {
  auto &x = *static_cast<Descriptor<2> *>(arguments[1]);
  fp4rt_expect_size("argument 'x' dimension 0", x.sizes[0], 1, 4, "pass fewer rows");
  uint64_t bytes = uint64_t(x.sizes[0]) * 3 * sizeof(float);
  struct Results {
    Descriptor<2> copy;
    Descriptor<0> first;
  } &results = *static_cast<Results *>(arguments[0]);
  void *copy = fp4rt_alloc_result(0, bytes), *first = fp4rt_alloc_result(1, sizeof(float));
  made = {copy, first};
  fp4rt_memcpy_2d(copy, bytes, static_cast<float *>(x.aligned) + x.offset, bytes, bytes, 1);
  fp4rt_memcpy_2d(first, 4, copy, 4, 4, 1);
  results = {{copy, copy, 0, {x.sizes[0], 3}, {3, 1}}, {first, first, 0}};
  return 0;
}

const fp4rt_memref_type kTypes[] = {{2, 4}, {2, 4}, {0, 4}};

/// A 2 x 3 matrix behind an element that is not part of it, and places for both results.
struct Buffers {
  std::array<float, 7> x{};
  std::array<float, 6> copy{};
  float first = 0;
  Descriptor<2> argument{x.data(), x.data(), 1, {2, 3}, {3, 1}};
  Descriptor<2> copied{copy.data(), copy.data(), 0, {2, 3}, {3, 1}};
  Descriptor<0> scalar{&first, &first};

  Buffers() { std::iota(x.begin(), x.end(), 1.f); }

  void call() {
    void *buffers[] = {&argument, &copied, &scalar};
    fp4rt_call(entry, buffers, kTypes, 1, 2);
  }
};

/// The call in host memory, with a session of the simulator.
struct HostCall : Buffers {
  std::unique_ptr<Device> device = simulator();
  Session session{*device};
  Session::Scope scope{session};
  HostCall() { session.setCallerMemory(CallerMemory::Host); }

  Error error() {
    call();
    Status status = session.finish();
    EXPECT_FALSE(status);
    return status ? Error{} : status.error();
  }
};

TEST(CallerBuffers, AreCopiedToTheDeviceAndBack) {
  HostCall host;
  host.call();
  ASSERT_TRUE(host.session.finish());
  EXPECT_EQ(host.copy, (std::array<float, 6>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(host.first, 2);
  EXPECT_EQ(host.session.allocatedBytes(), 0u) << "copies and results are freed";
}

TEST(CallerBuffers, OnTheDeviceStayThere) {
  Buffers buffers;
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  auto place = [&](auto &descriptor, uint64_t bytes) {
    descriptor.allocated = descriptor.aligned = fp4rt_alloc(bytes);
    return reinterpret_cast<DevicePtr>(descriptor.aligned);
  };
  DevicePtr x = place(buffers.argument, 28), copied = place(buffers.copied, 24);
  DevicePtr scalar = place(buffers.scalar, 4);
  ASSERT_TRUE(device->copyToDevice(x, std::as_bytes(std::span(buffers.x))));
  buffers.call();
  ASSERT_TRUE(session.finish());
  ASSERT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(buffers.copy)), copied));
  EXPECT_EQ(buffers.copy, (std::array<float, 6>{2, 3, 4, 5, 6, 7}));
  ASSERT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(&buffers.first, 1)), scalar));
  EXPECT_EQ(buffers.first, 2);
  EXPECT_EQ(session.allocatedBytes(), 28u + 24 + 4) << "results are freed";
}

/// Calls with `x` and both destinations in one allocation, at these bytes of it, and says which of
/// the results were made in their destinations.
std::pair<bool, bool> madeInPlace(uint64_t x, uint64_t copied, uint64_t scalar) {
  Buffers buffers;
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  auto *memory = static_cast<std::byte *>(fp4rt_alloc(1024));
  auto place = [&](auto &descriptor, uint64_t offset) {
    descriptor.allocated = descriptor.aligned = memory + offset;
    return reinterpret_cast<DevicePtr>(memory) + offset;
  };
  EXPECT_TRUE(
      device->copyToDevice(place(buffers.argument, x), std::as_bytes(std::span(buffers.x))));
  DevicePtr copy = place(buffers.copied, copied), first = place(buffers.scalar, scalar);
  buffers.call();
  EXPECT_TRUE(session.finish());
  EXPECT_EQ(session.allocatedBytes(), 1024u);
  EXPECT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(buffers.copy)), copy));
  EXPECT_EQ(buffers.copy, (std::array<float, 6>{2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(&buffers.first, 1)), first));
  EXPECT_EQ(buffers.first, 2);
  return {made.copy == memory + copied, made.first == memory + scalar};
}

TEST(CallerBuffers, ResultsAreMadeWhereTheyBelong) {
  EXPECT_EQ(madeInPlace(0, 256, 512), std::pair(true, true));
  EXPECT_EQ(madeInPlace(0, 288, 512), std::pair(false, true)) << "kernels want 256 bytes";
  EXPECT_EQ(madeInPlace(252, 256, 512), std::pair(false, true)) << "the argument lies there";
  EXPECT_EQ(madeInPlace(228, 256, 512), std::pair(true, true)) << "28 bytes end before it";
}

TEST(CallerBuffers, MustBeDense) {
  HostCall argument;
  argument.argument.strides = {1, 2};
  EXPECT_EQ(argument.error().message,
            "argument 0 of a compiled function must be dense and row-major");
  HostCall destination;
  destination.copied.strides = {4, 1};
  EXPECT_EQ(destination.error().message,
            "destination 0 of a compiled function must be dense and row-major");
  // Nobody steps over a dimension of one element.
  HostCall row;
  row.argument.sizes = row.copied.sizes = {1, 3};
  row.argument.strides = {100, 1};
  row.call();
  ASSERT_TRUE(row.session.finish());
  EXPECT_EQ(row.copy, (std::array<float, 6>{2, 3, 4, 0, 0, 0}));
}

TEST(CallerBuffers, DestinationsHaveTheSizesOfResults) {
  HostCall host;
  host.copied.sizes = {1, 3};
  Error error = host.error();
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_EQ(error.message, "destination 0 of a compiled function must be 2x3, but got 1x3");
  EXPECT_EQ(host.copy, (std::array<float, 6>{})) << "nothing is written";
}

TEST(CallerBuffers, ResultsAreNotMadeInPlacesOfOtherSizes) {
  Buffers buffers;
  auto device = simulator();
  Session session(*device);
  Session::Scope scope(session);
  for (auto *words : {&buffers.argument, &buffers.copied})
    words->allocated = words->aligned = fp4rt_alloc(28);
  buffers.scalar.allocated = buffers.scalar.aligned = fp4rt_alloc(4);
  buffers.copied.sizes = {1, 3};
  buffers.call();
  EXPECT_NE(made.copy, buffers.copied.aligned);
  EXPECT_EQ(session.finish().error().message,
            "destination 0 of a compiled function must be 2x3, but got 1x3");
}

TEST(CallerBuffers, SizesAreThoseOfTheFunction) {
  HostCall host;
  host.argument.sizes[0] = 5;
  host.argument.strides = {0, 1}; // dense or not is asked first
  EXPECT_THAT(host.error().message, HasSubstr("must be dense"));
  HostCall rows;
  std::array<float, 16> many{};
  rows.argument = {many.data(), many.data(), 0, {5, 3}, {3, 1}};
  EXPECT_EQ(rows.error().message, "argument 'x' dimension 0 must be from 1 to 4, but got 5");
}

TEST(CallerBuffers, NeedAnEntryPointAndASession) {
  Buffers nobody;
  nobody.call(); // without a session a call does nothing
  EXPECT_EQ(nobody.first, 0);
  HostCall host;
  fp4rt_call(nullptr, nullptr, nullptr, 0, 0);
  EXPECT_EQ(host.error().message, "fp4rt_call expects an entry point and its buffers");
}

} // namespace
} // namespace fp4::rt
