//===- PipeChannelOps.td - Roles and channels ----------------------------===//
#ifndef FP4_DIALECT_PIPE_IR_PIPECHANNELOPS_TD
#define FP4_DIALECT_PIPE_IR_PIPECHANNELOPS_TD

include "fp4/Dialect/Pipe/IR/PipeOpBase.td"

def Pipe_RoleRegionOp : Pipe_Op<"role", [NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "code of one role";
  let description = [{
    The region runs on the warps of its role (`#pipe.role`): on all threads of a role that drives
    `threads`, else on one elected thread. The roles of a kernel run concurrently and meet only in
    channels. One producer, that of channels.

    Example:
    ```mlir
    pipe.role epilogue warps 0 to 4 drives [threads] {
      %acc = pipe.consumer_wait %accs : !accs
      %v = pipe.read %acc[%c] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs : !accs
    }
    ```
  }];
  let arguments = (ins Pipe_RoleAttr:$role);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "custom<Role>($role) attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Pipe_ChannelOp : Pipe_Op<"channel", [Pipe_NamedResults]> {
  let summary = "channel between two roles";
  let description = [{
    A full and an empty barrier per stage, with the stages' tiles. An engine completes each side:
    `tma` (bytes that the loads announce), `tensor` (tcgen05.commit), `threads(n)` (n arrivals) or
    `bulk_store` (the end of its bulk groups). One arrival completes a side of the others. Several
    roles may use the stages, each in its own time: `to [tensor, threads(128)]`. A stage is empty
    when all have released it.

    The pipelined form adds `depth` and the places of stage 0: `payload` has one byte offset in
    shared memory, or one tensor memory column, per tile, and stage s follows at s times the tile's
    size, or at s times its `stride`; `barriers` is the byte offset of full[0..depth) followed by
    empty[0..depth), 8 bytes each.

    Every CTA has the barriers and tiles of the channel. With `scope cluster`, CTAs arrive at each
    other's barriers: one that loads into tiles of others waits until all of them have released the
    stage, and the two CTAs of a pair share what its tensor core fills or uses. Full barriers of
    what it uses, and empty barriers of what it fills, are those of the leader. The arrivals are
    counted per CTA.

    In the scheduled form a channel `without_empty` has no empty barriers: its stages are filled once,
    or other channels make sure that a stage is empty when the producer takes it
    (`pipe-elide-sync`). A consumer `scale_copy` is a warp that copies scales ahead of the consumer
    `tensor` (`pipe-split-warps`): that warp also arrives at a third barrier of the stage, behind the
    empty ones, for which `tensor` waits in place of the full barrier.

    Two stages of one accumulator may overlap: then their `stride` is smaller than the tile. A producer
    takes a stage when the consumer has released the overlapping columns of the stage before
    (`pipe.consumer_release` of a part). One producer, `pipe-specialize-warps`, which makes roles and
    their channels of every kernel.

    Example:
    ```mlir
    %ab = pipe.channel from tma to tensor : !channel
    %acc = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 163904
        : !pipe.channel<!pipe.tmem<128x128xf32>>
    ```
  }];
  let arguments = (ins Pipe_EngineAttr:$producer, DefaultValuedAttr<I32Attr, "1">:$producer_arrivals,
                       Pipe_EngineArrayAttr:$consumers, DenseI32ArrayAttr:$consumer_arrivals,
                       DefaultValuedAttr<Pipe_ScopeAttr, "::fp4::pipe::Scope::Cta">:$scope,
                       OptionalAttr<I32Attr>:$depth, OptionalAttr<DenseI64ArrayAttr>:$payload,
                       OptionalAttr<DenseI64ArrayAttr>:$stride, OptionalAttr<I64Attr>:$barriers,
                       UnitAttr:$without_empty);
  let results = (outs Pipe_ChannelType:$result);
  let assemblyFormat = [{
    `from` custom<Completion>($producer, $producer_arrivals)
    `to` custom<Completions>($consumers, $consumer_arrivals) (`scope` `` $scope^)?
    (`depth` $depth^)? (`payload` $payload^)? (`stride` $stride^)? (`barriers` $barriers^)?
    (`without_empty` $without_empty^)? attr-dict `:` qualified(type($result))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isPipelined() { return getDepth().has_value(); }
    /// The engines that complete the consumers' ends, and of one consumer its role's.
    ::llvm::SmallVector<::fp4::pipe::Engine> getConsumerEngines();
    /// A consumer is the tensor core.
    bool feedsTensor();
    /// Arrivals of all consumers in one CTA.
    int32_t getNumConsumerArrivals();
    /// The number, among the consumers, of the one that `role` is; none if it is none.
    ::std::optional<size_t> getConsumerNumber(::fp4::pipe::RoleAttr role);
    /// Bytes, or columns of tensor memory, from one stage of tile `index` to the next.
    int64_t getStageStride(size_t index);
    /// Two stages have columns in common.
    bool overlaps();
    /// The columns of a tile that are in one stage only: from first to, not including, second.
    std::pair<int64_t, int64_t> getOwnColumns();
    /// Stages that a release is late: that of `bulk_store` arrives for the stage before its own, so
    /// that one copy may read while the next is issued.
    int64_t getReleaseDelay();
    /// A warp of its own copies scales out of the stages.
    bool isCopiedAhead();
    bool isCluster() { return getScope() == ::fp4::pipe::Scope::Cluster; }
  }];
}

