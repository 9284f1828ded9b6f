// RUN: fp4-opt %s -fp4-set-target "-fp4-plan-kernels=plans={tile_gemm, tile = [128, 64, 256]}" -convert-fp4-to-pipe -canonicalize | FileCheck %s

!lx = tensor<2048x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lw = tensor<1024x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>

// Groups whose rows are known: the table of their tiles is a constant, and there is no tile for the empty
// one. The first row is 0 to 170 of group 0, the third 170 to 300 of group 2. The list of tiles of scales
// is what a matrix with whole blocks of each group has.
// CHECK-LABEL: func.func @known
// CHECK-DAG: pipe.view %{{.*}} : memref<16x1x512xi8> -> memref<4x4x512xi8>
// CHECK-DAG: pipe.device_constant dense<[0, 0, 0, 0, -86, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -128, 0, 0, 0, -86, 0, 0, 0, 0, 0, 0, 0, -128, 0, 0, 0, -86, 0, 0, 0, 44, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0,
// CHECK: gpu.launch_func @known_matmul_0::@kernel blocks in (%c4

// Groups whose rows the device knows: a kernel makes the table, whose last row says how many tiles there
// are, and rows that are of no group are zero.
// CHECK-LABEL: func.func @offsets
// CHECK: gpu.memset %{{.*}}, %{{.*}} : memref<300x64xf32>, f32
// CHECK: gpu.alloc () {fp4.group_report = "operand 'offsets' of the matmul at {{.*}}"} : memref<8xi64>
// CHECK: gpu.alloc () : memref<5x4xi32>
// CHECK: gpu.launch_func @offsets_groups_0::@kernel
// CHECK: gpu.launch_func @offsets_matmul_0::@kernel

// CHECK-LABEL: gpu.module @known_matmul_0
// CHECK: gpu.func @kernel({{.*}}%[[ALPHA:[a-z0-9]+]]: !pipe.global<3xf32>, {{.*}}%[[TABLE:[a-z0-9]+]]: !pipe.global<5x4xi32>)
// CHECK-NOT: pipe.load_entry
// CHECK: pipe.for_each_work %[[M:.*]], %[[N:.*]] in (%c4{{.*}}, %c1
// CHECK: pipe.load_entry %[[TABLE]][%[[M]]]
// CHECK: pipe.load_entry %[[ALPHA]]
// CHECK: pipe.store {{.*}} rows %{{.*}} : tensor<128x32xf32, #pipe.distribution<lanes>>, !pipe.global<300x64xf32>
// CHECK-LABEL: gpu.module @offsets_matmul_0
// CHECK: gpu.func @kernel({{.*}}%[[TABLE:[a-z0-9]+]]: !pipe.global<5x4xi32>)
// CHECK: %[[COUNT:.*]] = pipe.load_entry %[[TABLE]][%c4
// CHECK: %[[TILES:.*]] = vector.extract %[[COUNT]][0]
// CHECK: pipe.for_each_work %{{.*}} in (%[[TILES]], %c1
// CHECK-LABEL: gpu.module @offsets_groups_0

!lhs = !fp4.scaled<nvfp4, tensor<300x256xf4E2M1FN>, !lx>
!rhs = !fp4.scaled<nvfp4, tensor<192x256xf4E2M1FN>,
                   tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
func.func @known(%a: tensor<300x256xf4E2M1FN>, %sa: !lx, %b: tensor<192x256xf4E2M1FN>, %sb: tensor<1536x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>, %alpha: tensor<3xf32>) -> tensor<300x64xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled alpha %alpha {work = #fp4.work<groups = [170, 0, 130]>}
      : (!lhs, !rhs, tensor<3xf32>) -> tensor<300x64xf32>
  return %y : tensor<300x64xf32>
}

!rhs2 = !fp4.scaled<nvfp4, tensor<128x256xf4E2M1FN>, !lw>
func.func @offsets(%a: tensor<300x256xf4E2M1FN>, %sa: !lx, %b: tensor<128x256xf4E2M1FN>, %sb: !lw, %o: tensor<3xi64>) -> tensor<300x64xf32> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs2, tensor<3xi64>) -> tensor<300x64xf32>
  return %y : tensor<300x64xf32>
}
