// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target -fp4-plan-kernels -convert-fp4-to-pipe -canonicalize -cse \
// RUN:     -pipe-specialize-warps -pipe-verify-sync -canonicalize -cse -pipe-verify-sync \
// RUN:     -pipe-pipeline -canonicalize -cse -pipe-verify-sync -pipe-verify-capacity \
// RUN:   | FileCheck %s --check-prefix=PIPELINED
// RUN: fp4-opt %s -fp4-set-target=sms=3 -fp4-plan-kernels -convert-fp4-to-pipe | FileCheck %s --check-prefix=FEWER

// A quantizer that transforms on the tensor core becomes a kernel of tiles; every form of it prints, parses
// and verifies. 1024 x 512 are 16 x 4 tiles, as many CTAs of one tile. Two CTAs share an SM, so that
// eight warps quantize: a ring of 7 tiles and half of tensor memory each.

// CHECK-LABEL: func.func @f
// CHECK: %[[MAP:.*]] = pipe.make_tensor_map %{{.*}} columns 512 : memref<1024x512xbf16> -> !pipe.tensor_map<64x64xbf16, swizzle_128B>
// CHECK: %[[AMAX:.*]] = pipe.view %{{.*}} : memref<f32> -> !pipe.global<f32>
// CHECK: %[[Q:.*]] = pipe.view %{{.*}} : memref<512x512xi8> -> !pipe.global<512x1024xf4E2M1FN>
// CHECK: %[[S:.*]] = pipe.view %{{.*}} : memref<4x16x512xi8> -> !pipe.global<512x64xf8E4M3FN, tiled_128x4>
// CHECK: gpu.launch_func @f_transform_0::@kernel blocks in (%[[N:.*]], %{{.*}}, %{{.*}}) threads in (%{{.*}}, %{{.*}}, %{{.*}}) args(%[[MAP]] : {{.*}}, %[[AMAX]] : {{.*}}, %[[Q]] : {{.*}}, %[[S]] :

// CHECK-LABEL: gpu.module @f_transform_0
// CHECK: pipe.load_entry
// CHECK: %[[H:.*]] = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
// CHECK: pipe.for_each_work
// CHECK: scf.for
// CHECK: %[[X:.*]] = pipe.load %{{.*}} -> !pipe.shared<64x128xbf16, swizzle_128B>
// CHECK: %[[ACC:.*]] = pipe.accumulator : !pipe.tmem<128x64xf32>
// CHECK: pipe.mma %[[ACC]], %[[X]], %[[H]]
// CHECK: %[[V:.*]] = pipe.read %[[ACC]]
// CHECK: %[[R:.*]] = arith.truncf %[[V]] : tensor<128x64xf32, #pipe.distribution<lanes>> to tensor<128x64xbf16, #pipe.distribution<lanes>>
// CHECK: %[[CODES:.*]], %[[SCALES:.*]] = pipe.quantize_blocks %[[R]] amax %{{.*}} {columnwise, recipe = #fp4.recipe<transformer_engine>} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>
// CHECK: pipe.store %[[CODES]]
// CHECK: pipe.store %[[SCALES]]

// Six CTAs of three SMs have twelve strips of up to six tiles.
// FEWER: gpu.launch_func @f_transform_0::@kernel blocks in (%c6,
// FEWER: %c3_i32 = arith.constant 3 : i32
// FEWER: pipe.for_each_work
// FEWER: arith.constant 6 : i32

// The matrix has one stage, the accumulator four.
// PIPELINED: nvvm.minctasm = 2 : i32
// PIPELINED-SAME: pipe.tmem_columns = 256 : i64
// PIPELINED: pipe.channel from threads(128) to tensor depth 1 payload
// PIPELINED: pipe.channel from tma to tensor depth 7 payload [0]
// PIPELINED: pipe.channel from tensor to threads(128) depth 4 payload [0]
// PIPELINED: pipe.role load warps 5 to 6 drives [tma]
// PIPELINED: pipe.expect_tx
// PIPELINED: pipe.role mma warps 4 to 5 drives [tensor, scale_copy]
// PIPELINED: pipe.consumer_wait
// PIPELINED: scf.for
// PIPELINED: pipe.role epilogue warps 0 to 4 drives [threads]
// PIPELINED: pipe.hadamard_matrix signs 55272 into
// PIPELINED: pipe.producer_commit
// PIPELINED: pipe.read
// PIPELINED: pipe.consumer_release
// PIPELINED: pipe.quantize_blocks
func.func @f(%x: tensor<1024x512xbf16>, %ax: tensor<f32>)
    -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<1024x512xbf16>, tensor<f32>)
      -> (tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<512x1024xf4E2M1FN>, tensor<512x64xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
}

// 129 x 40 tiles for 296 CTAs: strips of 19 tiles, 7 to a row of tiles, the last of which has 15.
// CHECK-LABEL: gpu.module @strips_transform_0
// CHECK: arith.constant 40 : i32
// CHECK: arith.constant 7 : i32
// CHECK: pipe.for_each_work
// CHECK: arith.constant 19 : i32
// CHECK: arith.minsi
// CHECK: scf.for
func.func @strips(%x: tensor<8208x5120xbf16>, %ax: tensor<f32>)
    -> (tensor<5120x8208xf4E2M1FN>, tensor<5120x513xf8E4M3FN>) {
  %q, %s = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>,
      outputs = #fp4.outputs<columnwise>, columnwise_hadamard = #fp4.hadamard<arithmetic = tensor_core>}
      : (tensor<8208x5120xbf16>, tensor<f32>) -> (tensor<5120x8208xf4E2M1FN>, tensor<5120x513xf8E4M3FN>)
  return %q, %s : tensor<5120x8208xf4E2M1FN>, tensor<5120x513xf8E4M3FN>
}
