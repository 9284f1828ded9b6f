// RUN: fp4-opt %s -verify-diagnostics -split-input-file

// Operands of 8 bits, and of 4 bits beside them, which take a byte for each element in shared memory. Every
// error has a twin above it that differs in one place and verifies. Labels refer to PipeConstraints.td.

func.func private @twin(!pipe.tensor_map<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>)
// (C290)
// expected-error @+2 {{tile of layout swizzle_128B_b4x16_p64 must have elements of f4E2M1FN, but got 'f8E4M3FN'}}
// expected-note @+1 {{the padding makes rows of bytes of smaller elements; write layout swizzle_128B for elements of 8 bits or more}}
func.func private @bad(!pipe.tensor_map<64x128xf8E4M3FN, swizzle_128B_b4x16_p64>)

// -----

func.func private @twin(!pipe.tensor_map<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>)
// (C290)
// expected-error @+2 {{rows of a box of layout swizzle_128B_b4x16_p64 must have 128 elements, but got 64}}
// expected-note @+1 {{a wider tile consists of panels of this width}}
func.func private @bad(!pipe.tensor_map<64x64xf4E2M1FN, swizzle_128B_b4x16_p64>)

// -----

func.func private @twin(!pipe.shared<64x256xf4E2M1FN, swizzle_128B_b4x16_p64>)
// (C290)
// expected-error @+2 {{tile of layout swizzle_128B_b4x16_p64 must have elements of f4E2M1FN, but got 'f8E5M2'}}
// expected-note @+1 {{the padding makes rows of bytes of smaller elements; write layout swizzle_128B for elements of 8 bits or more}}
func.func private @bad(!pipe.shared<64x256xf8E5M2, swizzle_128B_b4x16_p64>)

// -----

func.func private @twin(!pipe.shared<64x256xf4E2M1FN, swizzle_128B_b4x16_p64>)
// (C102)
// expected-error @+2 {{rows of a swizzle_128B_b4x16_p64 tile must be a multiple of 128 bytes, but got 64 bytes}}
// expected-note @+1 {{pad the columns to whole panels, or take a narrower swizzle}}
func.func private @bad(!pipe.shared<64x64xf4E2M1FN, swizzle_128B_b4x16_p64>)

// -----

