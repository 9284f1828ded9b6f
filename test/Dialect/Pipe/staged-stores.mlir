// RUN: fp4-opt %s | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -mlir-print-op-generic | fp4-opt | FileCheck %s
// RUN: fp4-opt %s -fp4-set-target -pipe-specialize-warps -pipe-verify-sync | FileCheck %s --check-prefix=ROLES
// RUN: fp4-opt %s -fp4-set-target -pipe-specialize-warps -pipe-pipeline | fp4-opt -pipe-verify-sync -pipe-verify-capacity \
// RUN:   | FileCheck %s --check-prefix=PIPELINED
// RUN: fp4-opt %s -fp4-set-target -pipe-specialize-warps -pipe-pipeline -canonicalize -cse \
// RUN:   | %python %fp4_src/validation/pipe_mutants.py | FileCheck %s --check-prefix=MUTANTS

// The threads of an epilogue leave rows in shared memory, and a role of its own stores the tiles: the
// tiles become a channel from threads to bulk_store. The depth of the channel is 2, since one tile is
// read while the next one is filled. Every acquire, commit, wait and release is needed.
// MUTANTS: 16 of 16 mutants rejected

!acc = !pipe.tmem<128x128xf32>
!map = !pipe.tensor_map<128x64xbf16, swizzle_128B>
!tile = !pipe.shared<128x64xbf16, swizzle_128B>

gpu.module @m {
gpu.func @staged(%y: !map, %tiles: i32) kernel attributes {pipe.role_plan = #pipe.role_plan<
    epilogue warps 0 to 4 drives [threads], mma warps 4 to 5 drives [tensor, scale_copy], store warps 6 to 7 drives [bulk_store]>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  // ROLES: %[[STAGED:.*]] = pipe.channel from threads(128) to bulk_store : !channel
  // PIPELINED: pipe.channel from threads(128) to bulk_store depth 2 payload [0] barriers 32832 : !channel
  pipe.for_each_work %tm, %tn in (%tiles, %c1) schedule #pipe.static_persistent<along_m> {
    %row = arith.muli %tm, %c128 : i32
    %a = pipe.accumulator : !acc
    scf.for %c = %c0 to %c128 step %c64 : i32 {
      %v = pipe.read %a[%c] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      %h = arith.truncf %v : tensor<128x64xf32, #pipe.distribution<lanes>> to tensor<128x64xbf16, #pipe.distribution<lanes>>
      // CHECK: %[[T:.*]] = pipe.stage %{{.*}} : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x64xbf16, swizzle_128B>
      // CHECK: pipe.store %[[T]], %{{.*}}[%{{.*}}, %{{.*}}] : !pipe.shared<128x64xbf16, swizzle_128B>, !pipe.tensor_map<128x64xbf16, swizzle_128B>
      // ROLES: %[[SLOT:.*]] = pipe.producer_acquire %[[STAGED]]
      // ROLES: pipe.stage %{{.*}} into %[[SLOT]]
      // ROLES: pipe.producer_commit %[[STAGED]]
      // ROLES: pipe.role store warps 6 to 7 drives [bulk_store]
      // ROLES: %[[FULL:.*]] = pipe.consumer_wait %[[STAGED]]
      // ROLES: pipe.store %[[FULL]]
      // ROLES: pipe.consumer_release %[[STAGED]]
      %t = pipe.stage %h : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !tile
      pipe.store %t, %y[%row, %c] : !tile, !map
    }
  }
  gpu.return
}
}
