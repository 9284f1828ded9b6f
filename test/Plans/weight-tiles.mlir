// RUN: fp4-opt %s -split-input-file -fp4-set-target=target=sm_90a -fp4-plan-kernels | FileCheck %s

// Tiles of 256 columns where there are enough of them.
// CHECK-LABEL: @many
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<along_m>
func.func @many(%x: tensor<1024x512xbf16>, %p: tensor<64x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<1024x8192xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<1024x512xbf16>, tensor<64x8x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<1024x8192xbf16>
  return %y : tensor<1024x8192xbf16>
}

// -----

// Tiles of 256 rows would fill 1.7 waves, and those of 152 fill 2.97 shorter ones.
// CHECK-LABEL: @ahead_in_waves
// CHECK: tile = [128, 152, 128], schedule = #pipe.static_persistent<along_m>
func.func @ahead_in_waves(%x: tensor<1024x16384xf8E4M3FN>, %p: tensor<56x128x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<1024x7168xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<1024x16384xf8E4M3FN>, tensor<56x128x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<1024x7168xbf16>
  return %y : tensor<1024x7168xbf16>
}

// -----

// Tiles of 256 columns would leave half of the SMs idle.
// CHECK-LABEL: @few
// CHECK: tile = [128, 128, 128], schedule = #pipe.static_persistent<along_m>
func.func @few(%x: tensor<256x512xbf16>, %p: tensor<64x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<256x8192xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<256x512xbf16>, tensor<64x8x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x8192xbf16>
  return %y : tensor<256x8192xbf16>
}

// -----

// Split-K fills them, and a cluster reduces it.
// CHECK-LABEL: @ranges
// CHECK: tile = [128, 128, 128], cluster = [2, 1], schedule = #pipe.static_persistent<along_m>
func.func @ranges(%x: tensor<256x2048xbf16>, %p: tensor<64x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<256x8192xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>}
      : (tensor<256x2048xbf16>, tensor<64x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x8192xbf16>
  return %y : tensor<256x8192xbf16>
}

// -----

// Tiles of half of the rows give work to twice as many SMs.
// CHECK-LABEL: @joined
// CHECK: tile = [64, 128, 256], cluster = [2, 1]
func.func @joined(%x: tensor<128x2048xbf16>, %p: tensor<32x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<128x4096xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>}
      : (tensor<128x2048xbf16>, tensor<32x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<128x4096xbf16>
  return %y : tensor<128x4096xbf16>
}

// -----

// Workers share tiles of the rows and columns that the operation says. If there are more workers than
// SMs, an SM has two CTAs of few rows.
// CHECK-LABEL: @shared
// CHECK: tile = [16, 128, 256], schedule = #pipe.static_persistent<along_m>, {{.*}} ctas_per_sm = 2, pdl = before_wait>
func.func @shared(%x: tensor<16x2048xbf16>, %p: tensor<56x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<16x7168xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<stream_k = [264, 16, 128]>}
      : (tensor<16x2048xbf16>, tensor<56x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<16x7168xbf16>
  return %y : tensor<16x7168xbf16>
}

// -----

// A fifth stage of such tiles would fit.
// CHECK-LABEL: @shared_many
// CHECK: tile = [128, 128, 128], schedule = #pipe.static_persistent<along_m>, {{.*}} stages = 4, ctas_per_sm = 1, pdl = before_wait>
func.func @shared_many(%x: tensor<256x2048xbf16>, %p: tensor<56x32x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<256x7168xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<stream_k = [132, 128, 128]>}
      : (tensor<256x2048xbf16>, tensor<56x32x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x7168xbf16>
  return %y : tensor<256x7168xbf16>
}

// -----

// 128 columns fill no tile of 256.
// CHECK-LABEL: @odd
// CHECK: tile = [256, 128, 128]
func.func @odd(%x: tensor<1024x512xbf16>, %p: tensor<63x8x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<1024x8064xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<1024x512xbf16>, tensor<63x8x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<1024x8064xbf16>
  return %y : tensor<1024x8064xbf16>
}

// -----

