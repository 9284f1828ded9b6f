// RUN: fp4-opt %s -split-input-file -fp4-generalize-elementwise | FileCheck %s
// Slices and concatenations of columns go into the elementwise operations beside them.

// A rotation of halves. Each operand is read at columns of the result, modulo its own: both halves read the same
// cosine, and the operand itself in order or a half of it further.
// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[ANGLE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 64)>
// CHECK: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 64) mod 128)>
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:.*]]: tensor<8x128xbf16>, %[[COS:.*]]: tensor<8x64xbf16>, %[[SIN:.*]]: tensor<8x64xbf16>
// CHECK-NOT: tensor.extract_slice
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ANGLE]], #[[PARTNER]], #[[ANGLE]], #[[ID]]]
// CHECK-SAME: ins(%[[X]], %[[COS]], %[[X]], %[[SIN]] : {{.*}}) outs(%{{.*}} : tensor<8x128xbf16>)
// CHECK: %[[INDEX:.*]] = linalg.index 1
// CHECK: %[[COLUMN:.*]] = arith.index_cast %[[INDEX]] : index to i32
// CHECK: %[[FIRST:.*]] = arith.subf
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi ult, %[[COLUMN]], %{{.*}} : i32
// CHECK: %[[SECOND:.*]] = arith.addf
// CHECK: %[[EITHER:.*]] = arith.select %[[IS_FIRST]], %[[FIRST]], %[[SECOND]] : bf16
// CHECK: linalg.yield %[[EITHER]]
// CHECK-NOT: tensor.concat
// CHECK: return %[[Y]]
func.func @halves(%x: tensor<8x128xbf16>, %cos: tensor<8x64xbf16>, %sin: tensor<8x64xbf16>) -> tensor<8x128xbf16> {
  %a = tensor.extract_slice %x[0, 0] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %b = tensor.extract_slice %x[0, 64] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %ac = arith.mulf %a, %cos : tensor<8x64xbf16>
  %bs = arith.mulf %b, %sin : tensor<8x64xbf16>
  %bc = arith.mulf %b, %cos : tensor<8x64xbf16>
  %as = arith.mulf %a, %sin : tensor<8x64xbf16>
  %f = arith.subf %ac, %bs : tensor<8x64xbf16>
  %g = arith.addf %bc, %as : tensor<8x64xbf16>
  %y = tensor.concat dim(1) %f, %g : (tensor<8x64xbf16>, tensor<8x64xbf16>) -> tensor<8x128xbf16>
  return %y : tensor<8x128xbf16>
}

// -----

// The rotation as transformers write it: the concatenation goes into the product that reads it.
// CHECK: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 64) mod 128)>
// CHECK-LABEL: func.func @rotate_half
// CHECK-SAME: %[[X:.*]]: tensor<8x128xbf16>, %[[COS:.*]]: tensor<8x128xbf16>, %[[SIN:.*]]: tensor<8x128xbf16>
// CHECK-COUNT-1: linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[PARTNER]], #[[ID]], #[[ID]]]{{.*}} ins(%[[X]], %[[COS]], %[[X]], %[[SIN]]
// CHECK: %[[NEGATED:.*]] = arith.negf %[[IN:.*]] : bf16
// CHECK: arith.select %{{.*}}, %[[NEGATED]], %[[IN]] : bf16
// CHECK-NOT: linalg.generic
// CHECK-NOT: tensor.concat
func.func @rotate_half(%x: tensor<8x128xbf16>, %cos: tensor<8x128xbf16>, %sin: tensor<8x128xbf16>) -> tensor<8x128xbf16> {
  %a = tensor.extract_slice %x[0, 0] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %b = tensor.extract_slice %x[0, 64] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %n = arith.negf %b : tensor<8x64xbf16>
  %r = tensor.concat dim(1) %n, %a : (tensor<8x64xbf16>, tensor<8x64xbf16>) -> tensor<8x128xbf16>
  %xc = arith.mulf %x, %cos : tensor<8x128xbf16>
  %rs = arith.mulf %r, %sin : tensor<8x128xbf16>
  %y = arith.addf %xc, %rs : tensor<8x128xbf16>
  return %y : tensor<8x128xbf16>
}

