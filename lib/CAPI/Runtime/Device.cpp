//===- Device.cpp - Devices of fp4-c/Program.h -----------------------------===//

#include "Device.h"

#include "fp4/ISA/GpuModel.h"
#include "fp4/Runtime/OpenDevice.h"

using namespace fp4;
using namespace fp4::capi;

static rt::DeviceOptions deviceOptions(const fp4_device_options *given) {
  const fp4_device_options c = optionsOf(given);
  rt::DeviceOptions options;
  options.target = stringOf(c.target, "sm_100a");
  options.check = stringOf(c.check, "default");
  options.policy = stringOf(c.policy, "eager");
  options.seed = c.seed ? c.seed : 1;
  options.timeline = stringOf(c.timeline);
  options.hostThreads = c.threads;
  options.showProgress = false;
  return options;
}

/// Drops a check that a GPU cannot do. "auto" asks for a check only if the caller did.
static void dropCheckForGpu(const std::string &selector, const fp4_device_options *given,
                            rt::DeviceOptions &options) {
  if (selector != "sim" && !optionsOf(given).check)
    options.check.clear();
}

fp4_error *fp4_device_open(const char *selector, const fp4_device_options *options,
                           fp4_device **device) {
  return guarded({{device, "device"}, sized(options)}, [&] {
    *device = nullptr;
    rt::DeviceOptions cpp = deviceOptions(options);
    const std::string name = stringOf(selector, "auto");
    dropCheckForGpu(name, options, cpp);
    std::unique_ptr<rt::Device> opened;
    FP4_C_ASSIGN(opened, rt::openDevice(name, cpp));
    *device = new fp4_device{std::move(opened)};
    return static_cast<fp4_error *>(nullptr);
  });
}

fp4_error *fp4_device_close(fp4_device *device) {
  if (!device)
    return nullptr;
  return guarded({{device, "device"}}, [&] {
    std::unique_ptr<fp4_device> closing(device);
    return wrap(closing->device->finish());
  });
}

const char *fp4_device_get_name(const fp4_device *device) {
  return device ? device->name.c_str() : "";
}
const char *fp4_device_get_selector(const fp4_device *device) {
  return device ? device->selector.c_str() : "";
}
const char *fp4_device_get_target(const fp4_device *device) {
  return device ? device->target.c_str() : "";
}
int32_t fp4_device_is_hardware(const fp4_device *device) {
  return device && device->device->isHardware();
}
const char *fp4_find_product(const char *name) {
  for (const hw::GpuModel &gpu : hw::gpus())
    if (gpu.name == stringOf(name))
      return gpu.option.data();
  return nullptr;
}

fp4_error *fp4_device_allocate(fp4_device *device, uint64_t bytes, uint64_t *address) {
  return guarded({{device, "device"}, {address, "address"}}, [&] {
    FP4_C_ASSIGN(*address, device->device->allocate(bytes));
    return static_cast<fp4_error *>(nullptr);
  });
}

fp4_error *fp4_device_free(fp4_device *device, uint64_t address) {
  return guarded({{device, "device"}}, [&] { return wrap(device->device->free(address)); });
}

fp4_error *fp4_device_copy_to(fp4_device *device, uint64_t destination, const void *source,
                              uint64_t bytes) {
  std::span from(static_cast<const std::byte *>(source), bytes);
  return guarded({{device, "device"}, {source, bytes, "source"}},
                 [&] { return wrap(device->device->copyToDevice(destination, from)); });
}

fp4_error *fp4_device_copy_from(fp4_device *device, void *destination, uint64_t source,
                                uint64_t bytes) {
  std::span to(static_cast<std::byte *>(destination), bytes);
  return guarded({{device, "device"}, {destination, bytes, "destination"}},
                 [&] { return wrap(device->device->copyToHost(to, source)); });
}

fp4_error *fp4_device_synchronize(fp4_device *device) {
  return guarded({{device, "device"}}, [&] {
    Status status = device->device->synchronize();
    return wrap(status ? device->device->groupReports().take() : status);
  });
}
