// ptxas accepts GEMMs of MXFP8, and of MXFP8 and MXFP4, for sm_90a without spills, with every tile that
// has many registers.
// REQUIRES: ptxas
// RUN: fp4-opt %s --fp4-set-target=target=sm_90a --compile-to=cubin | %python %fp4_src/test/Target/Inputs/resources.py \
// RUN:   | FileCheck %s

// CHECK: wide_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: tall_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0
// CHECK: few_matmul_0 kernel: registers {{[0-9]+}}, spill 0, stack 0

func.func @wide(%a: tensor<?x1024xf8E5M2>, %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf8E4M3FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e5m2>, rhs_format = #fp4.format<mxfp8_e4m3>, fp4.plan = #fp4.plan<tile_gemm, tile = [128, 256, 128]>}
      : (tensor<?x1024xf8E5M2>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<512x1024xf8E4M3FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}
func.func @tall(%a: tensor<?x1024xf8E4M3FN>, %sa: tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf4E2M1FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xf32> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, rhs_format = #fp4.format<mxfp4>, fp4.plan = #fp4.plan<tile_gemm, tile = [256, 128, 128]>}
      : (tensor<?x1024xf8E4M3FN>, tensor<?x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<512x1024xf4E2M1FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
func.func @few(%a: tensor<40x1024xf8E4M3FN>, %sa: tensor<40x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, %b: tensor<512x1024xf8E4M3FN>, %sb: tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<40x512xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %sa, %b scaled %sb {format = #fp4.format<mxfp8_e4m3>, fp4.plan = #fp4.plan<tile_gemm, route = <orientation = swapped>, tile = [128, 64, 128]>}
      : (tensor<40x1024xf8E4M3FN>, tensor<40x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, tensor<512x1024xf8E4M3FN>, tensor<512x32xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) -> tensor<40x512xbf16>
  return %y : tensor<40x512xbf16>
}
