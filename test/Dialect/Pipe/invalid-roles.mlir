// RUN: fp4-opt %s -verify-diagnostics -split-input-file
// Roles, channels and work; types and tile operations are in invalid.mlir.

gpu.module @m {
gpu.func @twin() kernel {
  pipe.role epilogue warps 4 to 8 drives [threads] {
    %accs = pipe.hadamard_matrix signs 0 -> !pipe.shared<16x16xbf16, swizzle_32B>
  }
  gpu.return
}
gpu.func @bad(%c0: i32) kernel {
  // expected-note @+1 {{the role begins here}}
  pipe.role epilogue warps 2 to 6 drives [tensor, threads] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
    // (C119)
    // expected-error @+1 {{must be in a role of 4 or 8 warps from a multiple of 4 to access tensor memory, but is in warps 2 to 6}}
    %v = pipe.read %acc[%c0] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  }
  gpu.return
}
}

// -----

#twin = #pipe.role<math warps 0 to 8 drives [tensor, threads] registers 240>
// (C119)
// expected-error @+2 {{role load must have at least one warp, but got warps 5 to 5}}
// expected-note @+1 {{the second number is the first warp behind the role: 'warps 4 to 8' are four}}
#role = #pipe.role<load warps 5 to 5 drives [tma]>

// -----

#twin = #pipe.role_plan<math warps 60 to 64 drives [threads] registers 24>
// (C119)
// expected-error @+2 {{role math must end within 64 warps, but got warps 0 to 2147483644}}
// expected-note @+1 {{give the role fewer warps, or lower numbers}}
#role = #pipe.role_plan<math warps 0 to 2147483644 drives [threads] registers 24>

// -----

// (C119)
#spare = #pipe.role<idle warps 0 to 2 drives [] registers 40>
// expected-error @+2 {{role idle must drive an engine}}
// expected-note @+1 {{name what the operations of the role are issued by, such as 'drives [threads]', or the registers that the role gives away}}
#role = #pipe.role<idle warps 0 to 1 drives []>

// -----

// (C119)
// expected-error @+2 {{role load must name each engine once, but got tma twice}}
// expected-note @+1 {{leave the second one out}}
#role = #pipe.role<load warps 0 to 1 drives [tma, tma]>

// -----

#twin = #pipe.role<prefetch warps 4 to 5 drives [threads] auxiliary>
// (C631)
// expected-error @+2 {{role prefetch that is auxiliary must drive threads, and at most tensor beside}}
// expected-note @+1 {{leave 'auxiliary' out: one role drives each of the other engines}}
#role = #pipe.role<prefetch warps 4 to 5 drives [tma] auxiliary>

// -----

#twin = #pipe.role<slice1 warps 8 to 16 drives [tensor, threads] auxiliary>
// (C631)
// expected-error @+2 {{role slice1 that is auxiliary must drive threads, and at most tensor beside}}
// expected-note @+1 {{leave 'auxiliary' out: one role drives each of the other engines}}
#role = #pipe.role<slice1 warps 8 to 16 drives [threads, bulk_store] auxiliary>

// -----

#twin = #pipe.role_plan<math warps 0 to 4 drives [threads], one warps 4 to 5 drives [threads] auxiliary, two warps 5 to 6 drives [threads] auxiliary>
// (C142)
// expected-error @+2 {{engine threads must be driven by one role, but math and one drive it}}
// expected-note @+1 {{write 'auxiliary' at one of them, whose ops name it}}
#plan = #pipe.role_plan<math warps 0 to 4 drives [threads], one warps 4 to 5 drives [threads]>

// -----

// (C119)
// expected-error @+2 {{engine must be tma, tensor, scale_copy, threads, bulk_store or work_queue, but got dma}}
// expected-note @+1 {{a second role of threads drives [threads] and is auxiliary}}
#role = #pipe.role<load warps 0 to 1 drives [dma]>

// -----

// (C119)
// expected-error @+2 {{role load must have one warp, whose elected thread issues for its engines, but got 2}}
// expected-note @+1 {{one thread issues copies and MMAs: leave one warp to them, and give 'threads' to another role}}
#role = #pipe.role<load warps 0 to 2 drives [tma]>

// -----

