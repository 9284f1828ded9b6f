//===- ArithCases.cpp - Instruction results, bit for bit ------------------===//
//
// Each row of the table is a few PTX instructions from four words to two. 4096 inputs (special
// values, then random bits and random floats) give one image per row. No expected values stand
// here: the simulator's images are compared with a GPU's (integration_test/cuda-sm90), and the
// simulator's own tests hold it to the PTX ISA.
//
//===----------------------------------------------------------------------===//

#include "DeviceUnderTest.h"

#include <bit>

namespace fp4::cts {
namespace {

struct Row {
  const char *name;
  /// %a %b %c %d: input words. %x %y: output words, zero at first. %fa..%fd: the inputs as f32; %fx
  /// an f32, %p %q predicates, %h0 %h1 16-bit, %l0 %l1 %l2 64-bit with %l0 = a:b and %l1 = c:d.
  const char *body;
};

#define F(op) op " %fx, %fa, %fb; mov.b32 %x, %fx;"
#define F1(op) op " %fx, %fa; mov.b32 %x, %fx;"
#define F3(op) op " %fx, %fa, %fb, %fc; mov.b32 %x, %fx;"
#define I(op) op " %x, %a, %b;"
#define SET(op) "setp." op " %p, %fa, %fb; selp.u32 %x, 1, 0, %p;"
#define ISET(op) "setp." op " %p, %a, %b; selp.u32 %x, 1, 0, %p;"

const Row kInteger[] = {
    {"add_s32", I("add.s32")},
    {"sub_s32", I("sub.s32")},
    {"mul_lo_s32", I("mul.lo.s32")},
    {"mul_hi_s32", I("mul.hi.s32")},
    {"mul_hi_u32", I("mul.hi.u32")},
    {"mul_wide_u32", "mul.wide.u32 %l2, %a, %b; mov.b64 {%x, %y}, %l2;"},
    {"mul_wide_s32", "mul.wide.s32 %l2, %a, %b; mov.b64 {%x, %y}, %l2;"},
    {"mad_lo_s32", "mad.lo.s32 %x, %a, %b, %c;"},
    {"mad_hi_u32", "mad.hi.u32 %x, %a, %b, %c;"},
    {"mad_wide_u32", "mad.wide.u32 %l2, %a, %b, %l1; mov.b64 {%x, %y}, %l2;"},
    {"div_s32",
     "or.b32 %b, %b, 1; and.b32 %b, %b, 0x7fffffff; div.s32 %x, %a, %b; rem.s32 %y, %a, %b;"},
    {"div_u32", "or.b32 %b, %b, 1; div.u32 %x, %a, %b; rem.u32 %y, %a, %b;"},
    {"min_max_s32", "min.s32 %x, %a, %b; max.s32 %y, %a, %b;"},
    {"min_max_u32", "min.u32 %x, %a, %b; max.u32 %y, %a, %b;"},
    {"abs_neg_s32", "abs.s32 %x, %a; neg.s32 %y, %a;"},
    {"and_or", "and.b32 %x, %a, %b; or.b32 %y, %a, %b;"},
    {"xor_not", "xor.b32 %x, %a, %b; not.b32 %y, %a;"},
    {"shl_b32", "and.b32 %b, %b, 63; shl.b32 %x, %a, %b;"},
    {"shr_u32", "and.b32 %b, %b, 63; shr.u32 %x, %a, %b; shr.s32 %y, %a, %b;"},
    {"shl_b32_huge", "shl.b32 %x, %a, %b; shr.s32 %y, %a, %b;"},
    {"shf_wrap", "shf.l.wrap.b32 %x, %a, %b, %c; shf.r.wrap.b32 %y, %a, %b, %c;"},
    {"shf_clamp",
     "and.b32 %c, %c, 63; shf.l.clamp.b32 %x, %a, %b, %c; shf.r.clamp.b32 %y, %a, %b, %c;"},
    {"bfe",
     "and.b32 %b, %b, 63; and.b32 %c, %c, 63; bfe.u32 %x, %a, %b, %c; bfe.s32 %y, %a, %b, %c;"},
    {"bfi", "and.b32 %c, %c, 63; and.b32 %d, %d, 63; bfi.b32 %x, %a, %b, %c, %d;"},
    {"popc_clz", "popc.b32 %x, %a; clz.b32 %y, %a;"},
    {"bfind_brev", "bfind.u32 %x, %a; brev.b32 %y, %a;"},
    {"prmt", "prmt.b32 %x, %a, %b, %c; prmt.b32 %y, %a, %b, 0x5410;"},
    {"lop3", "lop3.b32 %x, %a, %b, %c, 0x96; lop3.b32 %y, %a, %b, %c, 0xe8;"},
    {"setp_lt_s32", ISET("lt.s32")},
    {"setp_lo_u32", ISET("lt.u32")},
    {"setp_ge_u32", ISET("ge.u32")},
    {"setp_eq_s32", ISET("eq.s32")},
    {"setp_and",
     "setp.lt.s32 %p, %a, %b; setp.gt.and.s32 %q, %c, %d, %p; selp.b32 %x, %a, %c, %q;"},
    {"add_s64", "add.s64 %l2, %l0, %l1; mov.b64 {%x, %y}, %l2;"},
    {"mul_lo_u64", "mul.lo.u64 %l2, %l0, %l1; mov.b64 {%x, %y}, %l2;"},
    {"mul_hi_u64", "mul.hi.u64 %l2, %l0, %l1; mov.b64 {%x, %y}, %l2;"},
    {"shift_64", "and.b32 %c, %c, 127; shl.b64 %l2, %l0, %c; shr.s64 %l1, %l0, %c; xor.b64 %l2, "
                 "%l2, %l1; mov.b64 {%x, %y}, %l2;"},
    {"min_s64", "min.s64 %l2, %l0, %l1; mov.b64 {%x, %y}, %l2;"},
    {"setp_lt_u64", "setp.lt.u64 %p, %l0, %l1; selp.u32 %x, 1, 0, %p;"},
    {"cvt_s16", "cvt.s32.s8 %x, %a; cvt.u32.u16 %y, %h0;"},
};

const Row kFloat[] = {
    {"add_f32", F("add.rn.f32")},
    {"add_rz_f32", F("add.rz.f32")},
    {"add_rm_f32", F("add.rm.f32")},
    {"add_rp_f32", F("add.rp.f32")},
    {"add_ftz_f32", F("add.rn.ftz.f32")},
    {"sub_f32", F("sub.rn.f32")},
    {"mul_f32", F("mul.rn.f32")},
    {"mul_rz_f32", F("mul.rz.f32")},
    {"mul_ftz_f32", F("mul.rn.ftz.f32")},
    {"fma_f32", F3("fma.rn.f32")},
    {"fma_rz_f32", F3("fma.rz.f32")},
    {"div_f32", F("div.rn.f32")},
    {"rcp_f32", F1("rcp.rn.f32")},
    {"sqrt_f32", F1("sqrt.rn.f32")},
    {"min_f32", F("min.f32")},
    {"max_f32", F("max.f32")},
    {"min_nan_f32", F("min.NaN.f32")},
    {"max_nan_f32", F("max.NaN.f32")},
    {"max_xorsign_f32", F("max.xorsign.abs.f32")},
    {"abs_f32", F1("abs.f32")},
    {"neg_f32", F1("neg.f32")},
    {"copysign_f32", F("copysign.f32")},
    {"setp_lt_f32", SET("lt.f32")},
    {"setp_ltu_f32", SET("ltu.f32")},
    {"setp_eq_f32", SET("eq.f32")},
    {"setp_neu_f32", SET("neu.f32")},
    {"setp_ge_f32", SET("ge.f32")},
    {"setp_nan_f32", SET("nan.f32")},
    {"setp_num_f32", SET("num.f32")},
    {"fma_f64", "cvt.f64.f32 %e0, %fa; cvt.f64.f32 %e1, %fb; cvt.f64.f32 %e2, %fc; fma.rn.f64 %e2, "
                "%e0, %e1, %e2; mov.b64 {%x, %y}, %e2;"},
    {"div_f64", "cvt.f64.f32 %e0, %fa; cvt.f64.f32 %e1, %fb; div.rn.f64 %e2, %e0, %e1; mov.b64 "
                "{%x, %y}, %e2;"},
};

const Row kConvert[] = {
    {"cvt_f32_s32",
     "cvt.rn.f32.s32 %fx, %a; mov.b32 %x, %fx; cvt.rz.f32.u32 %fx, %a; mov.b32 %y, %fx;"},
    {"cvt_s32_f32", "cvt.rzi.s32.f32 %x, %fa; cvt.rni.s32.f32 %y, %fa;"},
    {"cvt_u32_f32", "cvt.rzi.u32.f32 %x, %fa; cvt.rpi.u32.f32 %y, %fa;"},
    {"cvt_s64_f32", "cvt.rzi.s64.f32 %l2, %fa; mov.b64 {%x, %y}, %l2;"},
    {"cvt_rni_f32", "cvt.rni.f32.f32 %fx, %fa; mov.b32 %x, %fx;"},
    {"cvt_f16_f32", "cvt.rn.f16.f32 %h0, %fa; cvt.rz.f16.f32 %h1, %fa; mov.b32 %x, {%h0, %h1};"},
    {"cvt_f32_f16", "cvt.f32.f16 %fx, %h0; mov.b32 %x, %fx;"},
    {"cvt_bf16_f32", "cvt.rn.bf16.f32 %h0, %fa; cvt.rz.bf16.f32 %h1, %fa; mov.b32 %x, {%h0, %h1};"},
    {"cvt_f32_bf16", "cvt.f32.bf16 %fx, %h0; mov.b32 %x, %fx;"},
    {"cvt_bf16x2", "cvt.rn.bf16x2.f32 %x, %fa, %fb; cvt.rn.relu.bf16x2.f32 %y, %fa, %fb;"},
    {"cvt_f16x2", "cvt.rn.f16x2.f32 %x, %fa, %fb;"},
    {"cvt_e4m3x2", "cvt.rn.satfinite.e4m3x2.f32 %h0, %fa, %fb; cvt.u32.u16 %x, %h0;"},
    {"cvt_e5m2x2", "cvt.rn.satfinite.e5m2x2.f32 %h0, %fa, %fb; cvt.u32.u16 %x, %h0;"},
    {"cvt_f16x2_e4m3x2", "cvt.rn.f16x2.e4m3x2 %x, %h0;"},
    {"cvt_f32_f64", "mov.b64 %e0, %l0; cvt.rn.f32.f64 %fx, %e0; mov.b32 %x, %fx;"},
    {"add_f16x2", "add.rn.f16x2 %x, %a, %b; mul.rn.f16x2 %y, %a, %b;"},
    {"fma_f16x2", "fma.rn.f16x2 %x, %a, %b, %c;"},
    {"fma_bf16x2", "fma.rn.bf16x2 %x, %a, %b, %c;"},
    {"max_bf16x2", "max.bf16x2 %x, %a, %b; min.bf16x2 %y, %a, %b;"},
    {"max_xorsign_bf16x2", "max.xorsign.abs.bf16x2 %x, %a, %b; abs.bf16x2 %y, %a;"},
    {"max_f16x2", "max.f16x2 %x, %a, %b; max.NaN.f16x2 %y, %a, %b;"},
};

/// Instructions of the row-wise kernels (lib/KernelArithmetic/E2M1Steps.h), NaN
/// included.
const Row kStreaming[] = {
    {"cvt_rz_halves", "cvt.rz.f16x2.f32 %x, %fa, %fb; cvt.rz.bf16x2.f32 %y, %fa, %fb;"},
    {"min_xorsign_f16x2", "min.xorsign.abs.f16x2 %x, %a, %b; mov.b32 %y, 0x0e000e00; "
                          "min.xorsign.abs.f16x2 %y, %c, %y;"},
    {"max_xorsign_f16x2",
     "max.xorsign.abs.f16x2 %x, %a, %b; max.NaN.xorsign.abs.f16x2 %y, %a, %b;"},
    {"max_nan_xorsign_bf16x2",
     "max.NaN.xorsign.abs.bf16x2 %x, %a, %b; max.NaN.xorsign.abs.bf16x2 %y, %c, %d;"},
    {"e2m1_steps", "fma.rn.f32 %fx, %fa, 0f333A2E8C, %fa; mul.rz.f32 %fa, %fx, 0f387FFFFF; "
                   "fma.rn.f32 %fx, %fb, 0f333A2E8C, %fb; mul.rz.f32 %fb, %fx, 0f387FFFFF; "
                   "cvt.rz.f16x2.f32 %x, %fb, %fa; mov.b32 %y, 0x0e000e00; "
                   "min.xorsign.abs.f16x2 %y, %x, %y;"},
};

const Row kWarp[] = {
    {"shfl_bfly",
     "shfl.sync.bfly.b32 %x, %a, 5, 31, 0xffffffff; shfl.sync.idx.b32 %y, %b, 3, 31, 0xffffffff;"},
    {"shfl_up_down", "shfl.sync.up.b32 %x|%p, %a, 3, 0, 0xffffffff; shfl.sync.down.b32 %y|%q, %a, "
                     "3, 31, 0xffffffff; @!%p mov.u32 %x, 1; @!%q mov.u32 %y, 2;"},
    {"shfl_segment", "shfl.sync.bfly.b32 %x, %a, 2, 0x181f, 0xffffffff; shfl.sync.idx.b32 %y, %b, "
                     "%c, 0x1807, 0xffffffff;"},
    {"vote", "setp.lt.s32 %p, %a, %b; vote.sync.ballot.b32 %x, %p, 0xffffffff; vote.sync.any.pred "
             "%q, %p, 0xffffffff; selp.u32 %y, 1, 0, %q;"},
    {"redux", "redux.sync.add.s32 %x, %a, 0xffffffff; redux.sync.max.u32 %y, %a, 0xffffffff;"},
    {"redux_min", "redux.sync.min.s32 %x, %a, 0xffffffff; redux.sync.or.b32 %y, %a, 0xffffffff;"},
    {"elect", "elect.sync %x|%p, 0xffffffff; selp.u32 %y, 1, 0, %p;"},
    {"match", "and.b32 %a, %a, 3; match.any.sync.b32 %x, %a, 0xffffffff;"},
    {"activemask",
     "and.b32 %a, %a, 1; setp.eq.u32 %p, %a, 0; mov.u32 %x, %lanemask_lt; mov.u32 %y, %laneid;"},
};

constexpr uint32_t kThreads = 4096;

std::string kernelText(const Row &row) {
  return R"(
.visible .entry row(.param .u64 in, .param .u64 out) {
  .reg .b32 %a, %b, %c, %d, %x, %y, %t, %n; .reg .f32 %fa, %fb, %fc, %fd, %fx; .reg .pred %p, %q;
  .reg .b16 %h0, %h1; .reg .b64 %l0, %l1, %l2, %in, %out, %o; .reg .f64 %e0, %e1, %e2;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %in, %in;
  cvta.to.global.u64 %out, %out;
  mov.u32 %t, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %x, %tid.x;
  mad.lo.u32 %t, %t, %n, %x;
  mul.wide.u32 %o, %t, 16;
  add.u64 %in, %in, %o;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%in];
  mov.b32 %fa, %a; mov.b32 %fb, %b; mov.b32 %fc, %c; mov.b32 %fd, %d;
  mov.b32 {%h0, %h1}, %a;
  mov.b64 %l0, {%a, %b}; mov.b64 %l1, {%c, %d};
  mov.u32 %x, 0; mov.u32 %y, 0;
  )" + std::string(row.body) +
         R"(
  mul.wide.u32 %o, %t, 8;
  add.u64 %out, %out, %o;
  st.global.v2.u32 [%out], {%x, %y};
  ret;
}
)";
}

