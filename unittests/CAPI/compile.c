/*===- compile.c - The C API from text to checked results ------------------------------------===*
 *
 * Compiles an amax and a GEMM, runs both on the simulator in the way of an embedder (own memory,
 * provided results, dynamic sizes), and calls every function wrongly once.
 *
 *===---------------------------------------------------------------------------------------===*/
#include "fp4-c/Compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kProgram[] =
    "func.func @f(%x: tensor<?x64xbf16> {fp4.name = \"x\"}) -> tensor<f32> {\n"
    "  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>\n"
    "  return %a : tensor<f32>\n"
    "}\n"
    "func.func @q(%x: tensor<?x64xbf16>, %a: tensor<f32>)\n"
    "    -> (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {\n"
    "  %q, %s = fp4.quantize %x amax %a\n"
    "      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}\n"
    "      : (tensor<?x64xbf16>, tensor<f32>) -> (tensor<?x64xf4E2M1FN>,\n"
    "         tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)\n"
    "  return %q, %s : tensor<?x64xf4E2M1FN>,\n"
    "                  tensor<?x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>\n"
    "}\n"
    "func.func @d(%q: tensor<?x64xf4E2M1FN>, %s: tensor<?x4xf8E4M3FN>, %a: tensor<f32>)\n"
    "    -> tensor<?x64xf32> {\n"
    "  %x = fp4.dequantize %q scaled %s amax %a\n"
    "      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}\n"
    "      : (tensor<?x64xf4E2M1FN>, tensor<?x4xf8E4M3FN>, tensor<f32>) -> tensor<?x64xf32>\n"
    "  return %x : tensor<?x64xf32>\n"
    "}\n";

static const char kStrided[] =
    "func.func @f(%x: tensor<?x64xbf16> {fp4.name = \"x\", fp4.strided}) -> tensor<f32> {\n"
    "  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>\n"
    "  return %a : tensor<f32>\n"
    "}\n";

static const char kPlaced[] =
    "func.func @f(%x: tensor<3x64xbf16>) -> (tensor<3x64xbf16> {fp4.name = \"y\", fp4.strided}) {\n"
    "  %h = fp4.hadamard %x {size = 16 : i64, dimension = 1 : i64}\n"
    "      : tensor<3x64xbf16> -> tensor<3x64xbf16>\n"
    "  return %h : tensor<3x64xbf16>\n"
    "}\n";

static void show(const char *what, fp4_error *error) {
  if (!error) {
    printf("%s: ok\n", what);
    return;
  }
  printf("%s: error %d: %s\n", what, (int)fp4_error_get_kind(error), fp4_error_get_message(error));
  if (*fp4_error_get_note(error))
    printf("%s: note: %s\n", what, fp4_error_get_note(error));
  fp4_error_destroy(error);
}

static void require(const char *what, fp4_error *error) {
  int failed = error != NULL;
  show(what, error);
  if (failed)
    exit(1);
}

static void heard(void *context, const char *text) {
  ++*(int *)context;
  printf("diagnostic: %s", text);
}

static uint64_t allocate(void *context, uint64_t bytes, uint64_t stream) {
  uint64_t address = 0;
  (void)stream;
  fp4_error_destroy(fp4_device_allocate((fp4_device *)context, bytes, &address));
  return address;
}

static void release(void *context, uint64_t address, uint64_t stream) {
  (void)stream;
  fp4_error_destroy(fp4_device_free((fp4_device *)context, address));
}

static uint64_t upload(fp4_device *device, const void *bytes, uint64_t size) {
  uint64_t address = 0;
  require("allocate", fp4_device_allocate(device, size, &address));
  require("copy to", fp4_device_copy_to(device, address, bytes, size));
  return address;
}

static fp4_compiler *compiled(const char *text, const char *target) {
  fp4_compiler_options options = {.size = sizeof(options), .target = target};
  fp4_compiler *compiler = NULL;
  require("create", fp4_compiler_create(&options, &compiler));
  require("load", fp4_compiler_load_text(compiler, text, "program.mlir"));
  return compiler;
}

