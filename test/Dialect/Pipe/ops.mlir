// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -mlir-print-op-generic | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -pipe-verify-sync -fp4-set-target -pipe-verify-capacity -o /dev/null

// The NVFP4 GEMM Y[M,512] = alpha * A[M,1024] B[512,1024]^T with 128x128 output tiles, by hand in
// each form. M is dynamic; an output tile takes 4 k tiles of 256.

!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!ab = !pipe.channel<!data, !data, !scales, !scales>
!accs = !pipe.channel<!acc>
!sfa = !pipe.global<?x64xf8E4M3FN, tiled_128x4>
!sfb = !pipe.global<512x64xf8E4M3FN, tiled_128x4>
!y = !pipe.global<?x512xbf16>
!scalar = !pipe.global<f32>

// CHECK: func.func private @fragments(!pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<32x64xf32, mma_sync>)
func.func private @fragments(!pipe.fragment<64x256xf32, wgmma>, !pipe.fragment<32x64xf32, mma_sync>)

// CHECK-LABEL: func.func @host
func.func @host(%a: memref<?x512xi8>, %sfa: memref<?x16x512xi8>, %y: memref<?x512xbf16>, %rng: memref<2xi64>) {
  // CHECK: pipe.make_tensor_map %{{.*}} columns 1024 : memref<?x512xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  %map = pipe.make_tensor_map %a columns 1024 : memref<?x512xi8> -> !map
  // CHECK: pipe.view %{{.*}} : memref<?x16x512xi8> -> !pipe.global<?x64xf8E4M3FN, tiled_128x4>
  %s = pipe.view %sfa : memref<?x16x512xi8> -> !sfa
  // CHECK: pipe.make_tensor_map %{{.*}} columns 64 : memref<?x16x512xi8> -> !pipe.tensor_map<256x16xf8E4M3FN, tiled_128x4>
  %sm = pipe.make_tensor_map %sfa columns 64 : memref<?x16x512xi8> -> !pipe.tensor_map<256x16xf8E4M3FN, tiled_128x4>
  %g = pipe.view %y : memref<?x512xbf16> -> !y
  // CHECK: pipe.view %{{.*}} : memref<2xi64> -> !pipe.global<2xi64>
  %r = pipe.view %rng : memref<2xi64> -> !pipe.global<2xi64>
  return
}

// CHECK-LABEL: gpu.func @sequential
gpu.module @forms {
gpu.func @sequential(%a: !map, %b: !map, %sfa: !sfa, %sfb: !sfb, %alpha: !scalar, %y: !y, %m: i32)
    kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %m127 = arith.addi %m, %c127 : i32
  %num_m = arith.divui %m127, %c128 : i32
  // CHECK: pipe.for_each_work %{{.*}}, %{{.*}} in (%{{.*}}, %{{.*}}) schedule #pipe.static_persistent<along_m> {
  pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m> {
    %m0 = arith.muli %tm, %c128 : i32
    %n0 = arith.muli %tn, %c128 : i32
    // CHECK: pipe.accumulator : !pipe.tmem<128x128xf32>
    %acc = pipe.accumulator : !acc
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %kcol = arith.muli %k, %c256 : i32
      %kb = arith.muli %k, %c4 : i32
      // CHECK: pipe.load %{{.*}}[%{{.*}}, %{{.*}}] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B> -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
      %as = pipe.load %a[%m0, %kcol] : !map -> !data
      %bs = pipe.load %b[%n0, %kcol] : !map -> !data
      // CHECK: pipe.load %{{.*}}[%{{.*}}, %{{.*}}] : !pipe.global<?x64xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
      %sas = pipe.load %sfa[%tm, %kb] : !sfa -> !scales
      %sbs = pipe.load %sfb[%tn, %kb] : !sfb -> !scales
      // CHECK: pipe.copy_scales %{{.*}} : !pipe.shared<128x16xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
      %sat = pipe.copy_scales %sas : !scales -> !tscales
      %sbt = pipe.copy_scales %sbs : !scales -> !tscales
      %more = arith.cmpi sgt, %k, %c0 : i32
      // CHECK: pipe.mma %{{.*}}, %{{.*}} scaled %{{.*}}, %{{.*}} scaled %{{.*}} accumulate %{{.*}} :
      pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !tscales, !data, !tscales
    }
    // CHECK: pipe.load_entry %{{.*}} : !pipe.global<f32> -> f32
    %scale = pipe.load_entry %alpha : !scalar -> f32
    %scales = tensor.splat %scale : tensor<128x32xf32, #pipe.distribution<lanes>>
    scf.for %c = %c0 to %c128 step %c32 : i32 {
      // CHECK: pipe.read %{{.*}}[%{{.*}}] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %scaled = arith.mulf %v, %scales : tensor<128x32xf32, #pipe.distribution<lanes>>
      %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
      %col = arith.addi %n0, %c : i32
      // CHECK: pipe.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] rows %{{.*}} : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
      pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
    }
  }
  gpu.return
}

