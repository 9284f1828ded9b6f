// Few groups whose rows only the device has: one thread asks the L2 cache for the rows before the kernel may read them,
// and all roles read them once, behind the wait for the kernel before and in front of all tiles. If a CTA has several
// tiles, a GEMM with wgmma of FP8 lets the next kernel begin early too.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=several_matmul_0 -o - | FileCheck %s --check-prefixes=CHECK,BOTH,WAITS,READS
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=one_matmul_0 -o - | FileCheck %s --check-prefixes=CHECK,WAITS,READS
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=several_matmul_0 --no-pdl -o - | FileCheck %s --check-prefixes=CHECK,READS

// CHECK-NOT: ld.global
// CHECK-COUNT-2: prefetch.global.L2
// CHECK-NOT: {{prefetch.global|ld.global|griddepcontrol}}
// CHECK: bar.sync 0;
// BOTH-NEXT: griddepcontrol.launch_dependents;
// WAITS-NEXT: griddepcontrol.wait;
// READS-NOT: griddepcontrol
// READS-COUNT-3: ld.global.v4.b32
// READS-NOT: ld.global.v4.b32
// READS: setmaxnreg.dec
// READS-NOT: {{ld.global.v4.b32|griddepcontrol}}

!lhs = !fp4.scaled<fp8_block128, tensor<96x512xf8E4M3FN>, tensor<96x4xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<36864x512xf8E4M3FN>, tensor<288x4xf32>>
func.func @several(%a: tensor<96x512xf8E4M3FN>, %sa: tensor<96x4xf32>, %b: tensor<36864x512xf8E4M3FN>, %sb: tensor<288x4xf32>,
                   %o: tensor<3x2xi64>) -> tensor<96x12288xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs, tensor<3x2xi64>) -> tensor<96x12288xbf16>
  return %y : tensor<96x12288xbf16>
}
!rhs2 = !fp4.scaled<fp8_block128, tensor<384x512xf8E4M3FN>, tensor<3x4xf32>>
func.func @one(%a: tensor<96x512xf8E4M3FN>, %sa: tensor<96x4xf32>, %b: tensor<384x512xf8E4M3FN>, %sb: tensor<3x4xf32>,
               %o: tensor<3x2xi64>) -> tensor<96x128xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs2, tensor<3x2xi64>) -> tensor<96x128xbf16>
  return %y : tensor<96x128xbf16>
}
