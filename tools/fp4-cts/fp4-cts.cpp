//===- fp4-cts.cpp - The conformance suite of devices as a program --------===//

#include "DeviceUnderTest.h"
#include "fp4/Support/Version.h"

#include <cstdio>
#include <string_view>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts(fp4::versionText("fp4-cts").c_str());
    return 0;
  }
  if (fp4::Status opened = fp4::cts::openDeviceUnderTest(); !opened) {
    std::fputs(fp4::format(opened.error()).c_str(), stderr);
    return fp4::exitCode(opened.error());
  }
  std::printf("device: %s, %s, %s\n", fp4::cts::device()->selector().c_str(),
              fp4::cts::device()->name().c_str(), fp4::cts::device()->target().c_str());
  return RUN_ALL_TESTS();
}
