// Scale copies and block-scaled MMAs: descriptors, scale columns, instruction descriptors, residues.
// RUN: fp4-opt %s --pass-pipeline='builtin.module(fp4-set-target,pipe-schedule,gpu.module(convert-pipe-to-nvvm))' | FileCheck %s

!a = !pipe.shared<128x256xf4E2M1FN, swizzle_128B>
!b = !pipe.shared<192x256xf4E2M1FN, swizzle_128B>
!nva = !pipe.shared<128x16xf8E4M3FN, tiled_128x4>
!nvb = !pipe.shared<256x16xf8E4M3FN, tiled_128x4>
!nv = !pipe.channel<!a, !b, !nva, !nvb>
!mxa = !pipe.shared<128x8xf8E8M0FNU, tiled_128x4>
!mx = !pipe.channel<!a, !a, !mxa, !mxa>

gpu.module @m {
// N = 192 of NVFP4: scales of 256 rows, one 512-byte block per row of blocks and MMA.
// CHECK-LABEL: llvm.func @nvfp4
// CHECK-SAME: %{{.*}}: i32, %[[ROW:.*]]: i32, %[[MORE:.*]]: i1)
gpu.func @nvfp4(%it: i32, %row: i32, %more: i1) kernel
    attributes {pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 0 : i64} {
  // SFA lies at column 192, SFB at 208. The scale descriptor: stride 128 bytes (8 << 32), version 1
  // (1 << 46), leading offset 16 (1 << 16, not used). The operand descriptor: 128-byte swizzle (2 << 61), stride 1024 bytes (64 << 32),
  // version 1. The instruction descriptor: N 192, M 128, E2M1 times E2M1, UE4M3 scales.
  // CHECK-DAG: %[[C192:.*]] = llvm.mlir.constant(192 : i32)
  // CHECK-DAG: %[[C208:.*]] = llvm.mlir.constant(208 : i32)
  // CHECK-DAG: %[[SDESC:.*]] = llvm.mlir.constant(70403103916032 : i64)
  // CHECK-DAG: %[[DESC:.*]] = llvm.mlir.constant(4611756662049472512 : i64)
  // CHECK-DAG: %[[IDESC:.*]] = llvm.mlir.constant(137364608 : i32)
  // CHECK-DAG: %[[TRUE:.*]] = llvm.mlir.constant(true) : i1
  // CHECK-DAG: %[[I2:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[I32:.*]] = llvm.mlir.constant(32 : i32)
  // CHECK-DAG: %[[I128:.*]] = llvm.mlir.constant(128 : i32)
  // CHECK-DAG: %[[FIELD:.*]] = llvm.mlir.constant(16383 : i32)
  // CHECK-DAG: %[[C4:.*]] = llvm.mlir.constant(4 : i32)
  // CHECK-DAG: %[[C5:.*]] = llvm.mlir.constant(5 : i32)
  // CHECK-DAG: %[[C8:.*]] = llvm.mlir.constant(8 : i32)
  // CHECK-DAG: %[[LOW:.*]] = llvm.mlir.constant(65536 : i32)
  %ab = pipe.channel from tma to tensor depth 2 payload [1024, 33792, 82944, 87040] barriers 95232 : !nv
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 95264 : !pipe.channel<!pipe.tmem<128x192xf32>>
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs[%it] : !pipe.channel<!pipe.tmem<128x192xf32>>
    %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !nv
    // CHECK: %[[SFA:.*]] = llvm.add %[[TMEM:.*]], %[[C192]]
    // An address is 14 bits of units of 16 bytes: the rank of the CTA lies above.
    // CHECK: llvm.and %{{.*}}, %[[FIELD]]
    // CHECK: %[[SLOW:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // CHECK: %[[SWIDE:.*]] = llvm.zext %[[SLOW]]
    // CHECK: %[[S0:.*]] = llvm.or %[[SWIDE]], %[[SDESC]]
    // CHECK: %[[T0:.*]] = llvm.inttoptr %[[SFA]]
    // CHECK: nvvm.tcgen05.cp %[[T0]], %[[S0]] {multicast = #nvvm.tcgen05_cp_multicast<warpx4>, shape = #nvvm.tcgen05_cp_shape<shape_32x128b>}
    // The next block: 512 bytes and 4 columns on.
    // CHECK: %[[A1:.*]] = llvm.add %[[SFA]], %[[C4]]
    // CHECK: %[[SLOW1:.*]] = llvm.add %[[SLOW]], %[[I32]]
    // CHECK: %[[SWIDE1:.*]] = llvm.zext %[[SLOW1]]
    // CHECK: %[[S1:.*]] = llvm.or %[[SWIDE1]], %[[SDESC]]
    // CHECK: %[[T1:.*]] = llvm.inttoptr %[[A1]]
    // CHECK: nvvm.tcgen05.cp %[[T1]], %[[S1]]
    // CHECK-COUNT-2: nvvm.tcgen05.cp
    %ta = pipe.copy_scales %sas at 192 : !nva -> !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>
    // Eight blocks of SFB: (row block, k block) goes to column 8 k + 4 row, from behind the four
    // blocks of each row block before: 2048 bytes on for the second.
    // CHECK: %[[SFB:.*]] = llvm.add %[[TMEM]], %[[C208]]
    // CHECK: %[[BLOW:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // CHECK: %[[BWIDE:.*]] = llvm.zext %[[BLOW]]
    // CHECK: %[[B0:.*]] = llvm.or %[[BWIDE]], %[[SDESC]]
    // CHECK: nvvm.tcgen05.cp %{{.*}}, %[[B0]]
    // CHECK: %[[BLOW1:.*]] = llvm.add %[[BLOW]], %[[I128]]
    // CHECK: %[[BWIDE1:.*]] = llvm.zext %[[BLOW1]]
    // CHECK: %[[B1:.*]] = llvm.or %[[BWIDE1]], %[[SDESC]]
    // CHECK: nvvm.tcgen05.cp %{{.*}}, %[[B1]]
    // CHECK-COUNT-6: nvvm.tcgen05.cp
    %tb = pipe.copy_scales %sbs at 208 : !nvb -> !pipe.tmem<256x16xf8E4M3FN, tiled_128x4>
    // CHECK: %[[ALOW:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // CHECK: %[[BLOW0:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // Rows of scales step a column every 32.
    // CHECK: %[[COLS:.*]] = llvm.lshr %[[ROW]], %[[C5]] : i32
    // CHECK: %[[SHIFTED:.*]] = llvm.add %[[SFB]], %[[COLS]]
    // CHECK: %[[AWIDE:.*]] = llvm.zext %[[ALOW]]
    // CHECK: %[[ADESC:.*]] = llvm.or %[[AWIDE]], %[[DESC]]
    // CHECK: %[[BWIDE0:.*]] = llvm.zext %[[BLOW0]]
    // CHECK: %[[BDESC:.*]] = llvm.or %[[BWIDE0]], %[[DESC]]
    // Next step: 32 bytes on in both operands, one block on in the scales, and it accumulates.
    // CHECK: %[[ALOW2:.*]] = llvm.add %[[ALOW]], %[[I2]]
    // CHECK: %[[AWIDE2:.*]] = llvm.zext %[[ALOW2]]
    // CHECK: %[[A2:.*]] = llvm.or %[[AWIDE2]], %[[DESC]]
    // CHECK: %[[BLOW2:.*]] = llvm.add %[[BLOW0]], %[[I2]]
    // CHECK: %[[BWIDE2:.*]] = llvm.zext %[[BLOW2]]
    // CHECK: %[[B2:.*]] = llvm.or %[[BWIDE2]], %[[DESC]]
    // CHECK-DAG: %[[SFA1:.*]] = llvm.add %[[SFA]], %[[C4]]
    // CHECK-DAG: %[[SFB1:.*]] = llvm.add %[[SHIFTED]], %[[C8]]
    // All of this is computed for the whole warp, one thread of which issues the four instructions.
    // CHECK: %[[TILES:.*]] = llvm.inline_asm "", "=l,{{.*}},7" %[[ADESC]], %[[BDESC]], %[[A2]], %[[B2]],
    // CHECK-DAG: %[[AH:.*]] = llvm.extractvalue %[[TILES]][0]
    // CHECK-DAG: %[[BH:.*]] = llvm.extractvalue %[[TILES]][1]
    // CHECK-DAG: %[[A2H:.*]] = llvm.extractvalue %[[TILES]][2]
    // CHECK-DAG: %[[B2H:.*]] = llvm.extractvalue %[[TILES]][3]
    // CHECK: %[[SCALES:.*]] = llvm.inline_asm "", "=r,{{.*}},7" %[[SFA]], %[[SHIFTED]], %[[SFA1]], %[[SFB1]],
    // CHECK-DAG: %[[SAH:.*]] = llvm.extractvalue %[[SCALES]][0]
    // CHECK-DAG: %[[SBH:.*]] = llvm.extractvalue %[[SCALES]][1]
    // CHECK: nvvm.elect.sync
    // CHECK-DAG: %[[SA0:.*]] = llvm.inttoptr %[[SAH]]
    // CHECK-DAG: %[[SB0:.*]] = llvm.inttoptr %[[SBH]]
    // CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[AH]], %[[BH]], %[[IDESC]], %[[MORE]], %[[SA0]], %[[SB0]] {blockScale = #nvvm.tcgen05_mma_block_scale<block16>, ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.block_scale_kind<mxf4nvf4>}
    // CHECK-NOT: nvvm.elect.sync
    // CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[A2H]], %[[B2H]], %[[IDESC]], %[[TRUE]],
    // CHECK-COUNT-2: nvvm.tcgen05.mma.block_scale
    // CHECK-NOT: nvvm.tcgen05.mma.block_scale
    pipe.mma %acc, %as scaled %ta, %bs scaled %tb from %row accumulate %more
        : !pipe.tmem<128x192xf32>, !a, !pipe.tmem<128x16xf8E4M3FN, tiled_128x4>, !b, !pipe.tmem<256x16xf8E4M3FN, tiled_128x4>
  }
  gpu.return
}