static void misuseCompiler(void) {
  int count = 0;
  fp4_compiler_options options = {
      .size = sizeof(options), .target = "sm_42", .diagnostic = heard, .context = &count};
  fp4_compiler *compiler = NULL;
  require("create", fp4_compiler_create(NULL, &compiler));
  show("a file that is not there", fp4_compiler_load_file(compiler, "/nowhere/x.mlir"));
  show("a phase before a program", fp4_compiler_compile_to(compiler, "fused"));
  printf("ir before a program: '%s'\n", fp4_compiler_get_ir(compiler));
  show("text that does not parse", fp4_compiler_load_text(compiler, "func.func @f(", "bad.mlir"));
  fp4_compiler_destroy(compiler);
  require("create", fp4_compiler_create(&options, &compiler));
  show("an unknown target", fp4_compiler_load_text(compiler, kProgram, "program.mlir"));
  fp4_compiler_destroy(compiler);
  options.target = NULL;
  options.pdl = "some";
  show("an unknown choice of PDL", fp4_compiler_create(&options, &compiler));
  options.pdl = NULL;
  require("create", fp4_compiler_create(&options, &compiler));
  show("an unknown phase", fp4_compiler_compile_to(compiler, "lowered"));
  show("heard elsewhere", fp4_compiler_load_text(compiler, "func.func @f(", "bad.mlir"));
  printf("diagnostics heard: %d\n", count);
  fp4_compiler_destroy(compiler);
  fp4_compiler_destroy(NULL);
}

/* Kernels of an amax and its quantizer that wait for the one before them. */
static int countWaits(const char *pdl) {
  static const char text[] =
      "func.func @f(%x: tensor<64x64xbf16>) -> (tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>) {\n"
      "  %a = fp4.amax %x : tensor<64x64xbf16> -> tensor<f32>\n"
      "  %q, %s = fp4.quantize %x amax %a\n"
      "      {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}\n"
      "      : (tensor<64x64xbf16>, tensor<f32>) -> (tensor<64x64xf4E2M1FN>, "
      "tensor<64x4xf8E4M3FN>)\n"
      "  return %q, %s : tensor<64x64xf4E2M1FN>, tensor<64x4xf8E4M3FN>\n"
      "}\n";
  fp4_compiler_options options = {.size = sizeof(options), .pdl = pdl};
  fp4_compiler *compiler = NULL;
  fp4_kernel_code code;
  int waits = 0;
  require("create", fp4_compiler_create(&options, &compiler));
  require("load", fp4_compiler_load_text(compiler, text, "program.mlir"));
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  for (size_t i = 0; i < fp4_compiler_get_num_kernels(compiler); ++i) {
    require("kernel", fp4_compiler_get_kernel(compiler, i, &code));
    waits += strstr(code.ptx, "griddepcontrol.wait") != NULL;
  }
  fp4_compiler_destroy(compiler);
  return waits;
}

/* A named dimension gets a size, and the manifest says so. */
static void specialize(void) {
  static const char text[] =
      "func.func @f(%x: tensor<?x64xbf16> {fp4.dims = [\"M\", \"K\"]}) -> tensor<f32> {\n"
      "  %a = fp4.amax %x : tensor<?x64xbf16> -> tensor<f32>\n"
      "  return %a : tensor<f32>\n"
      "}\n";
  fp4_compiler *compiler = compiled(text, "sm_90a");
  show("an unknown dimension", fp4_compiler_specialize(compiler, "N", 32));
  fp4_compiler_destroy(compiler);
  compiler = compiled(text, "sm_90a");
  require("specialize", fp4_compiler_specialize(compiler, "K", 128));
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  printf("manifest has 128 columns: %s\n",
         strstr(fp4_compiler_get_manifest(compiler), "[-1,128]") ? "yes" : "no");
  fp4_compiler_destroy(compiler);
}

static void misuseCalls(fp4_executable *executable, const fp4_tensor *x) {
  fp4_tensor wrong = *x, result;
  memset(&result, 0, sizeof(result));
  show("an unknown function", fp4_executable_call(executable, "g", x, 1, &result, 1, NULL));
  show("no function", fp4_executable_call(executable, NULL, x, 1, &result, 1, NULL));
  wrong.element = FP4_F16;
  show("a wrong element", fp4_executable_call(executable, "f", &wrong, 1, &result, 1, NULL));
  wrong = *x, wrong.rank = 9;
  show("a wrong rank", fp4_executable_call(executable, "f", &wrong, 1, &result, 1, NULL));
  wrong = *x, wrong.bytes = 8;
  show("a short buffer", fp4_executable_call(executable, "f", &wrong, 1, &result, 1, NULL));
  wrong = *x, wrong.sizes[1] = -3;
  show("a negative size", fp4_executable_call(executable, "f", &wrong, 1, &result, 1, NULL));
  const fp4_allocator nothing = {0};
  const fp4_call_options options = {sizeof(options), 0, &nothing};
  show("no allocator", fp4_executable_call(executable, "f", x, 1, &result, 1, &options));
}

/* A function that is resolved is called again and again: with the types that it knows, with others
 * that fit, and with some that do not. */