// -----

// All heads of a token share its angles. No neighbour has the heads of a token in a row: rows are heads, and the number
// of a row divided by the heads is its token.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 64) mod 128)>
// CHECK-DAG: #[[TOKEN:.*]] = affine_map<(d0, d1) -> (d0 floordiv 4, d1)>
// CHECK-LABEL: func.func @heads
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[TOKEN]], #[[PARTNER]], #[[TOKEN]], #[[ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME: tensor<32x128xbf16>, tensor<8x128xbf16>, tensor<32x128xbf16>, tensor<8x128xbf16>) outs(%{{.*}} : tensor<32x128xbf16>)
// CHECK-NOT: linalg.generic
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2]] output_shape [8, 4, 128]
#id = affine_map<(t, h, c) -> (t, h, c)>
#token = affine_map<(t, h, c) -> (t, 0, c)>
func.func @heads(%x: tensor<8x4x128xbf16>, %cos: tensor<8x1x128xbf16>, %sin: tensor<8x1x128xbf16>) -> tensor<8x4x128xbf16> {
  %a = tensor.extract_slice %x[0, 0, 0] [8, 4, 64] [1, 1, 1] : tensor<8x4x128xbf16> to tensor<8x4x64xbf16>
  %b = tensor.extract_slice %x[0, 0, 64] [8, 4, 64] [1, 1, 1] : tensor<8x4x128xbf16> to tensor<8x4x64xbf16>
  %n = arith.negf %b : tensor<8x4x64xbf16>
  %r = tensor.concat dim(2) %n, %a : (tensor<8x4x64xbf16>, tensor<8x4x64xbf16>) -> tensor<8x4x128xbf16>
  %e = tensor.empty() : tensor<8x4x128xbf16>
  %xc = linalg.generic {indexing_maps = [#id, #token, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %cos : tensor<8x4x128xbf16>, tensor<8x1x128xbf16>) outs(%e : tensor<8x4x128xbf16>) {
  ^bb0(%v: bf16, %c: bf16, %o: bf16):
    %p = arith.mulf %v, %c : bf16
    linalg.yield %p : bf16
  } -> tensor<8x4x128xbf16>
  %rs = linalg.generic {indexing_maps = [#id, #token, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r, %sin : tensor<8x4x128xbf16>, tensor<8x1x128xbf16>) outs(%e : tensor<8x4x128xbf16>) {
  ^bb0(%v: bf16, %c: bf16, %o: bf16):
    %p = arith.mulf %v, %c : bf16
    linalg.yield %p : bf16
  } -> tensor<8x4x128xbf16>
  %y = arith.addf %xc, %rs : tensor<8x4x128xbf16>
  return %y : tensor<8x4x128xbf16>
}

// -----

// A neighbour has all heads of a token in a row, and so has the operation: the column of a head is a remainder. The
// columns of queries, which are some of those of all projections, are read where they are.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[OWN:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 768)>
// CHECK-DAG: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 floordiv 128) * 128 + (d1 mod 128 + 64) mod 128)>
// CHECK-DAG: #[[ANGLE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 64)>
// CHECK-LABEL: func.func @tokens
// CHECK-SAME: %[[QKV:.*]]: tensor<?x768xbf16>, %[[COS:.*]]: tensor<?x64xbf16>, %[[SIN:.*]]: tensor<?x64xbf16>
// CHECK-NOT: tensor.extract_slice
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[OWN]], #[[ANGLE]], #[[PARTNER]], #[[ANGLE]], #[[ID]]]
// CHECK-SAME: ins(%[[QKV]], %[[COS]], %[[QKV]], %[[SIN]] : {{.*}}) outs(%{{.*}} : tensor<?x512xbf16>)
// CHECK: %[[INDEX:.*]] = linalg.index 1
// CHECK: %[[COLUMN:.*]] = arith.index_cast %[[INDEX]] : index to i32
// CHECK: %[[OF_HEAD:.*]] = arith.andi %[[COLUMN]], %{{.*}} : i32
// CHECK: arith.cmpi ult, %[[OF_HEAD]]
// CHECK: return %[[Y]] : tensor<?x512xbf16>
#id = affine_map<(t, h, c) -> (t, h, c)>
#token = affine_map<(t, h, c) -> (t, c)>
func.func @tokens(%qkv: tensor<?x768xbf16>, %cos: tensor<?x64xbf16>, %sin: tensor<?x64xbf16>) -> tensor<?x512xbf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %qkv, %c0 : tensor<?x768xbf16>
  %q = tensor.extract_slice %qkv[0, 0] [%m, 512] [1, 1] : tensor<?x768xbf16> to tensor<?x512xbf16>
  %x = tensor.expand_shape %q [[0], [1, 2]] output_shape [%m, 4, 128] : tensor<?x512xbf16> into tensor<?x4x128xbf16>
  %a = tensor.extract_slice %x[0, 0, 0] [%m, 4, 64] [1, 1, 1] : tensor<?x4x128xbf16> to tensor<?x4x64xbf16>
  %b = tensor.extract_slice %x[0, 0, 64] [%m, 4, 64] [1, 1, 1] : tensor<?x4x128xbf16> to tensor<?x4x64xbf16>
  %e = tensor.empty(%m) : tensor<?x4x64xbf16>
  %f = linalg.generic {indexing_maps = [#id, #token, #id, #token, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %cos, %b, %sin : tensor<?x4x64xbf16>, tensor<?x64xbf16>, tensor<?x4x64xbf16>, tensor<?x64xbf16>) outs(%e : tensor<?x4x64xbf16>) {
  ^bb0(%v: bf16, %c: bf16, %w: bf16, %s: bf16, %o: bf16):
    %vc = arith.mulf %v, %c : bf16
    %ws = arith.mulf %w, %s : bf16
    %n = arith.subf %vc, %ws : bf16
    linalg.yield %n : bf16
  } -> tensor<?x4x64xbf16>
  %g = linalg.generic {indexing_maps = [#id, #token, #id, #token, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%b, %cos, %a, %sin : tensor<?x4x64xbf16>, tensor<?x64xbf16>, tensor<?x4x64xbf16>, tensor<?x64xbf16>) outs(%e : tensor<?x4x64xbf16>) {
  ^bb0(%v: bf16, %c: bf16, %w: bf16, %s: bf16, %o: bf16):
    %vc = arith.mulf %v, %c : bf16
    %ws = arith.mulf %w, %s : bf16
    %n = arith.addf %vc, %ws : bf16
    linalg.yield %n : bf16
  } -> tensor<?x4x64xbf16>
  %r = tensor.concat dim(2) %f, %g : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>) -> tensor<?x4x128xbf16>
  %y = tensor.collapse_shape %r [[0], [1, 2]] : tensor<?x4x128xbf16> into tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

// Columns of a head that are no power of two have no remainder in a region: rows are heads also beside tokens.
// CHECK-DAG: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 48) mod 96)>
// CHECK-LABEL: func.func @columns_of_a_head
// CHECK: linalg.generic {indexing_maps = [#[[PARTNER]]{{.*}} outs(%{{.*}} : tensor<32x96xbf16>)
// CHECK-NOT: arith.andi
// CHECK: tensor.expand_shape
func.func @columns_of_a_head(%x: tensor<8x384xbf16>) -> tensor<8x384xbf16> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 4, 96] : tensor<8x384xbf16> into tensor<8x4x96xbf16>
  %a = tensor.extract_slice %h[0, 0, 0] [8, 4, 48] [1, 1, 1] : tensor<8x4x96xbf16> to tensor<8x4x48xbf16>
  %b = tensor.extract_slice %h[0, 0, 48] [8, 4, 48] [1, 1, 1] : tensor<8x4x96xbf16> to tensor<8x4x48xbf16>
  %n = arith.negf %b : tensor<8x4x48xbf16>
  %r = tensor.concat dim(2) %n, %a : (tensor<8x4x48xbf16>, tensor<8x4x48xbf16>) -> tensor<8x4x96xbf16>
  %y = tensor.collapse_shape %r [[0], [1, 2]] : tensor<8x4x96xbf16> into tensor<8x384xbf16>
  return %y : tensor<8x384xbf16>
}

