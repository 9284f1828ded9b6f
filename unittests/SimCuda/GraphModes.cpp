//===- GraphModes.cpp - Stream capture and graphs -------------------------===//
#include "Program.h"

static unsigned read(const unsigned *word) {
  unsigned value = 0;
  MUST(cudaMemcpy(&value, word, 4, 2));
  return value;
}

static void addTen(void *argument) { *static_cast<unsigned *>(argument) += 10; }

static void *newStream() {
  void *stream = nullptr;
  MUST(cudaStreamCreate(&stream));
  return stream;
}

/// A fork and a join through events; nothing runs before the launch.
int capture() {
  void *stream = newStream(), *side = newStream(), *fork, *join, *graph, *executable;
  MUST(cudaEventCreate(&fork));
  MUST(cudaEventCreate(&join));
  unsigned *a = deviceWords(1), *b = deviceWords(1), host = 0;
  MUST(cudaMemset(a, 0, 4));
  MUST(cudaMemset(b, 0, 4));
  void *onA[] = {&a}, *onB[] = {&b};
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(launch(&countHost, {1, 1, 1}, {3, 1, 1}, onA, 0, stream));
  MUST(cudaEventRecord(fork, stream));
  MUST(cudaStreamWaitEvent(side, fork, 0));
  MUST(launch(&countHost, {1, 1, 1}, {5, 1, 1}, onB, 0, side));
  MUST(cudaMemcpyAsync(a, b, 4, 3, side));
  MUST(cudaEventRecord(join, side));
  MUST(cudaLaunchHostFunc(stream, addTen, &host));
  MUST(cudaStreamWaitEvent(stream, join, 0));
  MUST(launch(&countHost, {1, 1, 1}, {1, 1, 1}, onA, 0, stream));
  int status = 0;
  MUST(cudaStreamIsCapturing(side, &status));
  MUST(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  MUST(cudaGraphGetNodes(graph, nullptr, &count));
  if (status != 1 || count != 5 || host != 0 || read(a) != 0)
    return 30;
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  for (unsigned i = 1; i <= 3; ++i) {
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    if (read(a) != 5 * i + 1 || read(b) != 5 * i || host != 10 * i)
      return 31;
  }
  MUST(cudaGraphExecDestroy(executable));
  MUST(cudaGraphDestroy(graph));
  return 0;
}

int captureErrors() {
  void *stream = newStream(), *side = newStream(), *event, *graph;
  MUST(cudaEventCreate(&event));
  unsigned *word = deviceWords(1);
  const auto say = [](const char *what, int code) {
    std::printf("%s: %s\n", what, cudaGetErrorName(code));
  };
  say("default stream", cudaStreamBeginCapture(nullptr, 0));
  MUST(cudaStreamBeginCapture(stream, 0));
  say("synchronize", cudaStreamSynchronize(stream));
  say("end", cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamBeginCapture(stream, 0));
  say("legacy", cudaMemset(word, 0, 4));
  say("end", cudaStreamEndCapture(stream, &graph));
  // Waiting for all work, or for the default stream, would wait for what is captured.
  MUST(cudaStreamBeginCapture(stream, 0));
  say("device", cudaDeviceSynchronize());
  say("end after device", cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamBeginCapture(stream, 0));
  say("default", cudaStreamSynchronize(nullptr));
  say("end after default", cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamSynchronize(nullptr));
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaStreamSynchronize(side)); // of no capture
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaEventRecord(event, stream));
  MUST(cudaStreamWaitEvent(side, event, 0));
  MUST(cudaMemsetAsync(word, 0, 4, side));
  say("unjoined", cudaStreamEndCapture(stream, &graph));
  MUST(cudaMemsetAsync(word, 0, 4, side)); // no capture is left
  MUST(cudaDeviceSynchronize());
  return 0;
}

