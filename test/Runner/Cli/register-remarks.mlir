// REQUIRES: ptxas
// Decisions of the assembler about registers are a remark too: the number of registers, and what it spilled. Four
// blocks in 24 registers spill.
// RUN: rm -rf %t && mkdir %t
// RUN: printf '#!/bin/sh\n[ $# -lt 3 ] || sed -i "s/^\\.reqntid.*/&\\n.maxnreg 24/" "$3"\nexec ptxas "$@"\n' > %t/few && chmod +x %t/few
// RUN: fp4-runner %s --emit=cubin --remarks --plan='stream_blocks, blocks_per_thread = 4' -o %t/all.cubin 2>&1 | FileCheck %s
// CHECK: register-remarks.mlir:[[#@LINE+8]]:{{[0-9]+}}: remark: [Passed] plan | Category:fp4-plan | Remark="#fp4.plan<stream_blocks, threads = {{[0-9]+}}, blocks_per_thread = 4>"
// CHECK: register-remarks.mlir:[[#@LINE+7]]:{{[0-9]+}}: remark: [Passed] registers | Category:fp4-ptxas | Remark="kernel has {{[0-9]+}} registers and spills nothing"
// RUN: fp4-runner %s --emit=cubin --remarks --plan='stream_blocks, blocks_per_thread = 4' --ptxas=%t/few -o %t/few.cubin 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: register-remarks.mlir:[[#@LINE+5]]:{{[0-9]+}}: remark: [Missed] spills | Category:fp4-ptxas | Reason="kernel has 24 registers, and spills {{[0-9]+}} bytes, which it loads as {{[0-9]+}}"
// RUN: fp4-runner %s --emit=cubin -o %t/silent.cubin 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT
// SILENT-NOT: remark

func.func @q(%x: tensor<?x256xbf16>, %a: tensor<f32>, %rng: tensor<2xi64>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %a rng %rng {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, rounding = #fp4.rounding<stochastic>}
      : (tensor<?x256xbf16>, tensor<f32>, tensor<2xi64>) -> (tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>)
  return %q, %s : tensor<?x256xf4E2M1FN>, tensor<?x16xf8E4M3FN>
}