// A residue of MXFP4: a scale tile serves two MMAs, told apart by the scale id in the instruction
// descriptor; steps and blocks beyond the first are guarded.
// CHECK-LABEL: llvm.func @mxfp4_tail
// CHECK-SAME: %{{.*}}: i32, %[[BLOCKS:.*]]: i32, %[[STEPS:.*]]: i32, %{{.*}}: i1)
gpu.func @mxfp4_tail(%it: i32, %blocks: i32, %steps: i32, %more: i1) kernel
    attributes {pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 0 : i64} {
  // The two instruction descriptors: N 128, M 128, UE8M0, scale ids 0, and 2 (2 << 29 | 2 << 4).
  // CHECK-DAG: %[[ID0:.*]] = llvm.mlir.constant(144704640 : i32)
  // CHECK-DAG: %[[ID2:.*]] = llvm.mlir.constant(1218446496 : i32)
  %ab = pipe.channel from tma to tensor depth 2 payload [1024, 33792, 66560, 68608] barriers 70656 : !mx
  %accs = pipe.channel from tensor to threads(128) depth 1 payload [0] barriers 70688 : !pipe.channel<!pipe.tmem<128x128xf32>>
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    %acc = pipe.producer_acquire %accs[%it] : !pipe.channel<!pipe.tmem<128x128xf32>>
    %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !mx
    // CHECK: nvvm.tcgen05.cp
    // CHECK: %[[SECOND:.*]] = llvm.icmp "sgt" %[[BLOCKS]], %{{.*}}
    // CHECK: llvm.cond_br %[[SECOND]]
    // CHECK: nvvm.tcgen05.cp
    %ta = pipe.copy_scales %sas blocks %blocks at 128 : !mxa -> !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
    %tb = pipe.copy_scales %sbs blocks %blocks at 136 : !mxa -> !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID0]], {{.*}} {blockScale = #nvvm.tcgen05_mma_block_scale<block32>,
    // CHECK: llvm.icmp "sgt" %[[STEPS]], %{{.*}}
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID2]],
    // CHECK: llvm.icmp "sgt" %[[STEPS]], %{{.*}}
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID0]],
    // CHECK: llvm.icmp "sgt" %[[STEPS]], %{{.*}}
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID2]],
    pipe.mma %acc, %as scaled %ta, %bs scaled %tb accumulate %more existing %steps
        : !pipe.tmem<128x128xf32>, !a, !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>, !a, !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
  }
  gpu.return
}

