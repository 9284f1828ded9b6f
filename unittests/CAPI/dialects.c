/* A program in C11 that builds fp4 and pipe IR through mlir-c and fp4-c/Dialects.h.
 * test/CAPI/dialects.test runs it and reads its output. */

#include "fp4-c/Dialects.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Pass.h"

#include <stdio.h>
#include <stdlib.h>

static MlirContext context;

static MlirStringRef str(const char *text) { return mlirStringRefCreateFromCString(text); }

static void print(MlirStringRef text, void *user) {
  (void)user;
  printf("%.*s", (int)text.length, text.data);
}

static void showAttribute(const char *what, MlirAttribute attribute) {
  printf("%s: ", what);
  if (mlirAttributeIsNull(attribute))
    printf("null");
  else
    mlirAttributePrint(attribute, print, NULL);
  printf("\n");
}

static void showType(const char *what, MlirType type) {
  printf("%s: ", what);
  if (mlirTypeIsNull(type))
    printf("null");
  else
    mlirTypePrint(type, print, NULL);
  printf("\n");
}

static void showWord(const char *what, MlirStringRef word) {
  printf("%s: %.*s\n", what, (int)word.length, word.data);
}

static MlirLogicalResult hear(MlirDiagnostic diagnostic, void *user) {
  (void)user;
  printf("  error: ");
  mlirDiagnosticPrint(diagnostic, print, NULL);
  printf("\n");
  for (intptr_t i = 0; i < mlirDiagnosticGetNumNotes(diagnostic); ++i) {
    printf("  note: ");
    mlirDiagnosticPrint(mlirDiagnosticGetNote(diagnostic, i), print, NULL);
    printf("\n");
  }
  return mlirLogicalResultSuccess();
}

static void require(int condition, const char *what) {
  if (condition)
    return;
  printf("failed: %s\n", what);
  exit(1);
}

/* Every enumeration: a word there and back, and an unknown one. */
#define ENUMERATION(Name, word)                                                                    \
  do {                                                                                             \
    MlirAttribute attribute = fp4##Name##AttrGet(context, str(word));                              \
    require(fp4AttributeIsA##Name(attribute), #Name);                                              \
    require(mlirStringRefEqual(fp4##Name##AttrGetValue(attribute), str(word)), #Name " value");    \
    require(mlirTypeIDEqual(mlirAttributeGetTypeID(attribute), fp4##Name##AttrGetTypeID()),        \
            #Name " type id");                                                                     \
    require(!fp4AttributeIsA##Name(mlirUnitAttrGet(context)), #Name " of another kind");           \
    require(mlirAttributeIsNull(fp4##Name##AttrGet(context, str("neither"))), #Name " unknown");   \
    showAttribute(#Name, attribute);                                                               \
  } while (0)

static void enumerations(void) {
  ENUMERATION(Format, "mxfp4");
  ENUMERATION(ScaleLayout, "tiled_128x4");
  ENUMERATION(Rounding, "stochastic");
  ENUMERATION(Outputs, "both");
  ENUMERATION(NanPolicy, "propagate");
  ENUMERATION(HadamardArithmetic, "tensor_core");
  ENUMERATION(Philox, "transformer_engine");
}

static void recipes(MlirLocation location) {
  MlirAttribute recipe = fp4RecipeAttrGetChecked(location, str("transformer_engine, guard = none"));
  require(fp4AttributeIsARecipe(recipe), "recipe");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(recipe), fp4RecipeAttrGetTypeID()), "recipe id");
  showAttribute("recipe", recipe);
  printf("recipe text: ");
  fp4RecipeAttrGetText(fp4RecipeAttrGetChecked(location, str("ocp_floor, exponent = ceil")), print,
                       NULL);
  printf("\n");
  showAttribute("unknown recipe", fp4RecipeAttrGetChecked(location, str("best")));
}

static void parts(MlirLocation location) {
  const MlirStringRef relu = str("relu"), gelu = str("gelu");
  MlirAttribute epilogue = fp4EpilogueAttrGetChecked(location, 1, &relu);
  require(fp4AttributeIsAEpilogue(epilogue), "epilogue");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(epilogue), fp4EpilogueAttrGetTypeID()),
          "epilogue id");
  printf("epilogue of %d: ", (int)fp4EpilogueAttrGetNumSteps(epilogue));
  showWord("step 0", fp4EpilogueAttrGetStep(epilogue, 0));
  showAttribute("unknown step", fp4EpilogueAttrGetChecked(location, 1, &gelu));

  MlirAttribute hadamard =
      fp4HadamardAttrGetChecked(location, 32, 0xBEEF, str("tensor_core"), true);
  require(fp4AttributeIsAHadamard(hadamard), "hadamard");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(hadamard), fp4HadamardAttrGetTypeID()),
          "hadamard id");
  printf("hadamard %d %#x %d ", (int)fp4HadamardAttrGetSize(hadamard),
         (unsigned)fp4HadamardAttrGetSignMask(hadamard), fp4HadamardAttrGetRoundToBF16(hadamard));
  showWord("arithmetic", fp4HadamardAttrGetArithmetic(hadamard));
  showAttribute("a size of 17", fp4HadamardAttrGetChecked(location, 17, 0, str("butterfly"), true));
  showAttribute("an unknown arithmetic",
                fp4HadamardAttrGetChecked(location, 16, 0, str("exact"), true));

  MlirAttribute target = fp4TargetAttrGetChecked(location, str("sm_100a"), 66);
  require(fp4AttributeIsATarget(target), "target");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(target), fp4TargetAttrGetTypeID()), "target id");
  printf("%d of ", (int)fp4TargetAttrGetSms(target));
  showWord("target", fp4TargetAttrGetName(target));
  showAttribute("an unknown target", fp4TargetAttrGetChecked(location, str("sm_42"), 0));

  MlirAttribute plan =
      mlirAttributeParseGet(context, str("#fp4.plan<tile_gemm, tile = [128, 64, 256]>"));
  require(fp4AttributeIsAPlan(plan) && !fp4AttributeIsAPlan(target), "plan");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(plan), fp4PlanAttrGetTypeID()), "plan id");
  MlirAttribute one =
      mlirAttributeParseGet(context, str("#fp4.case<m = [1, 16], split_k = 2 : tile_gemm>"));
  require(fp4AttributeIsACase(one) && !fp4AttributeIsAPlan(one), "case");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(one), fp4CaseAttrGetTypeID()), "case id");
}

