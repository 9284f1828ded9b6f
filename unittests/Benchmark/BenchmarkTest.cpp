//===- BenchmarkTest.cpp - Statistics and methods, on a device of known times -===//

#include "fp4/Benchmark/Benchmark.h"
#include "fp4/Harness/Inputs.h"
#include "fp4/Harness/Library.h"
#include "fp4/Runtime/OpenDevice.h"

#include <gmock/gmock.h>

#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>

namespace fp4::harness {
namespace {

using testing::HasSubstr;

/// The simulator with the clock of a GPU that takes `launchMs` per launch and copies 1 GB/ms.
class FakeGpu final : public rt::Device {
public:
  FakeGpu() : inner_(std::move(*rt::openDevice("sim", {}))) {}

  double launchMs = 1;
  std::vector<double> jitter = {0}; ///< added to the launches in turn
  uint64_t cache = 0;
  bool tamper = false; ///< results read after ten launches are wrong
  size_t launches = 0;

  std::string name() const override { return "fake"; }
  std::string selector() const override { return "fake"; }
  std::string target() const override { return inner_->target(); }
  int32_t smCount() const override { return 1; }
  bool isHardware() const override { return true; }
  uint64_t l2Bytes() const override { return cache; }
  std::optional<rt::Condition> condition() override {
    return rt::Condition{1000 + clockReads_++ % 2, 350, 4};
  }

  Expected<rt::DevicePtr> allocate(uint64_t bytes) override { return inner_->allocate(bytes); }
  Status free(rt::DevicePtr address) override { return inner_->free(address); }
  Status copyToDevice(rt::DevicePtr dst, std::span<const std::byte> src) override {
    return inner_->copyToDevice(dst, src);
  }
  Status copyToHost(std::span<std::byte> dst, rt::DevicePtr src) override {
    Status status = inner_->copyToHost(dst, src);
    if (tamper && launches > 10)
      dst[0] ^= std::byte(1);
    return status;
  }
  Status copy2D(const rt::Copy2D &copy) override { return inner_->copy2D(copy); }
  Status memset(rt::DevicePtr dst, uint8_t value, uint64_t bytes,
                rt::StreamHandle stream) override {
    return inner_->memset(dst, value, bytes, stream);
  }
  Expected<rt::ModuleId> loadModule(const fp4rt_module &module) override {
    return inner_->loadModule(module);
  }
  Status unloadModule(rt::ModuleId module) override { return inner_->unloadModule(module); }
  Expected<rt::KernelInfo> kernelInfo(rt::ModuleId module, std::string_view kernel) override {
    return inner_->kernelInfo(module, kernel);
  }
  Status launch(rt::ModuleId module, std::string_view kernel, const rt::LaunchShape &shape,
                std::span<void *const> params) override {
    if (kernel == "fp4_note_clock")
      return noteClock(*static_cast<const rt::DevicePtr *>(params[0]));
    pass(launchMs + jitter[launches++ % jitter.size()]);
    return capturing_ ? Status{} : inner_->launch(module, kernel, shape, params);
  }
  Status encodeTensorMap(std::span<std::byte, 128> out,
                         const rt::TensorMapRequest &request) override {
    return inner_->encodeTensorMap(out, request);
  }
  Status copyOnDevice(rt::DevicePtr, rt::DevicePtr, uint64_t bytes) override {
    pass(double(bytes) * 1e-9);
    return {};
  }
  Expected<rt::StreamHandle> createStream() override { return inner_->createStream(); }
  Status destroyStream(rt::StreamHandle stream) override { return inner_->destroyStream(stream); }
  Status synchronize() override { return {}; }
  Expected<uint32_t> recordEvent(rt::StreamHandle) override {
    events_.push_back(now_);
    return uint32_t(events_.size() - 1);
  }
  Expected<double> elapsedMs(uint32_t first, uint32_t second) override {
    return events_[second] - events_[first];
  }
  Expected<rt::CapturedGraph> capture(const std::function<Status()> &work) override {
    capturing_ = true;
    graph_ = 0, nodes_ = 0;
    Status status = work();
    capturing_ = false;
    if (!status)
      return tl::unexpected<Error>(status.error());
    return rt::CapturedGraph{0, nodes_};
  }
  Status replay(uint32_t) override {
    now_ += graph_;
    return {};
  }
  void pass(double milliseconds) {
    (capturing_ ? graph_ : now_) += milliseconds;
    nodes_ += capturing_;
  }

private:
  /// The one SM of the device has 1500 MHz, whatever condition() says.
  Status noteClock(rt::DevicePtr words) {
    const uint64_t nanoseconds = 1 + uint64_t(now_ * 1e6),
                   note[] = {nanoseconds * 3 / 2, nanoseconds};
    return inner_->copyToDevice(words, std::as_bytes(std::span(note)));
  }

