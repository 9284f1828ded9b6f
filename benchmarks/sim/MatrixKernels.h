//===- MatrixKernels.h - One matrix product after the other ---------------===//
//
// Kernels of 128 threads that copy operands to shared memory and multiply them again and again, 16
// MMAs to a commit and a wait.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "fp4/ISA/InstrDescriptor.h"
#include "fp4/ISA/SmemDescriptor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace matrix {

// Shared memory: A of 128 rows of 32 bytes, B of 256, one block of scales of A, two of B.
inline constexpr uint32_t base = 0x800, offsetB = 4096, offsetScales = 12288, imageBytes = 13824;

struct Kernel {
  const char *name, *target;
  std::string text;
  uint64_t multiplyAdds; ///< of one MMA
};

inline std::string repeat(const std::string &first, const std::string &other) {
  std::string text = first;
  for (int i = 1; i < 16; ++i)
    text += other;
  return text;
}

/// `setup`, then `rounds` times `body`; %p1 is set in thread 0, %r3 is the parity of the round.
inline std::string kernel(const char *target, const std::string &setup, const std::string &body,
                          const std::string &end, int rounds) {
  return std::string(".version 9.0\n.target ") + target +
         "\n.address_size 64\n.extern .shared .align 1024 .b8 image[];\n"
         ".visible .entry k(.param .b64 p)\n{\n.reg .b32 %r<16>, %v<4>;\n.reg .b64 %rd<8>;\n"
         ".reg .f32 %f<80>;\n.reg .pred %p<4>;\n.shared .align 8 .b64 bar;\n"
         ".shared .align 4 .b32 slot;\nld.param.b64 %rd0, [p];\nmov.u32 %r0, %tid.x;\n"
         "shl.b32 %r1, %r0, 4;\nmov.u32 %r2, image;\nCOPY:\ncvt.u64.u32 %rd1, %r1;\n"
         "add.u64 %rd1, %rd1, %rd0;\nld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd1];\n"
         "add.u32 %r4, %r1, %r2;\nst.shared.v4.b32 [%r4], {%v0, %v1, %v2, %v3};\n"
         "add.u32 %r1, %r1, 2048;\nsetp.lt.u32 %p0, %r1, " +
         std::to_string(imageBytes) +
         ";\n@%p0 bra COPY;\nfence.proxy.async.shared::cta;\nsetp.eq.u32 %p1, %r0, 0;\n"
         "mov.u32 %r5, bar;\n@%p1 mbarrier.init.shared::cta.b64 [%r5], 1;\n"
         "@%p1 fence.mbarrier_init.release.cluster;\nmov.u32 %r3, 0;\n"
         "mov.u32 %r15, 0;\n" +
         setup + "ROUND:\n" + body +
         "xor.b32 %r3, %r3, 1;\nadd.u32 %r15, %r15, 1;\nsetp.lt.u32 %p0, %r15, " +
         std::to_string(rounds) + ";\n@%p0 bra ROUND;\n" + end + "ret;\n}\n";
}

/// tcgen05.mma of 128 x 256 x 32 bytes, D in columns 0 to 255, scales from 256 on.
inline std::string tcgen05(const std::string &mma, const std::string &operands, bool scaled) {
  using fp4::hw::SmemDescriptor;
  const auto number = [](uint64_t value) { return std::to_string(value); };
  const auto operand = [&](uint32_t at) {
    return number(SmemDescriptor::kMajorOperand(fp4::hw::SwizzleMode::None, base + at).encode());
  };
  std::string setup =
      "mov.u32 %r6, slot;\nsetp.lt.u32 %p2, %r0, 32;\n"
      "@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r6], 512;\n"
      "tcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
      "ld.shared.b32 %r7, [%r6];\nadd.u32 %r8, %r7, 256;\nadd.u32 %r9, %r7, 264;\n"
      "@!%p1 bra END;\nmov.b64 %rd2, " +
      operand(0) + ";\nmov.b64 %rd3, " + operand(offsetB) + ";\n";
  for (uint32_t block = 0; scaled && block < 3; ++block)
    setup += "mov.b64 %rd4, " +
             number(SmemDescriptor::scaleFactorBlock(base + offsetScales + 512 * block).encode()) +
             ";\ntcgen05.cp.cta_group::1.32x128b.warpx4 [" +
             (block ? "%r9+" + number(4 * (block - 1)) : std::string("%r8")) + "], %rd4;\n";
  const std::string product = "tcgen05.mma.cta_group::1." + mma + " [%r7], %rd2, %rd3, " + operands;
  return kernel("sm_100a", setup,
                repeat(product + ", 0;\n", product + ", 1;\n") +
                    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5];\n"
                    "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], %r3;\n"
                    "@!%p3 bra WAIT;\n",
                "tcgen05.fence::before_thread_sync;\nEND:\nbar.sync 0;\n"
                "tcgen05.fence::after_thread_sync;\n"
                "@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;\n",
                64);
}

