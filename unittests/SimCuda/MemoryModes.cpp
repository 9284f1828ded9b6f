//===- MemoryModes.cpp - Memory that host and device share ----------------===//
#include "Program.h"
#include <vector>

/// y = x * factor + offsets, with offsets 0 and factor 3, in place.
static bool scaled(unsigned *words, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    words[i] = i;
  void *arguments[] = {&words, &words, &count};
  MUST(launch(&scaleHost, {1, 1, 1}, {32, 1, 1}, arguments));
  MUST(cudaDeviceSynchronize());
  for (unsigned i = 0; i < count; ++i)
    if (words[i] != 3 * i)
      return false;
  return true;
}

static int kindOf(const void *pointer) {
  fp4::simcuda::PointerAttributes attributes{};
  MUST(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type;
}

int managed() {
  void *pointer = nullptr;
  MUST(cudaMallocManaged(&pointer, 128, 1));
  unsigned *words = static_cast<unsigned *>(pointer), copy[2];
  if (!scaled(words, 32) || kindOf(words + 3) != 3)
    return 20;
  MUST(cudaMemcpy(copy, words + 1, 8, 2)); // a copy may take it for either side
  MUST(cudaMemcpy(words, copy, 8, 1));
  if (words[0] != 3 || words[1] != 6)
    return 21;
  MUST(cudaFree(pointer));
  return kindOf(pointer) == 0 ? 0 : 22;
}

int managedVariable() {
  unsigned *counter = deviceWords(1);
  MUST(cudaMemset(counter, 0, 4));
  void *arguments[] = {&counter};
  MUST(launch(&countHost, {1, 1, 1}, {8, 1, 1}, arguments)); // before the host has seen it
  if (managedHost || !__cudaInitModule(handle) || *managedHost != 49)
    return 23;
  *managedHost = 100;
  MUST(launch(&countHost, {1, 1, 1}, {4, 1, 1}, arguments));
  unsigned copy = 0, four = 4;
  MUST(cudaMemcpyFromSymbol(&copy, managedHost, 4, 0, 2));
  MUST(cudaMemcpyToSymbol(managedHost, &four, 4, 0, 1));
  return copy == 104 && *managedHost == 4 && kindOf(managedHost) == 3 ? 0 : 24;
}

/// A kernel reads 32 words, of which a copy and a fill have written the first `count`.
int readWords(unsigned count) {
  unsigned *words = deviceWords(32), all = 32;
  const std::vector<unsigned> values(count - 1, 5);
  MUST(cudaMemcpy(words, values.data(), 4 * values.size(), 1));
  MUST(cudaMemset(words + values.size(), 0, 4));
  void *arguments[] = {&words, &words, &all};
  MUST(launch(&scaleHost, {1, 1, 1}, {32, 1, 1}, arguments));
  MUST(cudaDeviceSynchronize());
  return 0;
}

int mapped() {
  void *pointer = nullptr, *device = nullptr;
  MUST(cudaHostAlloc(&pointer, 128, 2));
  MUST(cudaHostGetDevicePointer(&device, pointer, 0));
  if (!scaled(static_cast<unsigned *>(device), 32) || kindOf(pointer) != 1)
    return 25;
  MUST(cudaFreeHost(pointer));
  std::vector<unsigned> words(32);
  if (cudaHostGetDevicePointer(&device, words.data(), 0) != 1 || kindOf(words.data()) != 0)
    return 26;
  MUST(cudaHostRegister(words.data(), 128, 0));
  if (cudaHostRegister(words.data() + 1, 4, 0) != 712 || !scaled(words.data(), 32))
    return 27;
  MUST(cudaHostUnregister(words.data()));
  return cudaHostUnregister(words.data()) == 713 ? 0 : 28;
}
