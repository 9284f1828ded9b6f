// The whole way from a GEMM to PTX: how many instructions of each kind the kernel has.
// RUN: rm -rf %t && mkdir -p %t && split-file %s %t
// RUN: fp4-opt %t/nvfp4.mlir --compile-to=nvvm | fp4-opt -fp4-set-target --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=COPIES < %t/nvfp4_matmul_0.ptx
// RUN: FileCheck %s --check-prefix=MMAS < %t/nvfp4_matmul_0.ptx
// RUN: FileCheck %s --check-prefix=SYNC < %t/nvfp4_matmul_0.ptx
// RUN: fp4-opt %t/mxfp4.mlir --compile-to=nvvm | fp4-opt -fp4-set-target --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=MX < %t/mxfp4_matmul_0.ptx

// One k tile of K = 256: two TMA boxes and two bulk copies of scales.
// COPIES: .version 8.8
// COPIES: .target sm_100a
// COPIES: .extern .shared .align 1024 .b8 fp4_dynamic_shared[];
// COPIES: .param .align 64 .b8 kernel_param_0[128]
// COPIES: .reqntid 224
// COPIES-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// COPIES-COUNT-2: cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes
// COPIES-NOT: cp.async.bulk

// Four MMAs of K = 64 in the first k tile, behind whose wait for copied scales the accumulator is acquired, and in the
// loop; the loop is not unrolled. Another warp copies eight 512-byte blocks of scales for each k tile.
// MMAS-NOT: tcgen05.cp
// MMAS-COUNT-4: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
// MMAS-NOT: {{tcgen05.cp|tcgen05.mma}}
// MMAS: mbarrier.try_wait.parity
// MMAS-NOT: tcgen05.cp
// MMAS-COUNT-4: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16
// MMAS-NOT: tcgen05.mma
// MMAS: tcgen05.ld.sync.aligned.32x32b.x32.b32
// MMAS: begin inline asm
// MMAS-NEXT: tcgen05.wait::ld.sync.aligned;
// MMAS-COUNT-4: st.global.v4.b32
// MMAS-NOT: st.global

// Every wait is a loop of its own; commits release the ring and hand over the accumulator.
// SYNC: fence.mbarrier_init.release.cluster
// SYNC: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
// SYNC: tcgen05.relinquish_alloc_permit
// SYNC: bar.sync
// SYNC-COUNT-7: mbarrier.try_wait.parity
// SYNC-NOT: mbarrier.try_wait
// SYNC: tcgen05.dealloc

// MXFP4: a block of scales serves two MMAs, so half as many copies.
// MX-COUNT-8: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32
// MX-NOT: tcgen05.mma
// MX-COUNT-4: tcgen05.cp.cta_group::1.32x128b.warpx4
// MX-NOT: tcgen05.cp

//--- nvfp4.mlir
!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @nvfp4(%a: tensor<?x1024xf4E2M1FN>,
                %sa: tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
                %b: tensor<512x1024xf4E2M1FN>,
                %sb: tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
//--- mxfp4.mlir
!lhs = !fp4.scaled<mxfp4, tensor<?x1024xf4E2M1FN>,
                   tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<512x1024xf4E2M1FN>,
                   tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @mxfp4(%a: tensor<?x1024xf4E2M1FN>,
                %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
                %b: tensor<512x1024xf4E2M1FN>,
                %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
    -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256]>}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
