// RUN: fp4-opt %s -split-input-file -pipe-verify-sync -verify-diagnostics

gpu.module @kernels {
  gpu.func @kernel() kernel {
    // (C626)
    // expected-error @+2 {{role math that is whole must have one warp and issue for engines alone}}
    // expected-note @+1 {{leave 'whole' out where threads compute, or where the role stores}}
    pipe.role math warps 0 to 4 drives [threads] whole {
    }
    gpu.return
  }
}

// -----

// One lane takes each response: others would read a place that was given back.
gpu.module @kernels {
  gpu.func @takes() kernel attributes {pipe.scheduled, pipe.work_ring = array<i64: 0, 2>} {
    %c0 = arith.constant 0 : i32
    pipe.role load warps 0 to 1 drives [tma] whole {
      // (C626)
      // expected-error @+2 {{must be executed by one thread, but the warp of role load is whole}}
      // expected-note @+1 {{leave 'whole' out of the role, and one thread executes all of it}}
      %more, %block = pipe.next_work[%c0]
    }
    gpu.return
  }
}

// -----

// Code in front of all roles, in which lanes differ.
gpu.module @kernels {
  gpu.func @asks(%n: i32) kernel attributes {pipe.scheduled} {
    // (C626)
    // expected-error @+2 {{must be executed by one thread, but the warp of role load is whole}}
    // expected-note @+1 {{leave 'whole' out of the role, and one thread executes all of it}}
    %thread = gpu.thread_id x
    %lane = arith.index_cast %thread : index to i32
    pipe.role load warps 0 to 1 drives [tma] whole {
      %sum = arith.addi %lane, %n : i32
    }
    gpu.return
  }
}

// -----

// A whole warp shares an entry; threads of another role would exchange it with lanes that are elsewhere.
gpu.module @kernels {
  gpu.func @entries(%table: !pipe.global<24x4xi32>, %m: i32) kernel attributes {pipe.scheduled} {
    pipe.role load warps 4 to 5 drives [tma] whole {
      %e = pipe.load_entry %table[%m] of_warp : !pipe.global<24x4xi32> -> vector<4xi32>
    }
    pipe.role math warps 0 to 4 drives [threads] {
      // (C626)
      // expected-error @+2 {{with of_warp must be in a role that is whole, but role math is not}}
      // expected-note @+1 {{leave 'of_warp' out where threads load for themselves}}
      %e = pipe.load_entry %table[%m] of_warp : !pipe.global<24x4xi32> -> vector<4xi32>
    }
    gpu.return
  }
}
