!lhs = !fp4.scaled<nvfp4, tensor<64x2560xf4E2M1FN>,
                   tensor<64x160xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<256x2560xf4E2M1FN>,
                   tensor<256x160xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// Warps convert the codes of one operand of this GEMM, and there is room for fewer converted tiles than for stages of
// the other operand: only who loads codes need not wait for empty stages (ImpliedReleases.cpp). Each wait that is left
// is needed. Without it the checker finds what is used too early, or overwritten.
// RUN: fp4-opt %s --target=sm_90a --compile-to=pipelined | FileCheck %s --check-prefix=RINGS
// RINGS: %[[RAW:.*]] = pipe.channel from tma to threads(256) depth 8
// RINGS: %[[CODES:.*]] = pipe.channel from tma to threads(224) depth 8
// RINGS: %[[TILES:.*]] = pipe.channel from threads(224) to threads(256) depth 7
// RUN: fp4-runner %s --target=sm_90a --sms=1 --emit=so -o %t.so
// RUN: %python %S/../../Inputs/without_waits.py %fp4_src/validation %t.so %t.jsonl
// RUN: fp4-run %t.so --device=sim --check=strict --edits=%t.jsonl | FileCheck %s
// CHECK: {"edit":0,"fates":[null]}
// CHECK-NEXT: {"edit":1,"fates":["overwritten-while-written"]
// CHECK-NEXT: {"edit":2,"fates":["unwaited-copy"]
// CHECK-NEXT: {"edit":3,"fates":["overwritten-while-read"]
// CHECK-NEXT: {"edit":4,"fates":["unwaited-copy"]
// CHECK-NEXT: {"edit":5,"fates":["shared-race"]
// CHECK-NOT: edit
func.func @linear(%qx: tensor<64x2560xf4E2M1FN>, %sx: tensor<64x160xf8E4M3FN>, %qw: tensor<256x2560xf4E2M1FN>, %sw: tensor<256x160xf8E4M3FN>) -> tensor<64x256xbf16> {
  %tx = fp4.swizzle_scales %sx : tensor<64x160xf8E4M3FN> -> tensor<64x160xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw : tensor<256x160xf8E4M3FN> -> tensor<256x160xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled
      {fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 48, convert warps 9 to 16 drives [threads] registers 48 auxiliary, math warps 0 to 8 drives [tensor, threads] registers 208>>}
      : (!lhs, !rhs) -> tensor<64x256xbf16>
  return %y : tensor<64x256xbf16>
}
