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

func.func @several(%a: tensor<96x512xf8E4M3FN>, %sa: tensor<96x4xf32>, %b: tensor<36864x512xf8E4M3FN>, %sb: tensor<288x4xf32>,
                   %o: tensor<3x2xi64>) -> tensor<96x12288xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb offsets %o {format = #fp4.format<fp8_block128>, unspecified_rows}
      : (tensor<96x512xf8E4M3FN>, tensor<96x4xf32>, tensor<36864x512xf8E4M3FN>, tensor<288x4xf32>, tensor<3x2xi64>) -> tensor<96x12288xbf16>
  return %y : tensor<96x12288xbf16>
}
func.func @one(%a: tensor<96x512xf8E4M3FN>, %sa: tensor<96x4xf32>, %b: tensor<384x512xf8E4M3FN>, %sb: tensor<3x4xf32>,
               %o: tensor<3x2xi64>) -> tensor<96x128xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb offsets %o {format = #fp4.format<fp8_block128>, unspecified_rows}
      : (tensor<96x512xf8E4M3FN>, tensor<96x4xf32>, tensor<384x512xf8E4M3FN>, tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<96x128xbf16>
  return %y : tensor<96x128xbf16>
}
