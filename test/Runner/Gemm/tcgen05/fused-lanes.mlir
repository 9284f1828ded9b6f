// Sums that threads promote, of two GEMMs of one lhs and beside derived results, on targets with tcgen05: a gate
// whose elements become FP8 with f32 scales for the next GEMM, in halves of a block that two warpgroups have; codes
// of rows and of columns with an amax; groups of the device; pairs; scales in shared memory and in global memory; and
// e4m3 activations beside MXFP4 weights, whose rows are columns of the result.

// RUN: fp4-runner %s --emit=so --target=sm_100a -o %t.so
// RUN: fp4-run %t.so --function=gate --shape=150 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=gate --shape=1 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=narrow_gate --check=strict --policy=delay | FileCheck %s --check-prefixes=CHECK,Y
// RUN: fp4-run %t.so --function=paired_gate --shape=300 --check=strict --policy=random --seed=2 | FileCheck %s --check-prefixes=CHECK,Y
// RUN: fp4-run %t.so --function=everything --check=strict --policy=random --seed=3 | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: fp4-run %t.so --function=wide --shape=70 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=group_gates --check=strict --policy=random --seed=4 | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=weight_gate --shape=70 --check=strict --policy=random --seed=5 | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=weight_gate --shape=1 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,CODES
// RUN: fp4-run %t.so --function=weight_everything --check=strict --policy=delay | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: fp4-runner %s --device=sim --target=sm_103a --function=gate --shape=150 --check=strict --policy=delay | FileCheck %s --check-prefixes=CHECK,CODES
// CHECK: passed
// CODES-COUNT-2: equals the reference, bit for bit
// Y: y {{.*}}equals the reference, bit for bit
// ALL-COUNT-6: equals the reference, bit for bit
// CHECK: hazards none (strict check)

#tiled = #fp4.scale_layout<tiled_128x4>

!x = !fp4.scaled<fp8_block128, tensor<?x512xf8E4M3FN>, tensor<?x4xf32>>
!w = !fp4.scaled<fp8_block128, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @gate(%x: tensor<?x512xf8E4M3FN> {fp4.dims = ["M", ""]}, %sx: tensor<?x4xf32> {fp4.dims = ["M", ""]}, %qw: tensor<256x512xf8E4M3FN>, %sw: tensor<2x4xf32>, %qv: tensor<256x512xf8E4M3FN>, %sv: tensor<2x4xf32>)
    -> (tensor<?x256xf8E4M3FN>, tensor<?x2xf32>) {
  %a = fp4.scaled %x, %sx : !x
  %w = fp4.scaled %qw, %sw : !w
  %v = fp4.scaled %qv, %sv : !w
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
  } : (!x, !w, !w) -> (tensor<?x256xf8E4M3FN>, tensor<?x2xf32>)
  return %q, %s : tensor<?x256xf8E4M3FN>, tensor<?x2xf32>
}

// Four k tiles whose scales are in global memory, one warpgroup, N within a tile, and an alpha of each GEMM.
!x2 = !fp4.scaled<fp8_block128, tensor<130x400xf8E4M3FN>, tensor<130x4xf32>>
!w2 = !fp4.scaled<fp8_block128, tensor<200x400xf8E4M3FN>, tensor<2x4xf32>>
func.func @narrow_gate(%x: tensor<130x400xf8E4M3FN>, %sx: tensor<130x4xf32>, %qw: tensor<200x400xf8E4M3FN>, %sw: tensor<2x4xf32>, %qv: tensor<200x400xf8E4M3FN>, %sv: tensor<2x4xf32>, %alpha: tensor<1x200xf32>, %alpha2: tensor<1x200xf32>)
    -> (tensor<130x200xf32> {fp4.name = "y"}) {
  %a = fp4.scaled %x, %sx : !x2
  %w = fp4.scaled %qw, %sw : !w2
  %v = fp4.scaled %qv, %sv : !w2
  %y = fp4.matmul %a, %w with %v alpha %alpha alpha2 %alpha2 epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %z = arith.mulf %sum, %gate : f32
    fp4.yield %z : f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128], stages = 2>}
      : (!x2, !w2, !w2, tensor<1x200xf32>, tensor<1x200xf32>) -> tensor<130x200xf32>
  return %y : tensor<130x200xf32>
}