// Blocks of 16 under powers of two: as many columns of scales as NVFP4 has, of type UE8M0 (bit 23).
// CHECK-LABEL: llvm.func @powers_of_16
gpu.func @powers_of_16(%acc: !pipe.tmem<128x128xf32>, %as: !a, %t: !pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>,
                       %more: i1) kernel {
  // CHECK-DAG: %[[IDESC:.*]] = llvm.mlir.constant(144704640 : i32)
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    // CHECK-COUNT-4: nvvm.tcgen05.mma.block_scale {{.*}}, %[[IDESC]], {{.*}} {blockScale = #nvvm.tcgen05_mma_block_scale<block16>,
    // CHECK-NOT: nvvm.tcgen05.mma
    pipe.mma %acc, %as scaled %t, %as scaled %t accumulate %more
        : !pipe.tmem<128x128xf32>, !a, !pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>, !a, !pipe.tmem<128x16xf8E8M0FNU, tiled_128x4>
  }
  gpu.return
}

// E5M2 times E2M1 (kind mxf8f6f4): MMAs of K = 32, whose operand rows are 32 bytes in both tiles, and whose
// scales are the four bytes of one word, told apart by their ids.
// CHECK-LABEL: llvm.func @mixed
gpu.func @mixed(%acc: !pipe.tmem<128x64xf32>, %as: !pipe.shared<128x128xf8E5M2, swizzle_128B>,
                %bs: !pipe.shared<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>,
                %t: !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>, %more: i1) kernel {
  // M 128, N 64, UE8M0, A type 1, B type 5; ids in bits 29 and 4.
  // CHECK-DAG: %[[ID0:.*]] = llvm.mlir.constant(143660160 : i32)
  // CHECK-DAG: %[[ID1:.*]] = llvm.mlir.constant(680531088 : i32)
  // CHECK-DAG: %[[ID2:.*]] = llvm.mlir.constant(1217402016 : i32)
  // CHECK-DAG: %[[ID3:.*]] = llvm.mlir.constant(1754272944 : i32)
  // CHECK-DAG: %[[I2:.*]] = llvm.mlir.constant(2 : i32)
  // CHECK-DAG: %[[HIGH:.*]] = llvm.mlir.constant(4611756662049472512 : i64)
  // CHECK-DAG: %[[LOW:.*]] = llvm.mlir.constant(65536 : i32)
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    // CHECK: %[[ALOW:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // CHECK: %[[BLOW:.*]] = llvm.add %{{.*}}, %[[LOW]] : i32
    // CHECK: %[[AWIDE:.*]] = llvm.zext %[[ALOW]]
    // CHECK: %[[A:.*]] = llvm.or %[[AWIDE]], %[[HIGH]]
    // CHECK: %[[BWIDE:.*]] = llvm.zext %[[BLOW]]
    // CHECK: %[[B:.*]] = llvm.or %[[BWIDE]], %[[HIGH]]
    // CHECK: %[[ALOW1:.*]] = llvm.add %[[ALOW]], %[[I2]]
    // CHECK: %[[AWIDE1:.*]] = llvm.zext %[[ALOW1]]
    // CHECK: %[[A1:.*]] = llvm.or %[[AWIDE1]], %[[HIGH]]
    // CHECK: %[[BLOW1:.*]] = llvm.add %[[BLOW]], %[[I2]]
    // CHECK: %[[BWIDE1:.*]] = llvm.zext %[[BLOW1]]
    // CHECK: %[[B1:.*]] = llvm.or %[[BWIDE1]], %[[HIGH]]
    // All descriptors are the whole warp's. One thread issues the four instructions.
    // CHECK: %[[ALL:.*]] = llvm.inline_asm "", "=l,{{.*}},7" %[[A]], %[[B]], %[[A1]], %[[B1]],
    // CHECK: %[[A0H:.*]] = llvm.extractvalue %[[ALL]][0]
    // CHECK: %[[B0H:.*]] = llvm.extractvalue %[[ALL]][1]
    // CHECK: %[[A1H:.*]] = llvm.extractvalue %[[ALL]][2]
    // CHECK: %[[B1H:.*]] = llvm.extractvalue %[[ALL]][3]
    // CHECK: nvvm.elect.sync
    // CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[A0H]], %[[B0H]], %[[ID0]], %{{.*}}, %[[SA:.*]], %[[SB:.*]] {blockScale = #nvvm.tcgen05_mma_block_scale<block32>, ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.block_scale_kind<mxf8f6f4>}
    // CHECK-NOT: nvvm.elect.sync
    // CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[A1H]], %[[B1H]], %[[ID1]],
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID2]],
    // CHECK: nvvm.tcgen05.mma.block_scale {{.*}}, %[[ID3]],
    // CHECK-NOT: nvvm.tcgen05.mma.block_scale
    pipe.mma %acc, %as scaled %t, %bs scaled %t accumulate %more
        : !pipe.tmem<128x64xf32>, !pipe.shared<128x128xf8E5M2, swizzle_128B>, !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>,
          !pipe.shared<64x128xf4E2M1FN, swizzle_128B_b4x16_p64>, !pipe.tmem<128x4xf8E8M0FNU, tiled_128x4>
  }
  gpu.return
}

// Three sets of a scale tile of 8 columns: set it mod 3.
// CHECK-LABEL: llvm.func @sets
// CHECK-SAME: %[[IT:[a-z0-9]+]]: i32
gpu.func @sets(%it: i32) kernel attributes {pipe.tmem_columns = 256 : i64, pipe.tmem_slot = 70720 : i64} {
  // CHECK-DAG: %[[THREE:.*]] = llvm.mlir.constant(3 : i32)
  // CHECK-DAG: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32)
  %ab = pipe.channel from tma to tensor depth 4 payload [1024, 33792, 66560, 68608] barriers 70656 : !mx
  pipe.role mma warps 0 to 1 drives [tensor, scale_copy] {
    %as, %bs, %sas, %sbs = pipe.consumer_wait %ab[%it] : !mx
    // CHECK: %[[SET:.*]] = llvm.urem %[[IT]], %[[THREE]] : i32
    // CHECK: llvm.mul %[[SET]], %[[EIGHT]] : i32
    %ta = pipe.copy_scales %sas at 128 sets 3 : !mxa -> !pipe.tmem<128x8xf8E8M0FNU, tiled_128x4>
  }
  gpu.return
}
}
