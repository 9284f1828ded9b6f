// ptxas accepts two GEMMs of one lhs, and derived results, beside sums that threads promote, for sm_100a and sm_103a
// without spills: a gate whose elements become FP8 with f32 scales, with a thread's 128 sums and the 64 that are added
// at a time; the same by pairs; codes of both orientations of 128 columns with an amax, by one warpgroup and by two;
// elements of f32; and e4m3 activations beside MXFP4 weights.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_100a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s
// RUN: fp4-opt %s --fp4-set-target=target=sm_103a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py | FileCheck %s

// CHECK-DAG: gate_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK-DAG: paired_gate_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK-DAG: narrow_gate_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: codes_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: shared_codes_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK-DAG: wide_codes_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK-DAG: group_gate_matmul_0 kernel: registers 168, spill 0, stack 0
// CHECK-DAG: weight_gate_matmul_0 kernel: registers 128, spill 0, stack 0
// CHECK-DAG: weight_codes_matmul_0 kernel: registers 128, spill 0, stack 0

#tiled = #fp4.scale_layout<tiled_128x4>
!a = tensor<4096x2048xf8E4M3FN>
!sa = tensor<4096x16xf32>
!b = tensor<4096x2048xf8E4M3FN>
!sb = tensor<32x16xf32>
!lhs = !fp4.scaled<fp8_block128, !a, !sa>
!rhs = !fp4.scaled<fp8_block128, !b, !sb>
!q = tensor<4096x4096xf8E4M3FN>
!s = tensor<4096x32xf32>
func.func @gate(%x: !a, %sx: !sa, %qw: !b, %sw: !sb, %qv: !b, %sv: !sb) -> (!q, !s) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %v = fp4.scaled %qv, %sv : !rhs
  %q, %s = fp4.matmul %a, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (!lhs, !rhs, !rhs) -> (!q, !s)
  return %q, %s : !q, !s
}
func.func @paired_gate(%x: !a, %sx: !sa, %qw: !b, %sw: !sb, %qv: !b, %sv: !sb) -> (!q, !s) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %v = fp4.scaled %qv, %sv : !rhs
  %q, %s = fp4.matmul %a, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], pair>} : (!lhs, !rhs, !rhs) -> (!q, !s)
  return %q, %s : !q, !s
}
func.func @narrow_gate(%x: !a, %sx: !sa, %qw: !b, %sw: !sb, %qv: !b, %sv: !sb) -> tensor<4096x4096xbf16> {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %v = fp4.scaled %qv, %sv : !rhs
  %q = fp4.matmul %a, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    fp4.yield %z : bf16
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>} : (!lhs, !rhs, !rhs) -> tensor<4096x4096xbf16>
  return %q : tensor<4096x4096xbf16>
}
!codes = tensor<4096x4096xf4E2M1FN>
!scales = tensor<4096x128xf8E8M0FNU, #tiled>
func.func @codes(%x: !a, %sx: !sa, %qw: !b, %sw: !sb) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %r:6 = fp4.matmul %a, %w epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code:4 = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>} : (bf16) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %code#0, %code#1, %code#2, %code#3, %amax : bf16, f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (!lhs, !rhs) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>
}
func.func @shared_codes(%x: !a, %sx: !sa, %qw: !b, %sw: !sb) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %r:6 = fp4.matmul %a, %w epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code:4 = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>} : (bf16) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %code#0, %code#1, %code#2, %code#3, %amax : bf16, f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>} : (!lhs, !rhs) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>
}
func.func @wide_codes(%x: !a, %sx: !sa, %qw: !b, %sw: !sb) -> (!q, !s) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !rhs
  %q, %s = fp4.matmul %a, %w epilogue() {
  ^bb0(%z: f32):
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (!lhs, !rhs) -> (!q, !s)
  return %q, %s : !q, !s
}
!groups = !fp4.scaled<fp8_block128, tensor<8192x2048xf8E4M3FN>, tensor<64x16xf32>>
func.func @group_gate(%x: !a, %sx: !sa, %qw: tensor<8192x2048xf8E4M3FN>, %sw: tensor<64x16xf32>, %qv: tensor<8192x2048xf8E4M3FN>, %sv: tensor<64x16xf32>, %o: tensor<3xi64>) -> (!q, !s) {
  %a = fp4.scaled %x, %sx : !lhs
  %w = fp4.scaled %qw, %sw : !groups
  %v = fp4.scaled %qv, %sv : !groups
  %q, %s = fp4.matmul %a, %w with %v offsets %o epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], pair>} : (!lhs, !groups, !groups, tensor<3xi64>) -> (!q, !s)
  return %q, %s : !q, !s
}
!p = tensor<32x16x8704xi8, #fp4.weight_layout<wgmma>>
func.func @weight_gate(%x: !a, %p: !p, %v: !p) -> (!q, !s) {
  %q, %s = fp4.matmul %x, %p with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %one = arith.constant 1.0 : f32
    %minus = arith.negf %sum : f32
    %power = math.exp %minus : f32
    %under = arith.addf %power, %one : f32
    %silu = arith.divf %sum, %under : f32
    %y = arith.mulf %silu, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>} : (!a, !p, !p) -> (!q, !s)
  return %q, %s : !q, !s
}
func.func @weight_codes(%x: !a, %p: !p) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>) {
  %r:6 = fp4.matmul %x, %p epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code:4 = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>} : (bf16) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %code#0, %code#1, %code#2, %code#3, %amax : bf16, f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 128, 128]>} : (!a, !p) -> (tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<4096x4096xbf16>, !codes, !scales, !codes, !scales, tensor<f32>
}
