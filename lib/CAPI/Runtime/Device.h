//===- Device.h - The device behind a handle ------------------------------===//
#pragma once

#include "Wrap.h"
#include "fp4-c/Program.h"

struct fp4_device {
  explicit fp4_device(std::unique_ptr<fp4::rt::Device> opened)
      : device(std::move(opened)), name(device->name()), selector(device->selector()),
        target(device->target()) {}

  std::unique_ptr<fp4::rt::Device> device;
  std::string name, selector, target;
};
