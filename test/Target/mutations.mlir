// Every synchronization of the emitted kernel is needed, and the simulator notices when it is gone:
// each barrier initialization, wait, arrival, expect_tx, commit and tensor memory release is deleted
// from the PTX in turn. 297 tiles on 148 blocks and 6 k tiles each make every ring wrap around.
// Fences are not among them: what they order is for the hazard checker to judge.
// RUN: fp4-runner %s --emit=so -o %t.so
// RUN: %python %fp4_src/test/Target/Inputs/mutations.py fp4-run %t.so --shape 38016 | FileCheck %s

// CHECK: as it is, lazy 1: passes
// CHECK: as it is, random 1: passes
// CHECK: as it is, random 2: passes
// CHECK: without the wait of line {{[0-9]+}}: caught
// CHECK: without the expect_tx of line {{[0-9]+}}: caught, error: deadlock
// CHECK-NOT: MISSED
// CHECK: {{[0-9]+}} caught, 0 missed

func.func @matmul(%a: tensor<?x1536xf4E2M1FN> {fp4.name = "a"},
                  %sa: tensor<?x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sa"},
                  %b: tensor<64x1536xf4E2M1FN> {fp4.name = "b"},
                  %sb: tensor<64x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.name = "sb"})
    -> (tensor<?x64xbf16> {fp4.name = "y"}) {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb
      {format = #fp4.format<nvfp4>, tile_n = 64 : i64}
      : (tensor<?x1536xf4E2M1FN>, tensor<?x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
         tensor<64x1536xf4E2M1FN>, tensor<64x96xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
      -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