/// Input words. Special floats meet each other pairwise; then random bits; then floats of moderate
/// exponents; then halves and small integers.
std::vector<uint32_t> inputWords() {
  const uint32_t special[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000,
                              0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
                              0x7f800001, 0x00000001, 0x807fffff, 0x00800000,
                              0x7f7fffff, 0x3effffff, 0x40b00000, 0x4b7fffff};
  std::vector<uint32_t> words(kThreads * 4);
  Bytes random = patternBytes(words.size() * 4, 42);
  std::memcpy(words.data(), random.data(), random.size());
  for (uint32_t i = 0; i < kThreads; ++i) {
    uint32_t *w = &words[i * 4];
    if (i < 1024) {
      for (uint32_t j = 0; j < 4; ++j)
        w[j] = special[(i >> (j < 2 ? j * 4 : j) ^ (j >= 2 ? i * 7 : 0)) & 15];
    } else if (i >= 2048 && i < 3072) {
      for (uint32_t j = 0; j < 4; ++j) // exponents 117 to 132
        w[j] = (w[j] & 0x807fffff) | ((117 + (w[j] >> 23 & 15)) << 23);
    } else if (i >= 3072) {
      for (uint32_t j = 0; j < 4; ++j)
        w[j] = std::bit_cast<uint32_t>(float(int32_t(w[j] % 2048) - 1024) / 16);
    }
  }
  return words;
}

