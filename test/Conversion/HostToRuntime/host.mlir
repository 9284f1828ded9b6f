// RUN: fp4-opt %s --convert-host-to-runtime --canonicalize | FileCheck %s

module attributes {gpu.container_module} {

// The embedded kernels are one constant fp4rt_module per gpu.binary; a launch passes the address of
// every parameter's value, and the shared memory that the kernel table states.

// CHECK-DAG: llvm.mlir.global private constant @fp4_module_m_ptx(".version 8.8") {{.*}}alignment = 16
// CHECK-DAG: llvm.mlir.global external constant @[[DATA:fp4_data_[0-9a-f]+]]("\01\02\03\04") {addr_space = 0 : i32, alignment = 32 : i64}
// CHECK-DAG: llvm.mlir.global private constant @fp4_module_m() {{.*}} !llvm.struct<(ptr, ptr, ptr, i64, ptr, i64)>
gpu.binary @m [#gpu.object<#nvvm.target<chip = "sm_100a">,
  properties = {target = "sm_100a"},
  kernels = <[#gpu.kernel_metadata<"k", !llvm.func<void (ptr<1>, i32, ptr)>,
    metadata = {dynamic_shared_bytes = 2048 : i64}>]>, assembly = ".version 8.8">]

// Rank and bytes of an element of each argument, then of each result.
// CHECK-DAG: llvm.mlir.global private constant @fp4_types_f(dense<[2, 1, 2, 2]> : tensor<4xi32>)
// CHECK-DAG: llvm.mlir.global private constant @fp4_types_constant_and_view(dense<[2, 2, 1, 2, 2, 2]> : tensor<6xi32>)

// CHECK-LABEL: llvm.func internal @f(
// CHECK-SAME: %{{[a-z0-9]+}}: !llvm.ptr, %[[Q:[a-z0-9]+]]: !llvm.ptr, %{{[a-z0-9]+}}: i64, %[[ROWS:[a-z0-9]+]]: i64,
// CHECK-DAG: %[[COUNT:.*]] = llvm.mlir.constant(3 : i32) : i32
// CHECK-DAG: %[[SHARED:.*]] = llvm.mlir.constant(2048 : i32) : i32
// CHECK-DAG: %[[PITCH:.*]] = llvm.mlir.constant(144 : i64) : i64
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i8) : i8
// CHECK-DAG: %[[THREADS:.*]] = llvm.mlir.constant(192 : index) : i64
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : index) : i64
func.func @f(%q: memref<?x144xi8> {fp4.name = "q"}, %y: memref<?x64xbf16>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant 0 : i8
  %rows = memref.dim %q, %c0 : memref<?x144xi8>
  %m = arith.index_cast %rows : index to i32
  // CHECK: %[[ELEMENTS:.*]] = llvm.mul %[[ROWS]], %{{.*}} : i64
  // CHECK: %[[BYTES:.*]] = llvm.mul %[[ELEMENTS]], %[[PITCH]] : i64
  // CHECK: llvm.call @fp4rt_memset(%[[Q]], %[[ZERO]], %[[BYTES]]) : (!llvm.ptr, i8, i64)
  gpu.memset %q, %zero : memref<?x144xi8>, i8
  // A packed row of 272 elements is 136 bytes of the map, whatever the pitch; a box row is 128.
  // CHECK: %[[MAP:.*]] = llvm.alloca %{{.*}} x i8 {alignment = 64 : i64}
  // CHECK: llvm.call @fp4rt_tensor_map(%[[MAP]],
  %map = pipe.make_tensor_map %q columns 272
      : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  %out = pipe.view %y : memref<?x64xbf16> -> !pipe.global<?x64xbf16>
  // CHECK: %[[GX:.*]] = llvm.trunc %[[ROWS]] : i64 to i32
  // CHECK: %[[GY:.*]] = llvm.trunc %[[ONE]] : i64 to i32
  // CHECK: %[[GZ:.*]] = llvm.trunc %[[ONE]] : i64 to i32
  // CHECK: %[[BX:.*]] = llvm.trunc %[[THREADS]] : i64 to i32
  // CHECK: %[[BY:.*]] = llvm.trunc %[[ONE]] : i64 to i32
  // CHECK: %[[BZ:.*]] = llvm.trunc %[[ONE]] : i64 to i32
  // CHECK: %[[PARAMS:.*]] = llvm.alloca %{{.*}} x !llvm.ptr
  // CHECK: llvm.store %[[MAP]], %{{.*}} : !llvm.ptr, !llvm.ptr
  // CHECK: llvm.call @fp4rt_launch(%{{.*}}, %{{.*}}, %[[GX]], %[[GY]], %[[GZ]], %[[BX]], %[[BY]], %[[BZ]], %[[SHARED]], %[[PARAMS]], %[[COUNT]])
  gpu.launch_func @m::@k blocks in (%rows, %c1, %c1) threads in (%c192, %c1, %c1)
      args(%out : !pipe.global<?x64xbf16>, %m : i32,
           %map : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>)
  // A launch with PDL.
  // CHECK: llvm.call @fp4rt_launch_dependent(
  gpu.launch_func @m::@k blocks in (%rows, %c1, %c1) threads in (%c192, %c1, %c1)
      args(%out : !pipe.global<?x64xbf16>, %m : i32,
           %map : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>) {fp4.dependent}
  return
}