// -----

// Some columns are rotated, and others pass: three parts of two widths.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ANGLE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 16)>
// CHECK-DAG: #[[NEXT:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 16) mod 80)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 64) mod 80)>
// CHECK-LABEL: func.func @partial
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ANGLE]], #[[NEXT]], #[[ANGLE]], #[[LAST]], #[[ID]]]
// CHECK: %[[ROTATED:.*]] = arith.select %{{.*}} : bf16
// CHECK: %[[IS_ROTATED:.*]] = arith.cmpi ult
// CHECK: arith.select %[[IS_ROTATED]], %[[ROTATED]], %{{.*}} : bf16
// CHECK-NOT: tensor.concat
func.func @partial(%x: tensor<37x80xbf16>, %cos: tensor<37x16xbf16>, %sin: tensor<37x16xbf16>) -> tensor<37x80xbf16> {
  %a = tensor.extract_slice %x[0, 0] [37, 16] [1, 1] : tensor<37x80xbf16> to tensor<37x16xbf16>
  %b = tensor.extract_slice %x[0, 16] [37, 16] [1, 1] : tensor<37x80xbf16> to tensor<37x16xbf16>
  %rest = tensor.extract_slice %x[0, 32] [37, 48] [1, 1] : tensor<37x80xbf16> to tensor<37x48xbf16>
  %ac = arith.mulf %a, %cos : tensor<37x16xbf16>
  %bs = arith.mulf %b, %sin : tensor<37x16xbf16>
  %bc = arith.mulf %b, %cos : tensor<37x16xbf16>
  %as = arith.mulf %a, %sin : tensor<37x16xbf16>
  %f = arith.subf %ac, %bs : tensor<37x16xbf16>
  %g = arith.addf %bc, %as : tensor<37x16xbf16>
  %y = tensor.concat dim(1) %f, %g, %rest : (tensor<37x16xbf16>, tensor<37x16xbf16>, tensor<37x48xbf16>) -> tensor<37x80xbf16>
  return %y : tensor<37x80xbf16>
}

