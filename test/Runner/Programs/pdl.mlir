// Programmatic dependent launch: an amax, a quantizer that reads it, a GEMM and what follows, in one stream. No bit
// changes, and the strict check finds every kernel that would touch memory before it waited.
// RUN: fp4-runner %s --output y=%t.plain.npy | FileCheck %s
// RUN: fp4-runner %s --pdl --check=strict --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: fp4-runner %s --pdl --target=sm_90a --check=strict --policy=random --seed=3 | FileCheck %s --check-prefix=STRICT
// RUN: cmp %t.plain.npy %t.npy
// CHECK: passed
// CHECK: equals
// STRICT: hazards {{.*}}none
// RUN: fp4-runner %s --pdl --emit=ptx --kernel=overlapped_matmul_0 -o - | FileCheck %s --check-prefix=PTX
// PTX-NOT: {{tcgen05.alloc|ld.global|griddepcontrol}}
// PTX: mbarrier.init
// PTX-NOT: {{tcgen05.alloc|ld.global}}
// PTX: griddepcontrol.wait;
// PTX-NEXT: griddepcontrol.launch_dependents;
// PTX-NOT: ld.global.nc
// PTX: tcgen05.alloc
// PTX-NOT: ld.global.nc
// Without the option a quantizer alone begins while the amax before it ends, unless another one is given.
// RUN: fp4-runner %s --plan "stream_blocks, amax = separate" --check=strict --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: cmp %t.plain.npy %t.npy
// RUN: fp4-runner %s --emit=ptx --kernel=overlapped_amax_0 -o - | FileCheck %s --check-prefix=LEADS
// RUN: fp4-runner %s --emit=ptx --kernel=overlapped_quantize_0 -o - | FileCheck %s --check-prefix=FOLLOWS
// RUN: fp4-runner %s --emit=ptx --kernel=overlapped_matmul_0 -o - | FileCheck %s --check-prefix=NONE
// RUN: fp4-runner %s --no-pdl --emit=ptx --kernel=overlapped_quantize_0 -o - | FileCheck %s --check-prefix=NONE
// LEADS-NOT: griddepcontrol.wait
// LEADS: griddepcontrol.launch_dependents;
// LEADS-NOT: griddepcontrol.wait
// FOLLOWS-NOT: griddepcontrol.launch_dependents
// FOLLOWS: ld.global.v8
// FOLLOWS-NOT: {{ld.global.b32|st.global}}
// FOLLOWS: griddepcontrol.wait;
// FOLLOWS: ld.global.b32
// FOLLOWS-NOT: {{ld.global.nc|griddepcontrol.launch_dependents}}
// NONE-NOT: griddepcontrol
// RUN: not fp4-runner %s --pdl --no-pdl 2>&1 | FileCheck %s --check-prefix=EITHER
// EITHER: --pdl excludes --no-pdl
// RUN: fp4-runner %s --pdl --emit=so -o %t.so
// RUN: fp4-run %t.so --device=sim --check=strict | FileCheck %s

!lhs = !fp4.scaled<nvfp4, tensor<130x256xf4E2M1FN>,
                   tensor<130x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<72x256xf4E2M1FN>,
                   tensor<72x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @overlapped(%x: tensor<130x256xbf16>, %qw: tensor<72x256xf4E2M1FN>, %sw: tensor<72x16xf8E4M3FN>, %aw: tensor<f32>) -> (tensor<130x72xbf16> {fp4.name = "y"}) {
  %ax = fp4.amax %x : tensor<130x256xbf16> -> tensor<f32>
  %qx, %sx = fp4.quantize %x amax %ax {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<130x256xbf16>, tensor<f32>) -> (tensor<130x256xf4E2M1FN>, tensor<130x16xf8E4M3FN>)
  %tx = fp4.swizzle_scales %sx : tensor<130x16xf8E4M3FN> -> tensor<130x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw : tensor<72x16xf8E4M3FN> -> tensor<72x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %alpha = fp4.matmul_alpha %ax, %aw : tensor<f32>, tensor<f32> -> tensor<f32>
  %qx_scaled = fp4.scaled %qx, %tx : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %qx_scaled, %qw_scaled alpha %alpha
      : (!lhs, !rhs, tensor<f32>) -> tensor<130x72xbf16>
  return %y : tensor<130x72xbf16>
}
