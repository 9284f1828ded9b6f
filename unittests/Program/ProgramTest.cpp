//===- ProgramTest.cpp - Emitted functions called with device buffers -----===//

#include "fp4/Program/Program.h"
#include "fp4/Runtime/OpenDevice.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace fp4 {
namespace {

using harness::ElementType;
using harness::Layout;
using harness::Type;
using testing::HasSubstr;

std::unique_ptr<rt::Device> simulator(const char *check = "off") {
  rt::DeviceOptions options;
  options.target = "sm_90a";
  options.check = check;
  auto device = rt::openDevice("sim", options);
  EXPECT_TRUE(device) << format(device.error());
  return device ? std::move(*device) : nullptr;
}

std::shared_ptr<const Program> handLibrary() {
  auto program = Program::load(FP4_HAND_LIBRARY);
  EXPECT_TRUE(program) << format(program.error());
  return program ? *program : nullptr;
}

/// Rows of 64 bf16 numbers, of which the largest is `largest` (bits).
Buffer matrix(rt::Device &device, int64_t rows, uint16_t largest, int64_t columns = 64) {
  std::vector<uint16_t> values(size_t(rows * columns), 0x3F80);
  values[values.size() / 2] = largest;
  Buffer buffer{{{rows, columns}, ElementType::BF16, Layout::Linear}, 0, values.size() * 2};
  auto address = device.allocate(buffer.bytes);
  EXPECT_TRUE(address && device.copyToDevice(*address, std::as_bytes(std::span(values))));
  buffer.address = address ? *address : 0;
  return buffer;
}

class LoadedProgramTest : public testing::Test {
protected:
  std::unique_ptr<rt::Device> device = simulator();
  LoadedProgram loaded{handLibrary(), *device};

  const harness::Function &function(const char *name) const {
    return **loaded.program().manifest().find(name);
  }
  std::string errorOf(const char *name, std::vector<Buffer> arguments,
                      std::vector<Buffer> results = std::vector<Buffer>(1)) {
    Status status = loaded.call(function(name), arguments, results);
    return status ? "no error" : status.error().message;
  }
  float scalarAt(rt::DevicePtr address) const {
    float value = 0;
    EXPECT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(&value, 1)), address));
    return value;
  }
};

TEST_F(LoadedProgramTest, ResultsAreAllocatedOrProvided) {
  std::vector<Buffer> arguments{matrix(*device, 3, 0x40A0)}, results(1);
  Status status = loaded.call(function("amax"), arguments, results);
  ASSERT_TRUE(status) << format(status.error());
  EXPECT_EQ(results[0].bytes, 4u);
  EXPECT_EQ(results[0].type.str(), "f32");
  EXPECT_EQ(scalarAt(results[0].address), 5.0f);

  const rt::DevicePtr provided = results[0].address;
  arguments[0] = matrix(*device, 5, 0x40E0);
  ASSERT_TRUE(loaded.call(function("amax"), arguments, results));
  EXPECT_EQ(results[0].address, provided);
  EXPECT_EQ(scalarAt(provided), 7.0f);
  EXPECT_TRUE(device->free(provided)) << "it is the caller's";
}

// `copy` returns rows with a gap of 64 bytes behind each.
TEST_F(LoadedProgramTest, PaddedRowsArePacked) {
  std::vector<Buffer> arguments{matrix(*device, 2, 0x40A0, 48)}, results(1);
  Status status = loaded.call(function("copy"), arguments, results);
  ASSERT_TRUE(status) << format(status.error());
  std::vector<uint16_t> expected(96), got(96);
  ASSERT_TRUE(
      device->copyToHost(std::as_writable_bytes(std::span(expected)), arguments[0].address));
  ASSERT_TRUE(device->copyToHost(std::as_writable_bytes(std::span(got)), results[0].address));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(results[0].bytes, 192u);
}

// A tensor without elements needs no memory, and its caller gets none to free.
TEST_F(LoadedProgramTest, ThereMayBeNoRow) {
  const Type none{{0, 48}, ElementType::BF16, Layout::Linear};
  std::vector<Buffer> arguments{{none, 0, 0}}, results(1);
  Status status = loaded.call(function("copy"), arguments, results);
  ASSERT_TRUE(status) << format(status.error());
  EXPECT_EQ(results[0].type.str(), "0x48xbf16");
  EXPECT_EQ(results[0].address, 0u);
  EXPECT_EQ(results[0].bytes, 0u);
}