/// Nodes made by hand, the parameters of a kernel changed in the executable graph, an update.
int graphNodes() {
  void *graph, *executable, *fill, *kernel, *copy, *call;
  unsigned *word = deviceWords(1), result = 0, called = 0;
  MUST(cudaGraphCreate(&graph, 0));
  fp4::simcuda::MemsetParams ones{word, 0, 7, 4, 1, 1};
  MUST(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &ones));
  void *arguments[] = {&word};
  fp4::simcuda::KernelNodeParams params{&countHost, {1, 1, 1}, {4, 1, 1}, 0, arguments, nullptr};
  MUST(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &params));
  MUST(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, &result, word, 4, 2));
  fp4::simcuda::HostNodeParams host{addTen, &called};
  MUST(cudaGraphAddHostNode(&call, graph, &copy, 1, &host));
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  MUST(cudaGraphLaunch(executable, nullptr));
  if (result != 11 || called != 10)
    return 32;
  fp4::simcuda::KernelNodeParams found{};
  MUST(cudaGraphKernelNodeGetParams(kernel, &found));
  int type = -1;
  MUST(cudaGraphNodeGetType(kernel, &type));
  if (type != 0 || found.block.x != 4 || *static_cast<unsigned **>(found.arguments[0]) != word)
    return 33;
  found.block = {16, 1, 1};
  MUST(cudaGraphExecKernelNodeSetParams(executable, kernel, &found));
  MUST(cudaGraphLaunch(executable, nullptr));
  if (result != 23)
    return 34;
  unsigned enabled = 1;
  MUST(cudaGraphNodeSetEnabled(executable, kernel, 0));
  MUST(cudaGraphNodeGetEnabled(executable, kernel, &enabled));
  MUST(cudaGraphLaunch(executable, nullptr));
  if (result != 7 || enabled)
    return 41;
  MUST(cudaGraphNodeSetEnabled(executable, kernel, 1));
  MUST(cudaGraphLaunch(executable, nullptr));
  if (result != 23)
    return 42;
  fp4::simcuda::GraphExecUpdateResult updated{};
  MUST(cudaGraphExecUpdate(executable, graph, &updated)); // as it was
  MUST(cudaGraphLaunch(executable, nullptr));
  if (result != 11)
    return 35;
  MUST(cudaGraphAddHostNode(&call, graph, &copy, 1, &host));
  return cudaGraphExecUpdate(executable, graph, &updated) == 910 && updated.result == 2 ? 0 : 36;
}

/// An update has the same kinds of nodes.
int updatedNodes() {
  void *graph, *filling, *calling, *executable, *node;
  unsigned *word = deviceWords(1), called = 0;
  const fp4::simcuda::MemsetParams two{word, 0, 2, 4, 1, 1}, three{word, 0, 3, 4, 1, 1};
  const fp4::simcuda::HostNodeParams host{addTen, &called};
  MUST(cudaGraphCreate(&graph, 0));
  MUST(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &two));
  MUST(cudaGraphCreate(&filling, 0));
  MUST(cudaGraphAddMemsetNode(&node, filling, nullptr, 0, &three));
  MUST(cudaGraphCreate(&calling, 0));
  MUST(cudaGraphAddHostNode(&node, calling, nullptr, 0, &host));
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  fp4::simcuda::GraphExecUpdateResult updated{};
  if (cudaGraphExecUpdate(executable, calling, &updated) != 910)
    return 44;
  MUST(cudaGraphExecUpdate(executable, filling, &updated));
  MUST(cudaGraphLaunch(executable, nullptr));
  return read(word) == 3 && called == 0 ? 0 : 45;
}

/// Memory that lives from one node to another.
int graphMemory() {
  void *stream = newStream(), *graph, *executable, *pointer;
  unsigned result = 0;
  MUST(cudaStreamBeginCapture(stream, 0));
  MUST(cudaMallocAsync(&pointer, 4, stream));
  MUST(cudaMemsetAsync(pointer, 0, 4, stream));
  void *arguments[] = {&pointer};
  MUST(launch(&countHost, {1, 1, 1}, {6, 1, 1}, arguments, 0, stream));
  MUST(cudaMemcpyAsync(&result, pointer, 4, 2, stream));
  MUST(cudaFreeAsync(pointer, stream));
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) {
    result = 0;
    MUST(cudaGraphLaunch(executable, stream));
    if (result != 6)
      return 37;
  }
  return cudaMemcpy(&result, pointer, 4, 2) == 1 ? 0 : 38; // freed again
}
