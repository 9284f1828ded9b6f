// Attention in named operations of linalg.
!q = tensor<6x128x64xbf16>
!v = tensor<6x200x64xbf16>
!s = tensor<6x128x200xf32>
#rows = affine_map<(b, i, j, d) -> (b, i, d)>
#keys = affine_map<(b, i, j, d) -> (b, j, d)>
#scores = affine_map<(b, i, j, d) -> (b, i, j)>
#all = affine_map<(b, i, j) -> (b, i, j)>
func.func @named(%q: !q, %k: !v, %v: !v) -> !q {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %s = linalg.batch_matmul indexing_maps = [#rows, #keys, #scores] ins(%q, %k : !q, !v) outs(%z : !s) -> !s
  %scaled = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : !s) outs(%e : !s) {
  ^bb0(%x: f32, %old: f32):
    %c = arith.constant 0.125 : f32
    %y = arith.mulf %x, %c : f32
    linalg.yield %y : f32
  } -> !s
  %p = linalg.softmax dimension(2) ins(%scaled : !s) outs(%e : !s) -> !s
  %h = tensor.empty() : tensor<6x128x200xbf16>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : !s) outs(%h : tensor<6x128x200xbf16>) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<6x128x200xbf16>
  %oe = tensor.empty() : tensor<6x128x64xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<6x128x64xf32>) -> tensor<6x128x64xf32>
  %o = linalg.batch_matmul ins(%r, %v : tensor<6x128x200xbf16>, !v) outs(%oz : tensor<6x128x64xf32>) -> tensor<6x128x64xf32>
  %ob = tensor.empty() : !q
  %result = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%o : tensor<6x128x64xf32>) outs(%ob : !q) {
  ^bb0(%x: f32, %old: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> !q
  return %result : !q
}

