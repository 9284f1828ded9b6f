// Arguments whose rows their caller places: with gaps that no kernel reads, which the strict check sees, and
// matrices of a batch interleaved. Kernels read such rows where they are; one that cannot gets a copy.

// RUN: fp4-runner %s --device=sim --function=rows --shape=37 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=rows --shape=130 --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=separate --shape=70 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=ragged --shape=5 --check=strict --policy=lazy | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=columns --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=amaxes --shape=67 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=groups --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=f32_blocks --shape=130 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=heads --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=copied --shape=33 --check=strict | FileCheck %s
// RUN: fp4-runner %s --device=sim --function=copied_heads --check=strict | FileCheck %s
// CHECK: equals the {{.*}}, bit for bit
// CHECK-NOT: differs
// CHECK: hazards {{.*}}none (strict check)

!x = tensor<?x272xbf16>
!q = tensor<?x272xf4E2M1FN>
!s = tensor<?x17xf8E4M3FN>
!t = tensor<?x17xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

// One kernel where the rows are few, and two kernels.
func.func @rows(%x: !x {fp4.strided}) -> (!q, !t) {
  %a = fp4.amax %x : !x -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>} : (!x, tensor<f32>) -> (!q, !t)
  return %q, %s : !q, !t
}
func.func @separate(%x: !x {fp4.strided}) -> (!q, !s, tensor<f32>) {
  %a = fp4.amax %x : !x -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, fp4.plan = #fp4.plan<stream_blocks, amax = separate>}
      : (!x, tensor<f32>) -> (!q, !s)
  return %q, %s, %a : !q, !s, tensor<f32>
}

// Rows that are no whole blocks, and of 58 bytes.
func.func @ragged(%x: tensor<?x29xf16> {fp4.strided}) -> (tensor<?x29xf4E2M1FN>, tensor<?x2xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<?x29xf16> -> tensor<f32>
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<?x29xf16>, tensor<f32>) -> (tensor<?x29xf4E2M1FN>, tensor<?x2xf8E4M3FN>)
  return %q, %s : tensor<?x29xf4E2M1FN>, tensor<?x2xf8E4M3FN>
}

// Tiles, in both orientations and along columns of ragged length.
func.func @columns(%x: tensor<100x40xbf16> {fp4.strided})
    -> (tensor<100x40xf4E2M1FN>, tensor<100x3xf8E4M3FN>, tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>) {
  %a = fp4.amax %x : tensor<100x40xbf16> -> tensor<f32>
  %q, %s, %qt, %st = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, outputs = #fp4.outputs<both>}
      : (tensor<100x40xbf16>, tensor<f32>)
      -> (tensor<100x40xf4E2M1FN>, tensor<100x3xf8E4M3FN>, tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>)
  return %q, %s, %qt, %st
      : tensor<100x40xf4E2M1FN>, tensor<100x3xf8E4M3FN>, tensor<40x100xf4E2M1FN>, tensor<40x7xf8E4M3FN>
}

func.func @amaxes(%x: tensor<?x72xbf16> {fp4.strided}) -> (tensor<f32>, tensor<?xf32>, tensor<72xf32>) {
  %a = fp4.amax %x : tensor<?x72xbf16> -> tensor<f32>
  %r = fp4.amax %x {per_row} : tensor<?x72xbf16> -> tensor<?xf32>
  %c = fp4.amax %x {per_column} : tensor<?x72xbf16> -> tensor<72xf32>
  return %a, %r, %c : tensor<f32>, tensor<?xf32>, tensor<72xf32>
}
func.func @groups(%x: tensor<100x48xbf16> {fp4.strided}) -> tensor<3xf32> {
  %a = fp4.amax %x {groups = array<i64: 33, 0, 67>} : tensor<100x48xbf16> -> tensor<3xf32>
  return %a : tensor<3xf32>
}
func.func @f32_blocks(%x: tensor<?x208xbf16> {fp4.strided}) -> (tensor<?x208xf8E4M3FN>, tensor<?x2xf32>) {
  %q, %s = fp4.quantize %x {format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>} : (tensor<?x208xbf16>) -> (tensor<?x208xf8E4M3FN>, tensor<?x2xf32>)
  return %q, %s : tensor<?x208xf8E4M3FN>, tensor<?x2xf32>
}

// Five heads of 24 rows, interleaved in memory, and their batched GEMM.
!lw = tensor<640x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<120x48xf4E2M1FN>, !lw>
!rhs = !fp4.scaled<nvfp4, tensor<80x48xf4E2M1FN>, !lw>
func.func @heads(%x: tensor<5x24x48xbf16> {fp4.strided}, %w: tensor<5x16x48xbf16> {fp4.strided}) -> tensor<5x24x16xbf16> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<5x24x48xbf16> into tensor<120x48xbf16>
  %n = tensor.collapse_shape %w [[0, 1], [2]] : tensor<5x16x48xbf16> into tensor<80x48xbf16>
  %a = fp4.amax %m {groups = array<i64: 24, 24, 24, 24, 24>} : tensor<120x48xbf16> -> tensor<5xf32>
  %aw = fp4.amax %n {groups = array<i64: 16, 16, 16, 16, 16>} : tensor<80x48xbf16> -> tensor<5xf32>
  %q, %s = fp4.quantize %m amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 24, 24, 24, 24, 24>}
      : (tensor<120x48xbf16>, tensor<5xf32>) -> (tensor<120x48xf4E2M1FN>, !lw)
  %qw, %sw = fp4.quantize %n amax %aw {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 16, 16, 16, 16, 16>}
      : (tensor<80x48xbf16>, tensor<5xf32>) -> (tensor<80x48xf4E2M1FN>, !lw)
  %alpha = fp4.matmul_alpha %a, %aw {per_group} : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
  %q_scaled = fp4.scaled %q, %s : !lhs
  %qw_scaled = fp4.scaled %qw, %sw : !rhs
  %y = fp4.matmul %q_scaled, %qw_scaled alpha %alpha
      {work = #fp4.work<groups = [24, 24, 24, 24, 24]>}
      : (!lhs, !rhs, tensor<5xf32>) -> tensor<120x16xbf16>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [5, 24, 16] : tensor<120x16xbf16> into tensor<5x24x16xbf16>
  return %r : tensor<5x24x16xbf16>
}

// An operation that takes no strides.
func.func @copied(%x: tensor<?x32xbf16> {fp4.strided}) -> (tensor<?x32xbf16>, tensor<f32>) {
  %h = fp4.hadamard %x {size = 16 : i64, dimension = 1 : i64} : tensor<?x32xbf16> -> tensor<?x32xbf16>
  %a = fp4.amax %x : tensor<?x32xbf16> -> tensor<f32>
  return %h, %a : tensor<?x32xbf16>, tensor<f32>
}
func.func @copied_heads(%x: tensor<3x20x32xbf16> {fp4.strided}) -> tensor<60x32xbf16> {
  %m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<3x20x32xbf16> into tensor<60x32xbf16>
  %h = fp4.hadamard %m {size = 16 : i64, dimension = 1 : i64} : tensor<60x32xbf16> -> tensor<60x32xbf16>
  return %h : tensor<60x32xbf16>
}