#twin = #pipe.role<mma warps 4 to 6 drives [tensor, scale_copy]>
// (C119)
// expected-error @+2 {{role mma must have one warp or two, whose elected thread issues for its engines, but got 3}}
// expected-note @+1 {{one thread issues copies and MMAs: leave one warp to them, and give 'threads' to another role}}
#role = #pipe.role<mma warps 4 to 7 drives [tensor, scale_copy]>

// -----

// (C119)
// expected-error @+2 {{role mma must have one warp, whose elected thread issues for its engines, but got 2}}
// expected-note @+1 {{one thread issues copies and MMAs: leave one warp to them, and give 'threads' to another role}}
#role = #pipe.role<mma warps 4 to 6 drives [tensor]>

// -----

// (C119)
// expected-error @+2 {{role load must have one warp, whose elected thread issues for its engines, but got 4}}
// expected-note @+1 {{one thread issues copies and MMAs: leave one warp to them, and give 'threads' to another role}}
#role = #pipe.role<load warps 0 to 4 drives [tma, threads]>

// -----

// (C119)
// expected-error @+2 {{registers of role math must be a multiple of 8 from 24 to 256, but got 100}}
// expected-note @+1 {{setmaxnreg takes no other numbers; without 'registers' a role has those of the launch}}
#role = #pipe.role<math warps 0 to 4 drives [threads] registers 100>

// -----

#twin = #pipe.role_plan<load warps 4 to 5 drives [tma], math warps 0 to 4 drives [tensor, threads]>
// (C142)
// expected-error @+2 {{roles must have different warps, but load and math share warp 3}}
// expected-note @+1 {{the second number is the first warp behind a role, where the next one may begin}}
#role = #pipe.role_plan<load warps 3 to 4 drives [tma], math warps 0 to 4 drives [tensor, threads]>

// -----

// (C142)
// expected-error @+2 {{engine threads must be driven by one role, but math and epilogue drive it}}
// expected-note @+1 {{write 'auxiliary' at one of them, whose ops name it}}
#role = #pipe.role_plan<math warps 0 to 4 drives [threads], epilogue warps 4 to 8 drives [threads]>

// -----

// (C142)
// expected-error @+2 {{roles must have different names, but got load twice}}
// expected-note @+1 {{rename one of them, or let one role drive the engines of both}}
#role = #pipe.role_plan<load warps 0 to 1 drives [tma], load warps 1 to 2 drives [tensor]>

// -----

#twin = #pipe.role_plan<math warps 0 to 4 drives [threads] registers 240, load warps 4 to 5 drives [tma]>
// (C143)
// expected-error @+2 {{warps 4 to 8 must all ask for the 40 registers of role load, but warp 5 asks for 0}}
// expected-note @+1 {{setmaxnreg changes whole warpgroups: write the same registers at every role of these warps}}
#role = #pipe.role_plan<math warps 0 to 4 drives [threads] registers 240, load warps 4 to 5 drives [tma] registers 40>

// -----

func.func @host() {
  // (C119)
  // expected-error @+2 {{must be in the body of a gpu.func, but its parent is func.func}}
  // expected-note @+1 {{roles are the outermost parts of a kernel; put loops and conditions into the role}}
  pipe.role epilogue warps 0 to 4 drives [threads] {
  }
  return
}

// -----

