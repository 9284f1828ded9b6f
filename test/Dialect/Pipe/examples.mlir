// RUN: fp4-opt %s | fp4-opt -o /dev/null

// The examples of the descriptions in Pipe*.td, each verbatim (lint/check_examples.py).

!data = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!channel = !pipe.channel<!data, !data>
!overlapping = !pipe.channel<!pipe.tmem<128x256xf32>>
!accs = !pipe.channel<!pipe.tmem<128x128xf32>>

func.func @maps(%q: memref<?x144xi8>, %v: memref<?x512xbf16>, %p: memref<?x?xi8>, %k: index) {
  %map = pipe.make_tensor_map %q columns 272
      : memref<?x144xi8> -> !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
  %lists = pipe.make_tensor_map %v columns 512
      : memref<?x512xbf16> -> !pipe.tensor_map<1x128x64xbf16, swizzle_128B>
  %any = pipe.make_tensor_map %p columns %k
      : memref<?x?xi8> -> !pipe.tensor_map<128x128xf8E4M3FN, swizzle_128B>
  return
}

func.func @host(%d: memref<?x512xbf16>, %x: memref<8x16x64xbf16>, %found: index, %expected: index,
                %s: !pipe.global<?x?xbf16>, %n: i32, %b: i64) {
  %w = pipe.device_constant dense<[1, 2, 3, 4]> : tensor<4xi8> -> memref<2xbf16>
  %v = pipe.view %x offset 2048 : memref<8x16x64xbf16> -> memref<16x64xbf16>
  %g = pipe.view %d : memref<?x512xbf16> -> !pipe.global<?x512xbf16>
  %y = pipe.view %s columns %n pitch %b : !pipe.global<?x?xbf16> -> !pipe.global<?x?xbf16>
  %address = pipe.view %g : !pipe.global<?x512xbf16> -> !llvm.ptr<1>
  pipe.expect_size "rows of scale tiles of lhs_scales" %found is %expected
      {note = "quantize both operands of the matmul alike"}
  return
}

func.func @any_sizes(%bytes: index) {
  %pitch = pipe.result_pitch 0 of %bytes
  return
}

func.func @entries(%tiles: !pipe.global<24x4xi32>, %m: i32, %p: !pipe.global<f32>) {
  %e = pipe.load_entry %tiles[%m] : !pipe.global<24x4xi32> -> vector<4xi32>
  %alpha = pipe.load_entry %p : !pipe.global<f32> -> f32
  return
}

func.func @scalars(%num_m: i32, %num_n: i32, %c128: i32) {
  pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.static_persistent<along_m> {
    %row = arith.muli %m, %c128 : i32
    %column = arith.muli %n, %c128 : i32
  }
  pipe.for_each_work %m, %n in (%num_m, %num_n) schedule #pipe.cluster_launch<along_m> {
    pipe.request_work
  }
  return
}

gpu.module @requests {
  gpu.func @taken(%it: i32) kernel {
    pipe.role load warps 5 to 6 drives [tma] {
      %more, %block = pipe.next_work[%it]
    }
    gpu.return
  }
}