static void callAgain(fp4_executable *executable, const fp4_tensor *x) {
  fp4_function *function = NULL, *same = NULL;
  const fp4_tensor both[2] = {*x, *x};
  fp4_tensor smaller = *x, result;
  show("a function that is not there", fp4_executable_get_function(executable, "g", &function));
  show("one of several", fp4_executable_get_function(executable, "", &function));
  printf("no function is null: %s\n", function ? "no" : "yes");
  require("function f", fp4_executable_get_function(executable, "f", &function));
  require("function f again", fp4_executable_get_function(executable, "f", &same));
  printf("it is the same: %s\n", function == same ? "yes" : "no");
  memset(&result, 0, sizeof(result));
  for (int i = 0; i < 2; ++i)
    require("call the function", fp4_function_call(function, x, 1, &result, 1, NULL));
  require("verify it", fp4_executable_verify(executable, "f", x, 1, &result, 1));
  smaller.sizes[0] = 2;
  require("call it with fewer rows", fp4_function_call(function, &smaller, 1, &result, 1, NULL));
  require("verify fewer rows", fp4_executable_verify(executable, "f", &smaller, 1, &result, 1));
  smaller.sizes[0] = 0;
  smaller.address = smaller.bytes = 0;
  require("call it without rows", fp4_function_call(function, &smaller, 1, &result, 1, NULL));
  require("verify no rows", fp4_executable_verify(executable, "f", &smaller, 1, &result, 1));
  smaller = *x, smaller.sizes[0] = 2;
  smaller.bytes = 8;
  show("a known type, a short buffer",
       fp4_function_call(function, &smaller, 1, &result, 1, NULL));
  show("a known type, two arguments", fp4_function_call(function, both, 2, &result, 1, NULL));
  show("a known type, no result", fp4_function_call(function, x, 1, NULL, 0, NULL));
  result.element = FP4_I64;
  show("a result of another type", fp4_function_call(function, x, 1, &result, 1, NULL));
}

/* Dynamic sizes of arguments must not contradict each other. */
static void dequantize(fp4_device *device, fp4_executable *executable, const fp4_tensor *data,
                       const fp4_tensor *amax) {
  static const uint8_t ones[12] = {56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56, 56};
  fp4_tensor arguments[3] = {*data, *data, *amax}, result;
  arguments[1].address = upload(device, ones, sizeof(ones));
  arguments[1].bytes = sizeof(ones);
  arguments[1].element = FP4_F8E4M3FN;
  arguments[1].sizes[1] = 4;
  memset(&result, 0, sizeof(result));
  require("call d", fp4_executable_call(executable, "d", arguments, 3, &result, 1, NULL));
  require("verify d", fp4_executable_verify(executable, "d", arguments, 3, &result, 1));
  arguments[1].sizes[0] = 2;
  show("too few scales", fp4_executable_call(executable, "d", arguments, 3, &result, 1, NULL));
}