!acc = !pipe.tmem<128x64xf32>
!eight = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!four = !pipe.shared<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>
!packed = !pipe.shared<64x128xf4E2M1FN, swizzle_64B>
!scales = !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
func.func @packed(%acc: !acc, %a: !eight, %b: !four, %c: !packed, %s: !scales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !eight, !scales, !four, !scales
  // (C291)
  // expected-error @+2 {{b must be f8E4M3FN, f8E5M2, or of 6 or 4 bits in layout swizzle_128B_b6x16_p32 or swizzle_128B_b4x16_p64, with the K of a, a multiple of 128, beside an operand of 6 or 8 bits, but got '!pipe.shared<64x128xf4E2M1FN, swizzle_64B>'}}
  // expected-note @+1 {{a map pads smaller elements to bytes while it loads: write the layout of padded rows}}
  pipe.mma %acc, %a scaled %s, %c scaled %s accumulate %p : !acc, !eight, !scales, !packed, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!eight = !pipe.shared<128x128xf8E5M2, swizzle_128B>
!deep = !pipe.shared<128x256xf8E5M2, swizzle_128B>
!scales = !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
func.func @depth(%acc: !acc, %a: !eight, %b: !deep, %s: !scales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !eight, !scales, !eight, !scales
  // (C291)
  // expected-error @+2 {{b must be f8E4M3FN, f8E5M2, or of 6 or 4 bits in layout swizzle_128B_b6x16_p32 or swizzle_128B_b4x16_p64, with the K of a, a multiple of 128}}
  // expected-note @+1 {{a map pads smaller elements to bytes while it loads: write the layout of padded rows}}
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !eight, !scales, !deep, !scales
  return
}

// -----

!acc = !pipe.tmem<128x128xf32>
!eight = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!scales = !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
!of16 = !pipe.tmem<128x8xf8E4M3FN, tiled_128x4>
func.func @scales(%acc: !acc, %a: !eight, %s: !scales, %t: !of16, %p: i1) {
  pipe.mma %acc, %a scaled %s, %a scaled %s accumulate %p : !acc, !eight, !scales, !eight, !scales
  // (C291)
  // expected-error @+2 {{scales of operands of 6 or 8 bits must be f8E8M0FNU, but got 'f8E4M3FN'}}
  // expected-note @+1 {{quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8}}
  pipe.mma %acc, %a scaled %t, %a scaled %t accumulate %p : !acc, !eight, !of16, !eight, !of16
  return
}

// -----

func.func @map(%buffer: memref<8x64xi8>) {
  %0 = pipe.make_tensor_map %buffer columns 128
      : memref<8x64xi8> -> !pipe.tensor_map<8x128xf4E2M1FN, swizzle_128B_b4x16_p64>
  // (C292)
  // expected-error @+2 {{columns of a map of layout swizzle_128B_b4x16_p64 must be a multiple of 128, and the row pitch one of 32 bytes, but got 96 and 64}}
  // expected-note @+1 {{pad the rows of the buffer with zeros}}
  %1 = pipe.make_tensor_map %buffer columns 96
      : memref<8x64xi8> -> !pipe.tensor_map<8x128xf4E2M1FN, swizzle_128B_b4x16_p64>
  return
}

// -----

func.func @pitch(%buffer: memref<8x96xi8>, %odd: memref<8x80xi8>) {
  %0 = pipe.make_tensor_map %buffer columns 128
      : memref<8x96xi8> -> !pipe.tensor_map<8x128xf4E2M1FN, swizzle_128B_b4x16_p64>
  // (C292)
  // expected-error @+2 {{columns of a map of layout swizzle_128B_b4x16_p64 must be a multiple of 128, and the row pitch one of 32 bytes, but got 128 and 80}}
  // expected-note @+1 {{pad the rows of the buffer with zeros}}
  %1 = pipe.make_tensor_map %odd columns 128
      : memref<8x80xi8> -> !pipe.tensor_map<8x128xf4E2M1FN, swizzle_128B_b4x16_p64>
  return
}

// -----

!frag = !pipe.fragment<32x64xf32, mma_sync>
!eight = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!five = !pipe.shared<128x128xf8E5M2, swizzle_128B>
!four = !pipe.shared<128x128xf4E2M1FN, swizzle_32B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
func.func @warps(%acc: !frag, %a: !eight, %b: !five, %c: !four, %s: !scales) {
  pipe.mma %acc, %a scaled %s, %b scaled %s : !frag, !eight, !scales, !five, !scales
  // (C251)
  // expected-error @+2 {{b must be of 4, 6 or 8 bits with rows of 64 or 128 bytes and the swizzle of that width, but got '!pipe.shared<128x128xf4E2M1FN, swizzle_32B>'}}
  // expected-note @+1 {{load rows of 64 bytes with swizzle_64B, or of 128 with swizzle_128B}}
  pipe.mma %acc, %a scaled %s, %c scaled %s : !frag, !eight, !scales, !four, !scales
  return
}

// -----

!frag = !pipe.fragment<32x64xf32, mma_sync>
!eight = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!scales = !pipe.shared<128x4xf8E8M0FNU, tiled_128x4>
!of16 = !pipe.shared<128x8xf8E4M3FN, tiled_128x4>
func.func @scales_of_warps(%acc: !frag, %a: !eight, %s: !scales, %t: !of16) {
  pipe.mma %acc, %a scaled %s, %a scaled %s : !frag, !eight, !scales, !eight, !scales
  // (C252)
  // expected-error @+2 {{scales of operands of 6 or 8 bits must be f8E8M0FNU, but got '!pipe.shared<128x8xf8E4M3FN, tiled_128x4>'}}
  // expected-note @+1 {{quantize both operands to formats of f8E8M0FNU, such as mxfp4 and mxfp8}}
  pipe.mma %acc, %a scaled %t, %a scaled %t : !frag, !eight, !of16, !eight, !of16
  return
}

// -----

func.func private @twin(!pipe.tensor_map<64x128xf6E2M3FN, swizzle_128B_b6x16_p32>)
// (C290)
// expected-error @+2 {{tile of layout swizzle_128B_b6x16_p32 must have elements of f6E2M3FN or f6E3M2FN, but got 'f4E2M1FN'}}
// expected-note @+1 {{the padding makes rows of bytes of smaller elements; write layout swizzle_128B for elements of 8 bits or more}}
func.func private @bad(!pipe.tensor_map<64x128xf4E2M1FN, swizzle_128B_b6x16_p32>)

// -----

!acc = !pipe.tmem<128x64xf32>
!eight = !pipe.shared<128x128xf8E4M3FN, swizzle_128B>
!six = !pipe.shared<64x128xf6E3M2FN, swizzle_128B_b6x16_p32>
!bytes = !pipe.shared<64x128xf6E3M2FN, swizzle_128B>
!scales = !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
func.func @six(%acc: !acc, %a: !eight, %b: !six, %c: !bytes, %s: !scales, %p: i1) {
  pipe.mma %acc, %a scaled %s, %b scaled %s accumulate %p : !acc, !eight, !scales, !six, !scales
  // (C291)
  // expected-error @+2 {{b must be f8E4M3FN, f8E5M2, or of 6 or 4 bits in layout swizzle_128B_b6x16_p32 or swizzle_128B_b4x16_p64, with the K of a, a multiple of 128, beside an operand of 6 or 8 bits, but got '!pipe.shared<64x128xf6E3M2FN, swizzle_128B>'}}
  // expected-note @+1 {{a map pads smaller elements to bytes while it loads: write the layout of padded rows}}
  pipe.mma %acc, %a scaled %s, %c scaled %s accumulate %p : !acc, !eight, !scales, !bytes, !scales
  return
}

// -----

func.func @map_of_six(%buffer: memref<8x96xi8>, %odd: memref<8x112xi8>) {
  %0 = pipe.make_tensor_map %buffer columns 128
      : memref<8x96xi8> -> !pipe.tensor_map<8x128xf6E2M3FN, swizzle_128B_b6x16_p32>
  // (C292)
  // expected-error @+2 {{columns of a map of layout swizzle_128B_b6x16_p32 must be a multiple of 128, and the row pitch one of 32 bytes, but got 128 and 112}}
  // expected-note @+1 {{pad the rows of the buffer with zeros}}
  %1 = pipe.make_tensor_map %odd columns 128
      : memref<8x112xi8> -> !pipe.tensor_map<8x128xf6E2M3FN, swizzle_128B_b6x16_p32>
  return
}
