// The ring of responses to requests for work (C304).
// RUN: split-file %s %t
// RUN: fp4-opt %t/ring.mlir -fp4-set-target -pipe-verify-capacity -verify-diagnostics -split-input-file
// RUN: fp4-opt %t/target.mlir -fp4-set-target=target=sm_90a -pipe-verify-capacity -verify-diagnostics

//--- ring.mlir
!tiles = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
gpu.func @twin(%m: i32) kernel attributes {pipe.work_ring = array<i64: 4096, 3>,
    pipe.shared_bytes = 4232 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 4224 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4192 : !tiles
  pipe.role scheduler warps 6 to 7 drives [work_queue] {
    pipe.for_each_work %i, %j in (%m, %m) schedule #pipe.cluster_launch<along_m> {
      pipe.request_work
    }
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
// (C304)
// expected-error @+2 {{attribute pipe.work_ring must be a multiple of 16 and the 3 responses of the schedule}}
// expected-note @+1 {{pipe-pipeline writes it behind the other bytes of shared memory}}
gpu.func @fewer(%m: i32) kernel attributes {pipe.work_ring = array<i64: 4096, 2>,
    pipe.shared_bytes = 4232 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 4224 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4192 : !tiles
  pipe.role scheduler warps 6 to 7 drives [work_queue] {
    pipe.for_each_work %i, %j in (%m, %m) schedule #pipe.cluster_launch<along_m> {
      pipe.request_work
    }
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
// expected-note @+1 {{the other is here}}
gpu.func @within_barriers(%m: i32) kernel attributes {pipe.work_ring = array<i64: 4096, 3>,
    pipe.shared_bytes = 4232 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 4224 : i64} {
  // expected-error @+1 {{barriers at bytes 4184 to 4216 must be disjoint from ring of responses at 4096 to 4192}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4184 : !tiles
  pipe.role scheduler warps 6 to 7 drives [work_queue] {
    pipe.for_each_work %i, %j in (%m, %m) schedule #pipe.cluster_launch<along_m> {
      pipe.request_work
    }
  }
  gpu.return
}
}

//--- target.mlir
!tiles = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
gpu.module @kernels {
// (C304)
// expected-error @+2 {{work that is requested must be on a target that answers: }}
// expected-note @+1 {{write #pipe.static_persistent, which shares the work out before}}
gpu.func @hopper(%m: i32) kernel attributes {pipe.work_ring = array<i64: 4096, 3>,
    pipe.shared_bytes = 4232 : i64, pipe.tmem_columns = 0 : i64, pipe.tmem_slot = 4224 : i64} {
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4192 : !tiles
  pipe.role scheduler warps 6 to 7 drives [work_queue] {
    pipe.for_each_work %i, %j in (%m, %m) schedule #pipe.cluster_launch<along_m> {
      pipe.request_work
    }
  }
  gpu.return
}
}
