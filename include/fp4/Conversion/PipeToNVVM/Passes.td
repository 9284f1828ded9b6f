//===- Passes.td - Pipe kernels to NVVM -------------------------------------===//
#ifndef FP4_CONVERSION_PIPETONVVM_PASSES_TD
#define FP4_CONVERSION_PIPETONVVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertPipeToNVVM : Pass<"convert-pipe-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower pipelined pipe kernels and streaming kernels to NVVM";
  let description = [{
    **Why.** The last step in MLIR: roles become warp dispatch, channels become rings of mbarriers,
    tile ops become TMA, tcgen05 and vector memory instructions. Every descriptor bit comes from the
    layout authority (include/fp4/ISA).

    **Precondition.** Kernels are in the scheduled form (pipe-schedule), or streaming: no pipe op
    but `pipe.view` and `pipe.load_entry`, the rest `llvm`, `arith`, `math`, `scf`, `vector`,
    `nvvm` and the index ops of `gpu`.

    **Postcondition.** The module holds `llvm` and `nvvm` ops only. Each kernel is an
    `llvm.func` with `nvvm.kernel`, `nvvm.reqntid` and, for pipe kernels,
    `fp4.dynamic_shared_bytes`. A `!pipe.global` operand is an `!llvm.ptr<1>`; a `!pipe.tensor_map`
    is a grid constant of 128 bytes passed by value, which TMA reads from parameter space.

    A pipe kernel runs like this:
    ```
    thread 0     prefetch tensor maps, initialize barriers, fence
    mma warp     allocate tensor memory
    all          barrier, read the tensor memory address
    load warp    wait empty; an elected thread: expect bytes, TMA and bulk loads that complete full
    mma warp     wait full; an elected thread: tcgen05.cp scales, tcgen05.mma, tcgen05.commit to empty
    4 warps      wait accumulator, tcgen05.ld, arithmetic, predicated stores, release
    all          barrier
    mma warp     free tensor memory
    ```

    ```mlir
    // fp4-opt --fp4-set-target --pipe-schedule --convert-pipe-to-nvvm --cse
    !map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    !data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    !channel = !pipe.channel<!data>
    gpu.module @kernels {
      gpu.func @loads(%a: !map, %it: i32) kernel
          attributes {known_block_size = array<i32: 192, 1, 1>, pipe.shared_bytes = 131208 : i64,
                      pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 131200 : i64} {
        %c0 = arith.constant 0 : i32
        %bytes = arith.constant 16384 : i32
        %tiles = pipe.channel from tma to tensor depth 8 payload [0] barriers 131072 : !channel
        pipe.role load warps 5 to 6 drives [tma] {
          %tile = pipe.producer_acquire %tiles[%it] : !channel
          pipe.expect_tx %tiles[%it], %bytes : !channel
          pipe.load %a[%c0, %c0] into %tile signals %tiles[%it] : !map, !data, !channel
          pipe.producer_commit %tiles[%it] : !channel
        }
        gpu.return
      }
    }
    // becomes
    ...
    %full = llvm.getelementptr inbounds %barriers[%stage]
        : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i8>
    %empty = llvm.getelementptr inbounds %full[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    ...
    %done = nvvm.mbarrier.try_wait %empty, %parity : !llvm.ptr<3>, i32 -> i1
    ...
    %offset = llvm.mul %stage, %bytes : i32
    %address = llvm.add %base, %offset : i32
    %tile = llvm.inttoptr %address : i32 to !llvm.ptr<3>
    %expects = nvvm.elect.sync -> i1
    ...
    nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
    ...
    %copies = nvvm.elect.sync -> i1
    ...
    nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %a, %full, box[%c0, %c0]
        {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // FP4_CONVERSION_PIPETONVVM_PASSES_TD
