/*===- HandLibrary.c - A library as the compiler emits them, written by hand ----------------===*
 *
 * Host code on the C ABI, one small PTX module and a manifest: what the tests of the runner and of
 * fp4-run load. Each function shows one thing that can happen.
 *
 *===------------------------------------------------------------------------------------===*/
#include "fp4-c/Runtime.h"

#include <stddef.h>

typedef struct {
  void *allocated, *aligned;
  int64_t offset;
} Scalar;

typedef struct {
  void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} Matrix;

/* The largest |x| of `count` bf16 values, plus `error`: one warp. */
static const char kPtx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry amax(.param .u64 x, .param .u64 out, .param .u32 count, .param .f32 error) {\n"
    "  .reg .b16 %h; .reg .b32 %lane, %i, %n, %v, %best; .reg .f32 %f, %e; .reg .b64 %x, %out, "
    "%p;\n"
    "  .reg .pred %done;\n"
    "  ld.param.u64 %x, [x]; cvta.to.global.u64 %x, %x;\n"
    "  ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;\n"
    "  ld.param.u32 %n, [count]; ld.param.f32 %e, [error];\n"
    "  mov.u32 %lane, %tid.x; mov.u32 %i, %lane; mov.u32 %best, 0;\n"
    "LOOP:\n"
    "  setp.ge.u32 %done, %i, %n;\n"
    "  @%done bra REDUCE;\n"
    "  mul.wide.u32 %p, %i, 2; add.u64 %p, %x, %p;\n"
    "  ld.global.u16 %h, [%p]; cvt.u32.u16 %v, %h;\n"
    "  and.b32 %v, %v, 32767; max.u32 %best, %best, %v;\n"
    "  add.u32 %i, %i, 32;\n"
    "  bra LOOP;\n"
    "REDUCE:\n"
    "  redux.sync.max.u32 %best, %best, 0xffffffff;\n"
    "  setp.ne.u32 %done, %lane, 0;\n"
    "  @%done bra END;\n"
    "  shl.b32 %best, %best, 16; mov.b32 %f, %best; add.f32 %f, %f, %e;\n"
    "  st.global.f32 [%out], %f;\n"
    "END:\n"
    "  ret;\n}\n";

static const fp4rt_module kModule = {"amax_amax_0", "sm_90", kPtx, sizeof(kPtx) - 1, NULL, 0};

static void launchAmax(void **args, uint32_t extra, float error) {
  Scalar *result = args[0];
  const Matrix *x = args[1];
  uint32_t count = (uint32_t)(x->sizes[0] * x->sizes[1]) + extra;
  void *out = fp4rt_alloc_result(0, 4);
  void *params[] = {(void *)&x->aligned, &out, &count, &error};
  fp4rt_launch(&kModule, "amax", 1, 1, 1, 32, 1, 1, 0, params, 4);
  result->allocated = result->aligned = out;
  result->offset = 0;
}

int32_t fp4_entry_amax(void **args) {
  launchAmax(args, 0, 0);
  return 0;
}

/* A wrong result. */
int32_t fp4_entry_wrong(void **args) {
  launchAmax(args, 0, 1);
  return 0;
}

/* Reads far behind its argument. */
int32_t fp4_entry_overrun(void **args) {
  launchAmax(args, 1u << 20, 0);
  return 0;
}

/* A copy whose rows are 64 bytes longer than its type: the runner packs them. */
int32_t fp4_entry_copy(void **args) {
  Matrix *result = args[0];
  const Matrix *x = args[1];
  uint64_t width = (uint64_t)x->sizes[1] * 2, pitch = width + 64, rows = (uint64_t)x->sizes[0];
  void *out = fp4rt_alloc_result(0, rows * pitch), *scratch = fp4rt_alloc(rows * pitch);
  fp4rt_memset(scratch, 0xff, rows * pitch);
  fp4rt_memcpy_2d(scratch, pitch, x->aligned, width, width, rows);
  fp4rt_memcpy_2d(out, pitch, scratch, pitch, width, rows);
  fp4rt_free(scratch);
  *result = *x;
  result->allocated = result->aligned = out;
  result->strides[0] = (int64_t)(pitch / 2);
  return 0;
}

/* The host code's own check fails; what follows must do nothing. */
int32_t fp4_entry_refuse(void **args) {
  fp4rt_fail("size 3 of 'x' must be a multiple of 16", "pad it");
  fp4rt_fail("a second failure", NULL);
  launchAmax(args, 0, 0);
  return 0;
}

#define AMAX_FUNCTION(name)                                                                        \
  "{\"name\":\"" name "\",\"symbol\":\"fp4_entry_" name "\","                                      \
  "\"arguments\":[{\"name\":\"x\",\"shape\":[-1,64],\"type\":\"bf16\",\"layout\":\"linear\"}],"    \
  "\"results\":[{\"name\":\"amax\",\"shape\":[],\"type\":\"f32\",\"layout\":\"linear\"}],"         \
  "\"program\":[{\"op\":\"fp4.amax\",\"operands\":[\"a0\"],\"results\":[\"v0\"],"                  \
  "\"result_types\":[{\"shape\":[],\"type\":\"f32\",\"layout\":\"linear\"}],\"attributes\":{}}],"  \
  "\"returns\":[\"v0\"]},"

const char fp4_manifest[] =
    "{\"schema\":1,\"compiler\":\"by hand\",\"target\":\"sm_90a\",\"functions\":[" AMAX_FUNCTION(
        "amax") AMAX_FUNCTION("wrong") AMAX_FUNCTION("overrun") AMAX_FUNCTION("refuse")
        AMAX_FUNCTION("missing") "{\"name\":\"copy\",\"symbol\":\"fp4_entry_copy\","
                                 "\"arguments\":[{\"name\":\"x\",\"shape\":[-1,48],\"type\":"
                                 "\"bf16\",\"layout\":\"linear\"}],"
                                 "\"results\":[{\"name\":\"y\",\"shape\":[-1,48],\"type\":\"bf16\","
                                 "\"layout\":\"linear\"}],"
                                 "\"program\":[],\"returns\":[\"a0\"]}],"
                                 "\"kernels\":[{\"module\":\"amax_amax_0\",\"name\":\"amax\","
                                 "\"registers\":20,\"ptx_bytes\":1}]}";