/// An op on a channel: `%ab` in the specialized form, `%ab[%it]` in the pipelined one.
class Pipe_ChannelUserOp<string mnemonic, string use, list<Trait> traits = []>
    : Pipe_Op<mnemonic, traits # [Pipe_ChannelOpInterface]> {
  let extraClassDeclaration = Pipe_ChannelUse<use>.useDecl;
  let arguments = (ins Pipe_ChannelType:$channel, Optional<I32>:$iteration);
  let assemblyFormat = "$channel (`[` $iteration^ `]`)? attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

/// A wait. With `unfenced` no tcgen05.fence::after_thread_sync follows it: a later wait has one.
class Pipe_ChannelSlotsOp<string mnemonic, string use>
    : Pipe_ChannelUserOp<mnemonic, use, [InferTypeOpAdaptor, Pipe_NamedResults]> {
  let arguments = (ins Pipe_ChannelType:$channel, Optional<I32>:$iteration, UnitAttr:$unfenced);
  let results = (outs Variadic<AnyType>:$slots);
  let assemblyFormat = [{
    $channel (`[` $iteration^ `]`)? (`unfenced` $unfenced^)? attr-dict `:` qualified(type($channel))
  }];
}

/// An arrival of one side of a channel.
class Pipe_ArrivalOp<string mnemonic, string use> : Pipe_ChannelUserOp<mnemonic, use> {
  let arguments = (ins Pipe_ChannelType:$channel, Optional<I32>:$iteration, UnitAttr:$unfenced,
                       DefaultValuedAttr<Pipe_ArrivalAttr, "::fp4::pipe::Arrival::Threads">:$by);
  let assemblyFormat = [{
    $channel (`[` $iteration^ `]`)? (`unfenced` $unfenced^)? (`by` `` $by^)? attr-dict
    `:` qualified(type($channel))
  }];
}

def Pipe_ProducerAcquireOp : Pipe_ChannelSlotsOp<"producer_acquire", "Acquire"> {
  let summary = "wait until a stage is empty";
  let description = [{
    Waits until the consumers have released stage `it mod depth` (the first `depth` waits pass at
    once) and returns its tiles. The parity is `((it / depth) mod 2) xor 1`. A channel
    `without_empty` has no wait. Work of tcgen05 that follows needs a
    tcgen05.fence::after_thread_sync, which stands behind the wait unless it is `unfenced`. (C123)
    PTX: mbarrier.try_wait.parity on empty. One producer, that of channels.

    Example:
    ```mlir
    %a, %b = pipe.producer_acquire %ab[%it] : !channel
    ```
  }];
}

