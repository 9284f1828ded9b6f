// tile::gather4 and tile::scatter4, and tensor maps that a kernel edits before it uses them.
#include "KernelHarness.h"

#include <numeric>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;
using testing::HasSubstr;

namespace {

constexpr unsigned rows = 12, columns = 64; // of bytes

/// Loads four rows of `in`, adds nothing, and stores them as four rows of `out`. `edit` may change
/// the first map, which lies in shared memory, before it is published in global memory.
std::string gatherScatter(const std::string &edit) {
  return R"(.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 dynamic[];
.visible .entry test(.param .align 64 .b8 in[128], .param .align 64 .b8 out[128],
    .param .u64 scratch, .param .u64 address) {
  .shared .align 128 .b8 tile[256];
  .shared .align 128 .b8 edited[128];
  .shared .align 8 .b64 bar;
  .reg .b64 %rd<16>; .reg .b32 %r<16>; .reg .pred %p<4>;
  mov.u32 %r1, %tid.x;
  mov.b64 %rd1, in; cvta.param.u64 %rd1, %rd1;
  mov.b64 %rd2, out; cvta.param.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [scratch]; cvta.to.global.u64 %rd3, %rd3;
  ld.param.u64 %rd4, [address];
  mov.u32 %r2, tile; mov.u32 %r3, bar; mov.u32 %r4, edited;
  mul.lo.u32 %r5, %r1, 4;
  cvt.u64.u32 %rd5, %r5; add.u64 %rd6, %rd1, %rd5;
  ld.u32 %r6, [%rd6];
  add.u32 %r7, %r4, %r5;
  st.shared.u32 [%r7], %r6;
  bar.warp.sync 0xffffffff;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra COPY;
  )" + edit +
         R"(
COPY:
  bar.warp.sync 0xffffffff;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [%r4], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;
  @%p1 bra END;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared.b64 %rd7, [%r3], 256;
  cvta.global.u64 %rd8, %rd3;
  cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
      [%r2], [%rd8, {0, 7, 2, 11, 20}], [%r3];
WAIT:
  mbarrier.try_wait.shared.b64 %p2, [%r3], %rd7;
  @!%p2 bra WAIT;
  cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
      [%rd2, {0, 3, 0, 5, 1}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:
  ret;
}
)";
}

hw::TensorMap rowsOf(uint64_t address) {
  hw::TensorMap map;
  map.address = address;
  map.dims = {columns, rows};
  map.strides = {columns};
  map.box = {columns, 1};
  map.swizzle = hw::SwizzleMode::B64;
  return map;
}

struct GatherRun {
  std::vector<uint8_t> out;
  std::string error, note;
};

GatherRun run(const std::string &edit, const SimOptions &options,
              const hw::TensorMap &shape = rowsOf(0)) {
  GatherRun result;
  const auto program = parse(gatherScatter(edit));
  if (!program)
    return {{}, "does not parse", ""};
  Simulator simulator(options);
  std::vector<uint8_t> bytes(rows * columns);
  std::iota(bytes.begin(), bytes.end(), uint8_t(0));
  for (unsigned i = 0; i < bytes.size(); ++i)
    bytes[i] = uint8_t(i / columns * 16 + i % 16);
  const uint64_t in = simulator.memory().allocate(bytes.size(), "in");
  const uint64_t out = simulator.memory().allocate(bytes.size(), "out");
  const uint64_t scratch = simulator.memory().allocate(128, "scratch");
  EXPECT_TRUE(simulator.memory().write(in, bytes.data(), bytes.size()));
  EXPECT_TRUE(simulator.memory().fill(out, 0xEE, bytes.size()));
  hw::TensorMap from = shape;
  from.address = in;
  Params params;
  params.map(from).map(rowsOf(out)).add(scratch).add(in + 2 * columns);
  LaunchConfig config;
  config.block = {32, 1, 1};
  if (auto stats = simulator.launch(*program, "test", config, params.span()); !stats)
    return {{}, stats.error().message, stats.error().note};
  result.out.resize(bytes.size());
  EXPECT_TRUE(simulator.memory().read(out, result.out.data(), bytes.size()));
  return result;
}

