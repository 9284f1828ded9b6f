// An operation between a bf16 and an f16 has the exponents of f32, also of single elements, which LLVM 22 would
// narrow to f16: 2^17, which no f16 is, becomes 2^7.
// RUN: %python -c "import numpy; numpy.save(r'%t.npy', numpy.full((7, 5), 131072, numpy.float32))"
// RUN: fp4-runner %s --target=sm_90a --input x=%t.npy --output y=%t.y.npy --check=strict | FileCheck %s
// RUN: %python -c "import numpy; print('all', set(numpy.load(r'%t.y.npy').ravel().tolist()))" | FileCheck %s --check-prefix=VALUE
// RUN: fp4-runner %s --target=sm_120a --input x=%t.npy --check=strict | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// CHECK: y {{.*}}, bit for bit
// VALUE: all {128.0}
// PTX: mul{{.*}}.f32
// PTX-NOT: mul{{.*}}f16

// Without a bf16 in the kernel, LLVM may narrow: a product of f16 has the exponents of its factors.
// RUN: sed 's/bf16/f16/g; s/131072/128/' %s > %t.f16.mlir
// RUN: fp4-runner %t.f16.mlir --target=sm_90a --check=strict | FileCheck %s

func.func @scaled(%x: tensor<7x5xbf16> {fp4.name = "x"}) -> (tensor<7x5xf16> {fp4.name = "y"}) {
  %c = arith.constant dense<9.765625e-04> : tensor<7x5xf32>
  %wide = arith.extf %x : tensor<7x5xbf16> to tensor<7x5xf32>
  %product = arith.mulf %wide, %c : tensor<7x5xf32>
  %y = arith.truncf %product : tensor<7x5xf32> to tensor<7x5xf16>
  return %y : tensor<7x5xf16>
}
