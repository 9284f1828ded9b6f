// RUN: fp4-opt %s -verify-diagnostics

!a = !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
!b = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!sums = !pipe.fragment<64x128xf32, wgmma>
!channel = !pipe.channel<!a, !b>
gpu.module @kernels {
  gpu.func @parts(%scales: vector<3xf32>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %tiles = pipe.channel from tma to threads(128) depth 2 payload [0, 16384] barriers 49152 : !channel
    pipe.role math warps 0 to 4 drives [tensor, threads] {
      %acc = pipe.accumulator : !sums
      %sums = pipe.accumulator : !sums
      %a, %b = pipe.consumer_wait %tiles[%c0] : !channel
      // (C625)
      // expected-error @+2 {{that begins together with its neighbour must have one with other sums that says so}}
      // expected-note @+1 {{write 'chain leads' at the first MMA and 'chain follows' at the second, whose tiles are there before the first, or neither}}
      pipe.mma %sums, %a, %b chain leads : !sums, !a, !b
      pipe.promote %acc, %sums scaled %scales at %n : !sums, !sums, vector<3xf32>
      pipe.mma %sums, %a, %b : !sums, !a, !b
      pipe.consumer_release %tiles[%c0] : !channel
    }
    gpu.return
  }
}
