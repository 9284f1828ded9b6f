//===- DependentLaunchProgram.cpp - Dependent launches without nvcc ----------===//
//
// Launches chains of kernels that may begin before each other have ended, in every form in which
// CUDA has that. Run by DependentLaunchTest.cpp as `fp4-sim run -- DependentLaunchProgram FORM
// CHAIN`.
//
//===----------------------------------------------------------------------===//
#include "CudaApi.h"
#include "FatbinWriter.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace fp4::simcuda;

extern "C" {
int cudaEventCreateWithFlags(void **, unsigned);
int cudaEventSynchronize(void *);
int cudaStreamCreateWithFlags(void **, unsigned);
int cudaGetFuncBySymbol(void **, const void *);
int cudaGraphNodeGetDependencies(void *, void **, void *, size_t *);
}

namespace {

void must(int code, const char *what) {
  if (code == 0)
    return;
  std::printf("%s: %s\n", what, cudaGetErrorName(code));
  std::exit(10);
}
#define MUST(call) must(call, #call)

/// A kernel of 64 threads that writes what it reads, or where it reads nothing the number of the
/// thread. Flags: 1 triggers first, 2 waits first, 4 waits behind its load, 8 triggers last.
const char *kPtx = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry step(.param .u64 out, .param .u64 in, .param .u32 flags) {
  .reg .pred %p<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [flags];
  and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;
  and.b32 %r2, %r1, 2; setp.ne.u32 %p2, %r2, 0;
  and.b32 %r2, %r1, 4; setp.ne.u32 %p3, %r2, 0;
  and.b32 %r2, %r1, 8; setp.ne.u32 %p4, %r2, 0;
  setp.ne.u64 %p5, %rd2, 0;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r3, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  @%p1 griddepcontrol.launch_dependents;
  @%p2 griddepcontrol.wait;
  @%p5 ld.global.u32 %r3, [%rd2];
  @%p3 griddepcontrol.wait;
  st.global.u32 [%rd1], %r3;
  @%p4 griddepcontrol.launch_dependents;
  ret;
}
)";

char stepHost;
std::string fatbin;
struct {
  uint32_t magic = 0x466243B1, version = 1;
  const void *data = nullptr;
  void *file = nullptr;
} wrapper;

void registerProgram() {
  test::FatbinWriter writer;
  writer.addPtx(kPtx, 100);
  fatbin = writer.bytes();
  wrapper.data = fatbin.data();
  void **handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &stepHost, nullptr, "step", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  __cudaRegisterFatBinaryEnd(handle);
}

struct Step {
  char out = 'x', in = 0; ///< names of arrays; 0: none
  unsigned flags = 0;
};

using Chain = std::vector<Step>;
constexpr unsigned kBytes = 256;

void *arrayOf(char name) {
  static std::map<char, void *> arrays;
  if (!name)
    return nullptr;
  void *&found = arrays[name];
  if (!found) {
    MUST(cudaMalloc(&found, kBytes));
    MUST(cudaMemset(found, 0, kBytes));
  }
  return found;
}

/// The arguments of a step, which live as long as it does.
struct Arguments {
  explicit Arguments(const Step &step)
      : out(arrayOf(step.out)), in(arrayOf(step.in)), flags(step.flags) {}
  void *out, *in;
  unsigned flags;
  void *pointers[3] = {&out, &in, &flags};
};

void launchWith(const Step &step, void *stream, std::vector<LaunchAttribute> attributes) {
  Arguments arguments(step);
  const RuntimeLaunchConfig config{{1, 1, 1},
                                   {64, 1, 1},
                                   0,
                                   static_cast<StreamHandle>(stream),
                                   attributes.data(),
                                   unsigned(attributes.size())};
  MUST(cudaLaunchKernelExC(&config, &stepHost, arguments.pointers));
}

LaunchAttribute serialization() {
  LaunchAttribute attribute{};
  attribute.id = AttributeProgrammaticStreamSerialization;
  attribute.flag = 1;
  return attribute;
}

