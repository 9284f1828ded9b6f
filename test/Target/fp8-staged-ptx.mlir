// Products of FP8 with f32 scales whose K is a multiple of 512: 4 scales of each of 256 rows are one box, and the
// four k tiles of a box are written out. A thread reads five scales of a k tile, of two rows in each of two parts
// and of B, before it starts the first product of the tile.
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --plan "tile_product, tile = [256, 128, 128]" -o %t && FileCheck %s < %t

// CHECK: .reqntid
// CHECK-COUNT-4: cp.async.bulk.tensor.2d
// CHECK-NOT: ld.global
// CHECK-COUNT-5: ld.shared.b32
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-64: fma.rn.f32
// CHECK: wgmma.fence.sync.aligned;
// CHECK: mbarrier.arrive.shared.b64
// CHECK-COUNT-3: ld.shared.b32
// CHECK-NOT: ld.global
// CHECK: fence.proxy.async.shared::cta;
// CHECK: mbarrier.arrive.shared.b64
func.func @product(%a: tensor<512x512xf8E4M3FN>, %sa: tensor<512x4xf32>, %b: tensor<256x512xf8E4M3FN>, %sb: tensor<2x4xf32>)
    -> tensor<512x256xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<fp8_block128>}
      : (tensor<512x512xf8E4M3FN>, tensor<512x4xf32>, tensor<256x512xf8E4M3FN>, tensor<2x4xf32>) -> tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}
