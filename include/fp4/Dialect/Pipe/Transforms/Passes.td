//===- Passes.td - From sequential to pipelined kernels -------------------===//
#ifndef FP4_DIALECT_PIPE_TRANSFORMS_PASSES_TD
#define FP4_DIALECT_PIPE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpecializeWarps : Pass<"pipe-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Give every warp role its own code, connected by channels";
  let description = [{
    **Why.** Loads, matrix instructions and the epilogue run on different engines. One instruction
    stream per engine lets each run as far ahead as its buffers allow.

    **Precondition.** Kernels (`gpu.func` with tile ops) in the sequential form: structured control
    flow and a role plan (`pipe.role_plan`) that drives every engine an op names. An op without an
    engine has no side effect and may be executed by every role.

    **Postcondition.** An op belongs to the role that drives its engine. Each role that has
    ops has one `pipe.role` region, a copy of the loops around its ops. The CTA has the warps of the
    plan. Tiles defined by one role and used by another in the same block of code form a channel:
    the producer acquires before it first fills one and commits after its last access, the consumer
    waits before its first use and releases after its last, all in the block of code that defined
    the tiles. Scalar code stays before the roles, or moves into the one role that needs it.

    ```mlir
    // fp4-opt --pipe-specialize-warps
    #roles = #pipe.role_plan<load warps 5 to 6 drives [tma],
        mma warps 4 to 5 drives [tensor, scale_copy], epilogue warps 0 to 4 drives [threads]>
    !map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    !data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    !scales = !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
    !acc = !pipe.tmem<128x128xf32>
    !y = !pipe.global<128x128xf32>
    !row = tensor<128x64xf32, #pipe.distribution<lanes>>
    gpu.module @kernels {
      gpu.func @product(%a: !map, %s: !scales, %n: i32, %y: !y) kernel
          attributes {pipe.role_plan = #roles} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c256 = arith.constant 256 : i32
        %acc = pipe.accumulator : !acc
        scf.for %k = %c0 to %n step %c1 : i32 {
          %column = arith.muli %k, %c256 : i32
          %tile = pipe.load %a[%c0, %column] : !map -> !data
          %more = arith.cmpi sgt, %k, %c0 : i32
          pipe.mma %acc, %tile scaled %s, %tile scaled %s accumulate %more
              : !acc, !data, !scales, !data, !scales
        }
        %v = pipe.read %acc[%c0] : !acc -> !row
        pipe.store %v, %y[%c0, %c0] : !row, !y
        gpu.return
      }
    }
    // becomes
    ...
    %accs = pipe.channel from tensor to threads(128) : !pipe.channel<!acc>
    %tiles = pipe.channel from tma to tensor : !pipe.channel<!data>
    pipe.role load warps 5 to 6 drives [tma] {
      scf.for %k = %c0 to %n step %c1 : i32 {
        %column = arith.muli %k, %c256 : i32
        %tile = pipe.producer_acquire %tiles : ...
        pipe.load %a[%c0, %column] into %tile signals %tiles : ...
        pipe.producer_commit %tiles : ...
      }
    }
    pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
      %acc = pipe.producer_acquire %accs : ...
      scf.for %k = %c0 to %n step %c1 : i32 {
        %more = arith.cmpi sgt, %k, %c0 : i32
        %tile = pipe.consumer_wait %tiles : ...
        pipe.mma %acc, %tile scaled %s, %tile scaled %s accumulate %more : ...
        pipe.consumer_release %tiles : ...
      }
      pipe.producer_commit %accs : ...
    }
    pipe.role epilogue warps 0 to 4 drives [threads] {
      %acc = pipe.consumer_wait %accs : ...
      %v = pipe.read %acc[%c0] : ...
      pipe.consumer_release %accs : ...
      pipe.store %v, %y[%c0, %c0] : ...
    }
    gpu.return
    ```
  }];
  let statistics = [
    Statistic<"numKernels", "kernels", "Kernels specialized">,
    Statistic<"numChannels", "channels", "Channels created">,
  ];
  let dependentDialects = ["::fp4::pipe::PipeDialect"];
}

