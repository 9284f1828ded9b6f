// RUN: fp4-opt %s -pipe-specialize-warps -pipe-verify-sync -split-input-file | FileCheck %s

// One channel per pair of roles and block: the operand tiles of a k tile travel together, the
// accumulator of an output tile on its own. Acquire and wait come before the first access, commit and
// release after the last, in the block of the definition.

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>
!tscales = !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!sf = !pipe.global<128x32xf8E8M0FNU, tiled_128x4>
!y = !pipe.global<128x128xf32>

// CHECK: ![[ACCS:.*]] = !pipe.channel<!pipe.tmem<128x128xf32>>
// CHECK: ![[TILES:.*]] = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>, !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>>
// CHECK-LABEL: gpu.func @gemm
// CHECK-SAME: known_block_size = array<i32: 192, 1, 1>
// CHECK: %[[FACTOR:.*]] = arith.constant dense<2.0
// CHECK: %accs = pipe.channel from tensor to threads(128) : ![[ACCS]]
// CHECK: %tiles = pipe.channel from tma to tensor : ![[TILES]]
gpu.module @kernels {
gpu.func @gemm(%a: !map, %b: !map, %sfa: !sf, %sfb: !sf, %factor: !pipe.global<f32>, %y: !y,
               %tiles: i32) kernel attributes {pipe.role_plan = #roles} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %f = arith.constant dense<2.0> : tensor<128x64xf32, #pipe.distribution<lanes>>
  scf.for %tile = %c0 to %tiles step %c1 : i32 {
    %row = arith.muli %tile, %c128 : i32
    %acc = pipe.accumulator : !acc
    scf.for %k = %c0 to %c4 step %c1 : i32 {
      %column = arith.muli %k, %c256 : i32
      %kb = arith.muli %k, %c2 : i32
      %as = pipe.load %a[%row, %column] : !map -> !data
      %bs = pipe.load %b[%c0, %column] : !map -> !data
      %sa = pipe.load %sfa[%tile, %kb] : !sf -> !scales
      %sb = pipe.load %sfb[%c0, %kb] : !sf -> !scales
      %ta = pipe.copy_scales %sa : !scales -> !tscales
      %tb = pipe.copy_scales %sb : !scales -> !tscales
      %more = arith.cmpi sgt, %k, %c0 : i32
      pipe.mma %acc, %as scaled %ta, %bs scaled %tb accumulate %more : !acc, !data, !tscales, !data, !tscales
    }
    scf.for %c = %c0 to %c128 step %c64 : i32 {
      %v = pipe.read %acc[%c] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      %w = arith.mulf %v, %f : tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.store %w, %y[%row, %c] : tensor<128x64xf32, #pipe.distribution<lanes>>, !y
    }
  }
  gpu.return
}
}

