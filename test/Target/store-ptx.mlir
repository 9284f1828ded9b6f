// A GEMM whose result leaves through shared memory: instructions of each kind.
// RUN: rm -rf %t && mkdir -p %t
// RUN: fp4-opt %s --compile-to=nvvm | fp4-opt -fp4-set-target --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=STORES < %t/product_matmul_0.ptx
// RUN: FileCheck %s --check-prefix=THREADS < %t/product_matmul_0.ptx

// Rows of 64 bf16, which are 128 bytes, in 8 accesses to shared memory; nothing is stored to global memory
// by a thread.
// THREADS: .reqntid 256
// THREADS: tcgen05.ld.sync.aligned.32x32b.x64.b32
// THREADS-COUNT-8: st.shared.v4.b32
// THREADS-NOT: st.shared.v4
// THREADS: fence.proxy.async.shared::cta
// THREADS-NOT: st.global

// STORES: prefetch.param.tensormap
// STORES-COUNT-1: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// STORES: cp.async.bulk.commit_group
// STORES: cp.async.bulk.wait_group.read 1
// STORES: cp.async.bulk.wait_group.read 0
// STORES-NOT: cp.async.bulk.tensor.2d.global

!s = tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !t>
func.func @product(%a: tensor<?x1024xf4E2M1FN>, %sa: !s, %b: tensor<512x1024xf4E2M1FN>, %sb: !t) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled {fp4.plan = #fp4.plan<tile_gemm, store = tma>}
      : (!lhs, !rhs) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
