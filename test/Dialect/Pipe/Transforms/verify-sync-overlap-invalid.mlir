// RUN: fp4-opt %s -pipe-verify-sync -verify-diagnostics -split-input-file

// Two accumulators that have 32 columns in common. The first kernel is correct; each of the others
// differs from it in the place marked.

!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %low = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %high = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] partial : !accs
      scf.for %c = %c32 to %c96 step %c32 : i32 {
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      }
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C157) The producer may be filling what the loop reads last.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %low = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %high = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      scf.for %c = %c64 to %n step %c32 : i32 {
        // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
        %v = pipe.read %acc[%c] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      }
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C157) Columns of the next stage.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %low = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %high = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %v = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C157) Columns of the stage before.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %low = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %high = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 32 to 128, which stage 1 alone has, after the others were released}}
      %v = pipe.read %acc[%c0] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C157) A stage is released in part once.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    scf.for %k = %c0 to %n step %c1 iter_args(%it = %c0) -> (i32) : i32 {
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %low = pipe.read %acc[%c0] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      %high = pipe.read %acc[%c96] : !acc -> tensor<128x32xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+2 {{must follow the wait for its stage, once}}
      // expected-note @+1 {{put it between pipe.consumer_wait and pipe.consumer_release}}
      pipe.consumer_release %accs[%it] partial : !accs
      pipe.consumer_release %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      scf.yield %next : i32
    }
  }
  gpu.return
}
}

// -----

// (C136) The third accumulator needs the release of the second, which the epilogue takes only when the
// third is there. A release that follows a partial one counts for nothing.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
!go = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel() kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  %go = pipe.channel from tensor to threads(128) depth 1 payload [256] barriers 32 : !go
  pipe.role mma warps 4 to 5 drives [tensor] {
    %a = pipe.producer_acquire %accs[%c0] : !accs
    pipe.producer_commit %accs[%c0] : !accs
    %b = pipe.producer_acquire %accs[%c1] : !accs
    pipe.producer_commit %accs[%c1] : !accs
    // expected-error @+1 {{role mma waits forever for an empty stage}}
    %c = pipe.producer_acquire %accs[%c2] : !accs
    pipe.producer_commit %accs[%c2] : !accs
    %d = pipe.producer_acquire %go[%c0] : !go
    pipe.producer_commit %go[%c0] : !go
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %a = pipe.consumer_wait %accs[%c0] : !accs
    pipe.consumer_release %accs[%c0] partial : !accs
    pipe.consumer_release %accs[%c0] : !accs
    // expected-note @+1 {{role epilogue waits here for a full stage}}
    %d = pipe.consumer_wait %go[%c0] : !go
    pipe.consumer_release %go[%c0] : !go
    %b = pipe.consumer_wait %accs[%c1] : !accs
    pipe.consumer_release %accs[%c1] : !accs
    %c = pipe.consumer_wait %accs[%c2] : !accs
    pipe.consumer_release %accs[%c2] : !accs
  }
  gpu.return
}
}

// -----

// (C157) Columns that the next stage has too are read first in either turn: the end of stage 0, the beginning of stage 1.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c1 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %even, %c64 : i32
      %second = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] partial : !accs
      %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %after = arith.addi %turn, %c1 : i32
      %next = arith.addi %it, %c1 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) In the wrong turns.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c1 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %odd, %c64 : i32
      %second = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %after = arith.addi %turn, %c1 : i32
      %next = arith.addi %it, %c1 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) The turns are other ones than those of the stages: the counter begins with 1.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c1, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c1 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %even, %c64 : i32
      %second = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %after = arith.addi %turn, %c1 : i32
      %next = arith.addi %it, %c1 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) The counter advances by 2.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c1 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %even, %c64 : i32
      %second = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %after = arith.addi %turn, %c2 : i32
      %next = arith.addi %it, %c1 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) The order depends on another bit of the turn.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %next = arith.addi %it, %c1 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c2 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %even, %c64 : i32
      %second = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %after = arith.addi %turn, %c1 : i32
      %next = arith.addi %it, %c1 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) A turn takes two stages, so all turns have the same parity.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %c0) -> (i32) {
      %acc = pipe.producer_acquire %accs[%it] : !accs
      pipe.producer_commit %accs[%it] : !accs
      %second = arith.addi %it, %c1 : i32
      %acc2 = pipe.producer_acquire %accs[%second] : !accs
      pipe.producer_commit %accs[%second] : !accs
      %next = arith.addi %it, %c2 : i32
      pipe.yield %next : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %c0) -> (i32, i32) {
      %odd = arith.andi %turn, %c1 : i32
      %even = arith.xori %odd, %c1 : i32
      %first = arith.muli %even, %c64 : i32
      %last = arith.xori %first, %c64 : i32
      %acc = pipe.consumer_wait %accs[%it] : !accs
      %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      // expected-note @+1 {{released here; the place of the columns must be known}}
      pipe.consumer_release %accs[%it] partial : !accs
      // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
      %y = pipe.read %acc[%last] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
      pipe.consumer_release %accs[%it] : !accs
      %second = arith.addi %it, %c1 : i32
      %acc2 = pipe.consumer_wait %accs[%second] : !accs
      pipe.consumer_release %accs[%second] : !accs
      %after = arith.addi %turn, %c1 : i32
      %next = arith.addi %it, %c2 : i32
      pipe.yield %after, %next : i32, i32
    }
  }
  gpu.return
}
}

// -----

// (C157) The loop over work is in another loop: turns begin anew where the stages go on.
!acc = !pipe.tmem<128x128xf32>
!accs = !pipe.channel<!acc>
gpu.module @kernels {
gpu.func @kernel(%n: i32, %times: i32) kernel {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [96] barriers 0 : !accs
  pipe.role mma warps 4 to 5 drives [tensor] {
    %all = scf.for %i = %c0 to %times step %c1 iter_args(%from = %c0) -> (i32) : i32 {
      %end = pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%it = %from) -> (i32) {
        %acc = pipe.producer_acquire %accs[%it] : !accs
        pipe.producer_commit %accs[%it] : !accs
        %next = arith.addi %it, %c1 : i32
        pipe.yield %next : i32
      }
      scf.yield %end : i32
    }
  }
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %all = scf.for %i = %c0 to %times step %c1 iter_args(%from = %c0) -> (i32) : i32 {
      %turns, %end = pipe.for_each_work %tm, %tn in (%n, %n) schedule #pipe.static_persistent<along_m> iter_args(%turn = %c0, %it = %from) -> (i32, i32) {
        %odd = arith.andi %turn, %c1 : i32
        %even = arith.xori %odd, %c1 : i32
        %first = arith.muli %even, %c64 : i32
        %second = arith.xori %first, %c64 : i32
        %acc = pipe.consumer_wait %accs[%it] : !accs
        %x = pipe.read %acc[%first] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
        // expected-note @+1 {{released here; the place of the columns must be known}}
        pipe.consumer_release %accs[%it] partial : !accs
        // expected-error @+1 {{must read columns 0 to 96, which stage 0 alone has, after the others were released}}
        %y = pipe.read %acc[%second] : !acc -> tensor<128x64xf32, #pipe.distribution<lanes>>
        pipe.consumer_release %accs[%it] : !accs
        %after = arith.addi %turn, %c1 : i32
        %next = arith.addi %it, %c1 : i32
        pipe.yield %after, %next : i32, i32
      }
      scf.yield %end : i32
    }
  }
  gpu.return
}
}
