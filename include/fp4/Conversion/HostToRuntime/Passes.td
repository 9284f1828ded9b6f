//===- Passes.td - From tensor functions to host code ---------------------===//
#ifndef FP4_CONVERSION_HOSTTORUNTIME_PASSES_TD
#define FP4_CONVERSION_HOSTTORUNTIME_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerHostTensors : Pass<"fp4-lower-host-tensors", "::mlir::ModuleOp"> {
  let summary = "Give constants device buffers, and views of tensors those that they view";
  let description = [{
    **Why.** Reshapes, slices and constants need no computation. A constant is bytes that the
    program carries, and a reshape or a slice of whole rows is the same buffer or a part of it.

    **Precondition.** fp4 operations are kernels already; tensors and buffers meet in
    `builtin.unrealized_conversion_cast`.

    **Postcondition.** Functions have no `arith.constant` of a tensor, and no
    `tensor.collapse_shape`, `tensor.expand_shape`, `tensor.extract_slice`, `tensor.concat` or
    `tensor.cast`. `tensor.concat` of rows is a copy of each operand. Any other operation that would
    have to move bytes is an error.

    ```mlir
    // fp4-opt --fp4-lower-host-tensors
    func.func @f(%x: tensor<8x16x64xbf16>) -> tensor<128x64xbf16> {
      %y = tensor.collapse_shape %x [[0, 1], [2]] : tensor<8x16x64xbf16> into tensor<128x64xbf16>
      return %y : tensor<128x64xbf16>
    }
    // becomes
    func.func @f(%x: tensor<8x16x64xbf16>) -> tensor<128x64xbf16> {
      %buffer = builtin.unrealized_conversion_cast %x
          : tensor<8x16x64xbf16> to memref<8x16x64xbf16>
      %v = pipe.view %buffer : memref<8x16x64xbf16> -> memref<128x64xbf16>
      %y = builtin.unrealized_conversion_cast %v : memref<128x64xbf16> to tensor<128x64xbf16>
      return %y : tensor<128x64xbf16>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::fp4::pipe::PipeDialect"];
}

def FinalizeHostBuffers : Pass<"fp4-finalize-host-buffers", "::mlir::ModuleOp"> {
  let summary = "Give host functions device buffers for tensors, at their boundaries too";
  let description = [{
    **Why.** `convert-fp4-to-gpu` and `convert-fp4-to-pipe` leave functions that still take and
    return tensors and convert to buffers where kernels touch them. A caller passes a dense device
    buffer, but TMA needs a row pitch that is a multiple of 16 bytes.

    **Precondition.** No fp4 operation is left; function bodies are straight-line code whose tensor
    values are converted from and to buffers by `builtin.unrealized_conversion_cast`.

    **Postcondition.** Functions take and return memrefs. A 4-bit argument or result whose
    dense pitch is not a multiple of 16 bytes is repacked by one 2-D copy. A result never aliases an
    argument or another result. Every temporary is deallocated after its last use.

    ```mlir
    // fp4-opt --fp4-finalize-host-buffers --canonicalize
    func.func @id(%q: tensor<?x48xf4E2M1FN>) -> tensor<?x48xf4E2M1FN> {
      return %q : tensor<?x48xf4E2M1FN>
    }
    // becomes
    func.func @id(%q: memref<?x24xi8>) -> memref<?x24xi8> {
      ...
      %padded = gpu.alloc (%rows) : memref<?x32xi8>
      ...
      %view = memref.subview %padded[0, 0] [%rows, 24] [1, 1] : ...
      gpu.memcpy %view, %q : ...
      %result = gpu.alloc (%rows) {fp4.result = 0 : i32} : memref<?x24xi8>
      ...
      gpu.dealloc %padded : memref<?x32xi8>
      return %result : memref<?x24xi8>
    }
    ```
  }];
  let statistics = [
    Statistic<"numCopies", "copies", "Buffers copied at function boundaries">,
    Statistic<"numFreed", "freed", "Temporaries deallocated">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect"];
}

def ConvertHostToRuntime : Pass<"convert-host-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower host functions to LLVM and calls of the runtime's C ABI";
  let description = [{
    **Why.** One host program runs in process and in an emitted library. The program calls the
    functions of `fp4-c/Runtime.h`, which stay undefined here.

    **Precondition.** `fp4-finalize-host-buffers` ran; kernels are `gpu.binary` ops whose kernel
    table names the dynamic shared memory of each kernel (`fp4-emit-kernels`).

    **Postcondition.** Only the LLVM dialect. Each `gpu.binary @m` is a constant
    `fp4rt_module`; each public function `f` has the entry point `int32_t fp4_entry_f(void **args)`:
    `args[0]` points at the struct of result memref descriptors, if there are results, and one
    pointer to a memref descriptor follows per argument.

    ```mlir
    // fp4-opt --convert-host-to-runtime
    module attributes {gpu.container_module} {
      gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">,
          properties = {target = "sm_100a"},
          kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void (ptr<1>)>,
            metadata = {dynamic_shared_bytes = 2048 : i64}>]>,
          assembly = ".version 8.8">]
      func.func @f(%x: memref<64xf32>) {
        %c1 = arith.constant 1 : index
        %c192 = arith.constant 192 : index
        %p = pipe.view %x : memref<64xf32> -> !pipe.global<64xf32>
        gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c192, %c1, %c1)
            args(%p : !pipe.global<64xf32>)
        return
      }
    }
    // becomes
    ...
    llvm.func internal @f(...) attributes {llvm.emit_c_interface} {
      ...
      %shared = llvm.mlir.constant(2048 : i32) : i32
      ...
      llvm.call @fp4rt_launch(%module, %name, %gx, %gy, %gz, %bx, %by, %bz, %shared, %params, %n) : ...
      llvm.return
    }
    ...
    llvm.func @fp4_entry_f(%args: !llvm.ptr) -> i32 {
      ...
    }
    ```
  }];
  let statistics = [Statistic<"numModules", "modules", "Kernel modules embedded">];
  // Views of padded rows become affine maps on the way.
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def PdlLaunchesPass : Pass<"fp4-pdl-launches", "::mlir::ModuleOp"> {
  let summary = "Let each kernel begin while the one before it ends";
  let description = [{
    **Why.** With programmatic dependent launch (PDL), CTAs of the second kernel start as the first
    gives back SMs, initialize their barriers, and then wait.

    **Precondition.** Kernels are llvm.func of the nvvm dialect, and launches are gpu.launch_func.

    **Postcondition.** Every kernel executes `griddepcontrol.wait` and then
    `griddepcontrol.launch_dependents` before it touches global memory or takes tensor memory, and
    reads global memory as memory that may be written meanwhile. Launches have the attribute `fp4.dependent`, for
    which `convert-host-to-runtime` calls `fp4rt_launch_dependent`. No result changes.

    With `all = false` this is so for a quantizer whose launch (`fp4.follows`) comes next to that of
    an amax (`fp4.leads`), which gives way to it: the amax executes
    `griddepcontrol.launch_dependents`, and the quantizer `griddepcontrol.wait` behind its first
    loads of what the amax only loads from. A kernel whose launch has `fp4.pdl` waits, and executes
    the other where its `#fp4.launch_dependents` says. Other kernels execute neither, and with
    `chosen = false` as well, no kernel executes either.

    A kernel that does not wait has no `nvvm.cp.async.bulk.prefetch` either.

    ```mlir
    // fp4-opt --fp4-pdl-launches
    gpu.module @m {
      llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
        %v = llvm.load %x invariant : !llvm.ptr<1> -> i32
        llvm.return
      }
    }
    // becomes
    gpu.module @m {
      llvm.func @k(%x: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
        nvvm.griddepcontrol wait
        nvvm.griddepcontrol launch_dependents
        %v = llvm.load %x : !llvm.ptr<1> -> i32
        llvm.return
      }
    }
    ```
  }];
  let options = [
    Option<"all", "all", "bool", /*default=*/"true",
           "Every launch, and not only those that are chosen">,
    Option<"chosen", "chosen", "bool", /*default=*/"true",
           "Quantizers behind an amax, and launches that say so">];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

#endif // FP4_CONVERSION_HOSTTORUNTIME_PASSES_TD
