// Tiles that a CTA takes over while the kernel runs: the ring of two responses. One CTA does all nine tiles, of 6 k
// tiles each, so that every ring wraps around.
// RUN: fp4-runner %s --sms=1 --emit=so -o %t.so
// RUN: %python %fp4_src/validation/mutate.py --build %fp4_build %t.so --shape=1060 --schedules=eager:1 --verbose \
// RUN:   | FileCheck %s

// CHECK-NOT: SURVIVED
// CHECK: {{^}}[[ALL:[0-9]+]] of [[ALL]] mutants killed, 0 equivalent, 0 redundant, 0 unreached, 0 survived

!lhs = !fp4.scaled<nvfp4, tensor<?x1536xf4E2M1FN>,
                   tensor<?x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x1536xf4E2M1FN>,
                   tensor<64x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @matmul(%a: tensor<?x1536xf4E2M1FN> {fp4.name = "a"},
                  %sa: tensor<?x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sa"},
                  %b: tensor<64x1536xf4E2M1FN> {fp4.name = "b"},
                  %sb: tensor<64x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sb"})
    -> (tensor<?x64xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], schedule = #pipe.cluster_launch<along_m depth 2>>}
      : (!lhs, !rhs) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