static void work(void) {
  MlirAttribute split = mlirAttributeParseGet(context, str("#fp4.work<split_k = 4>"));
  require(fp4AttributeIsAWork(split) && !fp4AttributeIsAPlan(split), "work");
  require(mlirTypeIDEqual(mlirAttributeGetTypeID(split), fp4WorkAttrGetTypeID()), "work id");
}

static void scaled(MlirLocation location) {
  MlirAttribute format = fp4FormatAttrGet(context, str("nvfp4"));
  MlirAttribute tiled = fp4ScaleLayoutAttrGet(context, str("tiled_128x4"));
  MlirType data, scales;
  showType("data type", fp4FormatAttrGetDataType(format));
  showType("scale type", fp4FormatAttrGetScaleType(format));
  printf("block: %d\n", (int)fp4FormatAttrGetBlockSize(format));
  showAttribute("default recipe", fp4FormatAttrGetDefaultRecipe(format));
  fp4ScaledTypesGet(format, mlirShapedTypeGetDynamicSize(), 72, mlirAttributeGetNull(), &data,
                    &scales);
  showType("data", data);
  showType("scales", scales);
  showAttribute("no layout", fp4ScaleLayoutOf(scales));
  MlirType swizzled = fp4WithScaleLayoutChecked(location, scales, tiled);
  showType("swizzled", swizzled);
  showAttribute("its layout", fp4ScaleLayoutOf(swizzled));
  require(
      mlirTypeEqual(fp4WithScaleLayoutChecked(location, swizzled, mlirAttributeGetNull()), scales),
      "back to row-major");
  MlirType bundle = fp4ScaledTypeGet(format, data, swizzled);
  require(fp4TypeIsAScaled(bundle) && !fp4TypeIsAScaled(data), "scaled");
  require(mlirTypeIDEqual(mlirTypeGetTypeID(bundle), fp4ScaledTypeGetTypeID()), "scaled id");
  require(mlirTypeEqual(fp4ScaledTypeGetData(bundle), data) &&
              mlirTypeEqual(fp4ScaledTypeGetScales(bundle), swizzled) &&
              mlirAttributeEqual(fp4ScaledTypeGetFormat(bundle), format),
          "parts of a bundle");
  showType("bundle", bundle);
  showType("data with a layout", fp4WithScaleLayoutChecked(location, data, tiled));
}

