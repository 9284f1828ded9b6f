//===- EmittedCases.cpp - Kernels the compiler emitted --------------------===//
//
// integration_test/cuda-sm90/copy_tiles.ptx is the output of test/Target/tma-sm90.mlir: a
// warp-specialized, pipelined kernel (load warp, ring of two stages, 128 copying threads) from the
// same passes as a GEMM. norm_rows.ptx beside it is that of norm-rows-sm90.mlir: a chain along
// rows, a sum of two matrices behind which RMSNorm stands, in teams of 64 threads. FP4_PTX_FOLDER
// names their folder on a machine without the source tree.
//
//===----------------------------------------------------------------------===//

#include "DeviceUnderTest.h"
#include "fp4/ISA/TensorMap.h"
#include "fp4/Numerics/Float16.h"
#include "fp4/Numerics/RowReduction.h"

#include <cmath>
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

constexpr uint32_t normColumns = 624;

/// Bits of bf16 numbers from -4 to 4, in steps of 1 / 32, in an order that `factor` chooses.
std::vector<uint16_t> steps(uint32_t count, uint32_t factor) {
  std::vector<uint16_t> numbers(count);
  for (uint32_t i = 0; i < count; ++i)
    numbers[i] = numerics::encodeBF16(float(int(i * factor % 257) - 128) / 32);
  return numbers;
}

/// The sum of two rows in bf16, and behind it RMSNorm with a weight.
void normRow(const uint16_t *x, const uint16_t *residual, const std::vector<uint16_t> &weight,
             uint16_t *sum, uint16_t *normed) {
  using namespace numerics;
  std::vector<float> squares(normColumns);
  for (uint32_t i = 0; i < normColumns; ++i) {
    sum[i] = encodeBF16(decodeBF16(x[i]) + decodeBF16(residual[i]));
    squares[i] = decodeBF16(sum[i]) * decodeBF16(sum[i]);
  }
  const float mean = reduceRow(squares, ElementOp::Add, 0) / float(normColumns);
  const float root = 1 / std::sqrt(mean + 0x1.4f8b58p-17f);
  for (uint32_t i = 0; i < normColumns; ++i)
    normed[i] = encodeBF16(decodeBF16(sum[i]) * root * decodeBF16(weight[i]));
}

TEST(CtsEmitted, AChainAlongRows) {
  std::string ptx = readPtx("norm_rows.ptx");
  ASSERT_FALSE(ptx.empty());
  fp4rt_module module{"norm", "sm_90a", ptx.c_str(), ptx.size(), nullptr, 0};
  auto loaded = device()->loadModule(module);
  FP4_ASSERT_OK(loaded);
  for (int32_t rows : {1, 2, 7}) {
    const uint32_t count = uint32_t(rows) * normColumns;
    const auto x = steps(count, 37), residual = steps(count, 101), weight = steps(normColumns, 11);
    std::vector<uint16_t> sums(count), normed(count);
    for (uint32_t at = 0; at < count; at += normColumns)
      normRow(&x[at], &residual[at], weight, &sums[at], &normed[at]);
    Buffer first(bytesOf(x)), second(bytesOf(residual)), third(bytesOf(weight));
    Buffer sumsOut(2 * count, 0), normedOut(2 * count, 0);
    Params params;
    params.add(rows).add(first.address()).add(second.address()).add(third.address());
    params.add(sumsOut.address()).add(normedOut.address());
    rt::LaunchShape shape;
    shape.grid = {uint32_t(rows + 1) / 2, 1, 1};
    shape.block = {128, 1, 1};
    FP4_ASSERT_OK(device()->launch(*loaded, "kernel", shape, params.pointers()));
    FP4_ASSERT_OK(device()->synchronize());
    Bytes image = normedOut.read();
    EXPECT_TRUE(std::ranges::equal(sumsOut.read(), bytesOf(sums))) << rows << " rows";
    EXPECT_TRUE(std::ranges::equal(image, bytesOf(normed))) << rows << " rows";
    saveImage("rows_norm" + std::to_string(rows), image);
  }
}

} // namespace
} // namespace fp4::cts
