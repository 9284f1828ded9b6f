// Two heads of queries share each head of keys by a loop of their own, and heads are in front of tokens.
!q = tensor<2x3x2x128x64xbf16>
!k = tensor<2x3x200x64xbf16>
!s = tensor<2x3x2x128x200xf32>
!p = tensor<2x3x2x128x200xbf16>
!o = tensor<2x3x2x128x64xf32>
#q = affine_map<(b, h, g, i, j, d) -> (b, h, g, i, d)>
#k = affine_map<(b, h, g, i, j, d) -> (b, h, j, d)>
#s = affine_map<(b, h, g, i, j, d) -> (b, h, g, i, j)>
#pv = affine_map<(b, h, g, i, e, j) -> (b, h, g, i, j)>
#vv = affine_map<(b, h, g, i, e, j) -> (b, h, j, e)>
#ov = affine_map<(b, h, g, i, e, j) -> (b, h, g, i, e)>
#all = affine_map<(b, h, g, i, j) -> (b, h, g, i, j)>
func.func @groups(%q: !q, %k: !k, %v: !k) -> !q {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : !q, !k) outs(%z : !s) {
  ^bb0(%x: bf16, %y: bf16, %sum: f32):
    %xf = arith.extf %x : bf16 to f32
    %yf = arith.extf %y : bf16 to f32
    %m = arith.mulf %xf, %yf : f32
    %a = arith.addf %sum, %m : f32
    linalg.yield %a : f32
  } -> !s
  %scaled = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%e : !s) {
  ^bb0(%x: f32, %old: f32):
    %c = arith.constant 0.125 : f32
    %y = arith.mulf %x, %c : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(4) ins(%scaled : !s) outs(%e : !s) -> !s
  %he = tensor.empty() : !p
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%p : !s) outs(%he : !p) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !p
  %oe = tensor.empty() : !o
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !o) -> !o
  %o = linalg.generic {indexing_maps = [#pv, #vv, #ov], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%h, %v : !p, !k) outs(%oz : !o) {
  ^bb0(%x: bf16, %y: bf16, %a: f32):
    %xf = arith.extf %x : bf16 to f32
    %yf = arith.extf %y : bf16 to f32
    %m = arith.mulf %xf, %yf : f32
    %t = arith.addf %a, %m : f32
    linalg.yield %t : f32
  } -> !o
  %ob = tensor.empty() : !q
  %result = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%o : !o) outs(%ob : !q) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !q
  return %result : !q
}