  std::unique_ptr<rt::Device> inner_;
  double now_ = 0, graph_ = 0;
  size_t nodes_ = 0;
  bool capturing_ = false;
  uint32_t clockReads_ = 0;
  std::vector<double> events_;
};

TEST(Timing, MedianQuantilesAndError) {
  Timing timing;
  for (int i : {11, 1, 3, 2, 5, 4, 10, 9, 8, 7, 6})
    timing.samples.push_back(i);
  summarize(timing, 0.2);
  EXPECT_DOUBLE_EQ(timing.median, 6);
  EXPECT_DOUBLE_EQ(timing.p20, 3);
  EXPECT_DOUBLE_EQ(timing.p80, 9);
  EXPECT_NEAR(timing.relativeError, 1.2533 * 6 / 1.683 / std::sqrt(11.0) / 6, 1e-12);
  EXPECT_FALSE(timing.settled);
  summarize(timing, 0.25);
  EXPECT_TRUE(timing.settled);
}

TEST(Measure, LongWorkHasEventsAroundRowsOfRuns) {
  FakeGpu device;
  std::vector<size_t> sets;
  auto timing = measure(device, 3, [&](size_t set) -> Status {
    sets.push_back(set);
    device.pass(1);
    return {};
  });
  ASSERT_TRUE(timing) << format(timing.error());
  EXPECT_FALSE(timing->graph);
  EXPECT_TRUE(timing->settled);
  EXPECT_EQ(timing->samples.size(), 20u);
  EXPECT_EQ(timing->runsPerSample, 2u); // 2 ms
  EXPECT_DOUBLE_EQ(timing->median, 1);
  EXPECT_EQ(timing->clockMin, 1000u);
  EXPECT_EQ(timing->clockMax, 1001u);
  EXPECT_NEAR(timing->trueClock, 1500, 1e-3);
  EXPECT_EQ(timing->watts, 350);
  EXPECT_EQ(timing->throttleReasons, 4u);
  for (size_t i = 0; i < sets.size(); ++i)
    EXPECT_EQ(sets[i], i % 3);
}

TEST(Measure, ShortWorkIsReplayedAsAGraph) {
  FakeGpu device;
  auto timing = measure(device, 7, [&](size_t) -> Status {
    device.pass(0.02);
    return {};
  });
  ASSERT_TRUE(timing) << format(timing.error());
  EXPECT_TRUE(timing->graph);
  EXPECT_EQ(timing->runsPerSample % 7, 0u);
  EXPECT_GE(timing->runsPerSample, 100u); // 2 ms
  EXPECT_NEAR(timing->median, 0.02, 1e-9);
}

TEST(Measure, ShortWorkWithoutGraphsHasEventsAroundRows) {
  FakeGpu device;
  MeasureOptions options;
  options.graphs = false;
  size_t runs = 0;
  auto timing = measure(
      device, 7,
      [&](size_t) -> Status {
        device.pass(0.02);
        ++runs;
        return {};
      },
      options);
  ASSERT_TRUE(timing) << format(timing.error());
  EXPECT_FALSE(timing->graph);
  EXPECT_EQ(timing->runsPerSample, 100u); // 2 ms
  EXPECT_GE(runs, 100 * timing->samples.size());
  EXPECT_NEAR(timing->median, 0.02, 1e-9);
}

TEST(Measure, AnEmptyCaptureIsRefused) {
  FakeGpu device;
  auto timing = measure(device, 1, [](size_t) -> Status { return {}; });
  ASSERT_FALSE(timing);
  EXPECT_THAT(timing.error().message, HasSubstr("must have at least"));
  EXPECT_THAT(timing.error().message, HasSubstr("but has 0"));
}

TEST(Measure, NoiseStopsAtALimitAndSaysSo) {
  FakeGpu device;
  size_t run = 0;
  auto noisy = [&](size_t) -> Status {
    device.pass(++run % 2 ? 3 : 6); // longer than a sample: each is one run
    return {};
  };
  MeasureOptions options;
  options.maxSamples = 50;
  auto timing = measure(device, 1, noisy, options);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->samples.size(), 50u);
  EXPECT_FALSE(timing->settled);
  options.maxMilliseconds = 120;
  timing = measure(device, 1, noisy, options);
  ASSERT_TRUE(timing);
  EXPECT_EQ(timing->samples.size(), 30u); // the first batch that ends after 120 ms
}

TEST(Measure, WorkCountsOnceItIsWarm) {
  const auto medianBehind = [](double milliseconds) {
    FakeGpu device;
    double passed = 0;
    const auto slower = [&](size_t) -> Status { // as the clock falls
      const double each = passed < 150 ? 3 : 6;
      passed += each;
      device.pass(each);
      return {};
    };
    const auto timing = measure(device, 1, slower, {.warmMilliseconds = milliseconds});
    EXPECT_TRUE(timing && timing->settled);
    return timing ? timing->median : 0;
  };
  EXPECT_NEAR(medianBehind(0), 3, 1e-9);
  EXPECT_NEAR(medianBehind(200), 6, 1e-9);
}

TEST(Measure, AFailureOfTheWorkComesBack) {
  FakeGpu device;
  auto timing = measure(
      device, 1, [](size_t) -> Status { return makeError(ErrorKind::Device, "launching failed"); });
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().message, "launching failed");
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// A function of the library written by hand, called directly.
struct HandFunction {
  explicit HandFunction(const std::string &name) {
    void *library = dlopen(FP4_HAND_LIBRARY, RTLD_NOW);
    manifest = *Manifest::parse(static_cast<const char *>(dlsym(library, "fp4_manifest")));
    for (const Function &candidate : manifest.functions)
      if (candidate.name == name)
        function = &candidate;
    entry = reinterpret_cast<fp4_entry_function>(dlsym(library, function->symbol.c_str()));
    Type type = function->arguments[0].type;
    type.shape[0] = 32;
    arguments.push_back(*makeInput(type, "ones", 1, 0));
    results.push_back(*makeInput({{}, ElementType::F32, Layout::Linear}, "ones", 1, 0));
  }
  Manifest manifest;
  const Function *function = nullptr;
  EntryFunction entry = nullptr;
  std::vector<Tensor> arguments, results; ///< the largest absolute value of ones is one
};

TEST(Benchmark, TimesKernelsAndProgramBesideACopy) {
  FakeGpu device;
  device.cache = 20000;
  HandFunction hand("amax");
  auto report = benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results);
  ASSERT_TRUE(report) << format(report.error());
  EXPECT_EQ(report->setBytes, 32u * 64 * 2 + 4);
  EXPECT_EQ(report->sets, 1u + 10); // ceil(40000 / 4100) others
  EXPECT_TRUE(report->cold);
  ASSERT_EQ(report->entries.size(), 2u);
  for (const BenchmarkReport::Entry &entry : report->entries) {
    EXPECT_EQ(entry.traffic.bytes, 32u * 64 * 2 + 4);
    EXPECT_NEAR(entry.timing.median, 1, 1e-9);
    ASSERT_TRUE(entry.copy);
    EXPECT_NEAR(entry.ofCopy(), 2050e-9, 1e-12);
    EXPECT_NEAR(entry.bytesPerSecond(), 4100e3, 1);
  }
  EXPECT_EQ(report->entries[0].name, "amax_amax_0");
  EXPECT_EQ(report->entries[1].name, "program");
  EXPECT_THAT(report->text(), HasSubstr("11 operand sets"));
  EXPECT_THAT(report->text(), HasSubstr("cold; results unchanged"));
}

