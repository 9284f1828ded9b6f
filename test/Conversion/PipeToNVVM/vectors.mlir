// Tiles in registers become the vector of one thread, in arithmetic and in control flow.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!tile = tensor<128x8xf32, #pipe.distribution<lanes>>
!half = tensor<128x8xbf16, #pipe.distribution<lanes>>

gpu.module @m {
// CHECK-LABEL: llvm.func @carried
// CHECK-NOT: tensor<
// CHECK-DAG: llvm.mlir.constant(dense<0.000000e+00> : vector<8xf32>) : vector<8xf32>
// CHECK-DAG: llvm.shufflevector {{.*}} : vector<8xf32>
// CHECK: llvm.br ^{{.*}}vector<8xf32>)
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: llvm.fmul %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: llvm.fptrunc %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK-NOT: tensor<
// CHECK: llvm.return
gpu.func @carried(%p: !pipe.global<1024x32xf32>, %alpha: !pipe.global<f32>, %y: !pipe.global<1024x32xbf16>,
                  %n: i32, %is_scaled: i1) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !tile
    %f = pipe.load_entry %alpha : !pipe.global<f32> -> f32
    %factors = tensor.splat %f : !tile
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> !tile : i32 {
      %next = pipe.fetch %p[%i, %c0] written : !pipe.global<1024x32xf32> -> !tile
      %more = arith.addf %s, %next : !tile
      scf.yield %more : !tile
    }
    %v = scf.if %is_scaled -> !tile {
      %m = arith.mulf %sum, %factors : !tile
      scf.yield %m : !tile
    } else {
      scf.yield %sum : !tile
    }
    %h = arith.truncf %v : !tile to !half
    pipe.store %h, %y[%c0, %c0] : !half, !pipe.global<1024x32xbf16>
  }
  gpu.return
}
}

// Loops carry 16-bit floats in words of two.
// CHECK-LABEL: llvm.func @halves
// CHECK: llvm.br ^{{.*}}vector<4xi32>)
// CHECK: ^{{.*}}vector<4xi32>):
// CHECK: %[[ROUNDED:.*]] = llvm.fptrunc %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK: %[[WORDS:.*]] = llvm.bitcast %[[ROUNDED]] : vector<8xbf16> to vector<4xi32>
// CHECK: llvm.br ^{{.*}}%[[WORDS]]{{.*}}vector<4xi32>)
gpu.module @n {
gpu.func @halves(%p: !pipe.global<1024x32xf32>, %y: !pipe.global<1024x32xbf16>, %n: i32) kernel {
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !half
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%h = %zero) -> !half : i32 {
      %next = pipe.fetch %p[%i, %c0] written : !pipe.global<1024x32xf32> -> !tile
      %rounded = arith.truncf %next : !tile to !half
      scf.yield %rounded : !half
    }
    pipe.store %last, %y[%c0, %c0] : !half, !pipe.global<1024x32xbf16>
  }
  gpu.return
}
}