// -----

// A concatenation that another one has as a part.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROTATED:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 32)>
// CHECK-DAG: #[[PARTNER:.*]] = affine_map<(d0, d1) -> (d0, (d1 + 16) mod 32)>
// CHECK-LABEL: func.func @nested
// CHECK: linalg.generic {indexing_maps = [#[[ROTATED]], #{{.*}}, #[[PARTNER]], #{{.*}}, #[[ID]], #[[ID]]]
// CHECK-NOT: linalg.generic
// CHECK-NOT: tensor.concat
func.func @nested(%x: tensor<37x80xbf16>, %cos: tensor<37x16xbf16>, %sin: tensor<37x16xbf16>) -> tensor<37x80xbf16> {
  %r = tensor.extract_slice %x[0, 0] [37, 32] [1, 1] : tensor<37x80xbf16> to tensor<37x32xbf16>
  %rest = tensor.extract_slice %x[0, 32] [37, 48] [1, 1] : tensor<37x80xbf16> to tensor<37x48xbf16>
  %a = tensor.extract_slice %r[0, 0] [37, 16] [1, 1] : tensor<37x32xbf16> to tensor<37x16xbf16>
  %b = tensor.extract_slice %r[0, 16] [37, 16] [1, 1] : tensor<37x32xbf16> to tensor<37x16xbf16>
  %ac = arith.mulf %a, %cos : tensor<37x16xbf16>
  %bs = arith.mulf %b, %sin : tensor<37x16xbf16>
  %bc = arith.mulf %b, %cos : tensor<37x16xbf16>
  %as = arith.mulf %a, %sin : tensor<37x16xbf16>
  %f = arith.subf %ac, %bs : tensor<37x16xbf16>
  %g = arith.addf %bc, %as : tensor<37x16xbf16>
  %h = tensor.concat dim(1) %f, %g : (tensor<37x16xbf16>, tensor<37x16xbf16>) -> tensor<37x32xbf16>
  %y = tensor.concat dim(1) %h, %rest : (tensor<37x32xbf16>, tensor<37x48xbf16>) -> tensor<37x80xbf16>
  return %y : tensor<37x80xbf16>
}