/// Byte 0 of every row of the output.
std::vector<int> firstBytes(const GatherRun &run) {
  std::vector<int> bytes;
  for (unsigned row = 0; row < rows && !run.out.empty(); ++row)
    bytes.push_back(run.out[row * columns]);
  return bytes;
}

TEST(Gather, FourRowsMoveAndRowsOutsideAreZero) {
  for (const SimOptions &options : schedules(2)) {
    const GatherRun result = run("", options);
    ASSERT_EQ(result.error, "") << describe(options) << "\n" << result.note;
    // Rows 7, 2, 11 and 20 (outside) went to 3, 0, 5 and 1.
    EXPECT_THAT(firstBytes(result), testing::ElementsAre(2 * 16, 0, 0xEE, 7 * 16, 0xEE, 11 * 16,
                                                         0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE));
    EXPECT_EQ(result.out[3 * columns + 37], 7 * 16 + 37 % 16);
  }
}

TEST(Gather, EditedMapsAreUsed) {
  // Two rows further down, in a tensor of four rows: 7 and 11 are outside now.
  const GatherRun result =
      run("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r4], %rd4;\n"
          "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r4], 1, 4;\n",
          schedules(0)[0]);
  ASSERT_EQ(result.error, "") << result.note;
  EXPECT_THAT(firstBytes(result), testing::ElementsAre(4 * 16, 0, 0xEE, 0, 0xEE, 0, 0xEE, 0xEE,
                                                       0xEE, 0xEE, 0xEE, 0xEE));
}

/// As compilers make maps on the device: zeros, then every field.
TEST(Gather, AMapFromNothing) {
  const std::string c = std::to_string(columns), r = std::to_string(rows);
  std::string edit = "sub.u64 %rd9, %rd4, " + std::to_string(2 * columns) + ";\n";
  for (unsigned byte = 0; byte < 128; byte += 4)
    edit += "st.shared.b32 [%r4+" + std::to_string(byte) + "], 0;\n";
  const auto replace = [&](const std::string &field, const std::string &value,
                           const char *type = "b32") {
    edit += "tensormap.replace.tile." + field + ".shared::cta.b1024." + type + " [%r4], " + value +
            ";\n";
  };
  const std::pair<const char *, std::string> fields[] = {
      {"rank", "1"},         {"box_dim", "0, " + c},     {"box_dim", "1, 1"},
      {"elemtype", "0"},     {"global_dim", "0, " + c},  {"global_dim", "1, " + r},
      {"swizzle_mode", "2"}, {"element_stride", "0, 1"}, {"element_stride", "1, 1"}};
  for (const auto &[field, value] : fields)
    replace(field, value);
  replace("global_address", "%rd9", "b64");
  edit += "mov.b64 %rd9, " + c + ";\n";
  replace("global_stride", "0, %rd9", "b64");
  const GatherRun made = run(edit, schedules(0)[0]);
  ASSERT_EQ(made.error, "") << made.note;
  EXPECT_EQ(made.out, run("", schedules(0)[0]).out);
}

TEST(Gather, EditsAreJudgedWhenTheMapIsUsed) {
  const GatherRun result =
      run("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r4], 0, 7;\n", schedules(0)[0]);
  EXPECT_THAT(result.error, HasSubstr("box dimension 0 must span a multiple of 16 bytes"));
  EXPECT_THAT(
      run("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r4], 0, 300;\n", schedules(0)[0])
          .error,
      HasSubstr("tensormap.replace: .box_dim cannot be 300 here"));
  EXPECT_THAT(
      run("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r4], 4;\n", schedules(0)[0])
          .error,
      HasSubstr("tensormap.replace: .swizzle_mode cannot be 4 here"));
}

