// In a row with whole tiles of scales, two lanes have a scale block of 32 codes of a byte each: a store of a
// warp then covers whole sectors. Rows of 96 elements have no whole tiles, and a thread has a block.
// RUN: fp4-runner %s --target=sm_90a --emit=so -o %t.so
// RUN: fp4-run %t.so --function=shared --shape 37 --check=strict | FileCheck %s
// RUN: fp4-run %t.so --function=shared --shape 5 --check=strict --dist=adversarial | FileCheck %s
// RUN: fp4-run %t.so --function=tiled --shape 130 --check=strict --dist=adversarial | FileCheck %s
// RUN: fp4-run %t.so --function=own --shape 37 --check=strict --dist=adversarial | FileCheck %s
// RUN: fp4-runner %s --function=tiled --shape 130 --check=strict | FileCheck %s
// CHECK: q {{.*}}equals the reference, bit for bit
// CHECK-NEXT: s {{.*}}equals the reference, bit for bit
// CHECK-NEXT: hazards {{.*}}none (strict check)
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel shared_quantize_0 | FileCheck %s --check-prefix=SHARED
// SHARED: shfl.sync.bfly.b32
// SHARED: st.global.v4.b32
// SHARED-NOT: st.global.v4
// RUN: fp4-runner %s --target=sm_90a --emit=ptx --kernel own_quantize_0 | FileCheck %s --check-prefix=OWN
// OWN-NOT: shfl
// OWN-COUNT-2: st.global.v4.b32

func.func @shared(%x: tensor<?x256xbf16>)
    -> (tensor<?x256xf8E4M3FN> {fp4.name = "q"}, tensor<?x8xf8E8M0FNU> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>)
  return %q, %s : tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU>
}

func.func @tiled(%x: tensor<?x256xbf16>)
    -> (tensor<?x256xf8E4M3FN> {fp4.name = "q"},
        tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x256xbf16>) -> (tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>)
  return %q, %s : tensor<?x256xf8E4M3FN>, tensor<?x8xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
}

func.func @own(%x: tensor<?x96xbf16>)
    -> (tensor<?x96xf8E4M3FN> {fp4.name = "q"}, tensor<?x3xf8E8M0FNU> {fp4.name = "s"}) {
  %q, %s = fp4.quantize %x {format = #fp4.format<mxfp8_e4m3>, recipe = #fp4.recipe<mxfp8_e4m3_rceil>}
      : (tensor<?x96xbf16>) -> (tensor<?x96xf8E4M3FN>, tensor<?x3xf8E8M0FNU>)
  return %q, %s : tensor<?x96xf8E4M3FN>, tensor<?x3xf8E8M0FNU>
}
