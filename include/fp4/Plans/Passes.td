//===- Passes.td - Plans that turn operations into kernels ----------------===//
#ifndef FP4_PLANS_PASSES_TD
#define FP4_PLANS_PASSES_TD

include "mlir/Pass/PassBase.td"

/// A pass that plans: the dialects besides those of fp4 count the instructions of epilogues
/// (lib/Plans/EpilogueWork.h).
class PlanningPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::fp4::Fp4Dialect", "::fp4::pipe::PipeDialect",
                           "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ChooseSplits : PlanningPass<"fp4-choose-splits"> {
  let summary = "Choose the split-K factors of matmuls whose split_k is a policy";
  let description = [{
    **Why.** The factor that is fastest depends on the sizes and on the target, and it decides the
    order of sums, which is the program's. So the pass writes it into the program, before anything
    else.

    **Precondition.** The module has a target (`fp4-set-target`).

    **Postcondition.** No matmul has a policy. `fastest` has become the factor with the fewest
    cycles by the model of the planner, or, where rows are dynamic, one for each range of rows, in
    cases of `dispatch`. Prepacked weights with wgmma have `stream_k` instead where workers that
    share tiles are predicted to take fewer cycles.
    `fixed` has become one factor, so that the bits of a row depend neither on how many rows there
    are nor on the device. A matmul that cannot be split has none.

    ```mlir
    // fp4-opt --fp4-set-target=target=sm_90a --fp4-choose-splits
    !packed = tensor<40x80x4608xi8, #fp4.weight_layout<wgmma>>
    func.func @f(%x: tensor<16x5120xbf16>, %w: !packed) -> tensor<16x5120xbf16> {
      %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
          : (tensor<16x5120xbf16>, !packed) -> tensor<16x5120xbf16>
      return %y : tensor<16x5120xbf16>
    }
    // becomes
    func.func @f(%x: tensor<16x5120xbf16>, %w: !packed) -> tensor<16x5120xbf16> {
      %y = fp4.matmul %x, %w {work = #fp4.work<split_k = 3>}
          : (tensor<16x5120xbf16>, !packed) -> tensor<16x5120xbf16>
      return %y : tensor<16x5120xbf16>
    }
    ```
  }];
}

def PlanKernels : PlanningPass<"fp4-plan-kernels"> {
  let summary = "Decide which kernel each operation becomes";
  let description = [{
    **Why.** Decisions are made once, from the target of the module and a cost model. Lowerings
    choose nothing, and a person or a tuner can override every decision.

    **Precondition.** The module has a target (`fp4-set-target`).

    **Postcondition.** Every operation of the fp4 dialect has a complete plan, `fp4.plan`,
    that fits the operation and the target. Fields that a program wrote are kept; open fields come
    from the option `plans`, and then from the planner. A quantizer of both orientations whose
    columnwise transform runs on tcgen05 is two operations, because it is two kernels. A matmul of
    dynamic sizes without a plan of the user has several, `dispatch`, where its family has them.

    **The tile of a GEMM** is the cheapest by the model of its tensor core (docs/concepts/plans.md).

    ```mlir
    // fp4-opt --fp4-set-target --fp4-plan-kernels
    func.func @amax(%x: tensor<64x32xbf16>) -> tensor<f32> {
      %a = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 128>} : tensor<64x32xbf16> -> tensor<f32>
      return %a : tensor<f32>
    }
    // becomes
    func.func @amax(%x: tensor<64x32xbf16>) -> tensor<f32> {
      %a = fp4.amax %x {fp4.plan = #fp4.plan<reduce_grid, threads = 128, items_per_thread = 4, grid = 4>}
          : tensor<64x32xbf16> -> tensor<f32>
      return %a : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"plans", "plans", "std::string", /*default=*/"",
           "Plans, as inside of #fp4.plan<...> or #fp4.case<...> and separated by semicolons, for "
           "operations whose family is theirs">,
  ];
  let statistics = [
    Statistic<"numPlans", "plans", "Operations that have a plan">,
  ];
}

#endif // FP4_PLANS_PASSES_TD
