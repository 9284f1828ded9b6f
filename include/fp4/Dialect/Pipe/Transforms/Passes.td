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

    **What holds afterwards.** An op belongs to the role that drives its engine. Each role that has
    ops has one `pipe.role` region, a copy of the loops around its ops. The block has the warps of the
    plan. Tiles defined by one role and used by another in the same block form a
    channel: the producer acquires before it first fills one and commits after its last access, the
    consumer waits before its first use and releases after its last, all in the block that defined
    the tiles. Scalar code stays before the roles, or moves into the one role that needs it.

    ```mlir
    // before                                   // after
    scf.for ... {                               %ab = pipe.channel from tma to tensor : !channel
      %a = pipe.load ...                        pipe.role mma warps 4 to 5 drives [tensor] {
      pipe.mma %acc, %a ...                       scf.for ... {
    }                                               %a = pipe.consumer_wait %ab : !channel
                                                    pipe.mma %acc, %a ...
                                                    pipe.consumer_release %ab : !channel
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
    **Why.** A channel of several stages lets the producer work ahead. This pass decides how many
    fit, where each lies, and which barrier phase belongs to which iteration.

    **Precondition.** Kernels in the specialized form.

    **What holds afterwards.** Channels through tensor memory have up to `max-accumulators` stages
    where the columns suffice beside the scale tiles, but no more than two where a loop fills a stage;
    channels through shared memory share what the target has of it, at most `max-stages` each, and
    one stage where they are filled outside of loops. Scale tiles get a set of columns for each stage
    that they are copied from, or as many as fit and a `pipe.await_release`. Where the kernel's attribute `nvvm.minctasm` wants
    several blocks on a multiprocessor, each plans with its share. Tiles of the widest alignment come first in shared memory,
    then barriers, then the word for the tensor memory address; the function carries
    `pipe.shared_bytes`, `pipe.tmem_columns` and `pipe.tmem_slot`, and its launches ask for that
    much dynamic shared memory. Every channel op names an iteration: in each role a counter per
    channel starts at 0, is carried by the loops around its ops and advances with every commit or
    release, so it goes on from one output tile to the next. Stages filled by tma begin with
    `pipe.expect_tx` of exactly the bytes that their loads complete.

    ```mlir
    %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %it0) -> (i32) : i32 {
      %a = pipe.producer_acquire %ab[%it] : !channel
      pipe.expect_tx %ab[%it], %bytes : !channel
      pipe.load %map[%row, %column] into %a signals %ab[%it] : ...
      pipe.producer_commit %ab[%it] : !channel
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
    ```
  }];
  let options = [
    Option<"maxStages", "max-stages", "unsigned", "8", "Most stages of a channel in shared memory">,
    Option<"maxAccumulators", "max-accumulators", "unsigned", "4",
           "Most stages of a channel in tensor memory">,
    Option<"reserveBytes", "reserve-bytes", "unsigned", "0",
           "Shared memory to leave to others in the same block">,
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
    the specialized and pipelined forms and are reported here, with the op to look at.

    **Precondition.** Specialized or pipelined form; kernels in the sequential form are skipped.
    The kernel is unchanged.

    **What holds afterwards.** (C130) A tile used in a role comes from an acquire or wait of that
    role, or was made by it. (C131) On every path acquire and commit, wait and release of a channel
    alternate, loops leave a channel as they found it, and no tile is used outside of its pair.
    (C132) Each channel has one producer and one consumer role, which complete its ends as it says. (C133) The
    loops around both sides agree, so that as many stages are consumed as are produced. In the
    pipelined form: (C134) iterations inside of a loop vary with it and advance by one per
    pair; (C135) the bytes a stage expects are those its loads complete; (C136) the channel ops of
    all roles, run with loops long enough to fill and wrap every ring, come to their end; (C137) a set
    of scale columns is not filled while a product may read it.
  }];
}

def VerifyCapacity : Pass<"pipe-verify-capacity", "::mlir::ModuleOp"> {
  let summary = "Check that tiles and barriers have disjoint places within the target's memories";
  let description = [{
    **Why.** Overlapping places corrupt silently; too much of a memory fails only at the launch.

    **Precondition.** Pipelined form; other kernels are skipped. The kernel is unchanged.

    **What holds afterwards.** (C140) Tiles, barriers and the tensor memory slot have disjoint
    places below `pipe.shared_bytes`, which the target's shared memory holds. (C141) Tensor memory
    tiles have disjoint columns below `pipe.tmem_columns`, a power of two from 32 to the target's
    columns.
  }];
}

#endif // FP4_DIALECT_PIPE_TRANSFORMS_PASSES_TD
