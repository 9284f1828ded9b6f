//===- Fp4Types.td - Block-scaled tensors ---------------------------------===//
#ifndef FP4_DIALECT_FP4_IR_FP4TYPES_TD
#define FP4_DIALECT_FP4_IR_FP4TYPES_TD

include "fp4/Dialect/Fp4/IR/Fp4Attrs.td"

def Fp4_ScaledType : TypeDef<Fp4_Dialect, "Scaled"> {
  let mnemonic = "scaled";
  let summary = "data and their block scales, as one operand of a matmul";
  let description = [{
    The format, the tensor of the data and the tensor of the scales. `fp4.scaled` makes a value of
    this type of two tensors. No memory holds such a value: `fp4.matmul` reads the two tensors, and
    functions take and return tensors.

    ```mlir
    !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
    ```
  }];
  let parameters = (ins EnumParameter<Fp4_Format>:$format,
                        "::mlir::RankedTensorType":$data, "::mlir::RankedTensorType":$scales);
  let assemblyFormat = "`<` $format `,` $data `,` $scales `>`";
}

#endif // FP4_DIALECT_FP4_IR_FP4TYPES_TD
