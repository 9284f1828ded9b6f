// If threads do more than convert and store elements, the model counts the work: eight warps, or narrower tiles, where
// one warp of a scheduler would wait, and four where pipes or memory are busy anyway. Remarks say what bounds.
// RUN: %fp4-opt-once %s -fp4-set-target=target=sm_100a -fp4-plan-kernels --remarks-filter-passed=fp4-plan -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/ : (!/ {fp4.plan = #fp4.plan<tile_gemm, epilogue_warps = 4>} : (!/' %s | fp4-opt -fp4-set-target=target=sm_100a -fp4-plan-kernels \
// RUN:   | FileCheck %s --check-prefix=FOUR
// FOUR-COUNT-6: epilogue warps 0 to 4

!a = tensor<4096x1024xf4E2M1FN>
!s = tensor<4096x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!l = tensor<4096x8192xf4E2M1FN>
!t = tensor<4096x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!y = tensor<4096x4096xbf16>
!operand = !fp4.scaled<nvfp4, !a, !s>
// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of 256x256 by pairs in clusters of 2 x 2, predicted {{.*}}, bound by what the L2 cache delivers"
func.func @plain(%a: !a, %s: !s) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> !y
  return %y : !y
}

// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of {{.*}} by a pair of CTAs, with an epilogue of eight warps, predicted {{.*}}, bound by the epilogue"
func.func @silu(%a: !a, %s: !s) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %x : f32
    %power = math.exp %minus : f32
    %below = arith.addf %power, %one : f32
    %act = arith.divf %x, %below : f32
    %narrow = arith.truncf %act : f32 to bf16
    fp4.yield %narrow : bf16
  } : (!operand, !operand) -> !y
  return %y : !y
}

!operand2 = !fp4.scaled<nvfp4, !l, !t>
// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of 256x256 by pairs in clusters of 2 x 2{{.*}}, predicted {{.*}}, bound by what the L2 cache delivers"
func.func @deep(%a: !l, %s: !t, %bias: tensor<1x4096xf32>) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand2
  %y = fp4.matmul %a_scaled, %a_scaled epilogue(%bias) {
  ^bb0(%x: f32, %i: f32):
    %sum = arith.addf %x, %i : f32
    %narrow = arith.truncf %sum : f32 to bf16
    fp4.yield %narrow : bf16
  } : (!operand2, !operand2, tensor<1x4096xf32>) -> !y
  return %y : !y
}

// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of 256x128 by a pair of CTAs, with an epilogue of eight warps
func.func @columns(%a: !a, %s: !s) -> (tensor<4096x4096xf4E2M1FN>, tensor<4096x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %q, %t = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %code, %scale = fp4.epilogue_quantize %x {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<columnwise>}
        : (f32) -> (f4E2M1FN, f8E8M0FNU)
    fp4.yield %code, %scale : f4E2M1FN, f8E8M0FNU
  } : (!operand, !operand)
      -> (tensor<4096x4096xf4E2M1FN>, tensor<4096x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  return %q, %t : tensor<4096x4096xf4E2M1FN>, tensor<4096x128xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

// Each warp raises the amax in memory, so more of them take longer.
// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of 256x192 by a pair of CTAs, predicted
func.func @amax(%a: !a, %s: !s) -> (!y, tensor<f32>) {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y, %m = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %narrow = arith.truncf %x : f32 to bf16
    %amax_out = fp4.epilogue_amax %narrow : bf16 -> f32
    fp4.yield %narrow, %amax_out : bf16, f32
  } : (!operand, !operand) -> (!y, tensor<f32>)
  return %y, %m : !y, tensor<f32>
}

// CHECK: epilogue-choice.mlir:[[@LINE+3]]{{.*}}Remark="tiles of 256x{{64|128}} by a pair of CTAs, with an epilogue of eight warps, predicted {{.*}}, bound by the epilogue"
func.func @gate(%a: !a, %s: !s) -> !y {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled with %a_scaled epilogue() {
  ^bb0(%x: f32, %up: f32):
    %tanh = math.tanh %x : f32
    %e = arith.mulf %tanh, %up : f32
    %narrow = arith.truncf %e : f32 to bf16
    fp4.yield %narrow : bf16
  } : (!operand, !operand, !operand) -> !y
  return %y : !y
}