def Pipe_ExpectTxOp : Pipe_ChannelUserOp<"expect_tx", "Announce"> {
  let summary = "announce the bytes of a stage";
  let description = [{
    One arrival on the full barrier of stage `it mod depth` that adds `bytes` to what the loads
    signalling this stage must complete. Comes before those loads; the sum of their bytes equals
    `bytes`. If a pair's tensor core uses the stage, the leader announces the bytes of both CTAs,
    and its peer announces nothing. PTX: mbarrier.arrive.expect_tx. One producer, `pipe-pipeline`,
    which counts the bytes of every stage.

    Example:
    ```mlir
    pipe.expect_tx %ab[%it], %bytes : !channel
    ```
  }];
  let arguments = (ins Pipe_ChannelType:$channel, I32:$iteration, I32:$bytes);
  let assemblyFormat =
      "$channel `[` $iteration `]` `,` $bytes attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

def Pipe_ProducerCommitOp : Pipe_ArrivalOp<"producer_commit", "Commit"> {
  let summary = "hand the stage to the consumers";
  let description = [{
    Ends the producer's access to the acquired tiles. Producer `tensor`: tcgen05.commit on full,
    when all earlier tensor core work of this thread is done; `threads`: fence and arrive; `tma`:
    the loads' bytes complete the barrier, nothing is emitted. `unfenced` and `by` are those of
    `pipe.consumer_release`. (C123) One producer, that of channels.

    Example:
    ```mlir
    pipe.producer_commit %ab[%it] : !channel
    ```
  }];
}

def Pipe_ConsumerWaitOp : Pipe_ChannelSlotsOp<"consumer_wait", "Wait"> {
  let summary = "wait until a stage is full";
  let description = [{
    Waits for the phase `(it / depth) mod 2` of the full barrier of stage `it mod depth` and returns
    its tiles. A tensor memory payload, and a shared payload that tcgen05 reads, need a
    tcgen05.fence::after_thread_sync after the wait, unless it is `unfenced`. (C123) PTX:
    mbarrier.try_wait.parity on full. One producer, that of channels.

    Example:
    ```mlir
    %a, %b = pipe.consumer_wait %ab[%it] : !channel
    ```
  }];
}

def Pipe_ConsumerReleaseOp : Pipe_ArrivalOp<"consumer_release", "Release"> {
  let summary = "hand the stage back to the producer";
  let description = [{
    Ends the consumer's access to the tiles. Consumer `tensor`: tcgen05.commit on empty; `threads`:
    tcgen05.fence::before_thread_sync for a tensor memory payload, then one arrival per thread.
    Nothing arrives in a channel `without_empty`. (C123)

    Threads that have read a stage in shared memory fence these reads before copies that overwrite
    it, unless the op is `unfenced`. With `by warps` one thread arrives for its warp when all lanes
    are there, with `by aligned_warps` at once.

    With `partial` the consumer has read the columns that its stage has in common with the other
    stage, so that the producer may fill that one: the release of a part arrives. The consumer still
    holds the other columns and ends its access with a release of the whole stage, which is `by
    nobody` then. (C621)

    Consumer `bulk_store`: the copies out of the stage become a bulk group, and the thread waits
    until all groups but this one have been read. The thread then arrives for the stage before,
    whose copies have been read, and in a channel of depth 1 waits for its own group and arrives for
    its own stage. The role ends when all groups have been read. PTX: cp.async.bulk.commit_group,
    cp.async.bulk.wait_group.read 1, mbarrier.arrive.

    Example:
    ```mlir
    %acc = pipe.consumer_wait %accs[%it] : !overlapping
    %low = pipe.read %acc[%c0] : !pipe.tmem<128x256xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
    %high = pipe.read %acc[%c192] : !pipe.tmem<128x256xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs[%it] partial : !overlapping
    %middle = pipe.read %acc[%c64] : !pipe.tmem<128x256xf32> -> tensor<128x128xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs[%it] : !overlapping
    ```
  }];
  let arguments = (ins Pipe_ChannelType:$channel, Optional<I32>:$iteration, UnitAttr:$unfenced,
                       DefaultValuedAttr<Pipe_ArrivalAttr, "::fp4::pipe::Arrival::Threads">:$by,
                       UnitAttr:$partial);
  let assemblyFormat = [{
    $channel (`[` $iteration^ `]`)? (`partial` $partial^)? (`unfenced` $unfenced^)? (`by` `` $by^)?
    attr-dict `:` qualified(type($channel))
  }];
  let extraClassDeclaration = [{
    ::fp4::pipe::ChannelUse getChannelUse() {
      return getPartial() ? ::fp4::pipe::ChannelUse::PartialRelease
                          : ::fp4::pipe::ChannelUse::Release;
    }
  }];
}

def Pipe_AwaitReleaseOp : Pipe_ChannelUserOp<"await_release", "AwaitRelease"> {
  let summary = "wait until the consumer's own release is complete";
  let description = [{
    The consumer waits for its release of the stage that it took `distance` iterations ago, if there
    is one: the work issued before that release is then done. The release of a `tensor` consumer is
    complete when its MMAs are. PTX: mbarrier.try_wait.parity on the empty barrier of stage
    `(it - distance) mod depth`.

    A wait of distance 2 that is `folded` is a part of the wait for the next stage: the MMAs issued
    up to here arrive at its full barrier, which counts one arrival more (`pipe-fold-awaits`). PTX:
    tcgen05.commit. `unfenced` is that of `pipe.consumer_wait`. One producer, `pipe-pipeline`: only
    it knows whether stages have sets of scales of their own.

    Example:
    ```mlir
    pipe.await_release %ab[%it] distance 2 : !channel
    ```
  }];
  let arguments = (ins Pipe_ChannelType:$channel, I32:$iteration, I64Attr:$distance,
                       UnitAttr:$folded, UnitAttr:$unfenced);
  let assemblyFormat = [{
    $channel `[` $iteration `]` `distance` $distance (`folded` $folded^)? (`unfenced` $unfenced^)?
    attr-dict `:` qualified(type($channel))
  }];
  let hasVerifier = 1;
}

#endif // FP4_DIALECT_PIPE_IR_PIPECHANNELOPS_TD