// The entry point checks the sizes of its descriptors before it calls.

// CHECK-LABEL: llvm.func @fp4_entry_f(%arg0: !llvm.ptr)
// CHECK-DAG: %[[LEAST:.*]] = llvm.mlir.constant(0 : i64) : i64
// CHECK: llvm.call @fp4rt_expect_size(%{{[^,]*}}, %{{[^,]*}}, %[[LEAST]], %
// CHECK-COUNT-3: llvm.call @fp4rt_expect_size
// CHECK: llvm.call @fp4_inner_f

// A program of another compiler calls by MLIR's C interface, with arguments and then destinations.

// CHECK-LABEL: llvm.func @_mlir_ciface_f(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
// CHECK-DAG: %[[NONE:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK-DAG: %[[ENTRY:.*]] = llvm.mlir.addressof @fp4_entry_f : !llvm.ptr
// CHECK-DAG: %[[TYPES:.*]] = llvm.mlir.addressof @fp4_types_f : !llvm.ptr
// CHECK-DAG: %[[BUFFERS:.*]] = llvm.alloca %[[TWO]] x !llvm.ptr
// CHECK-DAG: llvm.store %arg0, %[[BUFFERS]]
// CHECK: llvm.call @fp4rt_call(%[[ENTRY]], %[[BUFFERS]], %[[TYPES]], %[[TWO]], %[[NONE]])

// A buffer is freed by the pointer that its allocation returned; one that is filled with other bytes than
// zero, with them.
// CHECK-LABEL: llvm.func internal @temporary(
// CHECK: %[[BYTE:.*]] = llvm.mlir.constant(7 : i8)
// CHECK-NOT: llvm.func @_mlir_ciface_temporary
func.func @temporary() {
  %byte = arith.constant 7 : i8
  // CHECK: %[[BUFFER:.*]] = llvm.call @fp4rt_alloc(%{{.*}}) : (i64) -> !llvm.ptr
  %buffer = gpu.alloc () : memref<4x8xi8>
  // CHECK: llvm.call @fp4rt_memset(%[[BUFFER]], %[[BYTE]], %{{.*}}) : (!llvm.ptr, i8, i64)
  gpu.memset %buffer, %byte : memref<4x8xi8>, i8
  // CHECK: llvm.call @fp4rt_free(%[[BUFFER]]) : (!llvm.ptr) -> ()
  gpu.dealloc %buffer : memref<4x8xi8>
  return
}

// Counters are memory of the program, zero already.
// CHECK-LABEL: llvm.func internal @counters(
func.func @counters(%x: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %tiles = memref.dim %x, %c0 : memref<?xi32>
  // CHECK: %[[BYTES:.*]] = llvm.ptrtoint
  // CHECK: llvm.call @fp4rt_counters(%[[BYTES]]) : (i64) -> !llvm.ptr
  %counters = gpu.alloc (%tiles) {fp4.counters} : memref<?x4xi32>
  return
}

// Reports of kernels about groups are memory of the program too, under the name of the operand.
// CHECK-LABEL: llvm.func internal @report(
func.func @report() {
  // CHECK: %[[WHAT:.*]] = llvm.mlir.addressof @fp4_group_report_{{[0-9a-f]+}}
  // CHECK: llvm.call @fp4rt_group_report(%[[WHAT]]) : (!llvm.ptr) -> !llvm.ptr
  %report = gpu.alloc () {fp4.group_report = "operand 'offsets'"} : memref<8xi64>
  return
}