class CtsArith : public testing::TestWithParam<std::pair<const char *, std::span<const Row>>> {};

TEST_P(CtsArith, ImagesAreWritten) {
  Buffer in(bytesOf(inputWords()));
  for (const Row &row : GetParam().second) {
    SCOPED_TRACE(row.name);
    Buffer out(kThreads * 8, 0xcc);
    Params params;
    params.add(in.address()).add(out.address());
    rt::LaunchShape shape;
    shape.grid = {kThreads / 128, 1, 1};
    shape.block = {128, 1, 1};
    EXPECT_TRUE(runKernel(ptxModule(kernelText(row)), "row", shape, params)) << row.name;
    bool isStreaming = GetParam().second.data() == kStreaming;
    saveImage(std::string(isStreaming ? "streaming_" : "arith_") + row.name, out.read());
  }
}

INSTANTIATE_TEST_SUITE_P(, CtsArith,
                         testing::Values(std::pair{"integer", std::span<const Row>(kInteger)},
                                         std::pair{"float", std::span<const Row>(kFloat)},
                                         std::pair{"convert", std::span<const Row>(kConvert)},
                                         std::pair{"streaming", std::span<const Row>(kStreaming)},
                                         std::pair{"warp", std::span<const Row>(kWarp)}),
                         [](const auto &info) { return std::string(info.param.first); });

} // namespace
} // namespace fp4::cts
