// CTAs that have several tiles of 256 columns, whose accumulators overlap: 5 tiles for 2 pairs of CTAs. The
// epilogue begins with the last columns of even tiles and with the first of odd ones.
// RUN: fp4-runner %s --sms=4 --function=staged --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma" --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=staged --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma" --policy=random --seed=3 | FileCheck %s
// A result that TMA does not store, and columns that do not exist; scales of MXFP4 leave room for five sets.
// RUN: fp4-runner %s --sms=4 --function=direct --plan "tile_gemm, pair, tile = [256, 256, 256], store = direct" --check=strict | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=direct --plan "tile_gemm, tile = [128, 256, 256], store = direct" --policy=delay | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=direct --plan "tile_gemm, pair, tile = [256, 256, 256], store = direct" --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=SETS
// Results of f32, of which registers hold half a row; with one accumulator the other half is stored before.
// RUN: fp4-runner %s --sms=4 --function=wide --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma" --policy=lazy --check=strict | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=wide --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma, accumulators = 1" --policy=random --seed=3 | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=wide --plan "tile_gemm, pair, tile = [256, 256, 256], store = direct" --policy=delay --check=strict | FileCheck %s
// RUN: fp4-runner %s --sms=4 --function=wide --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma" --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=WIDE
// The 96 columns that the next tile waits for are given back before any of them is converted.
// RUN: fp4-runner %s --sms=4 --function=staged --plan "tile_gemm, pair, tile = [256, 256, 256], store = tma" --emit=mlir --compile-to=pipelined | FileCheck %s --check-prefix=AHEAD
// CHECK: equals the tcgen05 model, bit for bit
// CHECK: hazards {{.*}}none
// AHEAD: pipe.role epilogue
// AHEAD: pipe.consumer_wait
// AHEAD-NOT: arith.{{mulf|truncf}}
// AHEAD: pipe.read
// AHEAD-NOT: arith.{{mulf|truncf}}
// AHEAD: pipe.read
// AHEAD-NOT: arith.{{mulf|truncf}}
// AHEAD: pipe.read
// AHEAD-NOT: arith.{{mulf|truncf}}
// AHEAD: pipe.consumer_release {{.*}} partial
// SETS: pipe.channel from tensor {{.*}} depth 2 payload [0] stride [136]
// SETS: pipe.copy_scales {{.*}} sets 5
// WIDE-LABEL: func.func @wide
// WIDE: pipe.channel from tensor {{.*}} depth 2 payload [0] stride [136]
// WIDE: pipe.channel from tma to tensor {{.*}} depth 6
// WIDE: pipe.channel from threads(128) to bulk_store {{.*}}128x16xf32
// WIDE-NOT: to bulk_store

!lhs = !fp4.scaled<nvfp4, tensor<1280x512xf4E2M1FN>,
                   tensor<1280x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<256x512xf4E2M1FN>,
                   tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @staged(%a: tensor<1280x512xf4E2M1FN>, %sa: tensor<1280x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<256x512xf4E2M1FN>, %sb: tensor<256x32xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<f32>) -> tensor<1280x256xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<1280x256xbf16>
  return %y : tensor<1280x256xbf16>
}

!lhs2 = !fp4.scaled<mxfp4, tensor<1268x544xf4E2M1FN>,
                    tensor<1268x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<200x544xf4E2M1FN>,
                    tensor<200x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @direct(%a: tensor<1268x544xf4E2M1FN>, %sa: tensor<1268x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<200x544xf4E2M1FN>, %sb: tensor<200x17xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<1268x200xf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs2
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs2, !rhs2) -> tensor<1268x200xf16>
  return %y : tensor<1268x200xf16>
}

!lhs3 = !fp4.scaled<mxfp4, tensor<1268x512xf4E2M1FN>,
                    tensor<1268x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs3 = !fp4.scaled<mxfp4, tensor<248x512xf4E2M1FN>,
                    tensor<248x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// Half of a row of f32 fits in registers: what the tiles have in common is read first, and as much again as is stored.
func.func @wide(%a: tensor<1268x512xf4E2M1FN>, %sa: tensor<1268x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<248x512xf4E2M1FN>, %sb: tensor<248x16xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<1268x248xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs3
  %b_scaled = fp4.scaled %b, %sb : !rhs3
  %y = fp4.matmul %a_scaled, %b_scaled : (!lhs3, !rhs3) -> tensor<1268x248xf32>
  return %y : tensor<1268x248xf32>
}
