//===- Passes.td - Passes on fp4 operations -------------------------------===//
#ifndef FP4_DIALECT_FP4_TRANSFORMS_PASSES_TD
#define FP4_DIALECT_FP4_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Fuse : Pass<"fp4-fuse"> {
  let summary = "Merge operations of the quantization family that read the same tensor";
  let description = [{
    **Why.** Each operation of a program would become a kernel, and the time of quantizing depends
    on how often a tensor is read.

    **Precondition.** None. Only operations of one block on one SSA value are merged, so helpers
    should be inlined and common subexpressions eliminated.

    **Postcondition.** No bit of any result has changed. In this order:

    1. `fp4.hadamard` whose every use is an `fp4.amax` or an `fp4.quantize` with blocks along the
       dimension of the transform is gone. Amaxes are `fp4.hadamard_amax` of its input, quantizers
       have attribute `hadamard` (rowwise) or `columnwise_hadamard` (columnwise). A transform that
       something else reads stays, and only an `fp4.amax` of its input and of its result are one
       `fp4.hadamard_amax`.
    2. A rowwise and a columnwise `fp4.quantize` of one tensor that agree in format, recipe, block,
       rounding and random numbers are one with `outputs` both.
    3. Scales whose only use is `fp4.swizzle_scales` are written in layout tiled_128x4.
    4. An elementwise linalg.generic that alone reads an `fp4.matmul` becomes its
       epilogue region (`fp4-generalize-elementwise` makes such operations). Two matmuls of one lhs
       that only this operation reads, as in a gated unit, become one dual GEMM.
    5. An `fp4.quantize` of the elements of a matmul whose amax is known before the matmul, and
       an `fp4.amax` of them, are results of the matmul. Elements that nothing else reads are none.
    6. Operations before a rowwise `fp4.quantize`, an `fp4.amax`, an elementwise linalg.generic or a
       reduction of rows, of which one reduces rows (the mean of a norm, the sum of a softmax), have the
       attribute `fp4.prologue`: one kernel computes them all while a row is in registers. A result
       that something behind that kernel reads has the value "stored", or "beside" where the chain
       does not read it, and the kernel writes it too.
    7. An elementwise linalg.generic that only `fp4.quantize` and `fp4.amax` read has the attribute
       `fp4.prologue`: their kernels load its inputs and compute it, and its result is not stored.

    A missed remark of category `fp4-fuse` at the operation says why a candidate does not fire:
    `fp4-opt --remarks-filter-missed=fp4-fuse`, `fp4-runner --remarks`. A passed remark says what
    fired.

    The activations of a linear layer, as TransformerEngine quantizes them for training, are seven
    operations that become two:

    ```mlir
    // fp4-opt --fp4-fuse
    func.func @activations(%x: tensor<256x512xbf16>)
        -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
            tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
      %ax = fp4.amax %x : tensor<256x512xbf16> -> tensor<f32>
      %q, %s = fp4.quantize %x amax %ax
          {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
          : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN>)
      %st = fp4.swizzle_scales %s
          : tensor<256x32xf8E4M3FN> -> tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
      %y = fp4.hadamard %x {dimension = 0 : i64} : tensor<256x512xbf16> -> tensor<256x512xbf16>
      %ay = fp4.amax %y : tensor<256x512xbf16> -> tensor<f32>
      %qt, %t = fp4.quantize %y amax %ay
          {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
           outputs = #fp4.outputs<columnwise>}
          : (tensor<256x512xbf16>, tensor<f32>) -> (tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>)
      %tt = fp4.swizzle_scales %t
          : tensor<512x16xf8E4M3FN> -> tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
      return %q, %st, %qt, %tt
          : tensor<256x512xf4E2M1FN>, tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
            tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
    }
    // becomes
    ...
      %before, %after = fp4.hadamard_amax %x {dimension = 0 : i64} : ...
      %q, %s, %t:2 = fp4.quantize %x amax %before columnwise_amax %after
          {columnwise_hadamard = #fp4.hadamard<size = 16, sign_mask = 0xD7E8>, ...} : ...
      return %q, %s, %t#0, %t#1 : ...
    ```
  }];
  let options = [
    ListOption<"fusions", "fusions", "std::string",
               "The fusions to do, of attention, amax, transform (with amax), orientations, layout, "
               "epilogue, results, rows and prologue; all when empty">
  ];
  let statistics = [
    Statistic<"numHadamardAmaxes", "hadamard-amaxes", "fp4.hadamard_amax operations created">,
    Statistic<"numTransforms", "transforms", "Transforms that moved into a quantizer">,
    Statistic<"numPairs", "pairs", "Rowwise and columnwise quantizers that became one">,
    Statistic<"numEpilogues", "epilogues", "Elementwise operations that moved into a matmul">,
    Statistic<"numResults", "results", "Quantizers and amaxes that moved into a matmul">,
    Statistic<"numRowKernels", "row-kernels", "Kernels that compute operations before them by rows">,
    Statistic<"numPrologues", "prologues", "Elementwise operations that their readers compute">,
    Statistic<"numTiledScales", "tiled-scales", "Scales written in the layout of their reader">,
  ];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::tensor::TensorDialect"];
}