// CHECK-LABEL: gpu.func @specialized
gpu.func @specialized(%a: !map, %b: !map, %sfa: !sfa, %sfb: !sfb, %alpha: !scalar, %y: !y, %m: i32)
    kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %m127 = arith.addi %m, %c127 : i32
  %num_m = arith.divui %m127, %c128 : i32
  // CHECK: pipe.channel from tma to tensor : !channel
  %ab = pipe.channel from tma to tensor : !ab
  // CHECK: pipe.channel from tensor to threads(128) : !channel
  %accs = pipe.channel from tensor to threads(128) : !accs
  // CHECK: pipe.role load warps 5 to 6 drives [tma] {
  pipe.role load warps 5 to 6 drives [tma] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m> {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      scf.for %k = %c0 to %c4 step %c1 : i32 {
        %kcol = arith.muli %k, %c256 : i32
        %kb = arith.muli %k, %c4 : i32
        // CHECK: pipe.producer_acquire %{{[a-z0-9_]+}} : !channel
        %as, %bs, %sas, %sbs = pipe.producer_acquire %ab : !ab
        // CHECK: pipe.load %{{.*}} into %{{.*}} signals %{{[a-z0-9_]+}} :
        pipe.load %a[%m0, %kcol] into %as signals %ab : !map, !data, !ab
        pipe.load %b[%n0, %kcol] into %bs signals %ab : !map, !data, !ab
        pipe.load %sfa[%tm, %kb] into %sas signals %ab : !sfa, !scales, !ab
        pipe.load %sfb[%tn, %kb] into %sbs signals %ab : !sfb, !scales, !ab
        // CHECK: pipe.producer_commit
        pipe.producer_commit %ab : !ab
      }
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m> {
      %acc = pipe.producer_acquire %accs : !accs
      scf.for %k = %c0 to %c4 step %c1 : i32 {
        // CHECK: pipe.consumer_wait
        %as, %bs, %sas, %sbs = pipe.consumer_wait %ab : !ab
        %sat = pipe.copy_scales %sas : !scales -> !tscales
        %sbt = pipe.copy_scales %sbs : !scales -> !tscales
        %more = arith.cmpi sgt, %k, %c0 : i32
        pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !tscales, !data, !tscales
        // CHECK: pipe.consumer_release
        pipe.consumer_release %ab : !ab
      }
      pipe.producer_commit %accs : !accs
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %scale = pipe.load_entry %alpha : !scalar -> f32
    %scales = tensor.splat %scale : tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m> {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      %acc = pipe.consumer_wait %accs : !accs
      scf.for %c = %c0 to %c128 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %scales : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n0, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      pipe.consumer_release %accs : !accs
    }
  }
  gpu.return
}

