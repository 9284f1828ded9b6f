/*===- fp4-c/Dialects.h - The fp4 and pipe dialects in the style of mlir-c -----*- C -*-===*
 *
 * For programs that build MLIR through mlir-c: registration of the dialects and passes, and
 * constructors and getters of their attributes and types. Fp4Attrs.td, PipeTypes.td and
 * docs/reference/semantics.md say what each means. The CMake target is FP4::FP4CDialects, a static
 * library that brings mlir-c and libMLIR.so along: link no other MLIR library, or there are two in
 * the process.
 *
 *   MlirContext context = mlirContextCreate();
 *   mlirDialectHandleLoadDialect(mlirGetDialectHandle__fp4__(), context);
 *   MlirAttribute format = fp4FormatAttrGet(context, mlirStringRefCreateFromCString("nvfp4"));
 *   fp4ScaledTypesGet(format, 256, 1024, mlirAttributeGetNull(), &data, &scales);
 *
 * Operations are built with mlirOperationCreate, and what has no constructor here is read from text
 * with mlirAttributeParseGet. A program that only compiles and calls needs no MLIR: Compiler.h.
 *
 * Enumerators are words, those of the dialect's text. fp4XAttrGet returns the null attribute for an
 * unknown word. A function that ends in GetChecked returns null where a constraint is violated, and
 * emits the error at `location` to MLIR's diagnostic handlers. Getters expect what fp4...IsA accepts.
 *
 *===-----------------------------------------------------------------------------------===*/
#ifndef FP4_C_DIALECTS_H
#define FP4_C_DIALECTS_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------------------===*
 * Registration
 *===----------------------------------------------------------------------------------===*/

/* mlirGetDialectHandle__fp4__ and mlirGetDialectHandle__pipe__ */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Fp4, fp4);
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Pipe, pipe);

/** Adds both dialects, with their models of upstream interfaces (bufferization, tiling). */
MLIR_CAPI_EXPORTED void fp4RegisterDialects(MlirDialectRegistry registry);
/** Adds the upstream dialects that fp4 programs are written in and lowered to, with the
 * translations that the phases up to PTX need. */
MLIR_CAPI_EXPORTED void fp4RegisterUpstreamDialects(MlirDialectRegistry registry);
/** Registers every pass and pipeline of docs/concepts/phases.md, so that
 *  mlirOpPassManagerAddPipeline knows "fp4-fuse" and the others. Once per process is enough; more often
 *  does no harm. */
MLIR_CAPI_EXPORTED void fp4RegisterPasses(void);

/*===----------------------------------------------------------------------------------===*
 * Attributes of the fp4 dialect
 *===----------------------------------------------------------------------------------===*/

/** Enumerations: #fp4.format<nvfp4>, #fp4.scale_layout<tiled_128x4> and others. */
#define FP4_DECLARE_CAPI_ENUM_ATTR(Name)                                                           \
  MLIR_CAPI_EXPORTED bool fp4AttributeIsA##Name(MlirAttribute attribute);                          \
  MLIR_CAPI_EXPORTED MlirAttribute fp4##Name##AttrGet(MlirContext context, MlirStringRef word);    \
  MLIR_CAPI_EXPORTED MlirStringRef fp4##Name##AttrGetValue(MlirAttribute attribute);               \
  MLIR_CAPI_EXPORTED MlirTypeID fp4##Name##AttrGetTypeID(void)

FP4_DECLARE_CAPI_ENUM_ATTR(Format);             /* nvfp4, mxfp4, mxfp6_e2m3, ... */
FP4_DECLARE_CAPI_ENUM_ATTR(ScaleLayout);        /* tiled_128x4; row-major has no attribute */
FP4_DECLARE_CAPI_ENUM_ATTR(Rounding);           /* nearest_even, stochastic */
FP4_DECLARE_CAPI_ENUM_ATTR(Outputs);            /* rowwise, columnwise, both */
FP4_DECLARE_CAPI_ENUM_ATTR(NanPolicy);          /* drop, propagate */
FP4_DECLARE_CAPI_ENUM_ATTR(HadamardArithmetic); /* butterfly, tensor_core */
FP4_DECLARE_CAPI_ENUM_ATTR(Philox);             /* element, transformer_engine */

/** Facts of a format: elements of the data and of the block scales, and elements per scale. */
MLIR_CAPI_EXPORTED MlirType fp4FormatAttrGetDataType(MlirAttribute format);
MLIR_CAPI_EXPORTED MlirType fp4FormatAttrGetScaleType(MlirAttribute format);
MLIR_CAPI_EXPORTED int64_t fp4FormatAttrGetBlockSize(MlirAttribute format);
/** The recipe that holds where a program names none: transformer_engine, ocp_floor. */
MLIR_CAPI_EXPORTED MlirAttribute fp4FormatAttrGetDefaultRecipe(MlirAttribute format);

