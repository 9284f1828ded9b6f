// ptxas' report becomes the kernel table, and its warnings become ours. The assembler here is a
// script that speaks like ptxas, so that spills and warnings can be shown on purpose.
// RUN: rm -rf %t && mkdir -p %t && split-file %s %t && chmod +x %t/ptxas.sh
// RUN: fp4-opt %t/k.mlir -fp4-set-target "--fp4-emit-kernels=emit=cubin ptxas=%t/ptxas.sh" 2>&1 | FileCheck %s

// CHECK: warning: ptxas: (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.
// CHECK: #gpu.kernel_metadata<"first", {{.*}} metadata = {barriers = 0 : i64, dynamic_shared_bytes = 0 : i64, registers = 7 : i64, shared_bytes = 0 : i64, spill_bytes = 0 : i64, stack_bytes = 0 : i64}>
// CHECK-SAME: #gpu.kernel_metadata<"second", {{.*}} metadata = {barriers = 2 : i64, dynamic_shared_bytes = 0 : i64, registers = 255 : i64, shared_bytes = 1040 : i64, spill_bytes = 56 : i64, stack_bytes = 48 : i64}>
// CHECK-SAME: bin = "cubin for sm_100a"

//--- k.mlir
gpu.module @m {
  llvm.func @second() attributes {nvvm.kernel} {
    llvm.return
  }
  llvm.func @first() attributes {nvvm.kernel} {
    llvm.return
  }
}
//--- ptxas.sh
#!/bin/sh
if [ "$1" = --version ]; then
  echo "Cuda compilation tools, release 13.0, V13.0.88"
  exit
fi
# -v -arch=sm_100a input -o output
printf 'cubin for %s' "${2#-arch=}" > "$5"
cat <<'END' >&2
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_100a'
ptxas warning : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.
ptxas info    : Function properties for second
    48 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 48 bytes cumulative stack size, 1040 bytes smem
ptxas info    : Compiling entry function 'first' for 'sm_100a'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 7 registers, used 0 barriers
END