func.func @factors(%p: !pipe.global<?x1xf32>, %q: !pipe.global<1x512xf32>, %m0: i32, %n0: i32, %m: i32,
                   %w: !pipe.global<64x8704xi8>, %tile: i32, %parts: !pipe.global<1024x512xf32>,
                   %left: !pipe.global<64x16384xf32>) {
  %f = pipe.fetch %p[%m0, %n0] rows %m : !pipe.global<?x1xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %g = pipe.fetch %q[%m0, %n0] : !pipe.global<1x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  %e = pipe.fetch %q[%m0, %n0] in_bounds : !pipe.global<1x512xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  %h = pipe.fetch %w[%tile] : !pipe.global<64x8704xi8> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  %v = pipe.fetch %parts[%m0, %n0] written : !pipe.global<1024x512xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %u = pipe.fetch %left[%m0] first 4096 : !pipe.global<64x16384xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

func.func @loads(%a: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>, %slot: !data, %row: i32, %k: i32, %it: i32,
                 %sfa: !pipe.global<?x17xf8E4M3FN, tiled_128x4>, %m: i32, %kb: i32, %n: i32,
                 %x: !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B, residue>, %rows: i32, %p: !pipe.global<64x4608xi8>,
                 %qs: !pipe.tensor_map<8x8x64xbf16, swizzle_128B>, %head: i32, %token: i32) {
  %ab = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 65536 : !channel
  %exist = pipe.existing_rows %rows from %row of 128
  %t = pipe.load %a[%row, %k] : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B>
      -> !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
  %s = pipe.load %sfa[%m, %kb] existing %n : !pipe.global<?x17xf8E4M3FN, tiled_128x4>
      -> !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
  %q = pipe.load %qs[%head, %k] plane %token : !pipe.tensor_map<8x8x64xbf16, swizzle_128B>
      -> !pipe.shared<64x64xbf16, swizzle_128B>
  pipe.load %x[%row, %k] existing %exist into %slot signals %ab[%it]
      : !pipe.tensor_map<128x256xf4E2M1FN, swizzle_128B, residue>,
        !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !channel
  %w = pipe.load %p[%row] existing %n : !pipe.global<64x4608xi8> -> !pipe.shared<4x4608xi8>
  return
}

func.func @accumulators() {
  %tmem = pipe.accumulator : !pipe.tmem<128x256xf32>
  %acc = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  %sums = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
  return
}

func.func @products(%acc: !pipe.tmem<128x128xf32>, %a: !data, %b: !data, %s: !pipe.shared<128x16xf8E4M3FN, tiled_128x4>,
                    %sa: !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>, %sb: !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>,
                    %more: i1, %n: i32, %e: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>,
                    %f: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %w: !pipe.shared<4x4608xi8>,
                    %x: !pipe.shared<16x256xbf16, swizzle_128B>, %out: !pipe.fragment<64x64xf32, wgmma>,
                    %p: tensor<64x128xbf16, #pipe.distribution<wgmma>>, %v: !pipe.shared<128x64xbf16, swizzle_128B>,
                    %slices: !pipe.tmem<128x64xf32>, %tile: !pipe.shared<64x128xbf16, swizzle_128B>,
                    %h: !pipe.shared<16x16xbf16, swizzle_32B>,
                    %factors: tensor<64x1xf32, #pipe.distribution<wgmma>>) {
  %sums = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  %part = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  %t = pipe.copy_scales %s blocks %n at 256 sets 4 : !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
      -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  %u = pipe.copy_scales %s at 256 sets 4 copied : !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
      -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  pipe.mma %acc, %a scaled %sa, %b scaled %sb accumulate %more existing %n
      : !pipe.tmem<128x128xf32>,
        !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>,
        !pipe.shared<128x256xf4E2M1FN, swizzle_128B>, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
  pipe.mma %sums, %e[128], %f chain replaces : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  pipe.mma %out, %p, %v accumulate %more transposed : !pipe.fragment<64x64xf32, wgmma>,
      tensor<64x128xbf16, #pipe.distribution<wgmma>>, !pipe.shared<128x64xbf16, swizzle_128B>
  pipe.mma %out, %p, %v accumulate %more times(%factors : tensor<64x1xf32, #pipe.distribution<wgmma>>) transposed
      : !pipe.fragment<64x64xf32, wgmma>, tensor<64x128xbf16, #pipe.distribution<wgmma>>,
        !pipe.shared<128x64xbf16, swizzle_128B>
  pipe.mma %slices, %tile, %h : !pipe.tmem<128x64xf32>,
      !pipe.shared<64x128xbf16, swizzle_128B>, !pipe.shared<16x16xbf16, swizzle_32B>
  pipe.mma %part, %w, %x accumulate %more chain until_mma : !pipe.fragment<64x16xf32, wgmma>,
      !pipe.shared<4x4608xi8>, !pipe.shared<16x256xbf16, swizzle_128B>
  pipe.mma %part, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>,
      !pipe.shared<4x4608xi8>, !pipe.shared<16x256xbf16, swizzle_128B>
  return
}

func.func @fragments(%a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
                     %b: !pipe.shared<128x128xf16, swizzle_128B>, %more: i1) {
  %acc = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  %sums = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
  pipe.mma %acc, %a scaled %sa, %b accumulate %more : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf16, swizzle_128B>
  %v = pipe.read %acc[32] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

func.func @transposed(%v: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, %few: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>,
                      %slot: !pipe.shared<64x64xf8E4M3FN, swizzle_64B>, %sums: !pipe.fragment<64x128xf32, wgmma>,
                      %p: tensor<64x128xf8E4M3FN, #pipe.distribution<wgmma>>) {
  %t = pipe.transpose_tile %v : !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
      -> !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  pipe.transpose_tile %few[64] into %slot : !pipe.shared<64x128xf8E4M3FN, swizzle_128B>,
      !pipe.shared<64x64xf8E4M3FN, swizzle_64B>
  pipe.mma %sums, %p, %t : !pipe.fragment<64x128xf32, wgmma>,
      tensor<64x128xf8E4M3FN, #pipe.distribution<wgmma>>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  return
}

func.func @converted(%b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
                     %p: !pipe.shared<2x4608xi8>, %slot: !pipe.tmem<128x128xbf16>, %tiles: i32, %one: !pipe.shared<1x8704xi8>) {
  %w = pipe.dequantize %b scaled %sb : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
      !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.shared<128x128xf16, swizzle_128B>
  pipe.dequantize %p existing %tiles into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  %held = pipe.dequantize %one : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  return
}

func.func @cleared(%y: !pipe.global<4096x512xbf16>, %begin: i32, %end: i32) {
  pipe.clear_rows %y[%begin to %end] : !pipe.global<4096x512xbf16>
  return
}

func.func @checked(%o: !pipe.global<5x2xi32>, %ranges: !pipe.global<1x4xi32>, %report: !pipe.global<8xi64>) {
  pipe.check_groups %o limit 300 to %report : !pipe.global<5x2xi32>, !pipe.global<8xi64>
  pipe.check_groups %ranges limit 300 to %report : !pipe.global<1x4xi32>, !pipe.global<8xi64>
  return
}

func.func @held(%w: !pipe.shared<1x8704xi8>, %x: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>) {
  %acc = pipe.accumulator : !pipe.fragment<64x256xf32, wgmma>
  %held = pipe.dequantize %w : !pipe.shared<1x8704xi8> -> !pipe.fragment<64x128xf8E4M3FN, wgmma>
  pipe.mma %acc, %held, %x next %w : !pipe.fragment<64x256xf32, wgmma>,
      !pipe.fragment<64x128xf8E4M3FN, wgmma>, !pipe.shared<256x128xf8E4M3FN, swizzle_128B>,
      !pipe.shared<1x8704xi8>
  return
}

func.func @scales(%sa: !pipe.global<?x56xf32>, %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32, %m: i32,
                  %ta: !pipe.shared<256x4xf32>, %tb: !pipe.shared<1x4xf32>, %p: !pipe.shared<4x128xf32>,
                  %tc: !pipe.shared<64x4xf32, rows_2_mod_4>, %td: !pipe.shared<16x4xf32, rows_2_mod_4>, %k0: i32) {
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  %t = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  %u = pipe.scales %ta[128], %tb block %k : !pipe.shared<256x4xf32>, !pipe.shared<1x4xf32>
      -> vector<3xf32>
  %w = pipe.scales %tc[0], %td block %k from %m0, %n0, %k0
      : !pipe.shared<64x4xf32, rows_2_mod_4>, !pipe.shared<16x4xf32, rows_2_mod_4> -> vector<3xf32>
  %v = pipe.scales %p[0] block %k : !pipe.shared<4x128xf32> -> vector<3xf32>
  return
}

func.func @weights(%acc: !pipe.fragment<64x16xf32, wgmma>, %x: !pipe.shared<16x256xbf16, swizzle_128B>, %more: i1,
                   %p: !pipe.global<64x4608xi8>, %row: i32, %n: i32) {
  %w = pipe.load %p[%row] existing %n : !pipe.global<64x4608xi8> -> !pipe.shared<4x4608xi8>
  pipe.mma %acc, %w, %x accumulate %more : !pipe.fragment<64x16xf32, wgmma>,
      !pipe.shared<4x4608xi8>, !pipe.shared<16x256xbf16, swizzle_128B>
  return
}

func.func @warps(%a: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sa: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
                 %b: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, %sb: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>) {
  %acc = pipe.accumulator : !pipe.fragment<32x64xf32, mma_sync>
  %sums = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
  pipe.mma %acc, %a scaled %sa, %b scaled %sb : !pipe.fragment<32x64xf32, mma_sync>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>,
      !pipe.shared<128x128xf4E2M1FN, swizzle_64B>, !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
  %r, %c = pipe.place %acc in 128 by 128 : !pipe.fragment<32x64xf32, mma_sync>
  %zero, %column = pipe.place %sums : !pipe.fragment<128x64xf32, lanes>
  %v = pipe.read %acc[32] row 16 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x32xf32, #pipe.distribution<mma_sync>>
  return
}

func.func @promotion(%a: !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, %b: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
                     %acc: !pipe.fragment<64x128xf32, wgmma>, %sums: !pipe.fragment<64x128xf32, wgmma>,
                     %sa: !pipe.global<?x56xf32>, %sb: !pipe.global<32x56xf32>,
                     %m0: i32, %n0: i32, %k: i32, %m: i32, %tmem: !pipe.tmem<128x64xf32>) {
  %lanes = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
  %s = pipe.scales %sa[%m0], %sb[%n0 of 128] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> vector<3xf32>
  %t = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  pipe.mma %sums, %a[128], %b chain replaces : !pipe.fragment<64x128xf32, wgmma>,
      !pipe.shared<256x128xf8E4M3FN, swizzle_128B>, !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
  pipe.promote %acc, %sums scaled %s at %n0 : !pipe.fragment<64x128xf32, wgmma>, !pipe.fragment<64x128xf32, wgmma>, vector<3xf32>
  pipe.promote %lanes, %tmem scaled %t : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>, f32
  return
}

func.func @lanes(%sums: !pipe.tmem<128x64xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
                 %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %sa: !pipe.global<?x56xf32>,
                 %sb: !pipe.global<32x56xf32>, %m0: i32, %n0: i32, %k: i32, %m: i32) {
  %acc = pipe.accumulator : !pipe.fragment<128x64xf32, lanes>
  %r, %c = pipe.place %acc : !pipe.fragment<128x64xf32, lanes>
  %s = pipe.scales %sa[%m0], %sb[%n0 of 64] block %k rows %m
      : !pipe.global<?x56xf32>, !pipe.global<32x56xf32> -> f32
  pipe.promote %acc, %sums scaled %s : !pipe.fragment<128x64xf32, lanes>, !pipe.tmem<128x64xf32>, f32
  %v = pipe.read %acc[32] : !pipe.fragment<128x64xf32, lanes> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  return
}

func.func @dense(%acc: !pipe.tmem<128x64xf32>, %a: !pipe.shared<128x128xf8E4M3FN, swizzle_128B>,
                 %b: !pipe.shared<64x128xf8E4M3FN, swizzle_128B>, %sa: !pipe.shared<128x4xf32>,
                 %sb: !pipe.shared<1x4xf32>, %k: i32) {
  pipe.mma %acc, %a, %b : !pipe.tmem<128x64xf32>,
      !pipe.shared<128x128xf8E4M3FN, swizzle_128B>, !pipe.shared<64x128xf8E4M3FN, swizzle_128B>
  %s = pipe.scales %sa[0], %sb block %k : !pipe.shared<128x4xf32>, !pipe.shared<1x4xf32> -> f32
  return
}

func.func @weight_lanes(%w: !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
                        %sw: !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, %slot: !pipe.tmem<128x128xbf16>,
                        %blocks: i32) {
  %a = pipe.dequantize %w scaled %sw : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
      !pipe.shared<128x8xf8E4M3FN, tiled_128x4> -> !pipe.tmem<128x128xbf16>
  pipe.dequantize %w scaled %sw existing %blocks into %slot : !pipe.shared<128x128xf4E2M1FN, swizzle_64B>,
      !pipe.shared<128x8xf8E4M3FN, tiled_128x4>, !pipe.tmem<128x128xbf16>
  return
}

func.func @unpacked_lanes(%w: !pipe.shared<2x4608xi8>, %slot: !pipe.tmem<128x128xbf16>, %tiles: i32) {
  %a = pipe.dequantize %w : !pipe.shared<2x4608xi8> -> !pipe.tmem<128x128xbf16>
  pipe.dequantize %w into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  pipe.dequantize %w existing %tiles into %slot : !pipe.shared<2x4608xi8>, !pipe.tmem<128x128xbf16>
  return
}

func.func @converted_lanes(%w: !pipe.tmem<128x128xbf16>, %x: !pipe.shared<16x128xbf16, swizzle_128B>,
                           %acc: !pipe.tmem<128x16xf32>, %more: i1, %tiles: i32) {
  pipe.mma %acc, %w, %x accumulate %more : !pipe.tmem<128x16xf32>, !pipe.tmem<128x128xbf16>,
      !pipe.shared<16x128xbf16, swizzle_128B>
  pipe.mma %acc, %w, %x accumulate %more existing %tiles : !pipe.tmem<128x16xf32>, !pipe.tmem<128x128xbf16>,
      !pipe.shared<16x128xbf16, swizzle_128B>
  return
}

func.func @transforms(%slot: !pipe.shared<16x16xbf16, swizzle_32B>) {
  %h = pipe.hadamard_matrix signs 55272 -> !pipe.shared<16x16xbf16, swizzle_32B>
  pipe.hadamard_matrix signs 55272 into %slot : !pipe.shared<16x16xbf16, swizzle_32B>
  return
}

func.func @halves(%acc: !pipe.tmem<128x256xf32, pair>) -> (i32, i32) {
  %r, %c = pipe.place %acc : !pipe.tmem<128x256xf32, pair>
  return %r, %c : i32, i32
}

func.func @rows(%acc: !pipe.tmem<128x256xf32>, %staged: !pipe.shared<2x1024xf32>, %c: i32) {
  %sums = pipe.accumulator : !pipe.fragment<64x128xf32, wgmma>
  %part = pipe.accumulator : !pipe.fragment<32x64xf32, mma_sync>
  %v = pipe.read %acc[%c] : !pipe.tmem<128x256xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  %w = pipe.read %sums[32] : !pipe.fragment<64x128xf32, wgmma> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  %x = pipe.read %part[32] row 16 : !pipe.fragment<32x64xf32, mma_sync> -> tensor<16x32xf32, #pipe.distribution<mma_sync>>
  %y = pipe.read %staged[8] : !pipe.shared<2x1024xf32> -> tensor<64x8xf32, #pipe.distribution<wgmma>>
  return
}

func.func @quantizers(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %a: f32, %rng: !pipe.global<2xi64>, %row: i32, %column: i32) {
  %codes, %bytes = pipe.quantize_blocks %v amax %a random %rng[%row, %column] of [512, 8192]
      {recipe = #fp4.recipe<transformer_engine>, columnwise}
      : tensor<128x64xbf16, #pipe.distribution<lanes>>, !pipe.global<2xi64> -> tensor<128x64xf4E2M1FN, #pipe.distribution<lanes>>, tensor<128x4xf8E4M3FN, #pipe.distribution<lanes>>
  return
}

func.func @stores(%v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %d: !pipe.global<?x512xbf16>, %m0: i32, %n0: i32, %m: i32,
                  %w: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %e: !pipe.global<512x512xbf16>,
                  %codes: tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, %q: !pipe.global<512x256xf4E2M1FN>,
                  %part: tensor<64x32xf32, #pipe.distribution<wgmma>>, %parts: !pipe.global<64x16384xf32>,
                  %t: !pipe.shared<128x64xbf16, swizzle_128B>, %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>,
                  %row: i32, %column: i32) {
  pipe.store %v, %d[%m0, %n0] rows %m : tensor<128x32xbf16, #pipe.distribution<lanes>>, !pipe.global<?x512xbf16>
  pipe.store %codes, %q[%n0, %m0] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  pipe.store %t, %y[%row, %column] : !pipe.shared<128x64xbf16, swizzle_128B>,
      !pipe.tensor_map<128x64xbf16, swizzle_128B>
  pipe.store %part, %parts[%row, 1024] : tensor<64x32xf32, #pipe.distribution<wgmma>>, !pipe.global<64x16384xf32>
  pipe.store %w, %e[%m0, %n0] : tensor<64x32xbf16, #pipe.distribution<wgmma>>, !pipe.global<512x512xbf16>
  return
}

func.func @registers(%t: tensor<64x32xf32, #pipe.distribution<wgmma>>) {
  %v = pipe.elements %t : tensor<64x32xf32, #pipe.distribution<wgmma>> -> vector<16xf32>
  %u = pipe.elements %v : vector<16xf32> -> tensor<64x32xf32, #pipe.distribution<wgmma>>
  return
}

func.func @staged(%v: tensor<128x64xbf16, #pipe.distribution<lanes>>, %w: tensor<64x64xbf16, #pipe.distribution<wgmma>>,
                  %slot: !pipe.shared<128x64xbf16, swizzle_128B>, %x: tensor<64x16xf32, #pipe.distribution<wgmma>>,
                  %y: !pipe.tensor_map<128x64xbf16, swizzle_128B>, %row: i32, %column: i32) {
  %t = pipe.stage %v : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.shared<128x64xbf16, swizzle_128B>
  pipe.stage %w into %slot : tensor<64x64xbf16, #pipe.distribution<wgmma>>, !pipe.shared<128x64xbf16, swizzle_128B>
  %sums = pipe.stage %x : tensor<64x16xf32, #pipe.distribution<wgmma>> -> !pipe.shared<2x1024xf32>
  pipe.store %t, %y[%row, %column] : !pipe.shared<128x64xbf16, swizzle_128B>,
      !pipe.tensor_map<128x64xbf16, swizzle_128B>
  return
}

func.func @declarations() {
  %ab = pipe.channel from tma to tensor : !channel
  %acc = pipe.channel from tensor to threads(128) depth 2 payload [0] barriers 163904
      : !pipe.channel<!pipe.tmem<128x128xf32>>
  return
}

func.func @producer(%it: i32, %bytes: i32) {
  %ab = pipe.channel from tma to tensor depth 2 payload [0, 32768] barriers 65536 : !channel
  %a, %b = pipe.producer_acquire %ab[%it] : !channel
  pipe.expect_tx %ab[%it], %bytes : !channel
  pipe.producer_commit %ab[%it] : !channel
  return
}

func.func @consumer(%it: i32) {
  %ab = pipe.channel from tma to tensor depth 4 payload [0, 65536] barriers 131072 : !channel
  %a, %b = pipe.consumer_wait %ab[%it] : !channel
  pipe.await_release %ab[%it] distance 2 : !channel
  pipe.consumer_release %ab[%it] : !channel
  return
}

func.func @carried_stages(%it: i32, %stage: i32, %phase: i32, %stage2: i32, %phase2: i32, %m: i32) {
  %at = pipe.stage_of %it at %stage, %phase of 3
  %before = pipe.stage_of %it ahead 1 at %stage2, %phase2 of 3 opposite
  %n = pipe.opaque %m
  return
}

func.func @overlapping_stages(%it: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c192 = arith.constant 192 : i32
  %accs = pipe.channel from tensor to threads(128) depth 2 payload [0] stride [192] barriers 0
      : !overlapping
  %acc = pipe.consumer_wait %accs[%it] : !overlapping
  %low = pipe.read %acc[%c0] : !pipe.tmem<128x256xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
  %high = pipe.read %acc[%c192] : !pipe.tmem<128x256xf32> -> tensor<128x64xf32, #pipe.distribution<lanes>>
  pipe.consumer_release %accs[%it] partial : !overlapping
  %middle = pipe.read %acc[%c64] : !pipe.tmem<128x256xf32> -> tensor<128x128xf32, #pipe.distribution<lanes>>
  pipe.consumer_release %accs[%it] : !overlapping
  return
}

func.func @parts(%counters: !pipe.global<24x4xi32>, %tile: i32, %n: i32) {
  %last = pipe.count_partial %counters[%tile] of 4 : !pipe.global<24x4xi32>
  %also = pipe.count_partial %counters[%tile] of %n : !pipe.global<24x4xi32>
  return
}

func.func @derived(%codes: tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, %q: !pipe.global<512x256xf4E2M1FN>, %n0: i32, %m0: i32,
    %v: tensor<128x32xbf16, #pipe.distribution<lanes>>, %rows: i32, %columns: i32, %n: f32, %amax: !pipe.global<f32>, %row: i32, %column: i32) {
  %m = pipe.amax %v[%row, %column] rows %rows of %columns and %n : tensor<128x32xbf16, #pipe.distribution<lanes>>
  pipe.fold_amax %m, %amax : !pipe.global<f32>
  %t = pipe.transpose %v : tensor<128x32xbf16, #pipe.distribution<lanes>> -> tensor<128x32xbf16, #pipe.distribution<columns>>
  pipe.store %codes, %q[%n0, %m0] transposed : tensor<128x32xf4E2M1FN, #pipe.distribution<columns>>, !pipe.global<512x256xf4E2M1FN>
  return
}

func.func @gathered(%v: tensor<64x32xbf16, #pipe.distribution<wgmma>>, %row: i32, %column: i32, %rows: i32, %columns: i32, %n: f32) {
  %m = pipe.amax %v[%row, %column] rows %rows of %columns and %n : tensor<64x32xbf16, #pipe.distribution<wgmma>>
  return
}
func.func @rows_of_warps(%v: tensor<64x128xbf16, #pipe.distribution<wgmma>>, %s2: tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, %row: i32, %column: i32, %m0: i32, %b0: i32,
    %d: !pipe.global<512x8xf8E8M0FNU, tiled_128x4>) {
  %s, %first = pipe.gather_rows %v[%row, %column] : tensor<64x128xbf16, #pipe.distribution<wgmma>> -> tensor<128x64xbf16, #pipe.distribution<lanes>>
  pipe.store %s2, %d[%m0, %b0] : tensor<128x2xf8E8M0FNU, #pipe.distribution<lanes>>, !pipe.global<512x8xf8E8M0FNU, tiled_128x4>
  return
}

func.func @writes(%v: tensor<64x128xf32, #pipe.distribution<wgmma>>, %sums: !pipe.fragment<64x128xf32, wgmma>,
    %w: tensor<128x64xbf16, #pipe.distribution<lanes>>, %slot: !pipe.tmem<128x64xbf16>) {
  pipe.write %v, %sums[0]
      : tensor<64x128xf32, #pipe.distribution<wgmma>>, !pipe.fragment<64x128xf32, wgmma>
  %p = pipe.write %w : tensor<128x64xbf16, #pipe.distribution<lanes>> -> !pipe.tmem<128x64xbf16>
  pipe.write %w, %slot : tensor<128x64xbf16, #pipe.distribution<lanes>>, !pipe.tmem<128x64xbf16>
  return
}

func.func @rows_of_fragments(%v: tensor<64x128xf32, #pipe.distribution<wgmma>>, %sums: !pipe.fragment<64x128xf32, wgmma>,
    %out: !pipe.fragment<64x64xf32, wgmma>, %p: tensor<64x128xbf16, #pipe.distribution<wgmma>>, %more: i1) {
  %m = pipe.reduce_rows maximum %v : tensor<64x128xf32, #pipe.distribution<wgmma>>
      -> tensor<64x1xf32, #pipe.distribution<wgmma>>
  %w = pipe.broadcast_rows %m : tensor<64x1xf32, #pipe.distribution<wgmma>>
      -> tensor<64x128xf32, #pipe.distribution<wgmma>>
  %row = pipe.element_index 0 : tensor<64x128xi32, #pipe.distribution<wgmma>>
  return
}

gpu.module @kernels {
gpu.func @planned() kernel attributes {pipe.role_plan =
    #pipe.role_plan<epilogue warps 0 to 4 drives [threads],
                    mma warps 4 to 5 drives [tensor, scale_copy],
                    load warps 5 to 6 drives [tma]>} {
  gpu.return
}
gpu.func @joined() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
  %acc = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  %m = pipe.accumulator : !pipe.fragment<64x16xf32, wgmma>
  %tmem = pipe.accumulator : !pipe.tmem<128x64xf32>
  pipe.reduce %acc by 8 at 98304 : !pipe.fragment<64x16xf32, wgmma>
  pipe.reduce maximum %m by 8 : !pipe.fragment<64x16xf32, wgmma>
  %sums = pipe.reduce %tmem at 98304 : !pipe.tmem<128x64xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
  gpu.return
}
gpu.func @roles(%c: i32) kernel {
  %accs = pipe.channel from tensor to threads(128) : !accs
  pipe.role epilogue warps 0 to 4 drives [threads] {
    %acc = pipe.consumer_wait %accs : !accs
    %v = pipe.read %acc[%c] : !pipe.tmem<128x128xf32> -> tensor<128x32xf32, #pipe.distribution<lanes>>
    pipe.consumer_release %accs : !accs
  }
  gpu.return
}
}

func.func @rows_of_tensor_memory(%sums: !pipe.tmem<128x64xf32>, %f: tensor<128x1xf32, #pipe.distribution<lanes>>) {
  pipe.scale_rows %sums by %f
      : !pipe.tmem<128x64xf32>, tensor<128x1xf32, #pipe.distribution<lanes>>
  return
}