static void run(fp4_program *program) {
  static uint16_t values[3 * 64];
  fp4_device *device = NULL;
  fp4_executable *executable = NULL;
  fp4_tensor x, amax, quantized[2], arguments[2];
  float got = 0;
  require("open", fp4_device_open("sim", NULL, &device));
  printf("device: %s, %s, %s, hardware %d\n", fp4_device_get_name(device),
         fp4_device_get_selector(device), fp4_device_get_target(device),
         (int)fp4_device_is_hardware(device));
  for (int i = 0; i < 3 * 64; ++i)
    values[i] = (uint16_t)(0x3F80 + i % 7);
  values[70] = 0xC0A0; /* -5 */
  memset(&x, 0, sizeof(x));
  x.address = upload(device, values, sizeof(values));
  x.bytes = sizeof(values);
  x.element = FP4_BF16;
  x.rank = 2, x.sizes[0] = 3, x.sizes[1] = 64;
  require("executable", fp4_executable_create(program, device, &executable));

  memset(&amax, 0, sizeof(amax)); /* the call allocates it */
  require("call f", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  require("synchronize", fp4_device_synchronize(device));
  require("copy from", fp4_device_copy_from(device, &got, amax.address, sizeof(got)));
  printf("amax: %g\n", (double)got);
  require("verify f", fp4_executable_verify(executable, "f", &x, 1, &amax, 1));

  arguments[0] = x, arguments[1] = amax;
  memset(quantized, 0, sizeof(quantized));
  require("describe q", fp4_executable_describe(executable, "q", arguments, 2, quantized, 2));
  fp4_tensor described[2] = {{0}};
  require("describe q", fp4_program_describe(program, "q", arguments, 2, described, 2));
  if (memcmp(described, quantized, sizeof(described)) != 0) {
    printf("a program and its executable describe other results\n");
    exit(1);
  }
  for (int i = 0; i < 2; ++i)
    printf("result %d: element %d, layout %d, %d x %d, %d bytes\n", i, (int)quantized[i].element,
           (int)quantized[i].layout, (int)quantized[i].sizes[0], (int)quantized[i].sizes[1],
           (int)quantized[i].bytes);
  for (int i = 0; i < 2; ++i)
    require("allocate", fp4_device_allocate(device, quantized[i].bytes, &quantized[i].address));
  fp4_allocator allocator = {device, allocate, release};
  fp4_call_options options = {sizeof(options), 0, &allocator};
  require("call q", fp4_executable_call(executable, "q", arguments, 2, quantized, 2, &options));
  require("verify q", fp4_executable_verify(executable, "q", arguments, 2, quantized, 2));
  dequantize(device, executable, &quantized[0], &amax);
  got = 1000;
  require("copy to", fp4_device_copy_to(device, amax.address, &got, sizeof(got)));
  show("verify a wrong amax", fp4_executable_verify(executable, "f", &x, 1, &amax, 1));

  callAgain(executable, &x);
  misuseCalls(executable, &x);
  fp4_executable_destroy(executable);
  require("close", fp4_device_close(device));
}

/* The strict check finds reads of what nobody wrote. */
static void hazard(fp4_program *program) {
  fp4_device_options options = {.size = sizeof(options), .check = "strict"};
  static const uint16_t values[64];
  fp4_device *device = NULL;
  fp4_executable *executable = NULL;
  fp4_tensor x = {.bytes = sizeof(values), .element = FP4_BF16, .rank = 2, .sizes = {1, 64}};
  fp4_tensor amax = {0};
  require("open", fp4_device_open("sim", &options, &device));
  require("executable", fp4_executable_create(program, device, &executable));
  require("allocate", fp4_device_allocate(device, x.bytes, &x.address));
  show("an argument that nobody wrote",
       fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  require("copy to", fp4_device_copy_to(device, x.address, values, x.bytes));
  show("written", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  fp4_executable_destroy(executable);
  require("close", fp4_device_close(device));
}

/* Rows that are a part of longer ones, and strides that no kernel can read. */
static void strides(void) {
  static uint16_t values[3 * 80];
  fp4_program *program = NULL;
  fp4_device *device = NULL;
  fp4_executable *executable = NULL;
  fp4_tensor x = {.element = FP4_BF16, .rank = 2, .sizes = {3, 64}, .strides = {80, 1}};
  fp4_tensor amax = {0};
  for (int i = 0; i < 3 * 80; ++i)
    values[i] = i % 80 < 64 ? 0x3F80 : 0xC0A0; /* 1 in the rows, -5 between them */
  fp4_compiler *compiler = compiled(kStrided, "sm_100a");
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  require("program", fp4_compiler_get_program(compiler, &program));
  require("open", fp4_device_open("sim", NULL, &device));
  require("executable", fp4_executable_create(program, device, &executable));
  x.bytes = sizeof(values) - 2 * 16; /* the last row has no gap behind it */
  x.address = upload(device, values, sizeof(values));
  require("call with strides", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  require("verify strides", fp4_executable_verify(executable, "f", &x, 1, &amax, 1));
  amax.strides[0] = 1;
  show("a result with strides", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  amax.strides[0] = 0;
  x.bytes -= 2;
  show("too few bytes", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  show("too few to verify", fp4_executable_verify(executable, "f", &x, 1, &amax, 1));
  x.strides[0] = 68;
  show("strides of 136 bytes", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  x.strides[0] = 56;
  show("rows that overlap", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  x.strides[0] = 80, x.strides[1] = 2;
  show("elements apart", fp4_executable_call(executable, "f", &x, 1, &amax, 1, NULL));
  fp4_executable_destroy(executable);
  fp4_program_destroy(program);
  fp4_compiler_destroy(compiler);
  require("close", fp4_device_close(device));
}

/* A result in the columns of a larger matrix. */
static void stridedResult(void) {
  static uint16_t values[3 * 64], wide[3 * 80];
  fp4_program *program = NULL;
  fp4_device *device = NULL;
  fp4_executable *executable = NULL;
  fp4_tensor x = {.element = FP4_BF16, .rank = 2, .sizes = {3, 64}, .bytes = sizeof(values)};
  fp4_tensor y = {.element = FP4_BF16, .rank = 2, .sizes = {3, 64}, .strides = {80, 1}};
  int between = 0;
  for (int i = 0; i < 3 * 64; ++i)
    values[i] = 0x3F80;
  for (int i = 0; i < 3 * 80; ++i)
    wide[i] = 0x1234;
  fp4_compiler *compiler = compiled(kPlaced, "sm_100a");
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  require("program", fp4_compiler_get_program(compiler, &program));
  require("open", fp4_device_open("sim", NULL, &device));
  require("executable", fp4_executable_create(program, device, &executable));
  x.address = upload(device, values, sizeof(values));
  y.address = upload(device, wide, sizeof(wide));
  y.bytes = sizeof(wide) - 2 * 16;
  require("call", fp4_executable_call(executable, "f", &x, 1, &y, 1, NULL));
  require("verify", fp4_executable_verify(executable, "f", &x, 1, &y, 1));
  require("copy from", fp4_device_copy_from(device, wide, y.address, sizeof(wide)));
  for (int i = 0; i < 3 * 80; ++i)
    between += i % 80 >= 64 && wide[i] != 0x1234;
  printf("written between the rows of a result: %d, stride %d\n", between, (int)y.strides[0]);
  y.bytes -= 2;
  show("a result of too few bytes", fp4_executable_call(executable, "f", &x, 1, &y, 1, NULL));
  y.strides[0] = 68;
  show("a result with strides of 136 bytes",
       fp4_executable_call(executable, "f", &x, 1, &y, 1, NULL));
  fp4_executable_destroy(executable);
  fp4_program_destroy(program);
  fp4_compiler_destroy(compiler);
  require("close", fp4_device_close(device));
}

/* Null handles and places are errors, or nothing. */
static void misuseNull(void) {
  fp4_tensor tensor = {0};
  const fp4_device_options unsized = {.policy = "lazy"};
  fp4_device *device = NULL;
  fp4_compiler *compiler = compiled(kProgram, "sm_100a");
  show("null compiler", fp4_compiler_create(NULL, NULL));
  show("null text", fp4_compiler_load_text(compiler, NULL, "null.mlir"));
  show("null program", fp4_compiler_get_program(compiler, NULL));
  show("null place", fp4_device_open("sim", NULL, NULL));
  show("no size", fp4_device_open("sim", &unsized, &device));
  require("open", fp4_device_open("sim", NULL, &device));
  show("null source", fp4_device_copy_to(device, 0, NULL, 8));
  show("null executable", fp4_executable_create(NULL, device, NULL));
  show("null function", fp4_function_call(NULL, NULL, 0, NULL, 0, NULL));
  show("null call", fp4_executable_call(NULL, "f", &tensor, 1, &tensor, 1, NULL));
  printf("null handles: '%s' '%s' '%s' %d %d\n", fp4_compiler_get_ir(NULL),
         fp4_device_get_name(NULL), fp4_program_get_manifest(NULL),
         (int)fp4_compiler_get_num_kernels(NULL), (int)fp4_device_is_hardware(NULL));
  require("close", fp4_device_close(device));
  show("close nothing", fp4_device_close(NULL));
  fp4_compiler_destroy(compiler);
}

int main(int argc, char **argv) {
  fp4_program *program = NULL;
  fp4_kernel_code code;
  const char *path = argc > 1 ? argv[1] : "c-api.so";
  printf("version %s\n", fp4_version());
  misuseCompiler();
  misuseNull();
  specialize();
  strides();
  stridedResult();
  printf("kernels that wait: %d, %d, %d\n", countWaits("none"), countWaits(NULL),
         countWaits("all"));

  fp4_compiler *compiler = compiled(kProgram, "sm_100a");
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  printf("kernels: %d\n", (int)fp4_compiler_get_num_kernels(compiler));
  require("kernel", fp4_compiler_get_kernel(compiler, 0, &code));
  printf("kernel 0: %s, %s\n", code.module, strncmp(code.ptx, "//", 2) ? "?" : "ptx");
  show("kernel 99", fp4_compiler_get_kernel(compiler, 99, &code));
  require("program", fp4_compiler_get_program(compiler, &program));
  fp4_compiler_destroy(compiler);
  run(program);
  hazard(program);
  fp4_program_destroy(program);

  compiler = compiled(kProgram, "sm_100a");
  require("compile", fp4_compiler_compile_to(compiler, "ptx"));
  require("write", fp4_compiler_write_library(compiler, path));
  fp4_compiler_destroy(compiler);
  require("load library", fp4_program_load(path, &program));
  printf("manifest: %.11s\n", fp4_program_get_manifest(program));
  run(program);
  fp4_program_destroy(program);
  show("load nothing", fp4_program_load("/nowhere/x.so", &program));
  show("open nothing", fp4_device_open("tpu", NULL, &(fp4_device *){NULL}));
  return 0;
}