void *newStream(unsigned flags = 1) {
  void *stream = nullptr;
  MUST(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

void *newEvent(unsigned flags = 2) {
  void *event = nullptr;
  MUST(cudaEventCreateWithFlags(&event, flags));
  return event;
}

void launchAll(const Chain &chain, void *stream) {
  for (const Step &step : chain)
    launchWith(step, stream, {serialization()});
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

void inStream(const Chain &chain) { launchAll(chain, newStream()); }
void inLegacyStream(const Chain &chain) { launchAll(chain, nullptr); }

void ordinary(const Chain &chain) {
  LaunchAttribute off = serialization();
  off.flag = 0;
  for (const Step &step : chain)
    launchWith(step, nullptr, {off});
}

void runGraph(void *graph) {
  void *executable = nullptr;
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i)
    MUST(cudaGraphLaunch(executable, nullptr));
}

void captured(const Chain &chain) {
  void *stream = newStream(), *graph = nullptr;
  MUST(cudaStreamBeginCapture(stream, 0));
  launchAll(chain, stream);
  MUST(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<void *> nodes(count);
  MUST(cudaGraphGetNodes(graph, nodes.data(), &count));
  EdgeData data;
  void *before = nullptr;
  size_t one = 1;
  MUST(cudaGraphNodeGetDependencies(nodes.back(), &before, &data, &one));
  std::printf("edge of type %d from port %d\n", data.type, data.fromPort);
  runGraph(graph);
}

void linked(const Chain &chain, EdgeData data) {
  void *graph = nullptr, *last = nullptr;
  MUST(cudaGraphCreate(&graph, 0));
  for (const Step &step : chain) {
    Arguments arguments(step);
    const KernelNodeParams params{&stepHost, {1, 1, 1}, {64, 1, 1}, 0, arguments.pointers, nullptr};
    void *node = nullptr;
    MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    if (last)
      MUST(cudaGraphAddDependencies(graph, &last, &node, &data, 1));
    last = node;
  }
  runGraph(graph);
}

void edges(const Chain &chain) { linked(chain, {PortTrigger, 0, programmaticEdge}); }
void beginEdges(const Chain &chain) { linked(chain, {PortBegin, 0, programmaticEdge}); }
void fullEdges(const Chain &chain) { linked(chain, {}); }

/// Each launch is in a stream of its own, and waits for the event of the one before it.
void byEvents(const Chain &chain, int attribute, bool capture) {
  void *event = nullptr, *first = newStream(), *graph = nullptr;
  if (capture)
    MUST(cudaStreamBeginCapture(first, 0));
  void *stream = first;
  for (const Step &step : chain) {
    if (event) {
      stream = newStream();
      MUST(cudaStreamWaitEvent(stream, event, 0));
    }
    event = newEvent();
    LaunchAttribute given{};
    given.id = attribute;
    given.recorded = {static_cast<EventHandle>(event), 0, 0};
    launchWith(step, stream, {given});
  }
  if (!capture)
    return;
  void *end = newEvent();
  MUST(cudaEventRecord(end, stream));
  MUST(cudaStreamWaitEvent(first, end, 0));
  MUST(cudaStreamEndCapture(first, &graph));
  runGraph(graph);
}

void events(const Chain &chain) { byEvents(chain, AttributeProgrammaticEvent, false); }
void completions(const Chain &chain) { byEvents(chain, AttributeLaunchCompletionEvent, false); }
void capturedEvents(const Chain &chain) { byEvents(chain, AttributeProgrammaticEvent, true); }

void driver(const Chain &chain) {
  using Launch = int (*)(const DriverLaunchConfig *, void *, void **, void **);
  void *found = nullptr, *function = nullptr;
  int status = -1;
  MUST(cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &found, 12000, 0, &status));
  MUST(cudaGetFuncBySymbol(&function, &stepHost));
  for (const Step &step : chain) {
    LaunchAttribute attribute = serialization();
    Arguments arguments(step);
    const DriverLaunchConfig config{{1, 1, 1}, {64, 1, 1}, 0, nullptr, &attribute, 1};
    MUST(reinterpret_cast<Launch>(found)(&config, function, arguments.pointers, nullptr));
  }
}

/// A chain in each of two streams, in turns; the second has arrays of its own.
void twoStreams(const Chain &chain) {
  void *first = newStream(), *second = newStream();
  for (Step step : chain) {
    launchWith(step, first, {serialization()});
    step.out = char(step.out - 'a' + 'A');
    step.in = step.in ? char(step.in - 'a' + 'A') : '\0';
    step.flags |= 2;
    launchWith(step, second, {serialization()});
  }
}

/// Something comes between the launches for which the next one has to wait.
void between(const Chain &chain, const std::string &what) {
  void *stream = newStream(what == "crossed" ? 0 : 1), *other = newStream(), *event = newEvent();
  for (const Step &step : chain) {
    launchWith(step, stream, {serialization()});
    if (what == "synchronized")
      MUST(cudaStreamSynchronize(stream));
    else if (what == "device")
      MUST(cudaDeviceSynchronize());
    else if (what == "filled")
      MUST(cudaMemsetAsync(arrayOf('f'), 0, 4, stream));
    else if (what == "crossed")
      launchWith({'f'}, nullptr, {});
    else if (what == "unrelated")
      launchWith({'f'}, other, {});
    if (what != "recorded" && what != "returned" && what != "asked")
      continue;
    MUST(cudaEventRecord(event, stream));
    if (what == "asked")
      MUST(cudaEventSynchronize(event));
    if (what != "returned")
      continue;
    MUST(cudaStreamWaitEvent(other, event, 0));
    launchWith({'f'}, other, {});
    MUST(cudaEventRecord(event, other));
    MUST(cudaStreamWaitEvent(stream, event, 0));
  }
}

void unknownAttribute(const Chain &chain) {
  for (int id : {15, 99, 13, 99}) {
    LaunchAttribute attribute{};
    attribute.id = id;
    attribute.flag = 1;
    launchWith(chain.front(), nullptr, {attribute});
  }
  LaunchAttribute priority{};
  priority.id = AttributePriority;
  launchWith(chain.front(), nullptr, {priority});
}

/// The host waits for each launch by an event, beside a stream whose event it waited for before.
void waitedFor(const Chain &chain) {
  constexpr int kTimes = 40;
  void *first = newStream(), *second = newStream();
  const auto run = [&](void *stream) {
    launchWith(chain.front(), stream, {});
    void *event = newEvent();
    MUST(cudaEventRecord(event, stream));
    MUST(cudaEventSynchronize(event));
  };
  run(second);
  for (int i = 0; i < kTimes; ++i)
    run(first);
}

void badEvents(const Chain &chain) {
  LaunchAttribute attribute{};
  attribute.id = AttributeProgrammaticEvent;
  Arguments arguments(chain.front());
  const auto say = [&](const char *what, void *event) {
    attribute.recorded.event = static_cast<EventHandle>(event);
    const RuntimeLaunchConfig config{{1, 1, 1}, {64, 1, 1}, 0, nullptr, &attribute, 1};
    std::printf("%s: %s\n", what,
                cudaGetErrorName(cudaLaunchKernelExC(&config, &stepHost, arguments.pointers)));
  };
  void *destroyed = newEvent();
  MUST(cudaEventDestroy(destroyed));
  say("no event", nullptr);
  say("destroyed", destroyed);
  say("timed", newEvent(0));
}

const std::map<std::string, void (*)(const Chain &)> kForms = {{"stream", inStream},
                                                               {"legacy", inLegacyStream},
                                                               {"ordinary", ordinary},
                                                               {"graph", captured},
                                                               {"edges", edges},
                                                               {"begin-edges", beginEdges},
                                                               {"full-edges", fullEdges},
                                                               {"events", events},
                                                               {"completions", completions},
                                                               {"graph-events", capturedEvents},
                                                               {"driver", driver},
                                                               {"two", twoStreams},
                                                               {"unknown", unknownAttribute},
                                                               {"waited-for", waitedFor},
                                                               {"bad-events", badEvents}};

const std::map<std::string, Chain> kChains = {
    {"right", {{'x', 0, 3}, {'y', 'x', 3}, {'z', 'y', 3}}},
    {"unwaited", {{'x', 0, 3}, {'y', 'x', 3}, {'z', 'y', 1}}},
    {"middle", {{'x', 0, 3}, {'y', 0, 1}, {'z', 'x', 3}}},
    {"early", {{'x', 0, 3}, {'y', 'x', 3}, {'z', 'y', 5}}},
    {"overwritten", {{'x', 0, 3}, {'y', 'x', 3}, {'x', 0, 1}}},
    {"overwritten-right", {{'x', 0, 3}, {'y', 'x', 3}, {'x', 0, 3}}},
    {"untriggered", {{'x', 0, 0}, {'z', 'x', 0}}},
    {"untriggered-right", {{'x', 0, 0}, {'z', 'x', 2}}},
    {"long", {{'x', 0, 3}, {'a', 0, 3}, {'b', 0, 3}, {'c', 0, 3}, {'z', 'x', 5}}},
    {"long-right", {{'x', 0, 3}, {'a', 0, 3}, {'b', 0, 3}, {'c', 0, 3}, {'z', 'x', 3}}},
    {"late-triggers", {{'x', 0, 3}, {'a', 0, 10}, {'z', 'x', 5}}},
    {"weights", {{'x', 0, 3}, {'y', 'w', 5}, {'z', 'w', 5}}},
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return 9;
  registerProgram();
  for (const char name : std::string("abcdfwxyzABCDWXYZ"))
    (void)arrayOf(name); // fills of the legacy stream, for which launches would wait
  const Chain &chain = kChains.at(argv[2]);
  const std::string form = argv[1];
  if (const auto found = kForms.find(form); found != kForms.end())
    found->second(chain);
  else
    between(chain, form);
  MUST(cudaDeviceSynchronize());
  unsigned z[64];
  MUST(cudaMemcpy(z, arrayOf('z'), kBytes, 2));
  std::printf("%u %u\n", z[0], z[63]);
}