TEST(Benchmark, ATwinIsTimedBesideItsKernel) {
  FakeGpu device;
  HandFunction hand("amax");
  auto report =
      benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results, {}, hand.entry);
  ASSERT_TRUE(report) << format(report.error());
  ASSERT_TRUE(report->entries[0].twin);
  EXPECT_NEAR(report->entries[0].ofTwin(), 1, 1e-9);
  EXPECT_FALSE(report->entries[1].twin); // the program
  EXPECT_THAT(report->text(), HasSubstr("100.0% of its rate"));
}

TEST(Benchmark, AResultThatChangesIsAMismatch) {
  FakeGpu device;
  device.tamper = true;
  HandFunction hand("amax");
  auto report = benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::Mismatch);
  EXPECT_EQ(report.error().message, "result 'amax' changed under repetition");
}

TEST(Benchmark, BytesThatNobodySpecifiesMayChange) {
  HandFunction hand("amax");
  const auto repeat = [&](std::vector<ByteRange> unspecified) {
    FakeGpu device;
    device.tamper = true; // with the first byte
    const std::vector<std::vector<ByteRange>> all = {std::move(unspecified)};
    return benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results, {}, nullptr,
                     all);
  };
  EXPECT_TRUE(repeat({{0, 1}}));
  auto changed = repeat({{1, 3}});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().message, "result 'amax' changed under repetition");
  EXPECT_FALSE(repeat({}));
}

