// Work that is requested while the kernel runs: one case per constraint of PipeConstraints.td, next to legal ones.
// RUN: fp4-opt %s -verify-diagnostics -split-input-file

#twin = #pipe.cluster_launch<panels<8> depth 8>
// (C300)
// expected-error @+2 {{raster along_n must have no width, but got 8}}
// expected-note @+1 {{leave the width out: the rasters are along_m, along_n, panels<WIDTH>}}
#bad = #pipe.cluster_launch<along_n<8>>

// -----

// (C300)
// expected-error @+2 {{depth must be 1 to 8 responses, but got 9}}
// expected-note @+1 {{two responses hide the time that one takes}}
#bad = #pipe.cluster_launch<along_m depth 9>

// -----

func.func @request(%m: i32, %n: i32) {
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
    pipe.request_work
  }
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_m> {
    // (C301)
    // expected-error @+2 {{must be directly in a pipe.for_each_work whose schedule shares out work while the kernel runs}}
    // expected-note @+1 {{such as #pipe.cluster_launch<along_m>}}
    pipe.request_work
  }
  return
}

// -----

func.func @requests(%m: i32, %n: i32) {
  pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.cluster_launch<along_m> {
    // expected-note @+1 {{the other is here}}
    pipe.request_work
    // (C301)
    // expected-error @+1 {{must be the only one of its loop}}
    pipe.request_work
  }
  return
}

// -----

gpu.module @m {
  gpu.func @next(%it: i32) kernel {
    pipe.role load warps 5 to 6 drives [tma] {
      %twin:2 = pipe.next_work[%it]
    }
    // (C302)
    // expected-error @+2 {{must be in a pipe.role, which takes every response once}}
    // expected-note @+1 {{move it into the role that has the loop over the work}}
    %more, %block = pipe.next_work[%it]
    gpu.return
  }
}
