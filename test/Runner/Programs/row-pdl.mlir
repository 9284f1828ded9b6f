// Programmatic dependent launch of row kernels beside a GEMM: a norm with its quantizer, the GEMM, and a softmax. No bit
// changes, and the strict check finds every kernel that would touch memory before it waited.
// RUN: fp4-runner %s --target=sm_90a --output y=%t.plain.npy | FileCheck %s
// RUN: fp4-runner %s --target=sm_90a --pdl --check=strict --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: cmp %t.plain.npy %t.npy
// RUN: fp4-runner %s --target=sm_100a --pdl --check=strict --policy=random --seed=3 | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: fp4-runner %s --target=sm_120a --pdl --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,STRICT
// The plan asks for it, also where CTAs are clusters.
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = in_turn, cluster = [1, 2], threads = 32" --check=strict --policy=random --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: cmp %t.plain.npy %t.npy
// Any place is right, and the one of the plan is where the instruction stands.
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = before_wait" --plan "tile_gemm, pdl = behind_loads" --check=strict --policy=random --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: cmp %t.plain.npy %t.npy
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = behind_loads" --plan "tile_gemm, pdl = in_turn" --check=strict --policy=lazy --output y=%t.npy | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: cmp %t.plain.npy %t.npy
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = before_wait" --emit=ptx --kernel=layer_rows_0 -o - | FileCheck %s --check-prefix=BEFORE
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = in_turn" --emit=ptx --kernel=layer_row_quantize_0 -o - | FileCheck %s --check-prefix=BOTH
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = in_turn, cluster = [1, 2]" --emit=ptx --kernel=layer_rows_0 -o - | FileCheck %s --check-prefix=BOTH
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = at_end" --emit=ptx --kernel=layer_rows_0 -o - | FileCheck %s --check-prefix=WAITS
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel=layer_rows_0 -o - | FileCheck %s --check-prefix=NONE
// RUN: fp4-runner %s --target=sm_90a --plan "reduce_rows, pdl = in_turn" --no-pdl --emit=ptx --kernel=layer_rows_0 -o - | FileCheck %s --check-prefix=NONE
// CHECK: passed
// CHECK: y {{.*}} equals the reference, bit for bit
// STRICT: hazards {{.*}}none
// BOTH-NOT: {{ld.global|st.shared|launch_dependents}}
// BOTH: griddepcontrol.wait;
// BOTH-NOT: {{st.shared|st.global|bar.sync}}
// BOTH: griddepcontrol.launch_dependents;
// BOTH-NOT: {{ld.global.nc|griddepcontrol}}
// BOTH: ret
// BEFORE-NOT: ld.global
// BEFORE: griddepcontrol.launch_dependents;
// BEFORE-NEXT: griddepcontrol.wait;
// BEFORE-NOT: {{ld.global.nc|griddepcontrol}}
// BEFORE: ret
// WAITS-NOT: {{ld.global|launch_dependents|prefetch}}
// WAITS: griddepcontrol.wait;
// WAITS-NOT: {{ld.global.nc|griddepcontrol}}
// WAITS: ret
// NONE-NOT: griddepcontrol
// NONE: ret

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
!lhs = !fp4.scaled<nvfp4, tensor<37x1056xf4E2M1FN>,
                   tensor<37x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<nvfp4, tensor<72x1056xf4E2M1FN>,
                   tensor<72x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @layer(%x: tensor<37x1056xbf16>, %a: tensor<f32>, %qw: tensor<72x1056xf4E2M1FN>,
                 %tw: tensor<72x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
    -> (tensor<37x72xbf16> {fp4.name = "y"}) {
  %zeros = arith.constant dense<0.0> : tensor<37xf32>
  %lows = arith.constant dense<0xFF800000> : tensor<37xf32>
  %square = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<37x1056xbf16>) outs(%zeros : tensor<37xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %s = arith.mulf %f, %f : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  %e = tensor.empty() : tensor<37x1056xbf16>
  %n = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %square : tensor<37x1056xbf16>, tensor<37xf32>) outs(%e : tensor<37x1056xbf16>) {
  ^bb0(%v: bf16, %b: f32, %o: bf16):
    %c = arith.constant 9.46969697e-04 : f32
    %mean = arith.mulf %b, %c : f32
    %f = arith.extf %v : bf16 to f32
    %r = math.rsqrt %mean : f32
    %d = arith.mulf %f, %r : f32
    %t = arith.truncf %d : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<37x1056xbf16>
  %q, %s = fp4.quantize %n amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<37x1056xbf16>, tensor<f32>) -> (tensor<37x1056xf4E2M1FN>, tensor<37x66xf8E4M3FN>)
  %ts = fp4.swizzle_scales %s : tensor<37x66xf8E4M3FN> -> tensor<37x66xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
  %l = fp4.scaled %q, %ts : !lhs
  %r = fp4.scaled %qw, %tw : !rhs
  %h = fp4.matmul %l, %r : (!lhs, !rhs) -> tensor<37x72xbf16>
  %most = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%h : tensor<37x72xbf16>) outs(%lows : tensor<37xf32>) {
  ^bb0(%v: bf16, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %t = arith.maximumf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%h, %most : tensor<37x72xbf16>, tensor<37xf32>) outs(%zeros : tensor<37xf32>) {
  ^bb0(%v: bf16, %b: f32, %o: f32):
    %f = arith.extf %v : bf16 to f32
    %d = arith.subf %f, %b : f32
    %p = math.exp %d : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<37xf32>
  %ye = tensor.empty() : tensor<37x72xbf16>
  %y = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %most, %sum : tensor<37x72xbf16>, tensor<37xf32>, tensor<37xf32>) outs(%ye : tensor<37x72xbf16>) {
  ^bb0(%v: bf16, %b: f32, %c: f32, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %d = arith.subf %f, %b : f32
    %p = math.exp %d : f32
    %z = arith.divf %p, %c : f32
    %t = arith.truncf %z : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<37x72xbf16>
  return %y : tensor<37x72xbf16>
}
