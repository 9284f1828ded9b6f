//===- Fp4Dialect.td - The dialect that says what a kernel computes -------===//
#ifndef FP4_DIALECT_FP4_IR_FP4DIALECT_TD
#define FP4_DIALECT_FP4_IR_FP4DIALECT_TD

include "mlir/IR/DialectBase.td"

def Fp4_Dialect : Dialect {
  let name = "fp4";
  let cppNamespace = "::fp4";
  let summary = "4-bit block-scaled tensors: quantization, scale layouts, matmuls";
  let description = [{
    Operations have value semantics on ranked tensors with the builtin element types `f4E2M1FN`,
    `f8E4M3FN` and `f8E8M0FNU`. A block-scaled tensor is a pair of tensors: the data, and one scale
    per block of consecutive elements along the contraction axis. The matmul takes the pair as one
    operand of type `!fp4.scaled`. The layout of the scales in memory is part of their type (the tensor encoding `#fp4.scale_layout`), so a matmul with scales in the
    wrong layout does not verify.

    Every operation has one exact meaning, written as a formula in its description and computed by
    the reference in lib/Numerics. The `recipe` attribute names the order of the fp32 operations, in
    which libraries differ.
  }];
  // fp4.name and fp4.dims: see docs/reference/semantics.md.
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  // Canonicalizations that absorb tensor.cast create it for the results.
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  // Scales that are constants change their layout when the program is compiled.
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 0; // parseAttribute knows former names
  // fp4.target: see Fp4Target.td; fp4.plan: see Fp4Plan.td.
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The target of a module, a TargetAttr.
    static constexpr ::llvm::StringLiteral kTargetAttr = "fp4.target";
    /// The kernel that an operation becomes, a PlanAttr.
    static constexpr ::llvm::StringLiteral kPlanAttr = "fp4.plan";
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // FP4_DIALECT_FP4_IR_FP4DIALECT_TD