def GeneralizeElementwise : Pass<"fp4-generalize-elementwise"> {
  let summary = "Make few linalg.generic of upstream elementwise operations";
  let description = [{
    **Why.** Each elementwise operation behind a matmul would be a kernel that reads and writes
    whole tensors.

    **Precondition.** None.

    **Postcondition.** Operations of arith and math on tensors of f32, bf16 and f16, and
    named operations of linalg that are elementwise, are linalg.generic. One that only another one
    reads has gone into it, with every rounding that it had. Constants that are one number are
    numbers of a region. Slices and concatenations of columns are index expressions of the
    operations beside them. Operations without an elementwise step stay as they were.

    ```mlir
    // fp4-opt --fp4-generalize-elementwise
    func.func @f(%y: tensor<8x4xf32>, %x: tensor<8x4xbf16>) -> tensor<8x4xbf16> {
      %wide = arith.extf %x : tensor<8x4xbf16> to tensor<8x4xf32>
      %sum = arith.addf %y, %wide : tensor<8x4xf32>
      %z = arith.truncf %sum : tensor<8x4xf32> to tensor<8x4xbf16>
      return %z : tensor<8x4xbf16>
    }
    // becomes
    ...
      %z = linalg.generic ... {
      ^bb0(%a: f32, %b: bf16, %out: bf16):
        %wide = arith.extf %b : bf16 to f32
        %sum = arith.addf %a, %wide : f32
        %narrow = arith.truncf %sum : f32 to bf16
        linalg.yield %narrow : bf16
      } -> tensor<8x4xbf16>
      return %z : tensor<8x4xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutlineIslands : Pass<"fp4-outline-islands", "::mlir::ModuleOp"> {
  let summary = "Move fp4 operations out of the functions of another compiler";
  let description = [{
    **Why.** The fp4 compiler compiles functions of fp4 operations, and a host compiler knows
    nothing of packed elements and scale layouts (docs/guides/embed.md).

    **Precondition.** Functions are inlined and simplified as far as the host wants; what is in two
    functions does not become one island.

    **Postcondition.**

    1. Connected fp4 operations of a block are a function of the nested module `@fp4_islands`, which
       fp4::takeIslands and fp4::Compiler take. Constants that they read go with them. Two islands
       are one wherever no foreign operation needs the first and is needed by the second.
    2. The host calls a private declaration of the same name with memrefs: what the island reads,
       then the memory for its results, which the host allocates. The declaration has
       `llvm.emit_c_interface`, and the compiled program has the function that it names.
    3. No type of the host has `f4E2M1FN` elements or a scale layout. `tensor<RxKxf4E2M1FN>` is
       `tensor<RxK/2xi8>`, and tiled scales of R rows and B blocks are
       `tensor<ceil(R/128) x ceil(B/4) x 512 x i8>`: the sizes that are allocated are the true ones.
       A `builtin.unrealized_conversion_cast` between a tensor and its bytes disappears. Foreign
       operations that compute on such tensors are errors.

    ```mlir
    // fp4-opt --fp4-outline-islands
    func.func @f(%x: tensor<64x32xbf16>, %d: tensor<f32>) -> tensor<f32> {
      %a = fp4.amax %x : tensor<64x32xbf16> -> tensor<f32>
      %r = linalg.sqrt ins(%a : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
      return %r : tensor<f32>
    }
    // becomes
    module @fp4_islands {
      func.func @f_fp4_0(%arg0: tensor<64x32xbf16>) -> tensor<f32> {
        %0 = fp4.amax %arg0 : tensor<64x32xbf16> -> tensor<f32>
        return %0 : tensor<f32>
      }
    }
    func.func private @f_fp4_0(memref<64x32xbf16>, memref<f32>) attributes {llvm.emit_c_interface}
    func.func @f(%x: tensor<64x32xbf16>, %d: tensor<f32>) -> tensor<f32> {
      %in = bufferization.to_buffer %x read_only : tensor<64x32xbf16> to memref<64x32xbf16>
      %out = memref.alloc() : memref<f32>
      call @f_fp4_0(%in, %out) : (memref<64x32xbf16>, memref<f32>) -> ()
      %a = bufferization.to_tensor %out restrict writable : memref<f32> to tensor<f32>
      %r = linalg.sqrt ins(%a : tensor<f32>) outs(%d : tensor<f32>) -> tensor<f32>
      return %r : tensor<f32>
    }
    ```
  }];
  let statistics = [Statistic<"numIslands", "islands", "Functions created">];
  let dependentDialects = ["::fp4::Fp4Dialect", "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP4_DIALECT_FP4_TRANSFORMS_PASSES_TD
