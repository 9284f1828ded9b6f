// Errors of a kernel that cannot be compiled: each message says what was found, each note what to
// try. The passing twins are emit-ptx.mlir and emit-cubin.mlir.
// RUN: rm -rf %t && mkdir -p %t/cuda/bin
// RUN: split-file %s %t

// RUN: not fp4-opt %t/ok.mlir -fp4-set-target --fp4-emit-kernels=emit=fatbin 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: error: fp4-emit-kernels: option emit must be ptx or cubin, but got 'fatbin'

// RUN: not fp4-opt %t/ok.mlir -fp4-set-target=target=sm_75 --fp4-emit-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'sm_75'
// TARGET: note: known targets: sm_100a, {{.*}}sm_90a

// RUN: not fp4-opt %t/ok.mlir -fp4-set-target "--fp4-emit-kernels=emit=cubin ptxas=%t/none" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=MISSING
// MISSING: error: ptxas must be an executable file, but got '{{.*}}/none'
// MISSING: note: install ptxas (CUDA 12.9 or newer)

// RUN: chmod +x %t/old-ptxas.sh
// RUN: not fp4-opt %t/ok.mlir -fp4-set-target "--fp4-emit-kernels=emit=cubin ptxas=%t/old-ptxas.sh" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OLD
// RUN: env FP4_PTXAS=%t/old-ptxas.sh not fp4-opt %t/ok.mlir -fp4-set-target --fp4-emit-kernels=emit=cubin 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OLD
// OLD: error: target sm_100a needs ptxas of CUDA 12.9 or newer, but got 12.6 ('{{.*}}old-ptxas.sh')
// OLD: note: install ptxas (CUDA 12.9 or newer) {{.*}}ask for PTX

// That assembler is new enough for sm_90a; it is an impostor that fails, and its words are shown.
// RUN: sed 's/12\.6/12.8/g' %t/old-ptxas.sh > %t/newer-ptxas.sh && chmod +x %t/newer-ptxas.sh
// RUN: not fp4-opt %t/ok.mlir -fp4-set-target=target=sm_90a "--fp4-emit-kernels=emit=cubin ptxas=%t/newer-ptxas.sh" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REJECT
// REJECT: error: ptxas rejects the kernel for sm_90a: Unknown modifier '.bar' (ptx line 5: .version 8.6)
// REJECT: note: this is a mistake of the compiler; keep the PTX with dump-dir and report it

// No ptxas anywhere: PTX still comes out.
// RUN: env PATH= CUDA_HOME=%t/cuda FP4_PTXAS= CUDA_PATH= CUDA_ROOT= not fp4-opt %t/ok.mlir -fp4-set-target --fp4-emit-kernels=emit=cubin 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: ptxas was not found in $FP4_PTXAS, PATH, $CUDA_HOME, $CUDA_PATH, $CUDA_ROOT or the wheel nvidia-cuda-nvcc
// RUN: env PATH= FP4_PTXAS= CUDA_HOME= CUDA_PATH= CUDA_ROOT= fp4-opt %t/ok.mlir -fp4-set-target --fp4-emit-kernels=emit=ptx | FileCheck %s --check-prefix=PTX
// PTX: gpu.binary @m

// The wheel of NVIDIA beside those of fp4, whose libraries lie in fp4/lib of the same folder.
// RUN: rm -rf %t/site && mkdir -p %t/site/fp4/lib %t/site/nvidia/cu13/bin && cp %fp4_build/bin/fp4-opt %t/site/fp4/lib
// RUN: printf '#!/bin/sh\necho "the one of the wheel"\n' > %t/site/nvidia/cu13/bin/ptxas && chmod +x %t/site/nvidia/cu13/bin/ptxas
// RUN: env PATH= CUDA_HOME= FP4_PTXAS= CUDA_PATH= CUDA_ROOT= not %t/site/fp4/lib/fp4-opt %t/ok.mlir -fp4-set-target --fp4-emit-kernels=emit=cubin 2>&1 \
// RUN:   | FileCheck %s --check-prefix=WHEEL
// WHEEL: error: ptxas --version must print a release such as 'release 13.0', but got 'the one of the wheel

// RUN: not fp4-opt %t/arith.mlir -fp4-set-target --fp4-emit-kernels 2>&1 | FileCheck %s --check-prefix=DIALECT
// DIALECT: error: cannot be translated to LLVM IR
// DIALECT: note: run convert-pipe-to-nvvm first: only the llvm and nvvm dialects may remain

// An instruction that the target lacks is an error at the operation, not one deep inside LLVM.
// RUN: not fp4-opt %t/tcgen05.mlir -fp4-set-target=target=sm_90a --fp4-emit-kernels 2>&1 | FileCheck %s --check-prefix=INSN
// RUN: fp4-opt %t/tcgen05.mlir -fp4-set-target=target=sm_100a --fp4-emit-kernels -o /dev/null
// RUN: fp4-opt %t/tcgen05.mlir -fp4-set-target=target=sm_103a --fp4-emit-kernels -o /dev/null
// INSN: tcgen05.mlir:3:5: error: 'nvvm.tcgen05.alloc' op is not supported on sm_90a

//--- tcgen05.mlir
gpu.module @m {
  llvm.func @k(%slot: !llvm.ptr<3>, %columns: i32) attributes {nvvm.kernel} {
    nvvm.tcgen05.alloc %slot, %columns : !llvm.ptr<3>, i32
    llvm.return
  }
}
//--- ok.mlir
gpu.module @m {
  llvm.func @k(%data: !llvm.ptr<1>) attributes {nvvm.kernel} {
    llvm.return
  }
}
//--- arith.mlir
gpu.module @m {
  llvm.func @k(%data: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c = arith.constant 0 : i32
    llvm.return
  }
}
//--- old-ptxas.sh
#!/bin/sh
if [ "$1" = --version ]; then
  echo "Cuda compilation tools, release 12.6, V12.6.85"
else
  echo "ptxas $3, line 5; error   : Unknown modifier '.bar'" >&2
  echo "ptxas fatal   : Ptx assembly aborted due to errors" >&2
  exit 255
fi