// A result can lie where a caller wants it, and says which one it is.
// CHECK-LABEL: llvm.func internal @results(
func.func @results(%x: memref<?xf32>) -> (memref<4xf32>, memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %rows = memref.dim %x, %c0 : memref<?xf32>
  // CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.constant(0 : i32) : i32
  // CHECK-DAG: %[[SECOND:.*]] = llvm.mlir.constant(1 : i32) : i32
  // CHECK-DAG: llvm.call @fp4rt_alloc_result(%[[FIRST]], %{{.*}}) : (i32, i64) -> !llvm.ptr
  // CHECK-DAG: llvm.call @fp4rt_alloc_result(%[[SECOND]], %{{.*}}) : (i32, i64) -> !llvm.ptr
  %y = gpu.alloc () {fp4.result = 0 : i32} : memref<4xf32>
  %z = gpu.alloc (%rows) {fp4.result = 1 : i32} : memref<?xf32>
  return %y, %z : memref<4xf32>, memref<?xf32>
}
// CHECK-LABEL: llvm.func @fp4_entry_results(
// CHECK-SAME: -> i32
// CHECK: %[[DONE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: llvm.return %[[DONE]]

// Rows of a wider matrix: pitches of destination and source, bytes of a row, rows.
// CHECK-LABEL: llvm.func internal @rows(
func.func @rows(%narrow: memref<5x6xf32>, %wide: memref<5x8xf32>) {
  // CHECK-DAG: %[[HEIGHT:.*]] = llvm.mlir.constant(5 : {{.*}}) : i64
  // CHECK-DAG: %[[DENSE:.*]] = llvm.mlir.constant(24 : i64) : i64
  // CHECK-DAG: %[[WIDE:.*]] = llvm.mlir.constant(32 : i64) : i64
  // CHECK: llvm.call @fp4rt_memcpy_2d(%{{.*}}, %[[DENSE]], %{{.*}}, %[[WIDE]], %[[DENSE]], %[[HEIGHT]])
  %view = memref.subview %wide[0, 0] [5, 6] [1, 1] : memref<5x8xf32> to memref<5x6xf32, strided<[8, 1]>>
  gpu.memcpy %narrow, %view : memref<5x6xf32>, memref<5x6xf32, strided<[8, 1]>>
  return
}


// Constants are globals under a name that says what they hold, and in device memory by one call;
// views are addresses.

// CHECK-LABEL: llvm.func internal @constant_and_view(
// CHECK-DAG: %[[SIZE:.*]] = llvm.mlir.constant(4 : i64) : i64
// CHECK-DAG: %[[HOST:.*]] = llvm.mlir.addressof @[[DATA]]
// CHECK: %[[DEVICE:.*]] = llvm.call @fp4rt_constant(%[[HOST]], %[[SIZE]]) : (!llvm.ptr, i64) -> !llvm.ptr
func.func @constant_and_view(%x: memref<8x64xbf16>) -> (memref<2xbf16>, memref<?x64xbf16>) {
  %c = pipe.device_constant dense<[1, 2, 3, 4]> : tensor<4xi8> -> memref<2xbf16>
  %rows = arith.constant 3 : index
  // CHECK: llvm.getelementptr {{.*}}512] : (!llvm.ptr) -> !llvm.ptr, i8
  %v = pipe.view %x offset 512 rows %rows : memref<8x64xbf16> -> memref<?x64xbf16>
  return %c, %v : memref<2xbf16>, memref<?x64xbf16>
}

// CHECK-LABEL: llvm.func @_mlir_ciface_constant_and_view(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr)
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK: llvm.call @fp4rt_call(%{{.*}}, %{{.*}}, %{{.*}}, %[[ONE]], %[[TWO]])

// A map of scales has rank 3: 128 words of a block, 16 blocks of a row, 4 rows of blocks.
// CHECK-LABEL: llvm.func internal @scale_map(
func.func @scale_map(%sf: memref<4x16x512xi8>) {
  // CHECK-DAG: %[[RANK:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK-DAG: %[[WORDS:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[PITCH:.*]] = llvm.mlir.constant(8192 : i64)
  // CHECK: llvm.store %[[PITCH]]
  // CHECK: llvm.call @fp4rt_tensor_map(%{{.*}}, %{{.*}}, %[[WORDS]], %{{.*}}, %[[RANK]],
  %map = pipe.make_tensor_map %sf columns 64 : memref<4x16x512xi8> -> !pipe.tensor_map<128x16xf8E4M3FN, tiled_128x4>
  return
}

