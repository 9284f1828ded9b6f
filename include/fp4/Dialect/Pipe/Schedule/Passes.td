//===- Passes.td - From the pipelined to the scheduled form ---------------===//
#ifndef FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD
#define FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandWork : Pass<"pipe-expand-work", "::mlir::ModuleOp"> {
  let summary = "Turn schedules into the loops by which a CTA finds its tiles";
  let description = [{
    **Why.** Later passes carry numbers through the loop over tiles, and verifiers run it.

    **Precondition.** Kernels in the pipelined form, or streaming kernels.

    **Postcondition.** `pipe.for_each_work` is a loop of `scf`. Numbers that do not
    depend on the tile stand in front of all roles. A kernel with roles has `pipe.scheduled`.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-expand-work
    gpu.module @kernels {
      gpu.func @tiles(%m: i32, %n: i32) kernel {
        pipe.role all warps 0 to 4 drives [threads] {
          pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
            %row = arith.muli %i, %m : i32
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    pipe.role all warps 0 to 4 drives [threads] {
      scf.for %tile = %first to %total step %ctas : i32 {
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

def PlaceScalars : Pass<"pipe-place-scalars", "::mlir::ModuleOp"> {
  let summary = "Let each role compute the scalars that it needs";
  let description = [{
    **Why.** ptxas keeps a number from in front of all roles in memory, for all of them, where one role
    has no register for it.

    **Precondition.** Kernels in which `pipe-expand-work` has left no schedule.

    **Postcondition.** If roles set their registers, and none has few, each role computes the numbers that
    it takes from sizes, tables and the place of its CTA. `pipe.opaque` keeps LLVM from computing
    them once.

    ```mlir
    // fp4-opt --fp4-set-target=target=sm_90a --pipe-place-scalars
    gpu.module @kernels {
      gpu.func @sizes(%m: i32) kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %n = arith.addi %m, %c1 : i32
        pipe.role math warps 0 to 4 drives [threads] registers 232 {
          scf.for %i = %c0 to %n step %c1 : i32 {
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    pipe.role math warps 0 to 4 drives [threads] registers 232 {
      %size = pipe.opaque %m
      %tiles = arith.addi %size, %one : i32
      scf.for %i = %zero to %tiles step %one : i32 {
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def SplitWarps : Pass<"pipe-split-warps", "::mlir::ModuleOp"> {
  let summary = "Give the copies of scales a warp of their own";
  let description = [{
    **Why.** A warp that only copies scales runs ahead of the MMAs, as far as there are sets of columns.

    **Precondition.** Kernels in the pipelined form. A role of two warps drives `tensor` and `scale_copy`.

    **Postcondition.** The role is two: the first warp has the MMAs and names the tiles of scales
    (`pipe.copy_scales` with `copied`), the second one has the copies and their waits. Channels with scales list
    `scale_copy` beside `tensor`.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-split-warps
    !scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    !columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    !channel = !pipe.channel<!scales>
    gpu.module @kernels {
      gpu.func @scales(%it: i32) kernel {
        %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
        pipe.role mma warps 4 to 6 drives [tensor, scale_copy] {
          %s = pipe.consumer_wait %tiles[%it] : !channel
          pipe.await_release %tiles[%it] distance 2 : !channel
          %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
          pipe.consumer_release %tiles[%it] : !channel
        }
        gpu.return
      }
    }
    // becomes
    ...
    %tiles = pipe.channel from tma to [tensor, scale_copy] depth 3 payload [0] barriers 6144 : !channel
    pipe.role mma warps 4 to 5 drives [tensor] {
      %s = pipe.consumer_wait %tiles[%it] : !channel
      %t = pipe.copy_scales %s at 0 sets 2 copied : ...
      pipe.consumer_release %tiles[%it] : !channel
    }
    pipe.role mma_scales warps 5 to 6 drives [scale_copy] {
      %s = pipe.consumer_wait %tiles[%it] : !channel
      pipe.await_release %tiles[%it] distance 2 : !channel
      %t = pipe.copy_scales %s at 0 sets 2 : ...
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ElectThreads : Pass<"pipe-elect-threads", "::mlir::ModuleOp"> {
  let summary = "Keep warps whole that issue for an engine";
  let description = [{
    **Why.** Behind one election for a whole role, ptxas moves each operand of tcgen05 from registers of
    the thread to registers of the warp.

    **Precondition.** Kernels in the pipelined form; roles are final.

    **Postcondition.** On targets with tcgen05, a role of one warp is `whole` if all lanes may execute its
    code: waits, addresses and loads from memory that nobody writes. One lane is then elected for
    each instruction that must be issued once. Entries of tables that a whole warp loads are
    `of_warp`.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-elect-threads
    !map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
    !data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    !channel = !pipe.channel<!data>
    gpu.module @kernels {
      gpu.func @loads(%a: !map, %it: i32) kernel {
        %c0 = arith.constant 0 : i32
        %tiles = pipe.channel from tma to tensor depth 8 payload [0] barriers 131072 : !channel
        pipe.role load warps 5 to 6 drives [tma] {
          %tile = pipe.producer_acquire %tiles[%it] : !channel
          pipe.load %a[%c0, %c0] into %tile signals %tiles[%it] : !map, !data, !channel
          pipe.producer_commit %tiles[%it] : !channel
        }
        gpu.return
      }
    }
    // becomes
    ...
    pipe.role load warps 5 to 6 drives [tma] whole {
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def RunAhead : Pass<"pipe-run-ahead", "::mlir::ModuleOp"> {
  let summary = "Write tiles where they are computed";
  let description = [{
    **Why.** Numbers are rounded where they are written, and the tensor core waits for them.

    **Precondition.** Kernels in the pipelined form, in which no pass has named stages.

    **Postcondition.** No loop begins with the write of what it carries, if the same write follows it.
    MMAs with kept sums wait for these last.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-run-ahead
    !row = tensor<128x64xbf16, #pipe.distribution<lanes>>
    !channel = !pipe.channel<!pipe.tmem<128x64xbf16>>
    gpu.module @kernels {
      gpu.func @rows(%n: i32, %x: !row) kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %powers = pipe.channel from threads(128) to tensor depth 2 payload [0] barriers 0 : !channel
        pipe.role softmax warps 0 to 4 drives [threads] {
          %last:2 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0, %before = %x) -> (i32, !row) : i32 {
            %t = pipe.producer_acquire %powers[%it] : !channel
            pipe.write %before, %t : !row, !pipe.tmem<128x64xbf16>
            pipe.producer_commit %powers[%it] : !channel
            %next = arith.addi %it, %c1 : i32
            %y = arith.addf %before, %before : !row
            scf.yield %next, %y : i32, !row
          }
          %t = pipe.producer_acquire %powers[%last#0] : !channel
          pipe.write %last#1, %t : !row, !pipe.tmem<128x64xbf16>
          pipe.producer_commit %powers[%last#0] : !channel
          %end = arith.addi %last#0, %c1 : i32
        }
        gpu.return
      }
    }
    // becomes
    ...
    pipe.write %x, %t : ...
    pipe.producer_commit %powers[%c0] : !channel
    %second = arith.addi %c0, %c1 : i32
    %last:2 = scf.for %k = %c0 to %n step %c1 iter_args(%it = %second, %before = %x) -> (i32, !row) : i32 {
      %t1 = pipe.producer_acquire %powers[%it] : !channel
      %y = arith.addf %before, %before : !row
      pipe.write %y, %t1 : ...
      pipe.producer_commit %powers[%it] : !channel
      %next = arith.addi %it, %c1 : i32
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def Unroll : Pass<"pipe-unroll", "::mlir::ModuleOp"> {
  let summary = "Replace short loops, and loops over sets of scales, by their iterations";
  let description = [{
    **Why.** ptxas moves nothing across a branch. Sums of one k tile are added beside the next MMA only
    where both are in one block of code, and the columns of a set are constants only there.

    **Precondition.** Kernels in the pipelined form; `pipe-elect-threads` has run.

    **Postcondition.** On targets with wgmma, loops over at most four scale blocks with tiles of
    scales are their iterations, and the last sums are added in the next iteration of the loop
    around them. In whole roles, a loop of an even number of k tiles with two sets of scales does
    two of them in an iteration, and each tile names its `set`.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-unroll
    !scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    !columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    !channel = !pipe.channel<!scales>
    gpu.module @kernels {
      gpu.func @scales() kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c8 = arith.constant 8 : i32
        %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
        pipe.role mma warps 4 to 5 drives [tensor, scale_copy] whole {
          %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
            %s = pipe.consumer_wait %tiles[%it] : !channel
            %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
            pipe.consumer_release %tiles[%it] : !channel
            %next = arith.addi %it, %c1 : i32
            scf.yield %next : i32
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    %last = scf.for %k = %first to %end step %two iter_args(%it = %start) -> (i32) : i32 {
      %s = pipe.consumer_wait %tiles[%it] : !channel
      %t = pipe.copy_scales %s at 0 sets 2 set 0 : ...
      pipe.consumer_release %tiles[%it] : !channel
      %odd = arith.addi %it, %one : i32
      %s1 = pipe.consumer_wait %tiles[%odd] : !channel
      %t1 = pipe.copy_scales %s1 at 0 sets 2 set 1 : ...
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def FoldAwaits : Pass<"pipe-fold-awaits", "::mlir::ModuleOp"> {
  let summary = "Make the wait for a set of scales a part of the wait for a stage";
  let description = [{
    **Why.** Two waits in a row take longer than one.

    **Precondition.** Kernels in the pipelined form; scales of one warp have two sets. `pipe-carry-stages`
    has not run.

    **Postcondition.** If each wait of a channel is followed by a `pipe.await_release` of distance 2, these
    are `folded`: the MMAs issued up to there arrive at the full barrier of the next stage.

    ```mlir
    // fp4-opt --fp4-set-target --pipe-fold-awaits
    !scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
    !columns = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    !channel = !pipe.channel<!scales>
    gpu.module @kernels {
      gpu.func @scales() kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c8 = arith.constant 8 : i32
        %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 6144 : !channel
        pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
          %last = scf.for %k = %c0 to %c8 step %c1 iter_args(%it = %c0) -> (i32) : i32 {
            %s = pipe.consumer_wait %tiles[%it] : !channel
            pipe.await_release %tiles[%it] distance 2 : !channel
            %t = pipe.copy_scales %s at 0 sets 2 : !scales -> !columns
            pipe.consumer_release %tiles[%it] : !channel
            %next = arith.addi %it, %c1 : i32
            scf.yield %next : i32
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    %s = pipe.consumer_wait %tiles[%it] : !channel
    pipe.await_release %tiles[%it] distance 2 folded : !channel
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def CarryStages : Pass<"pipe-carry-stages", "::mlir::ModuleOp"> {
  let summary = "Carry stages and phases of channels through loops";
  let description = [{
    **Why.** A comparison and two selections are fewer instructions than two divisions.

    **Precondition.** Kernels in the pipelined form; `pipe-fold-awaits` has run.

    **Postcondition.** Loops carry the stage and the phase beside the iteration of a channel where
    it pays, and its ops name them (`pipe.stage_of`). The accumulator of a loop with scales is acquired
    behind the scales of its first k tile, which comes before the loop. Stages that are the same in
    every iteration of a role that loads are hidden from LLVM (`pipe.opaque`).

    ```mlir
    // fp4-opt --fp4-set-target --pipe-carry-stages
    !data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
    !channel = !pipe.channel<!data>
    gpu.module @kernels {
      gpu.func @waits(%n: i32) kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %tiles = pipe.channel from tma to tensor depth 3 payload [0] barriers 49152 : !channel
        pipe.role mma warps 4 to 5 drives [tensor] whole {
          %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
            %tile = pipe.consumer_wait %tiles[%it] : !channel
            pipe.consumer_release %tiles[%it] : !channel
            %next = arith.addi %it, %c1 : i32
            scf.yield %next : i32
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    %last:3 = scf.for %k = %zero to %n step %one iter_args(%it = %zero, %stage = %first, %phase = %turn) -> (i32, i32, i32) : i32 {
      %at = pipe.stage_of %it at %stage, %phase of 3
      %tile = pipe.consumer_wait %tiles[%at] : !channel
      pipe.consumer_release %tiles[%at] : !channel
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def DeferReleases : Pass<"pipe-defer-releases", "::mlir::ModuleOp"> {
  let summary = "Release a stage behind the MMAs of the next one";
  let description = [{
    **Why.** The tensor core would stop at the end of each iteration for the release of its stage.

    **Precondition.** Kernels in the pipelined form with wgmma; `pipe-carry-stages` has run.

    **Postcondition.** MMAs of prepacked or converted weights in a loop over the stages of a deep
    channel are `chain until_iteration`. Each iteration releases the stage of the one before, and
    the code behind the loop the last one.

    ```mlir
    // fp4-opt --fp4-set-target=target=sm_90a --pipe-defer-releases
    !weights = !pipe.shared<4x4608xi8>
    !x = !pipe.shared<32x256xbf16, swizzle_128B>
    !channel = !pipe.channel<!weights, !x>
    !acc = !pipe.fragment<64x32xf32, wgmma>
    gpu.module @kernels {
      gpu.func @products(%n: i32, %more: i1) kernel {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %tiles = pipe.channel from tma to threads(256) depth 4 payload [65536, 0] barriers 140000 : !channel
        pipe.role math warps 0 to 8 drives [tensor, threads] {
          %acc = pipe.accumulator : !acc
          %last = scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
            %w, %x = pipe.consumer_wait %tiles[%it] : !channel
            pipe.mma %acc, %w, %x accumulate %more : !acc, !weights, !x
            pipe.consumer_release %tiles[%it] : !channel
            %next = arith.addi %it, %c1 : i32
            scf.yield %next : i32
          }
        }
        gpu.return
      }
    }
    // becomes
    ...
    %w, %b = pipe.consumer_wait %tiles[%it] : !channel
    pipe.mma %acc, %w, %b accumulate %more chain until_iteration : ...
    %goes = arith.cmpi sgt, %k, %zero : i32
    scf.if %goes {
      %one = arith.constant 1 : i32
      %before = arith.subi %it, %one : i32
      pipe.consumer_release %tiles[%before] : !channel
    }
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ElideSync : Pass<"pipe-elide-sync", "::mlir::ModuleOp"> {
  let summary = "Leave out waits, arrivals and fences that others imply";
  let description = [{
    **Why.** Each wait and each fence costs instructions on the way of every k tile.

    **Precondition.** Kernels in the pipelined form in which all ops on channels are in place.

    **Postcondition.** A channel whose stages are filled once, or are known to be empty from other channels,
    is `without_empty`. Waits that another wait follows before any work of tcgen05, and releases of
    tiles that no thread has read with loads of its own, are `unfenced`. One thread arrives
    `by warps` or `by aligned_warps` for warps that read a tile together; behind a `partial`
    release the release is `by nobody`. `pipe-verify-sync` runs the result: an access that may come before
    one that it overwrites is an error that names both.

    ```mlir
    // fp4-opt --fp4-set-target=target=sm_90a --pipe-elide-sync
    !codes = !pipe.shared<128x128xf4E2M1FN, swizzle_64B>
    !scales = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
    !in = !pipe.channel<!codes, !scales>
    gpu.module @kernels {
      gpu.func @once(%rows: i32) kernel {
        %c0 = arith.constant 0 : i32
        %tiles = pipe.channel from tma to threads(128) depth 1 payload [0, 8192] barriers 9216 : !in
        pipe.role load warps 4 to 5 drives [tma] {
          %q, %s = pipe.producer_acquire %tiles[%c0] : !in
          pipe.producer_commit %tiles[%c0] : !in
        }
        pipe.role math warps 0 to 4 drives [threads] {
          %q, %s = pipe.consumer_wait %tiles[%c0] : !in
          pipe.consumer_release %tiles[%c0] : !in
        }
        gpu.return
      }
    }
    // becomes
    ...
    %tiles = pipe.channel from tma to threads(128) depth 1 payload [0, 8192] barriers 9216 without_empty : !in
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def ChainMmas : Pass<"pipe-chain-mmas", "::mlir::ModuleOp"> {
  let summary = "Let MMAs follow each other without a gap";
  let description = [{
    **Why.** The tensor core waits while sums are added, and ptxas begins an MMA early, in registers of
    its own, where nothing says when its sums are free.

    **Precondition.** Kernels in the pipelined form; `pipe-elide-sync` has run.

    **Postcondition.** An MMA of converted or prepacked weights that another one of the same B follows is
    `chain until_mma`. An MMA whose sums take the place of sums that are read has `chain
    replaces`, and the additions of these are `complete` before it. Two MMAs with sums of their own
    begin together: `chain leads` and `chain follows`.

    ```mlir
    // fp4-opt --fp4-set-target=target=sm_90a --pipe-chain-mmas
    !a = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
    !b = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
    !sums = !pipe.fragment<64x128xf32, wgmma>
    !channel = !pipe.channel<!a, !b>
    gpu.module @kernels {
      gpu.func @parts(%scales: vector<3xf32>, %n: i32) kernel {
        %c0 = arith.constant 0 : i32
        %tiles = pipe.channel from tma to threads(128) depth 2 payload [0, 16384] barriers 49152 : !channel
        pipe.role math warps 0 to 4 drives [tensor, threads] {
          %acc = pipe.accumulator : !sums
          %sums = pipe.accumulator : !sums
          %a, %b = pipe.consumer_wait %tiles[%c0] : !channel
          pipe.mma %sums, %a, %b : !sums, !a, !b
          pipe.promote %acc, %sums scaled %scales at %n : !sums, !sums, vector<3xf32>
          pipe.mma %sums, %a, %b : !sums, !a, !b
          pipe.consumer_release %tiles[%c0] : !channel
        }
        gpu.return
      }
    }
    // becomes
    ...
    pipe.mma %sums, %a, %b : ...
    pipe.promote %acc, %sums scaled %scales at %n complete : ...
    pipe.mma %sums, %a, %b chain replaces : ...
    ```
  }];
  let dependentDialects = ["::fp4::pipe::PipeDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

#endif // FP4_DIALECT_PIPE_SCHEDULE_PASSES_TD