!x3 = !fp4.scaled<fp8_block128, tensor<?x1024xf8E4M3FN>, tensor<?x8xf32>>
!w3 = !fp4.scaled<fp8_block128, tensor<200x1024xf8E4M3FN>, tensor<2x8xf32>>
func.func @paired_gate(%x: tensor<?x1024xf8E4M3FN>, %sx: tensor<?x8xf32>, %qw: tensor<200x1024xf8E4M3FN>, %sw: tensor<2x8xf32>, %qv: tensor<200x1024xf8E4M3FN>, %sv: tensor<2x8xf32>)
    -> (tensor<?x200xbf16> {fp4.name = "y"}) {
  %a = fp4.scaled %x, %sx : !x3
  %w = fp4.scaled %qw, %sw : !w3
  %v = fp4.scaled %qv, %sv : !w3
  %y = fp4.matmul %a, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %all = arith.mulf %sum, %gate : f32
    %z = arith.truncf %all : f32 to bf16
    fp4.yield %z : bf16
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128], pair>} : (!x3, !w3, !w3) -> tensor<?x200xbf16>
  return %y : tensor<?x200xbf16>
}

!x4 = !fp4.scaled<fp8_block128, tensor<160x512xf8E4M3FN>, tensor<160x4xf32>>
!w4 = !fp4.scaled<fp8_block128, tensor<192x512xf8E4M3FN>, tensor<2x4xf32>>
func.func @everything(%x: tensor<160x512xf8E4M3FN>, %sx: tensor<160x4xf32>, %qw: tensor<192x512xf8E4M3FN>, %sw: tensor<2x4xf32>)
    -> (tensor<160x192xbf16>, tensor<160x192xf4E2M1FN>, tensor<160x6xf8E8M0FNU, #tiled>, tensor<192x160xf4E2M1FN>, tensor<192x5xf8E8M0FNU, #tiled>, tensor<f32>) {
  %a = fp4.scaled %x, %sx : !x4
  %w = fp4.scaled %qw, %sw : !w4
  %r:6 = fp4.matmul %a, %w epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code:4 = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>} : (bf16) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %code#0, %code#1, %code#2, %code#3, %amax : bf16, f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 64, 128]>} : (!x4, !w4)
      -> (tensor<160x192xbf16>, tensor<160x192xf4E2M1FN>, tensor<160x6xf8E8M0FNU, #tiled>, tensor<192x160xf4E2M1FN>, tensor<192x5xf8E8M0FNU, #tiled>, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<160x192xbf16>, tensor<160x192xf4E2M1FN>, tensor<160x6xf8E8M0FNU, #tiled>, tensor<192x160xf4E2M1FN>, tensor<192x5xf8E8M0FNU, #tiled>, tensor<f32>
}

