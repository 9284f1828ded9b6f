//===- Passes.td - Passes that prepare a program for the phases -----------===//
#ifndef FP4_PIPELINES_PASSES_TD
#define FP4_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpecializeDims : Pass<"fp4-specialize-dims", "::mlir::ModuleOp"> {
  let summary = "Give named dimensions of function arguments other sizes";
  let description = [{
    **Why.** Arguments name their dimensions with the attribute `fp4.dims` (an empty name for those
    that stay, `M/16` for as many blocks of 16 as M needs); this pass replaces the sizes of the
    names it is given and infers all types anew.

    **Precondition.** Functions are straight-line code of fp4 operations. A dynamic dimension stays
    dynamic: its size is what the caller passes.

    **Postcondition.** Every named static dimension has the size asked for, and results
    follow; the verifiers of the operations judge whether the program is still legal.

    ```mlir
    // fp4-opt --fp4-specialize-dims="dims=K=64,N=8"
    func.func @f(%w: tensor<512x1024xbf16> {fp4.dims = ["N", "K"]}) -> tensor<f32> {
      %amax = fp4.amax %w : tensor<512x1024xbf16> -> tensor<f32>
      return %amax : tensor<f32>
    }
    // becomes
    func.func @f(%w: tensor<8x64xbf16> {fp4.dims = ["N", "K"]}) -> tensor<f32> {
      %amax = fp4.amax %w : tensor<8x64xbf16> -> tensor<f32>
      return %amax : tensor<f32>
    }
    ```
  }];
  let options = [
    ListOption<"dims", "dims", "std::string", "Sizes as NAME=SIZE, separated by commas">
  ];
}

def CheckProgram : Pass<"fp4-check-program", "::mlir::ModuleOp"> {
  let summary = "Reject what later passes would lose or misread";
  let description = [{
    **Why.** `tensor.cast` from row-major to tiled scales verifies, and would pass scales in the
    wrong order. Later passes would drop nested modules and `ub.poison`.

    **Postcondition.** Operations outside of the fp4 dialect pass tiled scales on unchanged;
    there is one module and no poisoned tensor. The program is unchanged.

    ```mlir
    // fp4-opt --fp4-check-program
    !tiled = tensor<128x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    func.func @f(%s: tensor<128x4xf8E4M3FN>) -> !tiled {
      // expected-error @+2 {{must not read or make scales in layout #fp4.scale_layout<tiled_128x4>}}
      // expected-note @+1 {{fp4.swizzle_scales makes them of row-major scales}}
      %t = tensor.cast %s : tensor<128x4xf8E4M3FN> to !tiled
      return %t : !tiled
    }
    ```
  }];
}

def SetTarget : Pass<"fp4-set-target", "::mlir::ModuleOp"> {
  let summary = "Say once which GPU the module is compiled for";
  let description = [{
    **Why.** Every pass reads the target from the module, so that no two of them can disagree.

    **Postcondition.** The module has the attribute `fp4.target`. A module that has one
    keeps it; asking for another is an error.

    ```mlir
    // fp4-opt --fp4-set-target="target=sm_90a"
    module {
    }
    // becomes
    module attributes {fp4.target = #fp4.target<sm_90a>} {
    }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"",
           "Name of the target table; the module's own where it has one, else sm_100a">,
    Option<"sms", "sms", "unsigned", "0",
           "SMs that grids of tensor core kernels fill; 0: all of the target's">,
    Option<"device", "device", "std::string", /*default=*/"",
           "Product of the target that plans are for, such as h200; the module's own, else all">,
  ];
  let dependentDialects = ["::fp4::Fp4Dialect"];
}

def Upgrade : Pass<"fp4-upgrade"> {
  let summary = "Rewrite former spellings of fp4 operations";
  let description = [{
    **Why.** Programs of the last release still compile. Tools and pipelines run this pass first.

    **Postcondition.** There is no `fp4.blockscaled_matmul`. The first of them is reported in a
    warning. Programs without one are unchanged.

    ```mlir
    // fp4-opt --fp4-upgrade
    !data = tensor<128x256xf4E2M1FN>
    !scales = tensor<128x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
    func.func @f(%a: !data, %s: !scales) -> tensor<128x128xf32> {
      %y = fp4.blockscaled_matmul %a scaled %s, %a scaled %s {format = #fp4.format<mxfp4>}
          : (!data, !scales, !data, !scales) -> tensor<128x128xf32>
      return %y : tensor<128x128xf32>
    }
    // becomes
    func.func @f(%a: !data, %s: !scales) -> tensor<128x128xf32> {
      %0 = fp4.scaled %a, %s : !fp4.scaled<mxfp4, !data, !scales>
      %1 = fp4.scaled %a, %s : !fp4.scaled<mxfp4, !data, !scales>
      %y = fp4.matmul %0, %1
          : (!fp4.scaled<mxfp4, !data, !scales>, !fp4.scaled<mxfp4, !data, !scales>)
          -> tensor<128x128xf32>
      return %y : tensor<128x128xf32>
    }
    ```
  }];
}

def CheckTarget : Pass<"fp4-check-target", "::mlir::ModuleOp"> {
  let summary = "Reject operations that the target has no instructions for";
  let description = [{
    **Why.** A user learns which operation the target does not support before any lowering starts.

    **Postcondition.** The module's target has a route for each `fp4.matmul`
    (docs/reference/routes.md). The program is unchanged.

    ```mlir
    // fp4-opt --fp4-check-target
    !data = tensor<128x128xf4E2M1FN>
    !scales = tensor<128x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    !operand = !fp4.scaled<nvfp4, !data, !scales>
    module attributes {fp4.target = #fp4.target<sm_90a>} {
      func.func @f(%a: !data, %s: !scales) -> tensor<128x128xf32> {
        %x = fp4.scaled %a, %s : !operand
        // expected-error @+2 {{target 'sm_90a' has no GEMMs of elements of 4 bits in instructions of K = 96}}
        // expected-note @+1 {{targets that have them: sm_103a}}
        %y = fp4.matmul %x, %x {arithmetic = #fp4.matmul_arithmetic<tensor_core_k96>} : (!operand, !operand) -> tensor<128x128xf32>
        return %y : tensor<128x128xf32>
      }
    }
    ```
  }];
}

#endif // FP4_PIPELINES_PASSES_TD