// -----

// Both parts read two operations, which each of them computes: no slice is in memory.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-1: linalg.generic
// CHECK-COUNT-4: arith.extf
// CHECK-NOT: linalg.generic
// CHECK-NOT: tensor.concat
func.func @shared(%x: tensor<8x128xbf16>, %cos: tensor<8x64xf32>, %sin: tensor<8x64xf32>) -> tensor<8x128xbf16> {
  %a = tensor.extract_slice %x[0, 0] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %b = tensor.extract_slice %x[0, 64] [8, 64] [1, 1] : tensor<8x128xbf16> to tensor<8x64xbf16>
  %af = arith.extf %a : tensor<8x64xbf16> to tensor<8x64xf32>
  %bf = arith.extf %b : tensor<8x64xbf16> to tensor<8x64xf32>
  %ac = arith.mulf %af, %cos : tensor<8x64xf32>
  %bs = arith.mulf %bf, %sin : tensor<8x64xf32>
  %bc = arith.mulf %bf, %cos : tensor<8x64xf32>
  %as = arith.mulf %af, %sin : tensor<8x64xf32>
  %f = arith.subf %ac, %bs : tensor<8x64xf32>
  %g = arith.addf %bc, %as : tensor<8x64xf32>
  %ft = arith.truncf %f : tensor<8x64xf32> to tensor<8x64xbf16>
  %gt = arith.truncf %g : tensor<8x64xf32> to tensor<8x64xbf16>
  %y = tensor.concat dim(1) %ft, %gt : (tensor<8x64xbf16>, tensor<8x64xbf16>) -> tensor<8x128xbf16>
  return %y : tensor<8x128xbf16>
}

// -----

// Parts that are arguments go into their reader.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ANGLE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 64)>
// CHECK-LABEL: func.func @table
// CHECK-SAME: %[[X:.*]]: tensor<8x128xbf16>, %[[ANGLES:.*]]: tensor<8x64xf32>
// CHECK-NOT: tensor.concat
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ANGLE]], #[[ID]]]{{.*}} ins(%[[X]], %[[ANGLES]] :
func.func @table(%q: tensor<8x128xbf16>, %half: tensor<8x64xf32>) -> tensor<8x128xbf16> {
  %w = tensor.concat dim(1) %half, %half : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  %cos = math.cos %w : tensor<8x128xf32>
  %f = arith.extf %q : tensor<8x128xbf16> to tensor<8x128xf32>
  %s = arith.mulf %f, %cos : tensor<8x128xf32>
  %y = arith.truncf %s : tensor<8x128xf32> to tensor<8x128xbf16>
  return %y : tensor<8x128xbf16>
}

// -----

// A part that reads the number of its column begins at 0 wherever it is.
// CHECK-LABEL: func.func @index_of_a_part
// CHECK-COUNT-1: linalg.generic
// CHECK: %[[COLUMN:.*]] = arith.index_cast
// CHECK: %[[OF_PART:.*]] = arith.subi %[[COLUMN]], %{{.*}} : i32
// CHECK: arith.cmpi ult, %[[OF_PART]]
// CHECK-NOT: tensor.concat
func.func @index_of_a_part(%x: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i32
    %k = arith.constant 3 : i32
    %p = arith.cmpi ult, %c, %k : i32
    %m = arith.negf %v : f32
    %n = arith.select %p, %m, %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  %z = tensor.concat dim(1) %x, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  return %z : tensor<8x128xf32>
}

// -----

