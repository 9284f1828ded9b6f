// Contractions of plain linalg with a softmax between them are attention: named operations, and parts
// of a softmax behind a causal mask.
// RUN: fp4-opt %S/Inputs/linalg-named.mlir -fp4-fuse | FileCheck %s --check-prefix=NAMED
// RUN: fp4-opt %S/Inputs/linalg-parts.mlir -fp4-fuse | FileCheck %s --check-prefix=PARTS
// RUN: fp4-opt %S/Inputs/linalg-shared.mlir -fp4-fuse | FileCheck %s --check-prefix=SHARED
// RUN: fp4-opt %S/Inputs/linalg-groups.mlir -fp4-fuse | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/(b, h, g, i, d)/(b, i, h, g, d)/; s/(b, h, j, d)/(b, j, h, d)/; s/(b, h, j, e)/(b, j, h, e)/; s/(b, h, g, i, e)/(b, i, h, g, e)/; s/2x3x2x128x64/2x128x3x2x64/; s/2x3x200x64/2x200x3x64/' %S/Inputs/linalg-groups.mlir \
// RUN:   | fp4-opt -fp4-fuse | FileCheck %s --check-prefix=TOKENS
// RUN: sed 's/ 0.125 : f32/ 0.125 : f32\n    %%i = linalg.index 3 : index\n    %%j = linalg.index 4 : index\n    %%more = arith.constant 72 : index\n    %%n = arith.constant 0xFF800000 : f32\n    %%last = arith.addi %%i, %%more : index\n    %%seen = arith.cmpi sle, %%j, %%last : index\n    %%x2 = arith.select %%seen, %%x, %%n : f32/; s/mulf %%x, %%c/mulf %%x2, %%c/' %S/Inputs/linalg-groups.mlir \
// RUN:   | %fp4-opt-once -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: sed 's/^!w = /!y = tensor<2x200x2x3x64xf16>\n!w = /; s/%%kx = linalg.broadcast ins(%%k3 : !k) outs(%%xe : !x) dimensions = .3./%%ye = tensor.empty() : !y\n  %%kx = linalg.broadcast ins(%%k3 : !k) outs(%%ye : !y) dimensions = [2]/; /%%kx \[/s/!x/!y/' %S/Inputs/linalg-shared.mlir \
// RUN:   | fp4-opt -fp4-fuse | FileCheck %s --check-prefix=APART
// RUN: %fp4-opt-once %S/Inputs/linalg-parts.mlir -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=PASSED
// RUN: fp4-opt %S/Inputs/linalg-parts.mlir -fp4-fuse=fusions=results | FileCheck %s --check-prefix=OFF
// RUN: sed '/%%result = /,$ s/arith.truncf %%x/arith.truncf %%w/; /%%result = /,$ s/%%y = /%%w = arith.negf %%x : f32\n    %%y = /' %S/Inputs/linalg-named.mlir \
// RUN:   | fp4-opt -fp4-fuse | FileCheck %s --check-prefix=NEGATED
// RUN: fp4-opt %s -fp4-fuse | FileCheck %s
// RUN: %fp4-opt-once %s -fp4-fuse --remarks-filter=fp4-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARKS

// NAMED: %[[Q:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2], [3]] {{.*}} into tensor<6x128x1x64xbf16>
// NAMED: %[[O:.*]] = fp4.attention %[[Q]], %{{.*}}, %{{.*}} scale 1.250000e-01 :
// NAMED: tensor.collapse_shape %[[O]]
// NAMED-NOT: linalg
// PARTS: fp4.attention %arg0, %arg1, %arg2 scale 2.500000e-01 causal : tensor<2x128x3x64xf16>
// PARTS-NEXT: return

// Heads that share keys are those of the operation, or as many tokens of one head.
// SHARED: fp4.attention %arg0, %arg1, %arg2 scale 2.500000e-01 causal : tensor<2x128x6x64xf16>, tensor<2x200x3x64xf16>, tensor<2x200x3x64xf16>
// SHARED-NEXT: return
// GROUPS: fp4.attention {{.*}} : tensor<6x256x1x64xbf16>, tensor<6x200x1x64xbf16>, tensor<6x200x1x64xbf16>
// GROUPS: tensor.expand_shape {{.*}} into tensor<2x3x2x128x64xbf16>
// TOKENS: tensor.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3], [4]]
// TOKENS: fp4.attention %{{.*}}, %arg1, %arg2 {{.*}} : tensor<2x128x6x64xbf16>, tensor<2x200x3x64xbf16>
// TOKENS: tensor.expand_shape {{.*}} into tensor<2x128x3x2x64xbf16>
// HIDDEN: [Missed] {{.*}}"heads that share keys are in front of tokens behind a causal mask: transpose them"

// Heads of keys that take turns are no groups of heads, and stay as they are.
// APART: linalg.broadcast
// APART: fp4.attention {{.*}} : tensor<2x128x6x64xf16>, tensor<2x200x6x64xf16>

// PASSED: [Passed] matmul+softmax+matmul | Category:fp4-fuse{{.*}}two contractions and a softmax are one attention
// OFF-NOT: fp4.attention

// Sums that are negated before they are rounded.
// NEGATED: linalg.softmax
// NEGATED-NOT: fp4.attention
// NEGATED: arith.negf

// Keys with elements in front of tokens, a mask of another place, and sums that others read.
!q = tensor<6x128x64xbf16>
!t = tensor<6x64x200xbf16>
!v = tensor<6x200x64xbf16>
!s = tensor<6x128x200xf32>
!p = tensor<6x128x200xbf16>
!o = tensor<6x128x64xf32>
#all = affine_map<(b, i, j) -> (b, i, j)>
// CHECK-LABEL: @missed
// CHECK-NOT: fp4.attention
// CHECK: return
// REMARKS: [Missed] matmul+softmax+matmul | Category:fp4-fuse | Reason="operands are not all batches x tokens x elements, or all batches x tokens x heads x elements: transpose them"
// REMARKS: [Missed] matmul+softmax+matmul | Category:fp4-fuse | Reason="nothing but a rounding reads the products of values in f32"
// REMARKS: [Missed] matmul+softmax+matmul | Category:fp4-fuse | Reason="scores are no products of a number, or with a causal mask that ends with the last key"
func.func @missed(%q: !q, %k: !t, %v: !v) -> (!q, !o, !q) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : !s
  %h = tensor.empty() : !p
  %oe = tensor.empty() : !o
  %ob = tensor.empty() : !q
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !o) -> !o
  %s = linalg.batch_matmul ins(%q, %k : !q, !t) outs(%z : !s) -> !s
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%e : !s) -> !s
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : !s) outs(%h : !p) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !p
  %o = linalg.batch_matmul ins(%r, %v : !p, !v) outs(%oz : !o) -> !o
  %result = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%o : !o) outs(%ob : !q) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !q
  %o2 = linalg.batch_matmul ins(%r, %v : !p, !v) outs(%oz : !o) -> !o
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : !s) outs(%e : !s) {
  ^bb0(%x: f32, %old: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %seen = arith.cmpi sle, %j, %i : index
    %w = arith.select %seen, %x, %least : f32
    linalg.yield %w : f32
  } -> !s
  %p3 = linalg.softmax dimension(2) ins(%masked : !s) outs(%e : !s) -> !s
  %r3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p3 : !s) outs(%h : !p) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !p
  %o3 = linalg.batch_matmul ins(%r3, %v : !p, !v) outs(%oz : !o) -> !o
  %result3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%o3 : !o) outs(%ob : !q) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !q
  return %result, %o2, %result3 : !q, !o, !q
}