TEST(Benchmark, AnErrorOfHostCodeComesBack) {
  FakeGpu device;
  HandFunction hand("refuse");
  auto report = benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "size 3 of 'x' must be a multiple of 16");
}

TEST(Benchmark, TrafficFollowsFromTheLogicalTensors) {
  Function function;
  function.name = "linear";
  function.arguments = {{"x", {{-1, 1024}, ElementType::BF16}},
                        {"w", {{512, 1024}, ElementType::BF16}}};
  auto op = [](std::string name, std::vector<std::string> operands,
               std::vector<std::string> results, std::vector<Type> types) {
    return ProgramOp{
        std::move(name), std::move(operands), std::move(results), std::move(types), {}};
  };
  const Type scalar{{}, ElementType::F32};
  function.program = {
      op("fp4.amax", {"a0"}, {"v0"}, {scalar}), op("fp4.amax", {"a1"}, {"v1"}, {scalar}),
      op("fp4.quantize", {"a0", "v0"}, {"q", "s"},
         {{{-1, 1024}, ElementType::F4E2M1FN}, {{-1, 64}, ElementType::F8E4M3FN}}),
      op("fp4.blockscaled_matmul", {"q", "q", "s", "s"}, {"y"}, {{{-1, 512}, ElementType::BF16}})};
  std::vector<Tensor> arguments = {Tensor({{128, 1024}, ElementType::BF16}),
                                   Tensor({{512, 1024}, ElementType::BF16})};
  std::vector<std::string> kernels = {"linear_amax_0", "linear_amax_1", "linear_quantize_0",
                                      "linear_matmul_0"};
  auto traffic = launchTraffic(function, arguments, kernels);
  ASSERT_EQ(traffic.size(), 4u);
  EXPECT_EQ(traffic[0]->bytes, 128u * 1024 * 2 + 4);
  EXPECT_EQ(traffic[1]->bytes, 512u * 1024 * 2 + 4);
  EXPECT_EQ(traffic[2]->bytes, 128u * 1024 * 2 + 4 + 128 * 512 + 128 * 64);
  EXPECT_EQ(traffic[3]->flops, 2ull * 128 * 512 * 1024);
  // A dual GEMM multiplies twice, and its elements need not be a result.
  ProgramOp &product = function.program.back();
  product.resultTypes = {{{-1, 512}, ElementType::F4E2M1FN}, {{-1, 32}, ElementType::F8E4M3FN}};
  product.results = {"codes", "scales"};
  product.operands = {"q", "s", "q", "s", "q", "s"};
  product.attributes = {{"operand_segments", "1,1,1,1,0,0,0,1,1,0,0"}, {"quantize_recipe", "te"}};
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[3]->flops, 4ull * 128 * 128 * 1024);
  EXPECT_EQ(traffic[3]->bytes, 3u * (128 * 512 + 128 * 64) + 128 * 256 + 128 * 32);
  // Floats have no scales, and prepacked weights contain theirs.
  product.resultTypes = {{{-1, 512}, ElementType::BF16}};
  product.results = {"y"};
  product.operands = {"a0", "a1"};
  product.attributes = {{"operand_segments", "1,0,1,0,0,0,0,0,0,0,0"}};
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[3]->flops, 2ull * 128 * 512 * 1024);
  EXPECT_EQ(traffic[3]->bytes, (128u + 512) * 1024 * 2 + 128 * 512 * 2);
  // A module that two operations share is told apart by the order of its launches.
  kernels = {"linear_amax_0", "linear_amax_0", "linear_swizzle_0", "other", "linear_amax_x"};
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[0]->bytes, 128u * 1024 * 2 + 4);
  EXPECT_EQ(traffic[1]->bytes, 512u * 1024 * 2 + 4);
  for (size_t i : {2, 3, 4})
    EXPECT_FALSE(traffic[i]) << i;
  kernels = {"linear_amax_0", "linear_quantize_0"}; // an amax without a launch: which is not known
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_FALSE(traffic[0]);
  EXPECT_TRUE(traffic[1]);
  // The tensor core transforms one orientation, another kernel makes the other.
  const Type data{{128, 1024}, ElementType::F4E2M1FN}, scale{{128, 64}, ElementType::F8E4M3FN};
  const Type dataT{{1024, 128}, ElementType::F4E2M1FN}, scaleT{{1024, 8}, ElementType::F8E4M3FN};
  function.fused = {
      op("fp4.quantize", {"a0"}, {"q", "s", "qt", "st"}, {data, scale, dataT, scaleT}),
      op("fp4.quantize", {"a0"}, {"qt2", "st2"}, {dataT, scaleT})};
  function.fused[0].attributes = {{"outputs", "both"},
                                  {"columnwise_hadamard", "16,55272,tensor_core"}};
  function.fused[1].attributes = {{"outputs", "columnwise"},
                                  {"columnwise_hadamard", "16,55272,tensor_core"}};
  kernels = {"linear_quantize_0", "linear_transform_0", "linear_transform_1"};
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[0]->bytes, 128u * 1024 * 2 + 128 * 512 + 128 * 64);
  EXPECT_EQ(traffic[1]->bytes, 128u * 1024 * 2 + 1024 * 64 + 1024 * 8);
  EXPECT_EQ(traffic[2]->bytes, traffic[1]->bytes);
  // If warps transform there is no such kernel, and one makes both orientations.
  kernels = {"linear_quantize_0", "linear_quantize_1"};
  const uint64_t columnwise = traffic[1]->bytes, rowwise = traffic[0]->bytes;
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[0]->bytes, rowwise + columnwise - 128u * 1024 * 2);
  EXPECT_EQ(traffic[1]->bytes, columnwise);
  kernels = {"linear_amax_0", "linear_quantize_0"};
  // After fusion there may be fewer operations than the user wrote.
  function.fused = {function.program[0], function.program[2]};
  traffic = launchTraffic(function, arguments, kernels);
  EXPECT_EQ(traffic[0]->bytes, 128u * 1024 * 2 + 4);
  EXPECT_TRUE(traffic[1]);
  // A quantizer that computes its amax reads the tensor once.
  kernels = {"linear_amax_quantize_0"};
  traffic = launchTraffic(function, arguments, kernels);
  ASSERT_TRUE(traffic[0]);
  EXPECT_EQ(traffic[0]->bytes, 128u * 1024 * 2 + 4 + 128 * 512 + 128 * 64);
}

