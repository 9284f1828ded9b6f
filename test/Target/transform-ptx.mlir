// Counts of instructions of each kind in the transforming quantizer, and the report of ptxas.
// RUN: rm -rf %t && mkdir -p %t
// RUN: fp4-opt %s --compile-to=nvvm | fp4-opt -fp4-set-target --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=TILES < %t/nearest_transform_0.ptx
// RUN: FileCheck %s --check-prefix=SYNC < %t/nearest_transform_0.ptx
// RUN: FileCheck %s --check-prefix=RANDOM < %t/random_transform_0.ptx
// RUN: fp4-opt %s --compile-to=nvvm --target=sm_103a | fp4-opt -fp4-set-target=target=sm_103a --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=TILES103 < %t/nearest_transform_0.ptx

// Two boxes to a tile, an MMA for each of its four slices, one load of 64 columns, which the wait follows;
// 32 contiguous bytes of codes and four scales to a thread.
// TILES: .target sm_100a
// TILES: .reqntid 192
// TILES-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// TILES-NOT: cp.async.bulk
// TILES-COUNT-4: tcgen05.mma.cta_group::1.kind::f16
// TILES-NOT: tcgen05.mma
// TILES: tcgen05.ld.sync.aligned.32x32b.x64.b32
// TILES-NEXT: begin inline asm
// TILES-NEXT: tcgen05.wait::ld.sync.aligned;
// TILES-NOT: tcgen05.ld
// TILES: cvt.rn.bf16x2.f32
// TILES: cvt.rn.satfinite.e2m1x2
// TILES: st.global.v8.b32
// TILES: st.global.b32
// TILES-NOT: st.global
// TILES103: .target sm_103a
// TILES103-COUNT-4: tcgen05.mma.cta_group::1.kind::f16

// Waits: an empty and a full stage of tiles and of accumulators, and the matrix. The matrix is written once,
// before the proxy fence and the arrival; commits hand over accumulators and release tiles.
// SYNC-COUNT-4: mbarrier.try_wait.parity
// SYNC: st.shared.b32
// SYNC: fence.proxy.async.shared::cta
// SYNC: mbarrier.arrive.shared.b64
// SYNC-COUNT-1: mbarrier.try_wait.parity
// SYNC: tcgen05.fence::before_thread_sync
// SYNC: mbarrier.arrive.shared.b64
// SYNC-NOT: mbarrier.try_wait
// SYNC-NOT: mbarrier.arrive
// SYNC: tcgen05.dealloc

// One conversion for four elements, with random bits.
// RANDOM-COUNT-16: cvt.rs.satfinite.e2m1x4.f32
// RANDOM-NOT: cvt.rs

func.func @nearest(%x: tensor<8192x5120xbf16>, %ax: tensor<f32>)
    -> (tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<8192x5120xbf16>, tensor<f32>)
      -> (tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
func.func @random(%x: tensor<8192x5120xbf16>, %ax: tensor<f32>, %rng: tensor<2xi64>)
    -> (tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %ax rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      rounding = #fp4.rounding<stochastic>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<8192x5120xbf16>, tensor<f32>, tensor<2xi64>)
      -> (tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<5120x8192xf4E2M1FN>, tensor<5120x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}
