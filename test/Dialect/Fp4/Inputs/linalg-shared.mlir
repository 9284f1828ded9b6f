// As linalg-parts.mlir, of six heads of queries that share three of keys: keys are broadcast by a named
// operation, and values by a generic one.
!q = tensor<2x128x6x64xf16>
!k = tensor<2x200x3x64xf16>
!s = tensor<2x6x128x200xf32>
!o = tensor<2x128x6x64xf32>
#q = affine_map<(b, h, i, j, d) -> (b, i, h, d)>
#k = affine_map<(b, h, i, j, d) -> (b, j, h, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#pv = affine_map<(b, h, i, e, j) -> (b, h, i, j)>
#vv = affine_map<(b, h, i, e, j) -> (b, j, h, e)>
#ov = affine_map<(b, h, i, e, j) -> (b, i, h, e)>
#all = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
!w = tensor<2x200x6x64xf16>
!x = tensor<2x200x3x2x64xf16>
#five = affine_map<(b, j, h, g, d) -> (b, j, h, g, d)>
#four = affine_map<(b, j, h, g, d) -> (b, j, h, d)>
func.func @shared(%q: !q, %k3: !k, %v3: !k) -> !q {
  %xe = tensor.empty() : !x
  %kx = linalg.broadcast ins(%k3 : !k) outs(%xe : !x) dimensions = [3]
  %k = tensor.collapse_shape %kx [[0], [1], [2, 3], [4]] : !x into !w
  %vx = linalg.generic {indexing_maps = [#four, #five], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v3 : !k) outs(%xe : !x) {
  ^bb0(%x: f16, %old: f16):
    linalg.yield %x : f16
  } -> !x
  %v = tensor.collapse_shape %vx [[0], [1], [2, 3], [4]] : !x into !w
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : !q, !w) outs(%z : !s) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %xf = arith.extf %x : f16 to f32
    %yf = arith.extf %y : f16 to f32
    %m = arith.mulf %xf, %yf : f32
    %a = arith.addf %sum, %m : f32
    linalg.yield %a : f32
  } -> !s
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : !s) outs(%e : !s) {
  ^bb0(%x: f32, %old: f32):
    %c = arith.constant 4.0 : f32
    %y = arith.divf %x, %c : f32
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %more = arith.constant 72 : index
    %last = arith.addi %i, %more : index
    %seen = arith.cmpi sle, %j, %last : index
    %w = arith.select %seen, %y, %least : f32
    linalg.yield %w : f32
  } -> !s
  %re = tensor.empty() : tensor<2x6x128xf32>
  %ml = linalg.fill ins(%least : f32) outs(%re : tensor<2x6x128xf32>) -> tensor<2x6x128xf32>
  %max = linalg.reduce ins(%masked : !s) outs(%ml : tensor<2x6x128xf32>) dimensions = [3]
    (%x: f32, %old: f32) {
      %m = arith.maximumf %x, %old : f32
      linalg.yield %m : f32
    }
  %p = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%masked, %max : !s, tensor<2x6x128xf32>) outs(%e : !s) {
  ^bb0(%x: f32, %m: f32, %old: f32):
    %d = arith.subf %x, %m : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> !s
  %sl = linalg.fill ins(%zero : f32) outs(%re : tensor<2x6x128xf32>) -> tensor<2x6x128xf32>
  %sum = linalg.reduce ins(%p : !s) outs(%sl : tensor<2x6x128xf32>) dimensions = [3]
    (%x: f32, %old: f32) {
      %m = arith.addf %x, %old : f32
      linalg.yield %m : f32
    }
  %he = tensor.empty() : tensor<2x6x128x200xf16>
  %h = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p, %sum : !s, tensor<2x6x128xf32>) outs(%he : tensor<2x6x128x200xf16>) {
  ^bb0(%x: f32, %m: f32, %old: f16):
    %d = arith.divf %x, %m : f32
    %y = arith.truncf %d : f32 to f16
    linalg.yield %y : f16
  } -> tensor<2x6x128x200xf16>
  %oe = tensor.empty() : !o
  %oz = linalg.fill ins(%zero : f32) outs(%oe : !o) -> !o
  %o = linalg.generic {indexing_maps = [#pv, #vv, #ov], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%h, %v : tensor<2x6x128x200xf16>, !w) outs(%oz : !o) {
  ^bb0(%x: f16, %y: f16, %a: f32):
    %xf = arith.extf %x : f16 to f32
    %yf = arith.extf %y : f16 to f32
    %m = arith.mulf %xf, %yf : f32
    %t = arith.addf %a, %m : f32
    linalg.yield %t : f32
  } -> !o
  %ob = tensor.empty() : !q
  %result = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : !o) outs(%ob : !q) {
  ^bb0(%x: f32, %old: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> !q
  return %result : !q
}

