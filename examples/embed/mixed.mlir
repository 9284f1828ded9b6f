!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<32x64xf4E2M1FN>,
                   tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// The program that host.cpp compiles: a residual, a GEMM of mxfp4 operands, a bias with a
// rectifier, and a normalization by the largest magnitude. The host's own operations stand before,
// between and after those of fp4.
func.func @layer(%x: tensor<?x64xf32>, %residual: tensor<?x64xf32>, %w: tensor<32x64xf32>)
    -> tensor<?x32xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %bias = arith.constant -2.5 : f32
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x64xf32>
  %places = tensor.empty(%rows) : tensor<?x64xf32>
  %sum = linalg.add ins(%x, %residual : tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%places : tensor<?x64xf32>) -> tensor<?x64xf32>

  %q, %s = fp4.quantize %sum {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<?x64xf32>) -> (tensor<?x64xf4E2M1FN>, tensor<?x2xf8E8M0FNU>)
  %qw, %sw = fp4.quantize %w {format = #fp4.format<mxfp4>, recipe = #fp4.recipe<ocp_floor>}
      : (tensor<32x64xf32>) -> (tensor<32x64xf4E2M1FN>, tensor<32x2xf8E8M0FNU>)
  %t = fp4.swizzle_scales %s
      : tensor<?x2xf8E8M0FNU> -> tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %tw = fp4.swizzle_scales %sw
      : tensor<32x2xf8E8M0FNU> -> tensor<32x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>
  %q_scaled = fp4.scaled %q, %t : !lhs
  %qw_scaled = fp4.scaled %qw, %tw : !rhs
  %y = fp4.matmul %q_scaled, %qw_scaled : (!lhs, !rhs) -> tensor<?x32xf32>

  %products = tensor.dim %y, %c0 : tensor<?x32xf32>
  %room = tensor.empty(%products) : tensor<?x32xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x32xf32>) outs(%room : tensor<?x32xf32>) {
    ^bb0(%e: f32, %o: f32):
      %biased = arith.addf %e, %bias : f32
      %positive = arith.maximumf %biased, %zero : f32
      linalg.yield %positive : f32
  } -> tensor<?x32xf32>

  %amax = fp4.amax %h : tensor<?x32xf32> -> tensor<f32>

  %normal = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>,
                                             affine_map<(i, j) -> (i, j)>],
                            iterator_types = ["parallel", "parallel"]}
      ins(%h, %amax : tensor<?x32xf32>, tensor<f32>) outs(%room : tensor<?x32xf32>) {
    ^bb0(%e: f32, %a: f32, %o: f32):
      %quotient = arith.divf %e, %a : f32
      linalg.yield %quotient : f32
  } -> tensor<?x32xf32>
  return %normal : tensor<?x32xf32>
}