// Two warpgroups have whole blocks of elements of f32, which begin behind those of the other.
!x5 = !fp4.scaled<fp8_block128, tensor<?x272xf8E4M3FN>, tensor<?x3xf32>>
!w5 = !fp4.scaled<fp8_block128, tensor<384x272xf8E4M3FN>, tensor<3x3xf32>>
func.func @wide(%x: tensor<?x272xf8E4M3FN> {fp4.dims = ["M", ""]}, %sx: tensor<?x3xf32> {fp4.dims = ["M", ""]}, %qw: tensor<384x272xf8E4M3FN>, %sw: tensor<3x3xf32>)
    -> (tensor<?x384xf8E4M3FN>, tensor<?x3xf32>) {
  %a = fp4.scaled %x, %sx : !x5
  %w = fp4.scaled %qw, %sw : !w5
  %q, %s = fp4.matmul %a, %w epilogue() {
  ^bb0(%sum: f32):
    %code, %scale = fp4.epilogue_quantize %sum {recipe = #fp4.recipe<fp8_deepgemm_power_of_two>} : (f32) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>} : (!x5, !w5) -> (tensor<?x384xf8E4M3FN>, tensor<?x3xf32>)
  return %q, %s : tensor<?x384xf8E4M3FN>, tensor<?x3xf32>
}

!x6 = !fp4.scaled<fp8_block128, tensor<300x512xf8E4M3FN>, tensor<300x4xf32>>
!w6 = !fp4.scaled<fp8_block128, tensor<512x512xf8E4M3FN>, tensor<4x4xf32>>
func.func @group_gates(%x: tensor<300x512xf8E4M3FN>, %sx: tensor<300x4xf32>, %qw: tensor<512x512xf8E4M3FN>, %sw: tensor<4x4xf32>, %qv: tensor<512x512xf8E4M3FN>, %sv: tensor<4x4xf32>)
    -> (tensor<300x128xf8E4M3FN>, tensor<300x1xf32>) {
  %o = arith.constant dense<[0, 170, 170, 171, 300]> : tensor<5xi64>
  %a = fp4.scaled %x, %sx : !x6
  %w = fp4.scaled %qw, %sw : !w6
  %v = fp4.scaled %qv, %sv : !w6
  %q, %s = fp4.matmul %a, %w with %v offsets %o epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %y = arith.mulf %sum, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %code, %scale : f8E4M3FN, f32
  } : (!x6, !w6, !w6, tensor<5xi64>) -> (tensor<300x128xf8E4M3FN>, tensor<300x1xf32>)
  return %q, %s : tensor<300x128xf8E4M3FN>, tensor<300x1xf32>
}

// Prepacked weights: K and N end within a tile.
!w7 = tensor<2x3x8704xi8, #fp4.weight_layout<wgmma>>
func.func @weight_gate(%x: tensor<?x320xf8E4M3FN> {fp4.dims = ["M", ""]}, %qw: tensor<224x320xf4E2M1FN>, %sw: tensor<224x10xf8E8M0FNU>, %qv: tensor<224x320xf4E2M1FN>, %sv: tensor<224x10xf8E8M0FNU>)
    -> (tensor<?x224xf8E4M3FN>, tensor<?x7xf8E8M0FNU, #tiled>) {
  %w = fp4.prepack %qw scaled %sw {format = #fp4.format<mxfp4>} : (tensor<224x320xf4E2M1FN>, tensor<224x10xf8E8M0FNU>) -> !w7
  %v = fp4.prepack %qv scaled %sv {format = #fp4.format<mxfp4>} : (tensor<224x320xf4E2M1FN>, tensor<224x10xf8E8M0FNU>) -> !w7
  %q, %s = fp4.matmul %x, %w with %v epilogue() {
  ^bb0(%sum: f32, %gate: f32):
    %y = arith.mulf %sum, %gate : f32
    %z = arith.truncf %y : f32 to bf16
    %code, %scale = fp4.epilogue_quantize %z {recipe = #fp4.recipe<mxfp8_e4m3_floor>} : (bf16) -> (f8E4M3FN, f8E8M0FNU)
    fp4.yield %code, %scale : f8E4M3FN, f8E8M0FNU
  } : (tensor<?x320xf8E4M3FN>, !w7, !w7) -> (tensor<?x224xf8E4M3FN>, tensor<?x7xf8E8M0FNU, #tiled>)
  return %q, %s : tensor<?x224xf8E4M3FN>, tensor<?x7xf8E8M0FNU, #tiled>
}

func.func @weight_everything(%x: tensor<160x384xf8E4M3FN>, %qw: tensor<256x384xf4E2M1FN>, %sw: tensor<256x12xf8E8M0FNU>)
    -> (tensor<160x256xbf16>, tensor<160x256xf4E2M1FN>, tensor<160x8xf8E8M0FNU, #tiled>, tensor<256x160xf4E2M1FN>, tensor<256x5xf8E8M0FNU, #tiled>, tensor<f32>) {
  %w = fp4.prepack %qw scaled %sw {format = #fp4.format<mxfp4>} : (tensor<256x384xf4E2M1FN>, tensor<256x12xf8E8M0FNU>) -> !w7
  %r:6 = fp4.matmul %x, %w epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %code:4 = fp4.epilogue_quantize %z {recipe = #fp4.recipe<ocp_floor>, outputs = #fp4.outputs<both>} : (bf16) -> (f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU)
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %code#0, %code#1, %code#2, %code#3, %amax : bf16, f4E2M1FN, f8E8M0FNU, f4E2M1FN, f8E8M0FNU, f32
  } {fp4.plan = #fp4.plan<tile_gemm, tile = [64, 128, 128]>} : (tensor<160x384xf8E4M3FN>, !w7)
      -> (tensor<160x256xbf16>, tensor<160x256xf4E2M1FN>, tensor<160x8xf8E8M0FNU, #tiled>, tensor<256x160xf4E2M1FN>, tensor<256x5xf8E8M0FNU, #tiled>, tensor<f32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<160x256xbf16>, tensor<160x256xf4E2M1FN>, tensor<160x8xf8E8M0FNU, #tiled>, tensor<256x160xf4E2M1FN>, tensor<256x5xf8E8M0FNU, #tiled>, tensor<f32>
}