//===----------------------------------------------------------------------===//
// Roofs and comparisons
//===----------------------------------------------------------------------===//

BenchmarkReport::Entry entryOf(const char *name, double median, double error, Traffic traffic) {
  BenchmarkReport::Entry entry;
  entry.name = name;
  entry.traffic = traffic;
  entry.timing.median = median;
  entry.timing.relativeError = error;
  entry.timing.clockMax = 1500;
  return entry;
}

TEST(Roof, IsOfMemoryOrOfGemms) {
  BenchmarkReport report;
  EXPECT_EQ(report.ofRoof(entryOf("k", 1, 0, {1000, 0})).memory, 0);
  EXPECT_FALSE(roofOf("simulator"));
  report.roof = roofOf("NVIDIA B200");
  ASSERT_TRUE(report.roof);
  report.sms = 148;
  const auto of = report.ofRoof(entryOf("k", 1, 0, {767000000, 4000000000000}));
  EXPECT_NEAR(of.memory, 0.1, 1e-9);
  EXPECT_NEAR(of.products, 4e15 / (148 * 32768 * 1.965e9), 1e-9);
  EXPECT_NEAR(of.mmasAtClock, 4e15 / (148 * 32768 * 1.5e9), 1e-9);
  report.roof = roofOf("NVIDIA H200");
  EXPECT_EQ(report.ofRoof(entryOf("k", 1, 0, {1000, 4000})).products, 0); // has no FP4 product
}

TEST(Roof, ThrottlingIsNamedUnlessTheUserAskedForIt) {
  EXPECT_EQ(throttleText(1 | 2 | 0x100), "");
  EXPECT_EQ(throttleText(4 | 0x20), "power cap, thermal");
}