// Beside e4m3, tiles of 256 rows hold their weights where waves of them are faster.
// CHECK-LABEL: @held
// CHECK: tile = [256, 128, 128], schedule = #pipe.static_persistent<along_m>
func.func @held(%x: tensor<512x4096xf8E4M3FN>, %p: tensor<64x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<512x8192xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<512x4096xf8E4M3FN>, tensor<64x32x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<512x8192xbf16>
  return %y : tensor<512x8192xbf16>
}

// -----

// Weights of many rows are pre-dequantized.
// CHECK-LABEL: @ahead
// CHECK: tile = [128, 256, 128], schedule = #pipe.static_persistent<panels<16>>
func.func @ahead(%x: tensor<4096x4096xf8E4M3FN>, %p: tensor<64x32x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<4096x8192xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<4096x4096xf8E4M3FN>, tensor<64x32x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}

// -----

// Tiles of 256 rows or columns would leave half of the SMs idle.
// CHECK-LABEL: @promoted
// CHECK: tile = [128, 128, 256], schedule = #pipe.static_persistent<along_m>
func.func @promoted(%x: tensor<256x512xf8E4M3FN>, %p: tensor<64x4x8704xi8, #fp4.weight_layout<wgmma>>) -> tensor<256x8192xbf16> {
  %y = fp4.matmul %x, %p
      : (tensor<256x512xf8E4M3FN>, tensor<64x4x8704xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<256x8192xbf16>
  return %y : tensor<256x8192xbf16>
}

// -----

// With fast accumulation, tiles of 256 rows convert weights half as often, where they leave few SMs idle.
// CHECK-LABEL: @fast
// CHECK: tile = [256, 128, 128], schedule = #pipe.static_persistent<along_m>
func.func @fast(%x: tensor<1024x8192xf8E4M3FN>, %p: tensor<64x64x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> tensor<1024x8192xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<1024x8192xf8E4M3FN>, tensor<64x64x8704xi8, #fp4.weight_layout<wgmma_rows>>)
      -> tensor<1024x8192xbf16>
  return %y : tensor<1024x8192xbf16>
}

// -----

// Larger tiles would leave half of the SMs idle.
// CHECK-LABEL: @fast_few
// CHECK: tile = [128, 128, 256], schedule = #pipe.static_persistent<along_m>
func.func @fast_few(%x: tensor<256x8192xf8E4M3FN>, %p: tensor<64x64x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> tensor<256x8192xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<256x8192xf8E4M3FN>, tensor<64x64x8704xi8, #fp4.weight_layout<wgmma_rows>>)
      -> tensor<256x8192xbf16>
  return %y : tensor<256x8192xbf16>
}

// -----

// Larger tiles are chosen with split-K and a reduction in a cluster.
// CHECK-LABEL: @fast_split
// CHECK: tile = [256, 128, 128], cluster = [2, 1], schedule = #pipe.static_persistent<along_m>
func.func @fast_split(%x: tensor<256x16384xf8E4M3FN>, %p: tensor<56x128x8704xi8, #fp4.weight_layout<wgmma_rows>>) -> tensor<256x7168xbf16> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 2>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<256x16384xf8E4M3FN>, tensor<56x128x8704xi8, #fp4.weight_layout<wgmma_rows>>)
      -> tensor<256x7168xbf16>
  return %y : tensor<256x7168xbf16>
}

// -----

// A wide tile has two k tiles in a stage, as a narrow one has up to 176 rows.
!w = tensor<400x40x8704xi8, #fp4.weight_layout<wgmma_rows>>
// CHECK-LABEL: @fast_wide
// CHECK: tile = [128, 256, 256]
func.func @fast_wide(%x: tensor<128x5120xf8E4M3FN>, %p: !w) -> tensor<128x51200xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<128x5120xf8E4M3FN>, !w) -> tensor<128x51200xbf16>
  return %y : tensor<128x51200xbf16>
}

// -----

// A k tile of 256 rows takes the time of its MMAs: 480 tiles of 176 rows take less than 320 of 256.
!w = tensor<80x64x8704xi8, #fp4.weight_layout<wgmma_rows>>
// CHECK-LABEL: @fast_waves
// CHECK: tile = [176, 128, 256]
func.func @fast_waves(%x: tensor<1024x8192xf8E4M3FN>, %p: !w) -> tensor<1024x10240xbf16> {
  %y = fp4.matmul %x, %p {arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<1024x8192xf8E4M3FN>, !w) -> tensor<1024x10240xbf16>
  return %y : tensor<1024x10240xbf16>
}