TEST_F(LoadedProgramTest, TypesOfResultsFollowThoseOfArguments) {
  const Type rows{{7, 48}, ElementType::BF16, Layout::Linear};
  auto types = loaded.resultTypes(function("copy"), std::vector{rows});
  ASSERT_TRUE(types) << format(types.error());
  EXPECT_EQ((*types)[0].str(), "7x48xbf16");
}

TEST_F(LoadedProgramTest, MisuseIsReportedByName) {
  const Buffer good = matrix(*device, 3, 0x40A0);
  Buffer buffer = good;
  buffer.type.element = ElementType::F16;
  EXPECT_EQ(errorOf("amax", {buffer}), "argument 'x' must be ?x64xbf16, but got 3x64xf16");
  buffer = good;
  buffer.type.shape = {3, 32};
  EXPECT_THAT(errorOf("amax", {buffer}), HasSubstr("but got 3x32xbf16"));
  buffer.type.shape = {192};
  EXPECT_THAT(errorOf("amax", {buffer}), HasSubstr("but got 192xbf16"));
  buffer.type.shape = {0, 32};
  EXPECT_THAT(errorOf("amax", {buffer}), HasSubstr("but got 0x32xbf16"));
  buffer = good;
  buffer.bytes = 383;
  EXPECT_EQ(errorOf("amax", {buffer}),
            "argument 'x' must have 384 bytes for 3x64xbf16, but got 383");
  buffer = good;
  buffer.address += 8;
  EXPECT_THAT(errorOf("amax", {buffer}),
              HasSubstr("argument 'x' must start at a multiple of 16 bytes, but got 0x"));
  buffer.address = 0;
  EXPECT_THAT(errorOf("amax", {buffer}), HasSubstr("but got 0x0"));
  EXPECT_EQ(errorOf("amax", {}), "the function expects 1 argument, but got 0");
  EXPECT_EQ(errorOf("amax", {good}, {}), "the function expects 1 result, but got 0");
  EXPECT_EQ(errorOf("amax", {good}, {good}),
            "result 'amax' is f32, but the buffer is for 3x64xbf16");
  Buffer small{{{}, ElementType::F32, Layout::Linear}, good.address, 3};
  EXPECT_EQ(errorOf("amax", {good}, {small}), "result 'amax' must have 4 bytes for f32, but got 3");
}

TEST_F(LoadedProgramTest, ErrorsOfTheHostCodeComeBack) {
  EXPECT_EQ(errorOf("refuse", {matrix(*device, 3, 0x40A0)}),
            "size 3 of 'x' must be a multiple of 16");
  EXPECT_THAT(errorOf("overrun", {matrix(*device, 3, 0x40A0)}), HasSubstr("out of bounds"));
  EXPECT_THAT(errorOf("missing", {matrix(*device, 3, 0x40A0)}),
              HasSubstr("has no symbol 'fp4_entry_missing'"));
}

TEST_F(LoadedProgramTest, AFunctionIsResolvedOnceAndCalledWithAPlan) {
  auto amax = loaded.function("amax");
  ASSERT_TRUE(amax) << format(amax.error());
  EXPECT_EQ(*amax, *loaded.function("amax"));
  EXPECT_FALSE(loaded.function("none"));
  EXPECT_FALSE(loaded.function("missing")) << "the library has no such symbol";

  const std::array buffers{matrix(*device, 3, 0x40A0), matrix(*device, 3, 0x40E0)};
  auto plan = LoadedFunction::planOf((*amax)->function(), std::array{buffers[0].type});
  ASSERT_TRUE(plan) << format(plan.error());
  Memory result;
  for (auto [buffer, expected] : {std::pair(buffers[0], 5.0f), std::pair(buffers[1], 7.0f)}) {
    Status status = (*amax)->call(*plan, std::array{Memory{buffer.address, buffer.bytes}},
                                  std::span(&result, 1));
    ASSERT_TRUE(status) << format(status.error());
    EXPECT_EQ(scalarAt(result.address), expected);
  }
  const Memory before = result;
  Status status = (*amax)->call(*plan, std::array{Memory{buffers[0].address + 8, 384}},
                                std::span(&result, 1));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("must start at a multiple of 16 bytes"));
  EXPECT_EQ(result.address, before.address) << "a call that fails changes no result";
  EXPECT_TRUE(device->free(result.address));
}