inline std::string scaledFp4() {
  fp4::hw::BlockScaledInstrDesc desc;
  desc.kind = fp4::hw::MmaKind::MXF4NVF4;
  desc.m = 128;
  desc.n = 256;
  desc.aType = desc.bType = fp4::hw::MmaType::E2M1;
  desc.scaleType = fp4::hw::ScaleType::UE4M3;
  return tcgen05("kind::mxf4nvf4.block_scale.block16",
                 std::to_string(desc.encode().value_or(0)) + ", [%r8], [%r9]", true);
}

inline std::string dense(fp4::hw::MmaKind kind, fp4::hw::MmaType type) {
  fp4::hw::InstrDesc desc;
  desc.kind = kind;
  desc.m = 128;
  desc.n = 256;
  desc.aType = desc.bType = type;
  desc.dType = fp4::hw::AccumulatorType::F32;
  return tcgen05("kind::" + std::string(stringify(kind)), std::to_string(desc.encode().value_or(0)),
                 false);
}

/// `shape`: "k16.f32.f16.f16"; `transpose` are the operands that only 16-bit factors have.
inline std::string wgmma(const std::string &shape, const std::string &transpose) {
  std::string d = "{";
  for (int i = 0; i < 64; ++i)
    d += (i ? ", %f" : "%f") + std::to_string(i);
  const auto operand = [](uint32_t at) {
    return std::to_string(
        fp4::hw::SmemDescriptor::kMajorOperand(fp4::hw::SwizzleMode::None, base + at)
            .encodeWgmma());
  };
  const std::string product = "wgmma.mma_async.sync.aligned.m64n128" + shape + " " + d +
                              "}, %rd2, %rd3, %p2, 1, 1" + transpose + ";\n";
  return kernel("sm_90a",
                "bar.sync 0;\nmov.b64 %rd2, " + operand(0) + ";\nmov.b64 %rd3, " +
                    operand(offsetB) + ";\n",
                "setp.ne.u32 %p2, %r0, %r0;\nwgmma.fence.sync.aligned;\n" +
                    repeat(product + "setp.eq.u32 %p2, %r0, %r0;\n", product) +
                    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
                "", 64);
}

inline std::string mmaSync() {
  const std::string product =
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, "
      "{%v0, %v1, %v2, %v3}, {%v0, %v1}, {%f0, %f1, %f2, %f3};\n";
  return kernel("sm_100a",
                "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\n"
                "mov.f32 %f3, %f0;\n",
                repeat(product, product), "", 512);
}

inline std::vector<Kernel> kernels() {
  using fp4::hw::MmaKind, fp4::hw::MmaType;
  return {
      {"tcgen05.mma mxf4nvf4 128x256x64", "sm_100a", scaledFp4(), 128 * 256 * 64},
      {"tcgen05.mma f16 128x256x16", "sm_100a", dense(MmaKind::F16, MmaType::F16), 128 * 256 * 16},
      {"tcgen05.mma e4m3 128x256x32", "sm_100a", dense(MmaKind::F8F6F4, MmaType::E4M3),
       128 * 256 * 32},
      {"wgmma f16 m64n128k16", "sm_90a", wgmma("k16.f32.f16.f16", ", 0, 0"), 64 * 128 * 16},
      {"wgmma e4m3 m64n128k32", "sm_90a", wgmma("k32.f32.e4m3.e4m3", ""), 64 * 128 * 32},
      {"mma.sync f16 m16n8k16", "sm_100a", mmaSync(), 16 * 8 * 16},
  };
}

} // namespace matrix