// Slices that are not concatenated again: a gate and its values. The first columns are a remainder, as a loop alone
// would stand for all columns.
// CHECK-DAG: #[[GATE:.*]] = affine_map<(d0, d1) -> (d0, d1 mod 160)>
// CHECK-DAG: #[[UP:.*]] = affine_map<(d0, d1) -> (d0, d1 + 80)>
// CHECK-LABEL: func.func @gate
// CHECK-SAME: %[[X:.*]]: tensor<37x160xbf16>
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {indexing_maps = [#[[GATE]], #[[UP]], #{{.*}}]{{.*}} ins(%[[X]], %[[X]] : {{.*}}) outs(%{{.*}} : tensor<37x80xbf16>)
func.func @gate(%x: tensor<37x160xbf16>) -> tensor<37x80xbf16> {
  %g = tensor.extract_slice %x[0, 0] [37, 80] [1, 1] : tensor<37x160xbf16> to tensor<37x80xbf16>
  %u = tensor.extract_slice %x[0, 80] [37, 80] [1, 1] : tensor<37x160xbf16> to tensor<37x80xbf16>
  %y = arith.mulf %g, %u : tensor<37x80xbf16>
  return %y : tensor<37x80xbf16>
}

// -----

// The slice of a bias is in order in memory: a view.
// CHECK-LABEL: func.func @bias
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 64] [1, 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[S]] : tensor<8x64xf32>, tensor<1x64xf32>)
func.func @bias(%x: tensor<8x64xf32>, %b: tensor<1x128xf32>) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %b[0, 64] [1, 64] [1, 1] : tensor<1x128xf32> to tensor<1x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<8x64xf32>, tensor<1x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %n = arith.addf %v, %w : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// So are some of the rows, with all of their columns.
// CHECK-LABEL: func.func @whole_rows
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[8, 0] [8, 128] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x128xf32>)
func.func @whole_rows(%x: tensor<16x128xf32>) -> tensor<8x128xf32> {
  %s = tensor.extract_slice %x[8, 0] [8, 128] [1, 1] : tensor<16x128xf32> to tensor<8x128xf32>
  %y = arith.negf %s : tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}

// -----

// The operation has fewer rows than the matrix, or begins at another one.
// CHECK-LABEL: func.func @rows_cut
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 64] [8, 64] [1, 1] : tensor<16x128xf32>
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x64xf32>)
// CHECK-LABEL: func.func @rows_behind
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[8, 64] [%{{.*}}, 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<?x64xf32>)
func.func @rows_cut(%x: tensor<16x128xf32>) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %x[0, 64] [8, 64] [1, 1] : tensor<16x128xf32> to tensor<8x64xf32>
  %y = arith.negf %s : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
func.func @rows_behind(%x: tensor<?x128xf32>, %m: index) -> tensor<?x64xf32> {
  %s = tensor.extract_slice %x[8, 64] [%m, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %y = arith.negf %s : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// As many rows as another matrix has are perhaps not all.
// CHECK-LABEL: func.func @rows_of_another
// CHECK: %[[M:.*]] = tensor.dim %[[Z:.*]], %{{.*}} : tensor<?x64xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 64] [%[[M]], 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[Z]] : tensor<?x64xf32>, tensor<?x64xf32>)
func.func @rows_of_another(%x: tensor<?x128xf32>, %z: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %z, %c0 : tensor<?x64xf32>
  %s = tensor.extract_slice %x[0, 64] [%m, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %y = arith.addf %s, %z : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Columns from a place, or as many, as a call says.
// CHECK-LABEL: func.func @dynamic_offset
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, %{{.*}}] [8, 64] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x64xf32>)
// CHECK-LABEL: func.func @dynamic_columns
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 64] [8, %{{.*}}] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x?xf32>)
func.func @dynamic_offset(%x: tensor<8x128xf32>, %o: index) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %x[0, %o] [8, 64] [1, 1] : tensor<8x128xf32> to tensor<8x64xf32>
  %y = arith.negf %s : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
func.func @dynamic_columns(%x: tensor<8x?xf32>, %n: index) -> tensor<8x?xf32> {
  %s = tensor.extract_slice %x[0, 64] [8, %n] [1, 1] : tensor<8x?xf32> to tensor<8x?xf32>
  %y = arith.negf %s : tensor<8x?xf32>
  return %y : tensor<8x?xf32>
}