// Hazards are a kind of their own. A kernel that fails has that kind, and they may be why.
TEST(LoadedProgram, HazardsAreTold) {
  auto device = simulator("strict");
  LoadedProgram loaded(handLibrary(), *device);
  auto call = [&](const char *name, const Buffer &argument) {
    std::vector<Buffer> results(1);
    Status status = loaded.call(**loaded.program().manifest().find(name), std::vector{argument},
                                results);
    return status ? Error{} : status.error();
  };
  const Buffer written = matrix(*device, 3, 0x40A0);
  EXPECT_EQ(call("amax", written).message, "");
  Buffer unwritten = written;
  for (int i = 0; i < 2; ++i) { // the next call finds the same error
    unwritten.address = device->allocate(unwritten.bytes).value_or(0);
    Error found = call("amax", unwritten);
    EXPECT_EQ(found.kind, ErrorKind::Hazard);
    EXPECT_THAT(found.message, HasSubstr("1 hazard found\nerror: "));
    EXPECT_THAT(found.message, HasSubstr("[uninitialized-read]"));
  }
  EXPECT_EQ(call("amax", written).message, "") << "of other calls nothing is told";
  unwritten.address = device->allocate(unwritten.bytes).value_or(0);
  Error failed = call("overrun", unwritten);
  EXPECT_EQ(failed.kind, ErrorKind::Simulation);
  EXPECT_THAT(failed.message, HasSubstr("out of bounds"));
  EXPECT_THAT(failed.message, HasSubstr("hazard found\nerror: "));
}

// The thread sanitizer watches this test.
TEST_F(LoadedProgramTest, ThreadsShareAProgram) {
  const Buffer argument = matrix(*device, 3, 0x40A0);
  std::vector<std::thread> threads;
  std::array<Status, 4> outcomes;
  for (Status &outcome : outcomes)
    threads.emplace_back([&] {
      for (int i = 0; i < 4 && outcome; ++i) {
        std::vector<Buffer> results(1);
        outcome = loaded.call(function("amax"), std::vector{argument}, results);
        if (outcome)
          outcome = device->free(results[0].address);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &outcome : outcomes)
    EXPECT_TRUE(outcome) << format(outcome.error());
}

/// Writes the hand library to `path`, by `compiler`, as a program that replaces a file does.
void saveHandLibrary(const std::filesystem::path &path, const std::string &compiler) {
  std::ifstream in(FP4_HAND_LIBRARY, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string old = "by hand";
  bytes.replace(bytes.find(old), old.size(), compiler);
  std::ofstream(path.string() + ".new", std::ios::binary) << bytes;
  std::filesystem::rename(path.string() + ".new", path);
}

// The loader finds a library that is mapped by its name, whatever the file has become.
TEST(Program, AFileThatChangedSinceItWasLoadedIsRefused) {
  const std::filesystem::path folder = testing::TempDir() + "fp4-changed";
  std::filesystem::create_directories(folder / "other");
  const std::string path = folder / "library.so", link = folder / "link.so";
  auto compilerAt = [](const std::string &name) {
    auto program = Program::load(name);
    return program ? (*program)->manifest().compiler : format(program.error());
  };
  saveHandLibrary(path, "by hand");
  EXPECT_EQ(compilerAt(path), "by hand");
  saveHandLibrary(path, "by hand");
  EXPECT_EQ(compilerAt(path), "by hand") << "another file of the same contents";
  saveHandLibrary(path, "by foot");
  EXPECT_THAT(compilerAt(path), HasSubstr("library.so' was loaded before with other contents"));
  saveHandLibrary(folder / "other" / "library.so", "by foot");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(folder / "other" / "library.so", link);
  EXPECT_EQ(compilerAt(link), "by foot") << "save it under another name";
  saveHandLibrary(folder / "other" / "library.so", "by hand");
  EXPECT_THAT(compilerAt(link), HasSubstr("other contents"));
  std::filesystem::remove_all(folder);
}

TEST(Program, FilesThatAreNoLibraries) {
  auto absent = Program::load("/nowhere/x.so");
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("/nowhere/x.so"));
  auto text = Program::load(__FILE__);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::Usage);
}

} // namespace
} // namespace fp4