def PipelineChannels : Pass<"pipe-pipeline", "::mlir::ModuleOp"> {
  let summary = "Give channels depth, place and iteration counters";
  let description = [{
    **Why.** A channel of several stages lets the producer work ahead. The pass decides how many
    stages fit, where each lies, and which barrier phase belongs to which iteration.

    **Precondition.** Kernels in the specialized form.

    **Postcondition.** Channels through tensor memory have up to `max-accumulators` stages
    where the columns suffice beside the scale tiles, but no more than two where a loop fills a
    stage; channels through shared memory share what the target has of it, at most `max-stages`
    each, and one stage where they are filled outside of loops. Scale tiles get a set of columns for
    each stage that they are copied from, or as many as fit and a `pipe.await_release`. If the
    kernel's attribute `nvvm.minctasm` wants several CTAs on an SM, each plans with its share. Tiles
    of the widest alignment come first in shared memory, then barriers, then the word for the tensor
    memory address; the function carries `pipe.shared_bytes`, `pipe.tmem_columns` and
    `pipe.tmem_slot`, and its launches ask for that much dynamic shared memory; of a kernel with
    `pipe.alone`, for so much at least that an SM has no room for two CTAs. Every channel op names
    an iteration: in each role a counter per channel starts at 0, is carried by the loops around its
    ops and advances with every commit or release, so it goes on from one output tile to the next.
    Stages filled by tma begin with `pipe.expect_tx` of exactly the bytes that their loads complete.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-pipeline
    !map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    !data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    !channel = !pipe.channel<!data>
    gpu.module @kernels {
      gpu.func @loads(%a: !map, %n: i32) kernel
          attributes {known_block_size = array<i32: 192, 1, 1>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c256 = arith.constant 256 : i32
        %tiles = pipe.channel from tma to tensor : !channel
        pipe.role load warps 5 to 6 drives [tma] {
          scf.for %k = %c0 to %n step %c1 : i32 {
            %column = arith.muli %k, %c256 : i32
            %tile = pipe.producer_acquire %tiles : !channel
            pipe.load %a[%c0, %column] into %tile signals %tiles : !map, !data, !channel
            pipe.producer_commit %tiles : !channel
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    %tiles = pipe.channel from tma to tensor depth 8 payload [0] barriers 131072 : !channel
    pipe.role load warps 5 to 6 drives [tma] {
      %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %start) -> (i32) : i32 {
        %column = arith.muli %k, %c256 : i32
        %tile = pipe.producer_acquire %tiles[%it] : !channel
        %bytes = arith.constant 16384 : i32
        pipe.expect_tx %tiles[%it], %bytes : !channel
        pipe.load %a[%c0, %column] into %tile signals %tiles[%it] : !map, !data, !channel
        pipe.producer_commit %tiles[%it] : !channel
        %next = arith.addi %it, %one : i32
        scf.yield %next : i32
      }
    }
    gpu.return
    ```
  }];
  let options = [
    Option<"maxStages", "max-stages", "unsigned", "8", "Most stages of a channel in shared memory">,
    Option<"maxAccumulators", "max-accumulators", "unsigned", "4",
           "Most stages of a channel in tensor memory">,
    Option<"reserveBytes", "reserve-bytes", "unsigned", "0",
           "Shared memory to leave to others in the same CTA">,
  ];
  let statistics = [
    Statistic<"numStages", "stages", "Stages of all channels">,
  ];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect"];
}

def VerifySync : Pass<"pipe-verify-sync", "::mlir::ModuleOp"> {
  let summary = "Check that channels protect every tile that crosses roles";
  let description = [{
    **Why.** A missing release hangs a kernel and a missing wait corrupts it; both are visible in
    each form and are reported here, with the op to look at.

    **Precondition.** Specialized, pipelined or scheduled form; other kernels are skipped.
    The kernel is unchanged.

    **Postcondition.** (C130) A tile used in a role comes from an acquire or wait of that
    role, or was made by it. (C131) On every path acquire and commit, wait and release of a channel
    alternate, loops leave a channel as they found it, and no tile is used outside of its pair.
    (C132) Each channel has one producer role and the consumer roles that it lists, which complete
    its ends as it says. (C133) The loops around both sides agree, so that as many stages are
    consumed as are produced. In the pipelined form: (C134) iterations inside of a loop vary with it
    and advance by one per pair; (C135) the bytes a stage expects are those its loads complete;
    (C136) the channel ops of all roles, run with loops long enough to fill and wrap every ring,
    come to their end; (C137) a set of scale columns is not filled while an MMA may read it. In the
    scheduled form, where loops of two roles may differ, (C131), (C133) and (C134) hold of the ops
    that the roles execute, and (C627) of carried stages; (C628) each access to a tile comes behind
    those that it conflicts with, by arrivals and waits alone; (C629) a fence stands before work of
    tcgen05.

    ```mlir
    // fp4-opt --pipe-verify-sync
    !scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    !columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    !sf = !pipe.global<128x16xf8E4M3FN, tiled_128x4>
    !channel = !pipe.channel<!scales>
    gpu.module @kernels {
      gpu.func @scales(%sf: !sf) kernel {
        %c0 = arith.constant 0 : i32
        %tiles = pipe.channel from tma to tensor : !channel
        pipe.role load warps 5 to 6 drives [tma] {
          %s = pipe.producer_acquire %tiles : !channel
          pipe.load %sf[%c0, %c0] into %s signals %tiles : !sf, !scales, !channel
          pipe.producer_commit %tiles : !channel
        }
        pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
          // expected-error @+2 {{stage must be handed over in this block}}
          // expected-note @+1 {{add pipe.consumer_release behind the last use of its tiles}}
          %s = pipe.consumer_wait %tiles : !channel
          %t = pipe.copy_scales %s : !scales -> !columns
        }
        gpu.return
      }
    }
    ```
  }];
}

def VerifyCapacity : Pass<"pipe-verify-capacity", "::mlir::ModuleOp"> {
  let summary = "Check that tiles and barriers have disjoint places within the target's memories";
  let description = [{
    **Why.** Overlapping places corrupt silently; too much of a memory fails only at the launch.

    **Precondition.** Pipelined form; other kernels are skipped. The kernel is unchanged.

    **Postcondition.** (C140) Tiles, barriers and the tensor memory slot have disjoint
    places below `pipe.shared_bytes`, which the target's shared memory holds. (C141) Tensor memory
    tiles have disjoint columns below `pipe.tmem_columns`, a power of two from 32 to the target's
    columns.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-verify-capacity
    !channel = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
    gpu.module @kernels {
      gpu.func @kernel() kernel attributes {pipe.shared_bytes = 32808 : i64,
          pipe.tmem_columns = 32 : i64, pipe.tmem_slot = 32800 : i64} {
        // expected-error @+2 {{barriers at bytes 16384 to 16416 must be disjoint from tile 0}}
        // expected-note @+1 {{the other is here}}
        %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 16384 : !channel
        gpu.return
      }
    }
    ```
  }];
}

#endif // FP4_DIALECT_PIPE_TRANSFORMS_PASSES_TD
