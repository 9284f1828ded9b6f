//===- fp4-cts.cpp - The conformance suite of devices as a program --------===//

#include "DeviceUnderTest.h"

#include <cstdio>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (fp4::Status opened = fp4::cts::openDeviceUnderTest(); !opened) {
    std::fputs(fp4::format(opened.error()).c_str(), stderr);
    return fp4::exitCode(opened.error());
  }
  std::printf("device: %s, %s, %s\n", fp4::cts::device()->selector().c_str(),
              fp4::cts::device()->name().c_str(), fp4::cts::device()->target().c_str());
  return RUN_ALL_TESTS();
}