// The load role keeps the loops and the coordinates, and nothing of the others.
// CHECK: pipe.role load warps 5 to 6 drives [tma] {
// CHECK-NEXT:   scf.for %[[TILE:.*]] = %{{.*}} to %[[TOTAL:.*]] step
// CHECK-NEXT:     %[[ROW:.*]] = arith.muli %[[TILE]]
// CHECK-NEXT:     scf.for %[[K:.*]] =
// CHECK-NEXT:       arith.muli %[[K]]
// CHECK-NEXT:       arith.muli %[[K]]
// CHECK-NEXT:       %[[A:.*]], %[[B:.*]], %[[SA:.*]], %[[SB:.*]] = pipe.producer_acquire %tiles :
// CHECK-NEXT:       pipe.load %{{.*}}[%[[ROW]], %{{.*}}] into %[[A]] signals %tiles :
// CHECK-NEXT:       pipe.load %{{.*}} into %[[B]] signals %tiles :
// CHECK-NEXT:       pipe.load %{{.*}} into %[[SA]] signals %tiles :
// CHECK-NEXT:       pipe.load %{{.*}} into %[[SB]] signals %tiles :
// CHECK-NEXT:       pipe.producer_commit %tiles :
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     %[[ACC:.*]] = pipe.producer_acquire %accs :
// CHECK-NEXT:     scf.for
// CHECK-NEXT:       %[[A:.*]], %[[B:.*]], %[[SA:.*]], %[[SB:.*]] = pipe.consumer_wait %tiles :
// CHECK-NEXT:       %[[TA:.*]] = pipe.copy_scales %[[SA]]
// CHECK-NEXT:       %[[TB:.*]] = pipe.copy_scales %[[SB]]
// CHECK-NEXT:       %[[MORE:.*]] = arith.cmpi
// CHECK-NEXT:       pipe.mma %[[ACC]], %[[A]] scaled %[[TA]], %[[B]] scaled %[[TB]] accumulate %[[MORE]]
// CHECK-NEXT:       pipe.consumer_release %tiles :
// CHECK-NEXT:     }
// CHECK-NEXT:     pipe.producer_commit %accs :
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: pipe.role epilogue warps 0 to 4 drives [threads] {
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     arith.muli
// CHECK-NEXT:     %[[ACC:.*]] = pipe.consumer_wait %accs :
// CHECK-NEXT:     scf.for
// CHECK-NEXT:       %[[V:.*]] = pipe.read %[[ACC]]
// CHECK-NEXT:       %[[W:.*]] = arith.mulf %[[V]], %[[FACTOR]]
// CHECK-NEXT:       pipe.store %[[W]]
// CHECK-NEXT:     }
// CHECK-NEXT:     pipe.consumer_release %accs :
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: gpu.return

// -----

// Without any loop, and with a tile that is used twice; the scalar code that one role alone needs moves
// into it.

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!tscales = !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!sf = !pipe.global<128x16xf8E4M3FN, tiled_128x4>

// CHECK-LABEL: gpu.func @straight
// CHECK: pipe.role load
// CHECK-NEXT: %[[T:.*]], %[[S:.*]] = pipe.producer_acquire %tiles
// CHECK: pipe.role mma
// CHECK: pipe.role epilogue
// CHECK-NEXT: pipe.load_entry
// CHECK-NEXT: tensor.splat
// CHECK-NEXT: pipe.consumer_wait
gpu.module @kernels {
gpu.func @straight(%a: !map, %sf: !sf, %s: !pipe.global<f32>, %y: !pipe.global<128x128xf32>) kernel
    attributes {pipe.role_plan = #roles} {
  %c0 = arith.constant 0 : i32
  %false = arith.constant false
  %scalar = pipe.load_entry %s : !pipe.global<f32> -> f32
  %f = tensor.splat %scalar : tensor<128x128xf32, #pipe.distribution<lanes>>
  %acc = pipe.accumulator : !acc
  %t = pipe.load %a[%c0, %c0] : !map -> !data
  %sc = pipe.load %sf[%c0, %c0] : !sf -> !scales
  %ts = pipe.copy_scales %sc : !scales -> !tscales
  pipe.mma %acc, %t scaled %ts, %t scaled %ts accumulate %false : !acc, !data, !tscales, !data, !tscales
  %v = pipe.read %acc[%c0] : !acc -> tensor<128x128xf32, #pipe.distribution<lanes>>
  %w = arith.mulf %v, %f : tensor<128x128xf32, #pipe.distribution<lanes>>
  pipe.store %w, %y[%c0, %c0] : tensor<128x128xf32, #pipe.distribution<lanes>>, !pipe.global<128x128xf32>
  gpu.return
}
}

// -----

// A kernel without tile ops is none of this pass' business.
// CHECK-LABEL: gpu.func @streaming
// CHECK-NEXT: pipe.view
// CHECK-NEXT: gpu.return
gpu.module @kernels {
gpu.func @streaming(%x: !pipe.global<?x1024xbf16>) kernel {
  %p = pipe.view %x : !pipe.global<?x1024xbf16> -> !llvm.ptr<1>
  gpu.return
}
}

// -----

// One role that drives both engines keeps the accumulator to itself; the operand tile is released by
// its threads and not by a commit.

!map = !pipe.tensor_map<64x64xbf16, swizzle_128B>
!tile = !pipe.shared<64x128xbf16, swizzle_128B>
!matrix = !pipe.shared<16x16xbf16, swizzle_32B>
!acc = !pipe.tmem<128x64xf32>
// CHECK-LABEL: gpu.func @math
// CHECK-SAME: known_block_size = array<i32: 160, 1, 1>
// CHECK: %tiles = pipe.channel from tma to threads(128)
// CHECK-NOT: pipe.channel
// CHECK: pipe.role load warps 4 to 5 drives [tma] {
// CHECK: pipe.role math warps 0 to 4 drives [tensor, threads] {
// CHECK-NEXT: %[[H:.*]] = pipe.hadamard_matrix
// CHECK-NEXT: %[[ACC:.*]] = pipe.accumulator
// CHECK-NEXT: %[[X:.*]] = pipe.consumer_wait %tiles
// CHECK-NEXT: pipe.mma %[[ACC]], %[[X]], %[[H]]
// CHECK-NEXT: pipe.consumer_release %tiles
// CHECK-NEXT: pipe.read %[[ACC]]
gpu.module @kernels {
gpu.func @math(%x: !map, %y: !pipe.global<128x64xf32>) kernel
    attributes {pipe.role_plan = #pipe.role_plan<load warps 4 to 5 drives [tma],
                                                 math warps 0 to 4 drives [tensor, threads]>} {
  %c0 = arith.constant 0 : i32
  %h = pipe.hadamard_matrix signs 0 -> !matrix
  %acc = pipe.accumulator : !acc
  %t = pipe.load %x[%c0, %c0] : !map -> !tile
  pipe.mma %acc, %t, %h : !acc, !tile, !matrix
  %v = pipe.read %acc[%c0] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
  pipe.store %v, %y[%c0, %c0] : tensor<128x64xf32, #pipe.distribution<lanes>>, !pipe.global<128x64xf32>
  gpu.return
}
}

// -----

// Tiles of two blocks have a channel each: B is loaded once, A for each step.

#roles = #pipe.role_plan<load warps 5 to 6 drives [tma], mma warps 4 to 5 drives [tensor, scale_copy],
                         epilogue warps 0 to 4 drives [threads]>
!map = !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!scales = !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>
!tscales = !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
!acc = !pipe.tmem<128x128xf32>
!sf = !pipe.global<128x32xf8E8M0FNU, tiled_128x4>
!y = !pipe.global<128x128xf32>

// CHECK-LABEL: gpu.func @two_blocks
// CHECK-COUNT-2: pipe.channel from tma to tensor
// CHECK-NOT: pipe.channel from tma to tensor
// CHECK: pipe.role load
// CHECK: pipe.producer_acquire
// CHECK: scf.for
// CHECK: pipe.producer_acquire
gpu.module @kernels {
gpu.func @two_blocks(%a: !map, %b: !map, %sf: !sf, %y: !y) kernel attributes {pipe.role_plan = #roles} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %bs = pipe.load %b[%c0, %c0] : !map -> !data
  %acc = pipe.accumulator : !acc
  scf.for %k = %c0 to %c4 step %c1 : i32 {
    %as = pipe.load %a[%c0, %k] : !map -> !data
    %sa = pipe.load %sf[%c0, %k] : !sf -> !scales
    %ta = pipe.copy_scales %sa : !scales -> !tscales
    %more = arith.cmpi sgt, %k, %c0 : i32
    pipe.mma %acc, %as scaled %ta, %bs scaled %ta accumulate %more : !acc, !data, !tscales, !data, !tscales
  }
  %v = pipe.read %acc[%c0] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
  pipe.store %v, %y[%c0, %c0] : tensor<128x64xf32, #pipe.distribution<lanes>>, !y
  gpu.return
}
}