/// Only the channels of a map for im2col are where those of tiles are.
TEST(Gather, EditsOfAMapOfColumns) {
  hw::TensorMap map = rowsOf(0);
  map.rank = 3;
  map.dims = {columns, rows, 1};
  map.strides = {columns, columns * rows};
  map.pixels.emplace();
  const auto error = [&](const char *ordinal) {
    return run(std::string("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r4], ") +
                   ordinal + ", 16;\n",
               schedules(0)[0], map)
        .error;
  };
  EXPECT_THAT(error("1"), HasSubstr("tensormap.replace: .box_dim cannot be 16 here"));
  EXPECT_THAT(error("0"), Not(HasSubstr("tensormap"))); // the gather wants a map of tiles
}

TEST(Gather, NeedsABoxOfOneRow) {
  hw::TensorMap map = rowsOf(0);
  map.box[1] = 4;
  EXPECT_THAT(run("", schedules(0)[0], map).error,
              HasSubstr("expects a tensor map with a box of one row, but got 4"));
}

/// Prefetches check modes and offsets as loads do; the gather behind them wants other maps.
TEST(Gather, Prefetches) {
  const auto error = [&](const std::string &operands, const hw::TensorMap &map) {
    return run(".reg .b16 %h<2>; mov.b16 %h0, 300; mov.b16 %h1, 2;\n"
               "cp.async.bulk.prefetch.tensor." +
                   operands + ";\n",
               schedules(0)[0], map)
        .error;
  };
  hw::TensorMap map = rowsOf(0);
  EXPECT_EQ(error("2d.L2.global.tile [%rd1, {0, 0}]", map), "");
  map.rank = 3;
  map.dims = {columns, rows, 1};
  map.strides = {columns, columns * rows};
  map.box = {columns, 1, 1, 1};
  const std::string column = "3d.L2.global.im2col [%rd1, {0, 0, 0}], ";
  EXPECT_THAT(error(column + "{%h0}", map),
              HasSubstr("a copy in im2col mode expects a tensor map of that mode"));
  map.pixels.emplace();
  EXPECT_THAT(error("3d.L2.global.tile [%rd1, {0, 0, 0}]", map),
              HasSubstr("a copy in tile mode expects a tensor map of that mode"));
  EXPECT_THAT(error(column + "{%h0}", map), HasSubstr("a .2d copy expects"));
  EXPECT_THAT(error(column + "{%h0, %h1}", map),
              HasSubstr("a .3d copy in im2col mode expects 1 offsets, but got 2"));
  map.rank = 4;
  map.dims = {columns, rows, 1, 1};
  map.strides[2] = columns * rows;
  const std::string columns4 = "4d.L2.global.im2col [%rd1, {0, 0, 0, 0}], ";
  EXPECT_THAT(error(columns4 + "{%h1, %h1}", map), HasSubstr("a .2d copy expects"));
  EXPECT_THAT(error(columns4 + "{%h1, %h0}", map),
              HasSubstr("an im2col offset of a .4d copy must be below 256, but got 300"));
}

TEST(Gather, RefusedForms) {
  const auto error = [](const std::string &instruction) {
    auto program = Program::parse(kernelText("  " + instruction + "\n"), "t.ptx");
    return program ? std::string() : program.error().message;
  };
  EXPECT_THAT(error("cp.async.bulk.tensor.3d.global.shared::cta.tile::scatter4.bulk_group "
                    "[%rd1, {0, 0, 0, 0, 0}], [%r1];"),
              HasSubstr(".tile::scatter4 expects .2d, but got .3d"));
  EXPECT_THAT(error("tensormap.replace.tile.global_stride.global.b1024.b64 [%rd1], 4, %rd2;"),
              HasSubstr("the ordinal of .global_stride must be below 4, but got 4"));
  EXPECT_THAT(error("tensormap.replace.tile.box_dim.global.b1024.b64 [%rd1], 1, %rd2;"),
              HasSubstr(".box_dim expects .b32, but got .b64"));
}

} // namespace