// -----

// With split-K, tiles of more than 128 rows have one k tile in a stage.
!w = tensor<32x96x8704xi8, #fp4.weight_layout<wgmma_rows>>
// CHECK-LABEL: @fast_ranges
// CHECK: tile = [160, 128, 128]
func.func @fast_ranges(%x: tensor<160x12288xf8E4M3FN>, %p: !w) -> tensor<160x4096xbf16> {
  %y = fp4.matmul %x, %p
      {work = #fp4.work<split_k = 3>, arithmetic = #fp4.matmul_arithmetic<fast_accumulation>}
      : (tensor<160x12288xf8E4M3FN>, !w) -> tensor<160x4096xbf16>
  return %y : tensor<160x4096xbf16>
}

// -----

// 96 tiles of 192 rows take as long as 120 of 80 x 256, and power limits neither: beside a maximum, which three warpgroups
// do not take. Without one, 128 tiles of three warpgroups fill the wave.
!w = tensor<48x64x4352xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @at_full_clock
// CHECK: tile = [192, 128, 128]
func.func @at_full_clock(%x: tensor<384x4096xbf16>, %p: !w) -> (tensor<384x6144xbf16>, tensor<f32>) {
  %y, %max = fp4.matmul %x, %p epilogue() {
  ^bb0(%sum: f32):
    %z = arith.truncf %sum : f32 to bf16
    %amax = fp4.epilogue_amax %z : bf16 -> f32
    fp4.yield %z, %amax : bf16, f32
  } : (tensor<384x4096xbf16>, !w) -> (tensor<384x6144xbf16>, tensor<f32>)
  return %y, %max : tensor<384x6144xbf16>, tensor<f32>
}
// CHECK-LABEL: @three
// CHECK: tile = [96, 192, 128], schedule = #pipe.static_persistent<along_m>, roles = #pipe.role_plan<load warps 12 to 13 drives [tma] registers 32, math warps 0 to 12 drives [tensor, threads] registers 160,
func.func @three(%x: tensor<384x4096xbf16>, %p: !w) -> tensor<384x6144xbf16> {
  %y = fp4.matmul %x, %p : (tensor<384x4096xbf16>, !w) -> tensor<384x6144xbf16>
  return %y : tensor<384x6144xbf16>
}

// -----

// Two waves of 256 tiles of three warpgroups would not save enough of 144 x 128.
!w = tensor<48x64x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @two_of_three
// CHECK: tile = [144, 128, 128]
func.func @two_of_three(%x: tensor<1536x4096xbf16>, %p: !w) -> tensor<1536x6144xbf16> {
  %y = fp4.matmul %x, %p : (tensor<1536x4096xbf16>, !w) -> tensor<1536x6144xbf16>
  return %y : tensor<1536x6144xbf16>
}

// -----

// A small-M CTA has two k slices where all CTAs fill the SMs.
// CHECK-LABEL: @two_ranges
// CHECK: tile = [8, 128, 256], cluster = [2, 1], k_slices = 2, {{.*}}ctas_per_sm = 1, pdl = before_wait>
func.func @two_ranges(%x: tensor<1x8192xbf16>, %p: tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<1x8192xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 4>}
      : (tensor<1x8192xbf16>, tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<1x8192xbf16>
  return %y : tensor<1x8192xbf16>
}

// -----

// Split-K with ranges of several lengths has CTAs for each.
// CHECK-LABEL: @uneven
// CHECK: tile = [8, 128, 256],
// CHECK-NOT: ranges
// CHECK: ctas_per_sm = 2, pdl = before_wait>
func.func @uneven(%x: tensor<1x7936xbf16>, %p: tensor<64x124x4608xi8, #fp4.weight_layout<wgmma>>) -> tensor<1x8192xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 4>}
      : (tensor<1x7936xbf16>, tensor<64x124x4608xi8, #fp4.weight_layout<wgmma>>)
      -> tensor<1x8192xbf16>
  return %y : tensor<1x8192xbf16>
}

// -----

// 224 tiles of 128 x 256 are two waves of 132 SMs, and 392 of 152 x 128 nearly three.
!w = tensor<56x256x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @waves
// CHECK: tile = [152, 128, 128], schedule = #pipe.static_persistent<along_m>
func.func @waves(%x: tensor<1024x16384xbf16>, %p: !w) -> tensor<1024x7168xbf16> {
  %y = fp4.matmul %x, %p : (tensor<1024x16384xbf16>, !w) -> tensor<1024x7168xbf16>
  return %y : tensor<1024x7168xbf16>
}

// 112 tiles that have half of the rows: 192 rows are a wave too, and a longer one.
// CHECK-LABEL: @shortest_wave
// CHECK: tile = [152, 128, 128]
func.func @shortest_wave(%x: tensor<300x16384xbf16>, %p: !w) -> tensor<300x7168xbf16> {
  %y = fp4.matmul %x, %p : (tensor<300x16384xbf16>, !w) -> tensor<300x7168xbf16>
  return %y : tensor<300x7168xbf16>
}

// With 2048 rows, 784 tiles of 152 x 128 are nearly six waves.
// CHECK-LABEL: @whole_waves
// CHECK: tile = [152, 128, 128]
func.func @whole_waves(%x: tensor<2048x16384xbf16>, %p: !w) -> tensor<2048x7168xbf16> {
  %y = fp4.matmul %x, %p : (tensor<2048x16384xbf16>, !w) -> tensor<2048x7168xbf16>
  return %y : tensor<2048x7168xbf16>
}

// With 8192 rows, 3024 tiles of 152 x 128 would take 2 % less than 1792 of 128 x 256, and load more for it.
// CHECK-LABEL: @nearly_as_long
// CHECK: tile = [128, 256, 128]
func.func @nearly_as_long(%x: tensor<8192x16384xbf16>, %p: !w) -> tensor<8192x7168xbf16> {
  %y = fp4.matmul %x, %p : (tensor<8192x16384xbf16>, !w) -> tensor<8192x7168xbf16>
  return %y : tensor<8192x7168xbf16>
}

// -----

// 128 tiles that have all rows.
!w = tensor<128x8x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @all_rows
// CHECK: tile = [192, 128, 128]
func.func @all_rows(%x: tensor<190x512xbf16>, %p: !w) -> tensor<190x16384xbf16> {
  %y = fp4.matmul %x, %p : (tensor<190x512xbf16>, !w) -> tensor<190x16384xbf16>
  return %y : tensor<190x16384xbf16>
}

// -----

// 128 tiles of 152 rows, whose ranges are reduced in a workspace, are nearly a wave.
!w = tensor<32x256x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @ranges_of_waves
// CHECK: tile = [152, 128, 128]
func.func @ranges_of_waves(%x: tensor<300x16384xbf16>, %p: !w) -> tensor<300x4096xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>}
      : (tensor<300x16384xbf16>, !w) -> tensor<300x4096xbf16>
  return %y : tensor<300x4096xbf16>
}

