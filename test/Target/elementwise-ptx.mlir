// Instructions of each kind in the epilogue of a matmul and in a kernel that streams.
// RUN: rm -rf %t && mkdir -p %t
// RUN: fp4-opt %s --compile-to=nvvm | fp4-opt -fp4-set-target --fp4-emit-kernels=dump-dir=%t -o /dev/null
// RUN: FileCheck %s --check-prefix=EPILOGUE < %t/biased_matmul_0.ptx
// RUN: FileCheck %s --check-prefix=STREAM < %t/stream_elementwise_0.ptx
// RUN: not ls %t/biased_elementwise_0.ptx

// 32 columns at a time: 128 bytes of the bias in f32, 64 of the residual in bf16, 64 of the result; sums and
// products that are not contracted.
// EPILOGUE: .reqntid 224
// EPILOGUE: tcgen05.ld.sync.aligned.32x32b.x32.b32
// EPILOGUE-NOT: fma.rn
// EPILOGUE-COUNT-4: st.global.v4.b32
// EPILOGUE-NOT: st.global
// RUN: FileCheck %s --check-prefix=LOADS < %t/biased_matmul_0.ptx
// LOADS-COUNT-12: ld.global.nc.v{{(4.b32|2.b64)}}
// LOADS-NOT: ld.global
// RUN: FileCheck %s --check-prefix=SUMS < %t/biased_matmul_0.ptx
// SUMS-COUNT-32: add.rn.f32x2
// SUMS-NOT: add.rn.f32
!s = tensor<?x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!t = tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
#all = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
!lhs = !fp4.scaled<nvfp4, tensor<?x1024xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<512x1024xf4E2M1FN>, !t>
func.func @biased(%a: tensor<?x1024xf4E2M1FN>, %sa: !s, %b: tensor<512x1024xf4E2M1FN>, %sb: !t, %bias: tensor<512xf32>,
    %residual: tensor<?x512xbf16>) -> tensor<?x512xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 256], epilogue_warps = 4>}
      : (!lhs, !rhs) -> tensor<?x512xf32>
  %c0 = arith.constant 0 : index
  %m = tensor.dim %residual, %c0 : tensor<?x512xbf16>
  %e = tensor.empty(%m) : tensor<?x512xbf16>
  %z = linalg.generic {indexing_maps = [#all, #columns, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y, %bias, %residual : tensor<?x512xf32>, tensor<512xf32>, tensor<?x512xbf16>) outs(%e : tensor<?x512xbf16>) {
  ^bb0(%x: f32, %bi: f32, %r: bf16, %out: bf16):
    %sum = arith.addf %x, %bi : f32
    %wide = arith.extf %r : bf16 to f32
    %all = arith.addf %sum, %wide : f32
    %narrow = arith.truncf %all : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<?x512xbf16>
  return %z : tensor<?x512xbf16>
}

// 16 elements of bf16 in two accesses of 16 bytes, from each of two tensors.
// STREAM: .reqntid 256
// STREAM-COUNT-4: ld.global.nc.v4.b32
// STREAM-NOT: ld.global
// STREAM-COUNT-2: st.global.v4.b32
// STREAM-NOT: st.global
func.func @stream(%x: tensor<4096x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %z = arith.addf %x, %y : tensor<4096x4096xbf16>
  return %z : tensor<4096x4096xbf16>
}

// All loads of a gate come first, then the bounds of quotients and the branch on them: ptxas moves loads behind
// arithmetic, but not behind a branch, and those of the second operand would wait for the first one.
// RUN: FileCheck %s --check-prefix=GATE < %t/gate_elementwise_0.ptx
// GATE-COUNT-4: ld.global.v{{(4.b32|2.b64)}}
// GATE-NOT: ld.global
// GATE: rcp.approx.ftz.f32
// GATE-NOT: ld.global
// GATE: @%p{{[0-9]+}} bra
// GATE-NOT: ld.global
// GATE: st.global
func.func @gate(%g: tensor<4096x4096xbf16>, %u: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %e = tensor.empty() : tensor<4096x4096xbf16>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%g, %u : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%e : tensor<4096x4096xbf16>) {
  ^bb0(%gate: bf16, %up: bf16, %out: bf16):
    %wide = arith.extf %gate : bf16 to f32
    %by = arith.extf %up : bf16 to f32
    %one = arith.constant 1.0 : f32
    %limit = arith.constant 7.0 : f32
    %slope = arith.constant -1.702 : f32
    %x = arith.minimumf %wide, %limit : f32
    %scaled = arith.mulf %x, %slope : f32
    %exp = math.exp %scaled : f32
    %below = arith.addf %exp, %one : f32
    %glu = arith.divf %x, %below : f32
    %y = arith.mulf %glu, %by : f32
    %narrow = arith.truncf %y : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<4096x4096xbf16>
  return %z : tensor<4096x4096xbf16>
}