/** A recipe from its text: a name, then decisions, "transformer_engine, guard = none". */
MLIR_CAPI_EXPORTED bool fp4AttributeIsARecipe(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirAttribute fp4RecipeAttrGetChecked(MlirLocation location, MlirStringRef text);
/** Gives the canonical text to `callback`. Equal recipes have equal texts. */
MLIR_CAPI_EXPORTED void fp4RecipeAttrGetText(MlirAttribute recipe, MlirStringCallback callback,
                                             void *userData);
MLIR_CAPI_EXPORTED MlirTypeID fp4RecipeAttrGetTypeID(void);

/** The steps after a matmul, such as "relu", in their order. */
MLIR_CAPI_EXPORTED bool fp4AttributeIsAEpilogue(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirAttribute fp4EpilogueAttrGetChecked(MlirLocation location, intptr_t numSteps,
                                                           const MlirStringRef *steps);
MLIR_CAPI_EXPORTED intptr_t fp4EpilogueAttrGetNumSteps(MlirAttribute epilogue);
MLIR_CAPI_EXPORTED MlirStringRef fp4EpilogueAttrGetStep(MlirAttribute epilogue, intptr_t position);
MLIR_CAPI_EXPORTED MlirTypeID fp4EpilogueAttrGetTypeID(void);

/** A Hadamard transform as a part of another operation. `roundToBF16` false keeps fp32. */
MLIR_CAPI_EXPORTED bool fp4AttributeIsAHadamard(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirAttribute fp4HadamardAttrGetChecked(MlirLocation location, int64_t size,
                                                           uint64_t signMask,
                                                           MlirStringRef arithmetic,
                                                           bool roundToBF16);
MLIR_CAPI_EXPORTED int64_t fp4HadamardAttrGetSize(MlirAttribute hadamard);
MLIR_CAPI_EXPORTED uint64_t fp4HadamardAttrGetSignMask(MlirAttribute hadamard);
MLIR_CAPI_EXPORTED MlirStringRef fp4HadamardAttrGetArithmetic(MlirAttribute hadamard);
MLIR_CAPI_EXPORTED bool fp4HadamardAttrGetRoundToBF16(MlirAttribute hadamard);
MLIR_CAPI_EXPORTED MlirTypeID fp4HadamardAttrGetTypeID(void);

/** The GPU of a module; 0 SMs are all of it. The attribute of a builtin.module is called
 * "fp4.target". */
MLIR_CAPI_EXPORTED bool fp4AttributeIsATarget(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirAttribute fp4TargetAttrGetChecked(MlirLocation location, MlirStringRef name,
                                                         int64_t sms);
MLIR_CAPI_EXPORTED MlirStringRef fp4TargetAttrGetName(MlirAttribute target);
MLIR_CAPI_EXPORTED int64_t fp4TargetAttrGetSms(MlirAttribute target);
MLIR_CAPI_EXPORTED MlirTypeID fp4TargetAttrGetTypeID(void);

/** The shares of the work of a matmul, #fp4.work<split_k = 4>; it is read from text. */
MLIR_CAPI_EXPORTED bool fp4AttributeIsAWork(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID fp4WorkAttrGetTypeID(void);

/** The kernel that an operation becomes, "fp4.plan"; it is read from text. */
MLIR_CAPI_EXPORTED bool fp4AttributeIsAPlan(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID fp4PlanAttrGetTypeID(void);
/** A case of "dispatch", read from text. */
MLIR_CAPI_EXPORTED bool fp4AttributeIsACase(MlirAttribute attribute);
MLIR_CAPI_EXPORTED MlirTypeID fp4CaseAttrGetTypeID(void);

/*===----------------------------------------------------------------------------------===*
 * Block-scaled matrices: a tensor of data and a tensor of scales
 *===----------------------------------------------------------------------------------===*/

/** The types of the two tensors that stand for a matrix of `rows` x `columns` elements in `format`:
 *  rows x columns of data, and rows x ceil(columns / block) scales. Rows may be
 *  mlirShapedTypeGetDynamicSize(). `layout` is that of the scales, null for row-major. */
MLIR_CAPI_EXPORTED void fp4ScaledTypesGet(MlirAttribute format, int64_t rows, int64_t columns,
                                          MlirAttribute layout, MlirType *data, MlirType *scales);
/** The type of both as one operand of fp4.matmul, which fp4.scaled makes. */
MLIR_CAPI_EXPORTED bool fp4TypeIsAScaled(MlirType type);
MLIR_CAPI_EXPORTED MlirType fp4ScaledTypeGet(MlirAttribute format, MlirType data, MlirType scales);
MLIR_CAPI_EXPORTED MlirAttribute fp4ScaledTypeGetFormat(MlirType scaled);
MLIR_CAPI_EXPORTED MlirType fp4ScaledTypeGetData(MlirType scaled);
MLIR_CAPI_EXPORTED MlirType fp4ScaledTypeGetScales(MlirType scaled);
MLIR_CAPI_EXPORTED MlirTypeID fp4ScaledTypeGetTypeID(void);
/** The #fp4.scale_layout of a ranked tensor type, null where it is row-major. */
MLIR_CAPI_EXPORTED MlirAttribute fp4ScaleLayoutOf(MlirType tensor);
/** Returns `tensor` with `layout`, or row-major where `layout` is null. The error at `location`
 *  says which types have layouts. */
MLIR_CAPI_EXPORTED MlirType fp4WithScaleLayoutChecked(MlirLocation location, MlirType tensor,
                                                      MlirAttribute layout);

/*===----------------------------------------------------------------------------------===*
 * Types of the pipe dialect
 *===----------------------------------------------------------------------------------===*/

MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeGlobal(MlirType type);
MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeTensorMap(MlirType type);
MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeShared(MlirType type);
MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeTmem(MlirType type);
MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeFragment(MlirType type);
MLIR_CAPI_EXPORTED bool fp4TypeIsAPipeChannel(MlirType type);

/** Buffers, boxes and tiles. `layout` is "linear", "swizzle_32B", "swizzle_64B", "swizzle_128B" or
 *  "tiled_128x4". Sizes count elements. */
MLIR_CAPI_EXPORTED MlirType fp4PipeGlobalTypeGetChecked(MlirLocation location, intptr_t rank,
                                                        const int64_t *shape, MlirType elementType,
                                                        MlirStringRef layout);
/** `residue`: the map has a second box for the residue, the rows behind the last whole one. */
MLIR_CAPI_EXPORTED MlirType fp4PipeTensorMapTypeGetChecked(MlirLocation location, intptr_t rank,
                                                           const int64_t *shape,
                                                           MlirType elementType,
                                                           MlirStringRef layout, bool residue);
MLIR_CAPI_EXPORTED MlirType fp4PipeSharedTypeGetChecked(MlirLocation location, intptr_t rank,
                                                        const int64_t *shape, MlirType elementType,
                                                        MlirStringRef layout);
/** `pair`: the tile lies in the tensor memory of two CTAs. */
MLIR_CAPI_EXPORTED MlirType fp4PipeTmemTypeGetChecked(MlirLocation location, intptr_t rank,
                                                      const int64_t *shape, MlirType elementType,
                                                      MlirStringRef layout, bool pair);
/** `kind` is "wgmma" or "mma_sync". */
MLIR_CAPI_EXPORTED MlirType fp4PipeFragmentTypeGetChecked(MlirLocation location, intptr_t rank,
                                                          const int64_t *shape,
                                                          MlirType elementType, MlirStringRef kind);
/** A channel that hands over the tiles of `payload` together. */
MLIR_CAPI_EXPORTED MlirType fp4PipeChannelTypeGetChecked(MlirLocation location, intptr_t numPayload,
                                                         const MlirType *payload);

/** Rank, sizes and elements of every type of the pipe dialect but channels. */
MLIR_CAPI_EXPORTED intptr_t fp4PipeTypeGetRank(MlirType type);
MLIR_CAPI_EXPORTED int64_t fp4PipeTypeGetDimSize(MlirType type, intptr_t dim);
MLIR_CAPI_EXPORTED MlirType fp4PipeTypeGetElementType(MlirType type);
/** Layout of a type of the pipe dialect; empty for fragments and channels. */
MLIR_CAPI_EXPORTED MlirStringRef fp4PipeTypeGetLayout(MlirType type);
MLIR_CAPI_EXPORTED bool fp4PipeTensorMapTypeGetResidue(MlirType type);
MLIR_CAPI_EXPORTED bool fp4PipeTmemTypeGetPair(MlirType type);
MLIR_CAPI_EXPORTED MlirStringRef fp4PipeFragmentTypeGetKind(MlirType type);
MLIR_CAPI_EXPORTED intptr_t fp4PipeChannelTypeGetNumPayload(MlirType type);
MLIR_CAPI_EXPORTED MlirType fp4PipeChannelTypeGetPayload(MlirType type, intptr_t position);

#ifdef __cplusplus
}
#endif
#endif
