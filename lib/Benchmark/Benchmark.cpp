//===- Benchmark.cpp - Times of a verified function -----------------------===//

#include "fp4/Benchmark/Benchmark.h"

#include "fp4/Benchmark/EntryCall.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>

namespace fp4::harness {
namespace {

constexpr size_t kMaxSets = 256;

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

std::string utcNow() {
  std::time_t now = std::time(nullptr);
  std::tm fields{};
  gmtime_r(&now, &fields);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

class Benchmark {
public:
  Benchmark(rt::Device &device, const Function &function, EntryFunction entry,
            std::span<const Tensor> arguments, std::span<const Tensor> verified,
            const MeasureOptions &options, std::span<const std::vector<ByteRange>> unspecified = {})
      : device_(device), function_(function), entry_(entry), arguments_(arguments),
        verified_(verified), unspecified_(unspecified), options_(options), session_(device) {}

  Expected<BenchmarkReport> run(EntryFunction twin) {
    FP4_TRY(recordSets());
    describe();
    FP4_TRY(timeProgram());
    FP4_TRY(checkResults());
    FP4_TRY(timeKernels());
    FP4_TRY(timeCopies());
    if (twin)
      FP4_TRY(timeTwin(twin));
    // The program comes last: it is the sum of the rest.
    std::rotate(report_.entries.begin(), report_.entries.begin() + 1, report_.entries.end());
    return std::move(report_);
  }

private:
  Status recordSets();
  Status recordSet();
  Status timeTwin(EntryFunction twin);
  void describe();
  Status timeProgram();
  Status checkResults();
  bool isVerified(size_t result, Tensor got) const;
  Status timeKernels();
  Status timeCopies();
  Expected<Timing> timeCopy(uint64_t bytes);
  Expected<Timing> fastestCopy(size_t sets, const std::function<Status(size_t)> &copy);
  Expected<std::vector<rt::DevicePtr>> copyBuffers(uint64_t bytes, size_t count);
  /// Sets of `bytes` such that all of them but one are together twice the L2 cache.
  size_t setsOf(uint64_t bytes) const {
    uint64_t others = (2 * device_.l2Bytes() + bytes - 1) / std::max<uint64_t>(bytes, 1);
    return size_t(std::min<uint64_t>(1 + others, kMaxSets));
  }

  rt::Device &device_;
  const Function &function_;
  EntryFunction entry_;
  std::span<const Tensor> arguments_, verified_;
  std::span<const std::vector<ByteRange>> unspecified_; ///< bytes of each result, or empty
  const MeasureOptions &options_;
  rt::Session session_;
  std::vector<std::unique_ptr<EntryCall>> calls_;
  std::vector<std::vector<rt::RecordedOp>> sets_;
  BenchmarkReport report_;
};

Status Benchmark::recordSets() {
  session_.record();
  FP4_TRY(recordSet());
  report_.setBytes = session_.allocatedBytes();
  while (sets_.size() < setsOf(report_.setBytes))
    FP4_TRY(recordSet());
  report_.sets = sets_.size();
  report_.cold = (report_.sets - 1) * report_.setBytes >= 2 * device_.l2Bytes();
  if (sets_[0].empty())
    return makeError(ErrorKind::Usage,
                     fmt::format("function '{}' gives the device nothing to do", function_.name),
                     "there is nothing to time");
  return {};
}

Status Benchmark::recordSet() {
  calls_.push_back(std::make_unique<EntryCall>(session_, function_));
  FP4_TRY(calls_.back()->upload(arguments_));
  FP4_TRY(calls_.back()->call(entry_));
  sets_.push_back(session_.takeRecording());
  return {};
}

void Benchmark::describe() {
  report_.driver = device_.driver();
  report_.time = utcNow();
  report_.sms = device_.smCount();
  report_.l2Bytes = device_.l2Bytes();
  report_.roof = roofOf(device_.name());
}

Status Benchmark::timeProgram() {
  auto timing = measure(
      device_, sets_.size(),
      [&](size_t set) -> Status {
        for (rt::RecordedOp &op : sets_[set])
          FP4_TRY(op.issue(device_));
        return {};
      },
      options_);
  if (!timing)
    return tl::unexpected<Error>(timing.error());
  report_.entries.push_back({"program", {}, std::move(*timing), {}, {}});
  return {};
}

bool Benchmark::isVerified(size_t result, Tensor got) const {
  if (result >= unspecified_.size() || unspecified_[result].empty() ||
      got.bytes.size() != verified_[result].bytes.size())
    return got.bytes == verified_[result].bytes;
  Tensor expected = verified_[result];
  clearUnspecified(got, unspecified_[result]);
  clearUnspecified(expected, unspecified_[result]);
  return got.bytes == expected.bytes;
}

Status Benchmark::checkResults() {
  for (std::unique_ptr<EntryCall> &call : calls_) {
    FP4_ASSIGN(auto results, call->download());
    for (size_t i = 0; i < results.size(); ++i)
      if (!isVerified(i, std::move(results[i])))
        return makeError(
            ErrorKind::Mismatch,
            fmt::format("result '{}' changed under repetition", function_.results[i].name),
            "the function is not deterministic, or has a race");
  }
  return {};
}

Status Benchmark::timeKernels() {
  std::vector<std::string> modules;
  for (const rt::RecordedOp &op : sets_[0])
    if (op.launch)
      modules.push_back(session_.launches()[*op.launch].module);
  const auto traffics = launchTraffic(function_, arguments_, modules);
  Traffic total;
  bool known = true;
  for (size_t i = 0, launch = 0; i < sets_[0].size(); ++i) {
    if (!sets_[0][i].launch)
      continue;
    const std::optional<Traffic> &traffic = traffics[launch];
    const std::string &module = modules[launch++];
    FP4_ASSIGN(auto timing,
               measure(
                   device_, sets_.size(), [&](size_t set) { return sets_[set][i].issue(device_); },
                   options_));
    known &= traffic.has_value();
    total.bytes += traffic.value_or(Traffic{}).bytes;
    total.flops += traffic.value_or(Traffic{}).flops;
    report_.entries.push_back({module, traffic.value_or(Traffic{}), std::move(timing), {}, {}});
  }
  report_.entries[0].traffic = known ? total : Traffic{};
  return {};
}

/// Times the kernels of a twin, whose results are garbage; they have the names of the function's
/// kernels.
Status Benchmark::timeTwin(EntryFunction twin) {
  std::vector<Tensor> unverified(verified_.begin(), verified_.end());
  Benchmark other(device_, function_, twin, arguments_, unverified, options_);
  FP4_TRY(other.recordSets());
  other.report_.entries.push_back({"program", {}, {}, {}, {}});
  FP4_TRY(other.timeKernels());
  for (BenchmarkReport::Entry &entry : report_.entries)
    for (const BenchmarkReport::Entry &bare : other.report_.entries)
      if (entry.name == bare.name && entry.name != "program")
        entry.twin = bare.timing;
  return {};
}

Status Benchmark::timeCopies() {
  std::map<uint64_t, Timing> measured;
  for (BenchmarkReport::Entry &entry : report_.entries) {
    const uint64_t bytes = entry.traffic.bytes / 2;
    if (!bytes)
      continue;
    if (!measured.contains(bytes)) {
      FP4_ASSIGN(auto timing, timeCopy(bytes));
      measured.emplace(bytes, std::move(timing));
    }
    entry.copy = measured.at(bytes);
  }
  return {};
}

/// The faster of two standards: copies in a graph, and a row of copies in a stream. Copies in a
/// graph may take another path (on an H200 two thirds of the rate at 70 MB).
Expected<Timing> Benchmark::fastestCopy(size_t sets, const std::function<Status(size_t)> &copy) {
  MeasureOptions graphs = options_;
  graphs.warmMilliseconds = 0; // copies do not lower the clock
  MeasureOptions rows = graphs;
  rows.graphs = false;
  auto inStream = measure(device_, sets, copy, rows);
  if (!inStream)
    return inStream;
  auto either = measure(device_, sets, copy, graphs);
  return either && inStream->median < either->median ? inStream : either;
}

Expected<Timing> Benchmark::timeCopy(uint64_t bytes) {
  const size_t sets = setsOf(2 * bytes);
  FP4_ASSIGN(auto buffers, copyBuffers(bytes, 2 * sets));
  auto timing = fastestCopy(sets, [&](size_t set) {
    return device_.copyOnDevice(buffers[2 * set + 1], buffers[2 * set], bytes);
  });
  for (rt::DevicePtr buffer : buffers)
    FP4_TRY(device_.free(buffer));
  return timing;
}

/// Buffers filled with the function's own data: memory that is all zeros is faster.
Expected<std::vector<rt::DevicePtr>> Benchmark::copyBuffers(uint64_t bytes, size_t count) {
  const std::vector<std::byte> *data = nullptr;
  for (const Tensor &tensor : arguments_)
    if (!data || tensor.bytes.size() > data->size())
      data = &tensor.bytes;
  std::vector<rt::DevicePtr> buffers;
  for (size_t i = 0; i < count; ++i) {
    FP4_ASSIGN(auto buffer, device_.allocate(bytes));
    buffers.push_back(buffer);
    for (uint64_t at = 0; data && !data->empty() && at < bytes; at += data->size())
      FP4_TRY(device_.copyToDevice(
          buffer + at, std::span(*data).first(std::min<uint64_t>(data->size(), bytes - at))));
  }
  return buffers;
}

} // namespace

Expected<BenchmarkReport> benchmark(rt::Device &device, const Function &function,
                                    EntryFunction entry, std::span<const Tensor> arguments,
                                    std::span<const Tensor> verified, const MeasureOptions &options,
                                    EntryFunction twin,
                                    std::span<const std::vector<ByteRange>> unspecified) {
  return Benchmark(device, function, entry, arguments, verified, options, unspecified).run(twin);
}

} // namespace fp4::harness