static void pipe(MlirLocation location) {
  const int64_t shape[] = {128, 256}, block[] = {128, 4}, tile[] = {64, 256}, odd[] = {128, 33};
  MlirType f32 = mlirF32TypeGet(context), f4 = mlirTypeParseGet(context, str("f4E2M1FN"));
  MlirType e4m3 = mlirFloat8E4M3FNTypeGet(context);
  MlirStringRef swizzle = str("swizzle_128B"), linear = str("linear");
  MlirType global = fp4PipeGlobalTypeGetChecked(location, 2, shape, f4, linear);
  MlirType map = fp4PipeTensorMapTypeGetChecked(location, 2, shape, f4, swizzle, true);
  MlirType shared = fp4PipeSharedTypeGetChecked(location, 2, shape, f4, swizzle);
  MlirType tmem = fp4PipeTmemTypeGetChecked(location, 2, shape, f32, linear, false);
  MlirType fragment = fp4PipeFragmentTypeGetChecked(location, 2, tile, f32, str("wgmma"));
  const MlirType payload[] = {
      shared, fp4PipeSharedTypeGetChecked(location, 2, block, e4m3, str("tiled_128x4"))};
  MlirType channel = fp4PipeChannelTypeGetChecked(location, 2, payload);
  require(fp4TypeIsAPipeGlobal(global) && !fp4TypeIsAPipeGlobal(map), "global");
  require(fp4TypeIsAPipeTensorMap(map) && fp4TypeIsAPipeShared(shared), "tensor map, shared");
  require(fp4PipeTensorMapTypeGetResidue(map), "residue");
  require(fp4TypeIsAPipeTmem(tmem) && !fp4PipeTmemTypeGetPair(tmem), "tmem");
  require(fp4TypeIsAPipeFragment(fragment) && fp4TypeIsAPipeChannel(channel), "channel");
  showType("global", global);
  showType("tensor map", map);
  showType("tmem", tmem);
  showType("fragment", fragment);
  showType("channel", channel);
  printf("shared: %d x %d\n", (int)fp4PipeTypeGetDimSize(shared, 0),
         (int)fp4PipeTypeGetDimSize(shared, fp4PipeTypeGetRank(shared) - 1));
  showType("its element", fp4PipeTypeGetElementType(shared));
  showWord("its layout", fp4PipeTypeGetLayout(shared));
  showWord("kind", fp4PipeFragmentTypeGetKind(fragment));
  require(fp4PipeChannelTypeGetNumPayload(channel) == 2 &&
              mlirTypeEqual(fp4PipeChannelTypeGetPayload(channel, 1), payload[1]),
          "payload");
  showType("an odd row", fp4PipeSharedTypeGetChecked(location, 2, odd, f4, swizzle));
  showType("an unknown layout",
           fp4PipeSharedTypeGetChecked(location, 2, shape, f4, str("swizzle_7B")));
}

/* A program from text, changed by a pass of fp4 and through the API, and verified. */
static void program(void) {
  const char *text = "func.func @f(%x: tensor<3x64xbf16>) -> tensor<3x64xbf16> {\n"
                     "  %a = fp4.hadamard %x : tensor<3x64xbf16> -> tensor<3x64xbf16>\n"
                     "  return %a : tensor<3x64xbf16>\n"
                     "}\n";
  MlirModule module = mlirModuleCreateParse(context, str(text));
  require(!mlirModuleIsNull(module), "parse");
  MlirOperation op = mlirModuleGetOperation(module);
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirOpPassManager nested = mlirPassManagerGetAsOpPassManager(passes);
  require(mlirLogicalResultIsSuccess(mlirOpPassManagerAddPipeline(
              nested, str("fp4-set-target{target=sm_90a},fp4-check-program"), print, NULL)),
          "pipeline");
  require(mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(passes, op)), "run");
  mlirPassManagerDestroy(passes);
  mlirOperationPrint(op, print, NULL);
  printf("\n");
  const MlirStringRef name = str("fp4.target");
  showWord("target of the module", fp4TargetAttrGetName(mlirOperationGetAttributeByName(op, name)));
  mlirOperationSetAttributeByName(op, name, mlirUnitAttrGet(context));
  require(!mlirOperationVerify(op), "a target that is none");
  mlirModuleDestroy(module);
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  fp4RegisterDialects(registry);
  fp4RegisterUpstreamDialects(registry);
  fp4RegisterPasses();
  fp4RegisterPasses();
  context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__fp4__(), context);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__pipe__(), context);
  mlirContextLoadAllAvailableDialects(context);
  mlirContextAttachDiagnosticHandler(context, hear, NULL, NULL);
  MlirLocation location = mlirLocationFileLineColGet(context, str("dialects.c"), 1, 1);
  enumerations();
  recipes(location);
  parts(location);
  work();
  scaled(location);
  pipe(location);
  program();
  mlirContextDestroy(context);
  return 0;
}