// -----

// The first columns of a number that a call says have no remainder.
// CHECK-LABEL: func.func @columns_of_dynamic
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 0] [8, 64] [1, 1] : tensor<8x?xf32>
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x64xf32>)
func.func @columns_of_dynamic(%x: tensor<8x?xf32>) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %x[0, 0] [8, 64] [1, 1] : tensor<8x?xf32> to tensor<8x64xf32>
  %y = arith.negf %s : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Each second column, and each second row.
// CHECK-LABEL: func.func @strides
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 0] [8, 64] [1, 2]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x64xf32>)
// CHECK-LABEL: func.func @strides_of_rows
// CHECK: %[[S:.*]] = tensor.extract_slice %{{.*}}[0, 64] [8, 64] [2, 1]
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<8x64xf32>)
func.func @strides(%x: tensor<8x128xf32>) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %x[0, 0] [8, 64] [1, 2] : tensor<8x128xf32> to tensor<8x64xf32>
  %y = arith.negf %s : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
func.func @strides_of_rows(%x: tensor<16x128xf32>) -> tensor<8x64xf32> {
  %s = tensor.extract_slice %x[0, 64] [8, 64] [2, 1] : tensor<16x128xf32> to tensor<8x64xf32>
  %y = arith.negf %s : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Rows that follow each other, parts of dynamic width and elements of 8 bits stay concatenations.
// CHECK-LABEL: func.func @rows
// CHECK: tensor.concat dim(0)
// CHECK-LABEL: func.func @dynamic_parts
// CHECK: tensor.concat dim(1)
// CHECK-LABEL: func.func @bytes
// CHECK: tensor.concat dim(1)
func.func @rows(%x: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> tensor<16x64xf32> {
  %n = arith.negf %x : tensor<8x64xf32>
  %y = tensor.concat dim(0) %n, %z : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}
func.func @dynamic_parts(%x: tensor<8x?xf32>, %z: tensor<8x64xf32>) -> tensor<8x?xf32> {
  %n = arith.negf %x : tensor<8x?xf32>
  %y = tensor.concat dim(1) %n, %z : (tensor<8x?xf32>, tensor<8x64xf32>) -> tensor<8x?xf32>
  return %y : tensor<8x?xf32>
}
func.func @bytes(%x: tensor<8x64xf32>, %z: tensor<8x64xf8E4M3FN>) -> tensor<8x128xf8E4M3FN> {
  %n = arith.truncf %x : tensor<8x64xf32> to tensor<8x64xf8E4M3FN>
  %y = tensor.concat dim(1) %n, %z : (tensor<8x64xf8E4M3FN>, tensor<8x64xf8E4M3FN>) -> tensor<8x128xf8E4M3FN>
  return %y : tensor<8x128xf8E4M3FN>
}

// -----

// A part that reads its columns as rows has no place among the columns of all parts.
// CHECK-LABEL: func.func @transposed_part
// CHECK: %[[PART:.*]] = linalg.generic
// CHECK: tensor.concat dim(1) %{{.*}}, %[[PART]]
func.func @transposed_part(%x: tensor<64x8xf32>, %w: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x8xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  %z = tensor.concat dim(1) %w, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  return %z : tensor<8x128xf32>
}

// -----

// Nor has one that reads a number of each of its columns, whose place is in the rows of an operand.
// CHECK-LABEL: func.func @numbers_of_a_part
// CHECK: %[[PART:.*]] = linalg.generic
// CHECK: tensor.concat dim(1) %{{.*}}, %[[PART]]
func.func @numbers_of_a_part(%x: tensor<64x1xf32>, %w: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, 0)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<64x1xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%v: f32, %u: f32, %o: f32):
    %m = arith.addf %v, %u : f32
    linalg.yield %m : f32
  } -> tensor<8x64xf32>
  %z = tensor.concat dim(1) %w, %y : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  return %z : tensor<8x128xf32>
}