// -----

// Tiles of groups of many rows, whose sums are promoted, have 128 columns.
!p = tensor<64x4x8704xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @promoted_groups
// CHECK: tile = [128, 128, 256]
func.func @promoted_groups(%x: tensor<?x512xf8E4M3FN>, %p: !p, %o: tensor<9xi64>) -> tensor<?x1024xbf16> {
  %y = fp4.matmul %x, %p offsets %o : (tensor<?x512xf8E4M3FN>, !p, tensor<9xi64>) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}

// -----

// A cluster that a program asks for reduces tiles of up to 128 rows.
!w = tensor<64x64x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @asked_cluster
// CHECK: tile = [{{[0-9]+}}, 128, {{128|256}}], cluster = [2, 1]
func.func @asked_cluster(%x: tensor<4096x4096xbf16>, %w: !w) -> tensor<4096x8192xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = 2>, fp4.plan = #fp4.plan<tile_gemm, cluster = [2, 1]>}
      : (tensor<4096x4096xbf16>, !w) -> tensor<4096x8192xbf16>
  return %y : tensor<4096x8192xbf16>
}

// -----

// An SM has room for a CTA of the next launch beside one of 128, unless a conversion before that launch takes places.
// CHECK-LABEL: @room
// CHECK: tile = [8, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 2, pdl = at_end
// CHECK-LABEL: @converted
// CHECK: tile = [8, 128, 256], cluster = [2, 1], {{.*}}ctas_per_sm = 1, pdl = before_wait
!w = tensor<64x128x4608xi8, #fp4.weight_layout<wgmma>>
!x = tensor<4x8192xf4E2M1FN>
!s = tensor<4x512xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!scaled = !fp4.scaled<nvfp4, !x, !s>
func.func @room(%x: tensor<4x8192xbf16>, %p: !w) -> tensor<4x8192xbf16> {
  %y = fp4.matmul %x, %p {work = #fp4.work<split_k = 2>} : (tensor<4x8192xbf16>, !w) -> tensor<4x8192xbf16>
  return %y : tensor<4x8192xbf16>
}
func.func @converted(%x: !x, %s: !s, %p: !w) -> tensor<4x8192xbf16> {
  %scaled = fp4.scaled %x, %s : !scaled
  %y = fp4.matmul %scaled, %p {work = #fp4.work<split_k = 2>} : (!scaled, !w) -> tensor<4x8192xbf16>
  return %y : tensor<4x8192xbf16>
}

// -----

// 112 x 192 would take the fewest cycles, but power limits the clock, and its weights are loaded and converted more often.
!w = tensor<48x80x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @at_limited_power
// CHECK: tile = [128, 256, 128]
func.func @at_limited_power(%x: tensor<4096x5120xbf16>, %p: !w) -> tensor<4096x6144xbf16> {
  %y = fp4.matmul %x, %p : (tensor<4096x5120xbf16>, !w) -> tensor<4096x6144xbf16>
  return %y : tensor<4096x6144xbf16>
}

// -----

// Three warpgroups with 192 rows take no more power.
!w = tensor<512x80x4608xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @tall_three
// CHECK: tile = [192, 192, 128]
func.func @tall_three(%x: tensor<1536x5120xbf16>, %p: !w) -> tensor<1536x65536xbf16> {
  %y = fp4.matmul %x, %p : (tensor<1536x5120xbf16>, !w) -> tensor<1536x65536xbf16>
  return %y : tensor<1536x65536xbf16>
}

// -----

// Three warpgroups of promoted sums: 128 CTAs have one wave, 192 of 128 columns two, and 96 of 256 leave SMs idle.
!w = tensor<192x32x8704xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @promoted_three
// CHECK: tile = [48, 192, 256]
func.func @promoted_three(%x: tensor<48x4096xf8E4M3FN>, %p: !w, %a: tensor<48x1xf32>) -> tensor<48x24576xbf16> {
  %y = fp4.matmul %x, %p alpha %a : (tensor<48x4096xf8E4M3FN>, !w, tensor<48x1xf32>) -> tensor<48x24576xbf16>
  return %y : tensor<48x24576xbf16>
}

// -----

// Tiles of 32 rows of as many columns are two in an SM, and stay.
!w = tensor<448x64x8704xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @promoted_few
// CHECK-NOT: tile = [{{[0-9]+}}, 192,
func.func @promoted_few(%x: tensor<32x8192xf8E4M3FN>, %p: !w, %a: tensor<32x1xf32>) -> tensor<32x57344xbf16> {
  %y = fp4.matmul %x, %p alpha %a : (tensor<32x8192xf8E4M3FN>, !w, tensor<32x1xf32>) -> tensor<32x57344xbf16>
  // CHECK: return
  return %y : tensor<32x57344xbf16>
}

// -----

// Two in an SM have 72 tiles in a last wave, of which more than a few share an SM. Three warpgroups with few rows take no more power.
!w = tensor<336x42x8704xi8, #fp4.weight_layout<wgmma>>
// CHECK-LABEL: @last_wave
// CHECK: tile = [16, 192, 256]
func.func @last_wave(%x: tensor<16x5376xf8E4M3FN>, %p: !w, %a: tensor<16x1xf32>) -> tensor<16x43008xbf16> {
  %y = fp4.matmul %x, %p alpha %a : (tensor<16x5376xf8E4M3FN>, !w, tensor<16x1xf32>) -> tensor<16x43008xbf16>
  return %y : tensor<16x43008xbf16>
}
