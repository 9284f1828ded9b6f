// Mutants as in mutations.mlir, of a kernel that stores tiles through shared memory: what threads, bulk copies
// and barriers order among themselves is needed, and the simulator notices when it is gone. 9 tiles on 1 CTA
// make every ring wrap around.
// RUN: fp4-runner %s --sms=1 --emit=so -o %t.so
// RUN: %python %fp4_src/validation/mutate.py --build %fp4_build %t.so --shape=1060 --schedules=eager:1 --verbose \
// RUN:   | FileCheck %s

// CHECK-NOT: SURVIVED
// CHECK: {{^}}[[ALL:[0-9]+]] of [[ALL]] mutants killed, 0 equivalent, 0 redundant, 0 unreached, 0 survived

!lhs = !fp4.scaled<nvfp4, tensor<?x768xf4E2M1FN>,
                   tensor<?x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<64x768xf4E2M1FN>,
                   tensor<64x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @matmul(%a: tensor<?x768xf4E2M1FN> {fp4.name = "a"},
                  %sa: tensor<?x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sa"},
                  %b: tensor<64x768xf4E2M1FN> {fp4.name = "b"},
                  %sb: tensor<64x48xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sb"})
    -> (tensor<?x64xbf16> {fp4.name = "y"}) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled
      {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 256], store = tma, stages = 2>}
      : (!lhs, !rhs) -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