TEST(Compare, DecidesWhereTheErrorsAllow) {
  BenchmarkReport report;
  const Traffic traffic{100, 0};
  Baseline baseline{"gpu", {}};
  auto add = [&](const char *name, double median, double error, double then) {
    report.entries.push_back(entryOf(name, median, error, traffic));
    baseline.entries[name] = {then, 0.001, 100, 0};
  };
  add("better", 0.9, 0.001, 1);
  add("worse", 1.1, 0.001, 1);
  add("alike", 1.002, 0.001, 1);
  add("noisy", 0.95, 0.05, 1);
  add("close", 0.99, 0.001, 1); // may be 0.7 or 1.3 % faster
  report.entries.push_back(entryOf("new", 1, 0.001, traffic));
  add("other", 1, 0.001, 1);
  baseline.entries["other"].bytes = 99;
  auto comparisons = compare(report, "gpu", baseline);
  ASSERT_TRUE(comparisons);
  std::vector<std::string> verdicts;
  for (const Comparison &comparison : *comparisons)
    verdicts.push_back(comparison.verdict);
  EXPECT_THAT(verdicts, testing::ElementsAre("FASTER", "SLOWER", "SAME", "UNDECIDED", "UNDECIDED",
                                             "UNDECIDED", "UNDECIDED"));
  EXPECT_NEAR((*comparisons)[0].ratio, 0.9, 1e-9);
  auto other = compare(report, "another", baseline);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "--compare expects numbers of this device, another, but got those of gpu");
}

TEST(Compare, ReadsWhatJsonWrote) {
  FakeGpu device;
  HandFunction hand("amax");
  auto benchmarked = benchmark(device, *hand.function, hand.entry, hand.arguments, hand.results);
  ASSERT_TRUE(benchmarked);
  RunReport report;
  report.device = "fake";
  report.hardware = report.measured.benchmarked = true;
  report.measured.benchmark = *benchmarked;
  const std::string path = testing::TempDir() + "/fp4_baseline.json";
  std::ofstream(path) << report.json();
  auto baseline = readBaseline(path);
  ASSERT_TRUE(baseline) << format(baseline.error());
  auto comparisons = compare(*benchmarked, "fake", *baseline);
  ASSERT_TRUE(comparisons);
  ASSERT_EQ(comparisons->size(), 2u);
  for (const Comparison &comparison : *comparisons)
    EXPECT_EQ(comparison.verdict, "SAME") << comparison.name;
  report.measured.comparisons = *comparisons;
  EXPECT_THAT(report.text(), HasSubstr("SAME       +0.00 %"));
  EXPECT_THAT(report.json(), HasSubstr("\"verdict\": \"SAME\""));

  std::ofstream(path) << "{}";
  EXPECT_THAT(readBaseline(path).error().message, HasSubstr("must be the report of a benchmark"));
  std::ofstream(path) << "[";
  EXPECT_THAT(readBaseline(path).error().message, HasSubstr("must be a JSON file"));
  std::filesystem::remove(path);
  EXPECT_THAT(readBaseline(path).error().message, HasSubstr("cannot read '" + path + "'"));
}

//===----------------------------------------------------------------------===//
// The runner, on the simulator
//===----------------------------------------------------------------------===//

Expected<RunReport> run(const char *function, bool verify = true) {
  static Expected<Runner> runner = openLibrary(FP4_HAND_LIBRARY);
  RunOptions options;
  options.device = "sim";
  options.function = function;
  options.benchmark = true;
  options.verify = verify;
  return runner->run(options);
}

TEST(Benchmark, ASimulationShowsCountsAndSaysThatTheyAreNotTimes) {
  auto report = run("amax");
  ASSERT_TRUE(report) << format(report.error());
  ASSERT_TRUE(report->kernels[0].counts);
  EXPECT_GT(report->kernels[0].counts->warpInstructions, 100u);
  EXPECT_EQ(report->kernels[0].counts->mmas, 0u);
  EXPECT_THAT(report->text(), HasSubstr("these are not GPU times"));
  EXPECT_THAT(report->json(), HasSubstr("\"gpu_times\": false"));
  EXPECT_THAT(report->json(), HasSubstr("\"warp_instructions\""));
}

TEST(Benchmark, WhatIsWrongOrUnverifiedIsNotTimed) {
  auto wrong = run("wrong");
  ASSERT_TRUE(wrong);
  EXPECT_FALSE(wrong->passed());
  EXPECT_FALSE(wrong->measured.benchmarked);
  auto unverified = run("amax", false);
  ASSERT_FALSE(unverified);
  EXPECT_EQ(unverified.error().message, "--benchmark times only what was verified");
}

} // namespace
} // namespace fp4::harness