// Stages of 16384 (A), 16384 (B), 2048 and 2048 bytes; 4 of them; barriers behind; the word for
// the tensor memory address last.
// CHECK-LABEL: gpu.func @pipelined
gpu.func @pipelined(%a: !map, %b: !map, %sfa: !sfa, %sfb: !sfb, %alpha: !scalar, %y: !y, %m: i32)
    kernel attributes {known_block_size = array<i32: 192, 1, 1>, pipe.shared_bytes = 147560 : i64,
                       pipe.tmem_columns = 512 : i64, pipe.tmem_slot = 147552 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %bytes = arith.constant 36864 : i32
  %m127 = arith.addi %m, %c127 : i32
  %num_m = arith.divui %m127, %c128 : i32
  // CHECK: pipe.channel from tma to tensor depth 4 payload [0, 65536, 131072, 139264] barriers 147456 : !channel
  %ab = pipe.channel from tma to tensor depth 4 payload [0, 65536, 131072, 139264] barriers 147456 : !ab
  // CHECK: pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 147520 : !channel
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 147520 : !accs
  pipe.role load warps 5 to 6 drives [tma] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0) -> (i32) {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %kcol = arith.muli %k, %c256 : i32
        %kb = arith.muli %k, %c4 : i32
        // CHECK: pipe.producer_acquire %{{.*}}[%[[IT:.*]]] : !channel
        %as, %bs, %sas, %sbs = pipe.producer_acquire %ab[%it] : !ab
        // CHECK: pipe.expect_tx %{{.*}}[%[[IT]]], %{{.*}} : !channel
        pipe.expect_tx %ab[%it], %bytes : !ab
        // CHECK: pipe.load %{{.*}} into %{{.*}} signals %{{.*}}[%[[IT]]] :
        pipe.load %a[%m0, %kcol] into %as signals %ab[%it] : !map, !data, !ab
        pipe.load %b[%n0, %kcol] into %bs signals %ab[%it] : !map, !data, !ab
        // CHECK: pipe.load %{{.*}} into %{{.*}} signals %{{.*}}[%[[IT]]] :
        pipe.load %sfa[%tm, %kb] into %sas signals %ab[%it] : !sfa, !scales, !ab
        pipe.load %sfb[%tn, %kb] into %sbs signals %ab[%it] : !sfb, !scales, !ab
        pipe.producer_commit %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      pipe.yield %last : i32
    }
  }
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it0 = %c0, %tile_it = %c0) -> (i32, i32) {
      %acc = pipe.producer_acquire %accs[%tile_it] : !accs
      %last = scf.for %k = %c0 to %c4 step %c1 iter_args(%it = %it0) -> (i32) : i32 {
        %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !ab
        // CHECK: pipe.await_release %{{.*}}[%{{.*}}] distance 2 : !channel
        pipe.await_release %ab[%it] distance 2 : !ab
        // CHECK: pipe.copy_scales %{{.*}} at 256 sets 2 :
        %sat = pipe.copy_scales %sas at 256 sets 2 : !scales -> !tscales
        // CHECK: pipe.copy_scales %{{.*}} at 288 sets 4 :
        %sbt = pipe.copy_scales %sbs at 288 sets 4 : !scales -> !tscales
        %more = arith.cmpi sgt, %k, %c0 : i32
        pipe.mma %acc, %as scaled %sat, %bs scaled %sbt accumulate %more : !acc, !data, !tscales, !data, !tscales
        pipe.consumer_release %ab[%it] : !ab
        %next = arith.addi %it, %c1 : i32
        scf.yield %next : i32
      }
      pipe.producer_commit %accs[%tile_it] : !accs
      %next_tile = arith.addi %tile_it, %c1 : i32
      pipe.yield %last, %next_tile : i32, i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %scale = pipe.load_entry %alpha : !scalar -> f32
    %scales = tensor.splat %scale : tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.for_each_work %tm, %tn in (%num_m, %c4) schedule #pipe.static_persistent<along_m>
        iter_args(%it = %c0) -> (i32) {
      %m0 = arith.muli %tm, %c128 : i32
      %n0 = arith.muli %tn, %c128 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      scf.for %c = %c0 to %c128 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
        %scaled = arith.mulf %v, %scales : tensor<128x32xf32, #pipe.distribution<lanes>>
        %out = arith.truncf %scaled : tensor<128x32xf32, #pipe.distribution<lanes>> to tensor<128x32xbf16, #pipe.distribution<lanes>>
        %col = arith.addi %n0, %c : i32
        pipe.store %out, %y[%m0, %col] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !y
      }
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  gpu.return
}
}

// A ragged k tile of an MXFP4 GEMM whose 192-column tiles start in the middle of a block of scale
// rows every other time: the counts of existing blocks and steps are operands, and the mma is told
// the row of the scale tile at which B begins.
!mxmap = !pipe.tensor_map<192x256xf4E2M1FN, swizzle_128B>
!mxdata = !pipe.shared<192x256xf4E2M1FN, swizzle_128B>
// CHECK-LABEL: gpu.func @ragged
gpu.module @ragged_tiles {
gpu.func @ragged(%b: !mxmap, %sfb: !pipe.global<384x9xf8E8M0FNU, tiled_128x4>, %at: !data,
                 %sat: !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>, %row: i32, %blocks: i32, %steps: i32,
                 %more: i1) kernel {
  %c0 = arith.constant 0 : i32
  %acc = pipe.accumulator : !pipe.tmem<128x192xf32>
  %bs = pipe.load %b[%c0, %c0] : !mxmap -> !mxdata
  // CHECK: pipe.load %{{.*}}[%{{.*}}, %{{.*}}] existing %{{.*}} : !pipe.global<384x9xf8E8M0FNU, tiled_128x4> -> !pipe.shared<256x8xf8E8M0FNU, tiled_128x4>
  %sbs = pipe.load %sfb[%c0, %c0] existing %blocks
      : !pipe.global<384x9xf8E8M0FNU, tiled_128x4> -> !pipe.shared<256x8xf8E8M0FNU, tiled_128x4>
  // CHECK: pipe.copy_scales %{{.*}} blocks %{{.*}} :
  %sbt = pipe.copy_scales %sbs blocks %blocks
      : !pipe.shared<256x8xf8E8M0FNU, tiled_128x4> -> !pipe.tmem<256x8xf8E8M0FNU, tiled_128x4>
  // CHECK: pipe.mma %{{.*}} from %{{.*}} accumulate %{{.*}} existing %{{.*}} :
  pipe.mma %acc, %at scaled %sat, %bs scaled %sbt from %row accumulate %more existing %steps
      : !pipe.tmem<128x192xf32>, !data, !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>, !mxdata,
        !pipe.tmem<256x8xf8E8M0FNU, tiled_128x4>
  gpu.return
}

// CHECK-LABEL: gpu.func @pointer
gpu.func @pointer(%x: !pipe.global<?x1024xbf16>) kernel {
  // CHECK: pipe.view %{{.*}} : !pipe.global<?x1024xbf16>
  %p = pipe.view %x : !pipe.global<?x1024xbf16> -> !llvm.ptr<1>
  gpu.return
}
}
