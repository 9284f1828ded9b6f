// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s
// RUN: not fp4-opt %s -split-input-file -fp4-set-target=target=sm_100a -fp4-plan-kernels 2>&1 | FileCheck %s --check-prefix=TCGEN05
// TCGEN05: 'fp4.attention' op target 'sm_100a' has no wgmma
// TCGEN05: targets with wgmma: sm_90a

// Keys of a block are as many as registers have room for beside the sums of a head.
// CHECK-LABEL: func.func @one
// CHECK: fp4.attention {{.*}}#fp4.plan<tile_attention, tile = [128, 160], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 8 to 9 drives [tma] registers 24, math warps 0 to 8 drives [tensor, threads] registers 240
!t = tensor<1x4096x8x128xbf16>
func.func @one(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// CHECK-LABEL: func.func @wide
// CHECK: tile = [128, 80]
!t = tensor<1x4096x8x256xbf16>
func.func @wide(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 : !t, !t, !t -> !t
  return %o : !t
}

// -----

// A box of keys does not end with a sequence, so blocks divide the keys of each. Tiles of as many
// heads as there are SMs, or half of them, are in order of length where L2 has their keys.
// CHECK-LABEL: func.func @several
// CHECK: tile = [128, 128], schedule = #pipe.static_persistent<panels<66> serpentine = true>
!t = tensor<16x1024x16x128xbf16>
func.func @several(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}

// -----

// CHECK-LABEL: func.func @long
// CHECK: schedule = #pipe.static_persistent<along_n serpentine = true>
!t = tensor<1x16384x16x128xbf16>
func.func @long(%q: !t, %k: !t, %v: !t) -> !t {
  %o = fp4.attention %q, %k, %v scale 1.0 causal : !t, !t, !t -> !t
  return %o : !t
}