// The residue of a map is a second map behind the first. The box of the second has the rows behind the last whole box,
// or those of a box where there are none.
// CHECK-LABEL: llvm.func internal @residue(
// CHECK-SAME: %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: i64, %[[ROWS:[a-z0-9]+]]: i64,
func.func @residue(%x: memref<?x512xbf16>) {
  // CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(256 : i64)
  // CHECK-DAG: %[[BOX:.*]] = llvm.mlir.constant(128 : i64)
  // CHECK-DAG: %[[NONE:.*]] = llvm.mlir.constant(0 : i64)
  // CHECK: %[[LEFT:.*]] = llvm.urem %[[ROWS]], %[[BOX]]
  // CHECK: %[[IS_NONE:.*]] = llvm.icmp "eq" %[[LEFT]], %[[NONE]]
  // CHECK: %[[SOME:.*]] = llvm.select %[[IS_NONE]], %[[BOX]], %[[LEFT]]
  // CHECK: %[[HEIGHT:.*]] = llvm.trunc %[[SOME]] : i64 to i32
  // CHECK: llvm.store %[[HEIGHT]]
  // CHECK: %[[MAPS:.*]] = llvm.alloca %[[BYTES]] x i8 {alignment = 64 : i64}
  // CHECK: llvm.call @fp4rt_tensor_map(%[[MAPS]],
  // CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[MAPS]][128]
  // CHECK: llvm.call @fp4rt_tensor_map(%[[SECOND]],
  %map = pipe.make_tensor_map %x columns 512 : memref<?x512xbf16> -> !pipe.tensor_map<128x64xbf16, swizzle_128B, residue>
  return
}

// Rows of 168 bytes are two sets, 336 bytes apart. The rows of the second begin 2 words behind byte 160, in front of
// 42 columns. With one row there are none in the second, whose map then is that of this row.
// CHECK-LABEL: llvm.func internal @sets(
// CHECK-SAME: %{{[a-z0-9]+}}: !llvm.ptr, %[[FIRST:[a-z0-9]+]]: !llvm.ptr, %{{[a-z0-9]+}}: i64, %[[ROWS:[a-z0-9]+]]: i64,
func.func @sets(%x: memref<?x42xf32>) {
  // CHECK-DAG: %[[APART:.*]] = llvm.mlir.constant(336 : i64)
  // CHECK-DAG: %[[BEGIN:.*]] = llvm.mlir.constant(160 : i64)
  // CHECK-DAG: %[[WIDE:.*]] = llvm.mlir.constant(44 : i64)
  // CHECK-DAG: %[[COLUMNS:.*]] = llvm.mlir.constant(42 : i64)
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
  // CHECK: %[[MAPS:.*]] = llvm.alloca %{{.*}} x i8 {alignment = 64 : i64}
  // CHECK: llvm.store %[[APART]]
  // CHECK: llvm.call @fp4rt_tensor_map(%[[MAPS]],
  // CHECK: %[[BEHIND:.*]] = llvm.add %[[ROWS]], %{{.*}}
  // CHECK: %[[COUNT:.*]] = llvm.udiv %[[BEHIND]], %[[TWO]]
  // CHECK: %[[EMPTY:.*]] = llvm.icmp "eq" %[[COUNT]]
  // CHECK: %[[BYTES:.*]] = llvm.select %[[EMPTY]], %{{.*}}, %[[BEGIN]]
  // CHECK: %[[SET:.*]] = llvm.getelementptr %[[FIRST]][%[[BYTES]]]
  // CHECK: %[[WIDTH:.*]] = llvm.select %[[EMPTY]], %[[COLUMNS]], %[[WIDE]]
  // CHECK: llvm.store %[[WIDTH]]
  // CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[MAPS]][128]
  // CHECK: llvm.call @fp4rt_tensor_map(%[[SECOND]], %[[SET]],
  %map = pipe.make_tensor_map %x columns 42 : memref<?x42xf32> -> !pipe.tensor_map<64x4xf32, rows_2_mod_4>
  return
}
}
