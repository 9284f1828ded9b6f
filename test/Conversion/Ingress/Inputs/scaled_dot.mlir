// Export of jax 0.10.2 for ../stablehlo.mlir, in the generic form.
"builtin.module"() <{sym_name = "jit_dot"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}, {}], function_type = (tensor<48x64xf4E2M1FN>, tensor<32x64xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<32x2xf8E8M0FNU>) -> tensor<48x32xbf16>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg4: tensor<48x64xf4E2M1FN>, %arg5: tensor<32x64xf4E2M1FN>, %arg6: tensor<48x2xf8E8M0FNU>, %arg7: tensor<32x2xf8E8M0FNU>):
    %13 = "stablehlo.transpose"(%arg5) <{permutation = array<i64: 1, 0>}> : (tensor<32x64xf4E2M1FN>) -> tensor<64x32xf4E2M1FN>
    %14 = "stablehlo.transpose"(%arg7) <{permutation = array<i64: 1, 0>}> : (tensor<32x2xf8E8M0FNU>) -> tensor<2x32xf8E8M0FNU>
    %15 = "stablehlo.composite"(%arg4, %13, %arg6, %14) <{composite_attributes = {dimension_numbers = [[[1], [0]], [[], []]], preferred_element_type = bf16}, decomposition = @xla.scaled_dot, name = "xla.scaled_dot", version = 0 : i32}> : (tensor<48x64xf4E2M1FN>, tensor<64x32xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<2x32xf8E8M0FNU>) -> tensor<48x32xbf16>
    "func.return"(%15) : (tensor<48x32xbf16>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<48x64xf4E2M1FN>, tensor<64x32xf4E2M1FN>, tensor<48x2xf8E8M0FNU>, tensor<2x32xf8E8M0FNU>) -> tensor<48x32xbf16>, res_attrs = [{}], sym_name = "xla.scaled_dot", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<48x64xf4E2M1FN>, %arg1: tensor<64x32xf4E2M1FN>, %arg2: tensor<48x2xf8E8M0FNU>, %arg3: tensor<2x32xf8E8M0FNU>):
    %0 = "stablehlo.broadcast_in_dim"(%arg2) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<48x2xf8E8M0FNU>) -> tensor<48x2x1xf8E8M0FNU>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<48x2x1xf8E8M0FNU>) -> tensor<48x2x32xf8E8M0FNU>
    %2 = "stablehlo.reshape"(%1) : (tensor<48x2x32xf8E8M0FNU>) -> tensor<48x64xf8E8M0FNU>
    %3 = "stablehlo.convert"(%arg0) : (tensor<48x64xf4E2M1FN>) -> tensor<48x64xbf16>
    %4 = "stablehlo.convert"(%2) : (tensor<48x64xf8E8M0FNU>) -> tensor<48x64xbf16>
    %5 = "stablehlo.multiply"(%3, %4) : (tensor<48x64xbf16>, tensor<48x64xbf16>) -> tensor<48x64xbf16>
    %6 = "stablehlo.broadcast_in_dim"(%arg3) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x32xf8E8M0FNU>) -> tensor<2x1x32xf8E8M0FNU>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x1x32xf8E8M0FNU>) -> tensor<2x32x32xf8E8M0FNU>
    %8 = "stablehlo.reshape"(%7) : (tensor<2x32x32xf8E8M0FNU>) -> tensor<64x32xf8E8M0FNU>
    %9 = "stablehlo.convert"(%arg1) : (tensor<64x32xf4E2M1FN>) -> tensor<64x32xbf16>
    %10 = "stablehlo.convert"(%8) : (tensor<64x32xf8E8M0FNU>) -> tensor<64x32xbf16>
    %11 = "stablehlo.multiply"(%9, %10) : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
    %12 = "stablehlo.dot_general"(%5, %11) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<48x64xbf16>, tensor<64x32xbf16>) -> tensor<48x32xbf16>
    "func.return"(%12) : (tensor<48x32xbf16>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
