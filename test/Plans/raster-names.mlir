// A raster that does not exist is refused, and the note lists those that do: in a plan of the program, and in one of the
// options. The twins have one that exists.
// RUN: split-file %s %t
// RUN: fp4-opt %t/right.mlir --compile-to=planned "--plan=tile_gemm, tile = [128, 64, 256]" | FileCheck %s --check-prefix=RIGHT
// RIGHT: tile = [128, 64, 256], {{.*}}schedule = #pipe.static_persistent<panels<4>>
// RUN: not %fp4-opt-once %t/wrong.mlir 2>&1 | FileCheck %s --check-prefix=WRONG --implicit-check-not=error:
// WRONG: wrong.mlir:6:{{[0-9]+}}: error: unknown raster 'panel'
// WRONG: note: known: along_m, along_n, panels<WIDTH>
// RUN: fp4-opt %t/open.mlir --compile-to=planned "--plan=tile_gemm, schedule = #pipe.static_persistent<along_n>" | FileCheck %s --check-prefix=OPTION
// RUN: fp4-runner %t/open.mlir --emit=mlir --compile-to=planned --plan "tile_gemm, schedule = #pipe.static_persistent<along_n>" | FileCheck %s --check-prefix=OPTION
// OPTION: schedule = #pipe.static_persistent<along_n>
// RUN: not fp4-opt %t/open.mlir --compile-to=planned "--plan=tile_gemm, schedule = #pipe.static_persistent<along_q>" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BAD
// RUN: not fp4-runner %t/open.mlir --emit=mlir --compile-to=planned --plan "tile_gemm, schedule = #pipe.static_persistent<along_q>" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BAD
// BAD: error: {{.*}} but got 'tile_gemm, schedule = #pipe.static_persistent<along_q>': unknown raster 'along_q'
// BAD-NEXT: note: known: along_m, along_n, panels<WIDTH>

//--- right.mlir
!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @product(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, schedule = #pipe.static_persistent<panels<4>>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

//--- wrong.mlir
!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @product(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled
      {fp4.plan = #fp4.plan<tile_gemm, schedule = #pipe.static_persistent<panel<4>>>}
      : (!operand, !operand) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

//--- open.mlir
!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @product(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  %y = fp4.matmul %a_scaled, %a_scaled : (!operand, !operand) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