gpu.module @m {
gpu.func @twin() kernel {
  pipe.role mma warps 4 to 5 drives [tensor, scale_copy] {
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
gpu.func @bad() kernel {
  // expected-note @+1 {{the role begins here}}
  pipe.role load warps 5 to 6 drives [tma] {
    // (C120)
    // expected-error @+1 {{must be in a role that drives tensor, but is in load}}
    %acc = pipe.accumulator : !pipe.tmem<128x128xf32>
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @channel() {
  %twin = pipe.channel from tma to tensor depth 2 payload [1024] barriers 40960 : !tiles
  // (C121)
  // expected-error @+2 {{place of tile 0 must be a multiple of 1024, but got 512}}
  // expected-note @+1 {{pipe-pipeline chooses places that are aligned}}
  %bad = pipe.channel from tma to tensor depth 2 payload [512] barriers 40960 : !tiles
  return
}

// -----

!scales = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
func.func @scale_place() {
  %twin = pipe.channel from tma to tensor depth 2 payload [128] barriers 40960 : !scales
  // (C121)
  // expected-error @+2 {{place of tile 0 must be a multiple of 128, but got 64}}
  // expected-note @+1 {{pipe-pipeline chooses places that are aligned}}
  %bad = pipe.channel from tma to tensor depth 2 payload [64] barriers 40960 : !scales
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @column() {
  %twin = pipe.channel from tensor to threads(128) depth 2 payload [4] barriers 0 : !accs
  // (C121)
  // expected-error @+2 {{place of tile 0 must be a multiple of 4, but got 2}}
  // expected-note @+1 {{pipe-pipeline chooses places that are aligned}}
  %bad = pipe.channel from tensor to threads(128) depth 2 payload [2] barriers 0 : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @barriers() {
  %twin = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 8 : !accs
  // (C121)
  // expected-error @+2 {{barriers must be at a multiple of 8 bytes, but got 4}}
  // expected-note @+1 {{leave 8 bytes at a multiple of 8 for each of the two barriers of a stage}}
  %bad = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 4 : !accs
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @channel() {
  // (C121)
  // expected-error @+2 {{depth, payload and barriers must come together}}
  // expected-note @+1 {{write all three, or none before pipe-pipeline}}
  %bad = pipe.channel from tma to tensor depth 2 : !tiles
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @channel() {
  %twin = pipe.channel from tensor to threads(128) : !accs
  // (C122)
  // expected-error @+2 {{a tensor memory payload must be produced by tensor or threads, but got tma}}
  // expected-note @+1 {{TMA writes to shared memory: make the payload !pipe.shared, and copy it with pipe.copy_scales}}
  %bad = pipe.channel from tma to threads(128) : !accs
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @arrivals() {
  %twin = pipe.channel from tma to tensor : !tiles
  // expected-error @+2 {{engine tma must have one arrival, but got 2}}
  // expected-note @+1 {{the elected thread of tma and tensor arrives alone; threads(N) takes the number that arrives}}
  %bad = pipe.channel from tma(2) to tensor : !tiles
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x256xf4E2M1FN, swizzle_128B>>
func.func @arrivals() {
  %twin = pipe.channel from threads(128) to tensor : !tiles
  // expected-error @+2 {{engine threads must have at least one arrival, but got 0}}
  // expected-note @+1 {{the elected thread of tma and tensor arrives alone; threads(N) takes the number that arrives}}
  %bad = pipe.channel from threads(0) to tensor : !tiles
  return
}

// -----

// The parser asks for the types of results before operands are verified.
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @acquired(%i: index) {
  %channel = pipe.channel from tensor to threads(128) : !accs
  %twin = pipe.producer_acquire %channel : !accs
  // expected-error @+2 {{channel must be of type !pipe.channel, but got 'index'}}
  // expected-note @+1 {{take the result of pipe.channel}}
  %bad = pipe.producer_acquire %i : index
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @awaited(%i: index) {
  %channel = pipe.channel from tensor to threads(128) : !accs
  %twin = pipe.consumer_wait %channel : !accs
  // expected-error @+2 {{channel must be of type !pipe.channel, but got 'index'}}
  // expected-note @+1 {{take the result of pipe.channel}}
  %bad = pipe.consumer_wait %i : index
  return
}

// -----

func.func @scalar(%p: !pipe.global<f32>, %i: index) {
  %twin = pipe.load_entry %p : !pipe.global<f32> -> f32
  // (C170)
  // expected-error @+2 {{of a number must have a buffer of no dimensions with its element type and no index, but got '!pipe.global<f32>' for 'i32'}}
  // expected-note @+1 {{pass a !pipe.global<T>, or write '[%index]' for a row of a table}}
  %bad = pipe.load_entry %p : !pipe.global<f32> -> i32
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @iteration(%it: i32) {
  // expected-note @+1 {{the channel has depth 2}}
  %deep = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  %twin = pipe.producer_acquire %deep[%it] : !accs
  // (C123)
  // expected-error @+1 {{must give the iteration of a channel with a depth}}
  %bad = pipe.producer_acquire %deep : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @iteration(%it: i32) {
  // expected-note @+1 {{run pipe-pipeline, or give this channel a depth}}
  %plain = pipe.channel from tensor to threads(128) : !accs
  // (C123)
  // expected-error @+1 {{must not give an iteration before the channel has a depth}}
  pipe.consumer_release %plain[%it] : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @await(%it: i32) {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  pipe.await_release %accs[%it] distance 1 : !accs
  // (C138)
  // expected-error @+2 {{distance must be from 1 to below the channel's depth, 2, but got 2}}
  // expected-note @+1 {{a channel of depth 1 has no stage to wait for; leave the operation out there}}
  pipe.await_release %accs[%it] distance 2 : !accs
  return
}

// -----

!accs = !pipe.channel<!pipe.tmem<128x128xf32>>
func.func @expect(%it: i32) {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !accs
  // (C124)
  // expected-error @+2 {{channel's producer must be tma, but got tensor}}
  // expected-note @+1 {{only bytes that TMA copies are expected: leave the operation out}}
  pipe.expect_tx %accs[%it], %it : !accs
  return
}

// -----

!scales = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!tiles = !pipe.channel<!scales>
func.func @load(%sf: !pipe.global<128x16xf8E4M3FN, tiled_128x4>, %it: i32) {
  // expected-note @+1 {{the channel has depth 2}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] barriers 4096 : !tiles
  %s = pipe.producer_acquire %tiles[%it] : !tiles
  pipe.load %sf[%it, %it] into %s signals %tiles[%it] : !pipe.global<128x16xf8E4M3FN, tiled_128x4>, !scales, !tiles
  // (C123)
  // expected-error @+1 {{must give the iteration of a channel with a depth}}
  pipe.load %sf[%it, %it] into %s signals %tiles : !pipe.global<128x16xf8E4M3FN, tiled_128x4>, !scales, !tiles
  return
}

// -----

func.func private @twin(!pipe.shared<1048576x256xf4E2M1FN, swizzle_128B>)
// expected-error @+2 {{dimensions of a tile must be 1 to 1048576, but got 1048577}}
// expected-note @+1 {{cut the matrix into tiles that a memory on the chip holds}}
func.func private @bad(!pipe.shared<1048577x256xf4E2M1FN, swizzle_128B>)

// -----

#twin = #pipe.static_persistent<panels<8>>
// (C146)
// expected-error @+2 {{raster along_m must have no width, but got 8}}
// expected-note @+1 {{leave the width out: the rasters are along_m, along_n, panels<WIDTH>}}
#bad = #pipe.static_persistent<along_m<8>>

// -----

// (C146)
// expected-error @+2 {{panels must be 1 to 2147483647 tiles wide, but got 0}}
// expected-note @+1 {{write the width of a panel in tiles, such as panels<8>}}
#bad = #pipe.static_persistent<panels>

// -----

#twin = #pipe.static_persistent<panels<2147483647>>
// (C146)
// expected-error @+2 {{panels must be 1 to 2147483647 tiles wide, but got 4294967296}}
// expected-note @+1 {{write the width of a panel in tiles, such as panels<8>}}
#bad = #pipe.static_persistent<panels<4294967296>>

// -----

#twin = #pipe.static_persistent<along_n>
// expected-error @+2 {{unknown raster 'along_q'}}
// expected-note @+1 {{known: along_m, along_n, panels<WIDTH>}}
#bad = #pipe.static_persistent<along_q>

// -----

#twin = #pipe.cluster_launch<panels<8>>
// expected-error @+2 {{unknown raster ''}}
// expected-note @+1 {{known: along_m, along_n, panels<WIDTH>}}
#bad = #pipe.cluster_launch<8>

// -----

func.func @work(%m: i32, %n: i32) {
  // expected-error @+2 {{schedule must be a work schedule, but got "along_m"}}
  // expected-note @+1 {{write #pipe.static_persistent<along_m> or #pipe.cluster_launch<along_m>}}
  pipe.for_each_work %i, %j in (%m, %n) schedule "along_m" {
  }
  return
}

// -----

func.func @work(%m: i32, %n: i32) {
  %twin = pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_n>
      iter_args(%it = %m) -> (i32) {
    pipe.yield %it : i32
  }
  // (C145)
  // expected-error @+2 {{must yield the 1 values that it carries, but yields 0}}
  // expected-note @+1 {{yield a value for each of 'iter_args'}}
  %bad = pipe.for_each_work %i, %j in (%m, %n) schedule #pipe.static_persistent<along_n>
      iter_args(%it = %m) -> (i32) {
    pipe.yield
  }
  return
}

// -----

gpu.module @m {
gpu.func @twin() kernel {
  %gap = pipe.channel from tma to tensor depth 3 payload [0] stride [4096] barriers 16384 : !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [128] barriers 0 : !pipe.channel<!pipe.tmem<128x192xf32>>
  gpu.return
}
gpu.func @shared() kernel {
  // (C159)
  // expected-error @+2 {{stride of tile 0 must be at least its size, 2048, but got 1024}}
  // expected-note @+1 {{two stages of one accumulator may overlap in less than half of it}}
  %tiles = pipe.channel from tma to tensor depth 2 payload [0] stride [1024] barriers 16384 : !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @three() kernel {
  // (C159)
  // expected-error @+2 {{stride of tile 0 must be at least its size, 128, but got 96}}
  // expected-note @+1 {{two stages of one accumulator may overlap in less than half of it}}
  %accs = pipe.channel from tensor to threads(128) depth 3 payload [0] stride [96] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @half() kernel {
  // (C159)
  // expected-error @+2 {{stride of tile 0 must be at least its size, 128, but got 64}}
  // expected-note @+1 {{two stages of one accumulator may overlap in less than half of it}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [64] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @odd() kernel {
  // (C159)
  // expected-error @+2 {{stride of tile 0 must be a positive multiple of 4, but got 130}}
  // expected-note @+1 {{a stage begins where the layout of the tile may: round the number up}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [130] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @count() kernel {
  // (C159)
  // expected-error @+2 {{stride must have one number per tile and come with a depth}}
  // expected-note @+1 {{write the distance of two stages for each tile, beside 'depth'}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [128, 128] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @disjoint(%it: i32) kernel {
  // expected-note @+1 {{stages overlap where the stride is smaller than the tile}}
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // (C157)
    // expected-error @+1 {{stages of the channel must overlap}}
    pipe.consumer_release %accs[%it] partial : !pipe.channel<!pipe.tmem<128x128xf32>>
  }
  gpu.return
}
}

// -----

gpu.module @m {
gpu.func @by_warps(%it: i32) kernel {
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 0 : !pipe.channel<!pipe.tmem<128x128xf32>>
  pipe.role epilogue warps 0 to 4 drives [threads] {
    // (C157)
    // expected-error @+2 {{of a part must be by threads and fenced}}
    // expected-note @+1 {{leave 'by' and 'unfenced' out: every thread has read columns of its own}}
    pipe.consumer_release %accs[%it] partial by warps : !pipe.channel<!pipe.tmem<128x128xf32>>
  }
  gpu.return
}
}

// -----

!tiles = !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
func.func @twin() {
  %ab = pipe.channel from tma to [tensor, threads(128), threads(256)] : !tiles
  return
}
func.func @same() {
  // (C122)
  // expected-error @+2 {{consumers must differ in their engine or arrivals, but two are threads with 128}}
  // expected-note @+1 {{list an engine with the same arrivals once: one operation releases the stage for the whole role}}
  %ab = pipe.channel from tma to [threads(128), threads(128)] : !tiles
  return
}

// -----

func.func @none() {
  // expected-error @+2 {{consumers must have one number of arrivals each, but got 1 engines and 2 numbers}}
  // expected-note @+1 {{write an engine with its number of arrivals for each consumer, such as threads(128)}}
  %ab = "pipe.channel"() <{producer = #pipe<engine tma>, consumers = [#pipe<engine tensor>], consumer_arrivals = array<i32: 1, 1>}> : () -> !pipe.channel<!pipe.shared<128x16xf8E4M3FN, tiled_128x4>>
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<64x64xbf16, swizzle_128B>>
func.func @consumer_roles() {
  %twin = pipe.channel from tma to [threads(128), threads(128)] {pipe.consumer_roles = ["math", "values"]} : !tiles
  // (C122)
  // expected-error @+2 {{consumers must differ in their engine or arrivals, but two are threads with 128}}
  // expected-note @+1 {{list an engine with the same arrivals once: one operation releases the stage for the whole role}}
  %bad = pipe.channel from tma to [threads(128), threads(128)] {pipe.consumer_roles = ["math", "math"]} : !tiles
  return
}

// -----

!tiles = !pipe.channel<!pipe.shared<64x64xbf16, swizzle_128B>>
func.func @names_of_consumers() {
  // (C122)
  // expected-error @+2 {{'pipe.consumer_roles' must be the name of a role for each consumer, at a channel, but got ["math"]}}
  // expected-note @+1 {{write {pipe.consumer_roles = ["math", "values"]}}}
  %bad = pipe.channel from tma to [threads(128), threads(256)] {pipe.consumer_roles = ["math"]} : !tiles
  return
}
