// Roles that take work from one ring of responses.
// RUN: fp4-opt %s --pipe-verify-sync -verify-diagnostics -split-input-file

gpu.module @m {
  gpu.func @twin(%m: i32, %n: i32) kernel {
    pipe.role load warps 1 to 2 drives [tma] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
      }
    }
    pipe.role scheduler warps 0 to 1 drives [work_queue] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
        pipe.request_work
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @nobody_requests(%m: i32, %n: i32) kernel {
    pipe.role load warps 1 to 2 drives [tma] {
      // (C303)
      // expected-error @+2 {{must have a role that requests the work, but none does}}
      // expected-note @+1 {{add pipe.request_work to the loop of one role}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two_request(%m: i32, %n: i32) kernel {
    pipe.role scheduler warps 0 to 1 drives [work_queue] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
        // expected-note @+1 {{the other is here}}
        pipe.request_work
      }
    }
    pipe.role other warps 1 to 2 drives [work_queue] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
        // (C303)
        // expected-error @+1 {{must be the only one of the kernel}}
        pipe.request_work
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @twice(%m: i32, %n: i32) kernel {
    pipe.role scheduler warps 0 to 1 drives [work_queue] {
      // expected-note @+1 {{the other is here}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
        pipe.request_work
      }
      // (C303)
      // expected-error @+1 {{must be the only one of its role, which takes every response once}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @schedules(%m: i32, %n: i32) kernel {
    pipe.role scheduler warps 0 to 1 drives [work_queue] {
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
        pipe.request_work
      }
    }
    pipe.role load warps 1 to 2 drives [tma] {
      // (C303)
      // expected-error @+2 {{must have the schedule of the other roles, #pipe.cluster_launch<along_m>, but has #pipe.static_persistent<along_m>}}
      // expected-note @+1 {{write one schedule at the loops of all roles}}
      pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @nested(%m: i32, %n: i32) kernel {
    pipe.role scheduler warps 0 to 1 drives [work_queue] {
      %zero = arith.constant 0 : i32
      scf.for %k = %zero to %m step %n : i32 {
        // (C303)
        // expected-error @+2 {{whose work is requested must be directly in a role}}
        // expected-note @+1 {{take the loop out of other loops and conditions}}
        pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
          pipe.request_work
        }
      }
    }
    gpu.return
  }
}
