//===- EmittedCases.cpp - A kernel the compiler emitted -------------------===//
//
// integration_test/cuda-sm90/copy_tiles.ptx is the output of test/Target/tma-sm90.mlir: a
// warp-specialized, pipelined kernel (load warp, ring of two stages, 128 copying threads) from the
// same passes as a GEMM. FP4_PTX_FOLDER names its folder on a machine without the source tree.
//
//===----------------------------------------------------------------------===//

#include "DeviceUnderTest.h"
#include "fp4/ISA/TensorMap.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace fp4::cts {
namespace {

std::string readPtx(const std::string &name) {
  const char *folder = std::getenv("FP4_PTX_FOLDER");
  std::ifstream file(std::string(folder ? folder : FP4_SOURCE_DIR "/integration_test/cuda-sm90") +
                     "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CtsEmitted, APipelinedKernelCopiesSwizzledTiles) {
  constexpr uint32_t tileBytes = 16384, rows = 128;
  std::string ptx = readPtx("copy_tiles.ptx");
  ASSERT_FALSE(ptx.empty());
  fp4rt_module module{"tma", "sm_90a", ptx.c_str(), ptx.size(), nullptr, 0};
  auto loaded = device()->loadModule(module);
  FP4_ASSERT_OK(loaded);
  for (int32_t tiles : {1, 2, 3, 17}) {
    Bytes contents = patternBytes(uint64_t(tiles) * tileBytes, uint32_t(tiles));
    Buffer in(contents), out(contents.size(), 0);
    const uint64_t dims[] = {128, uint64_t(tiles) * rows}, strides[] = {128};
    const uint32_t box[] = {128, rows};
    alignas(64) std::array<std::byte, 128> map{};
    FP4_ASSERT_OK(
        device()->encodeTensorMap(map, {in.address(), int32_t(hw::TensorMapType::UInt8),
                                        int32_t(hw::SwizzleMode::B128), dims, strides, box}));
    Params params;
    params.add(map).add(out.address()).add(tiles);
    rt::LaunchShape shape;
    shape.block = {160, 1, 1};
    shape.dynamicSharedBytes = 32800;
    FP4_ASSERT_OK(device()->launch(*loaded, "copy_tiles", shape, params.pointers()));
    FP4_ASSERT_OK(device()->synchronize());
    Bytes image = out.read(), expected(contents.size());
    for (uint32_t i = 0; i < contents.size(); ++i)
      expected[i / tileBytes * tileBytes +
               hw::swizzleAddress(hw::SwizzleMode::B128, i % tileBytes)] = contents[i];
    EXPECT_TRUE(image == expected) << tiles << " tiles";
    saveImage("emitted_copy_tiles" + std::to_string(tiles), image);
  }
}

} // namespace
} // namespace fp4::cts
