// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// operation (C200)
func.func @extents(%ok: tensor<1099511627776x16xbf16>, %bad: tensor<1099511627777x16xbf16>) {
  %0 = fp4.amax %ok : tensor<1099511627776x16xbf16> -> tensor<f32>
  // expected-error @+2 {{operand 'input' must have extents of at most 1099511627776, but got 'tensor<1099511627777x16xbf16>'}}
  // expected-note @+1 {{cut the matrix into several}}
  %1 = fp4.amax %bad : tensor<1099511627777x16xbf16> -> tensor<f32>
  return
}

// -----

// operation (C1)
func.func @unknown_attribute(%x: tensor<4x32xbf16>) -> (tensor<f32>, tensor<f32>) {
  %a = fp4.amax %x {my.note} : tensor<4x32xbf16> -> tensor<f32>
  // expected-error @+2 {{'fp4.amax' op has the unknown attribute 'per_rows'}}
  // expected-note @+1 {{known are}}
  %b = fp4.amax %x {per_rows} : tensor<4x32xbf16> -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// -----

// scale_layout (C1)
func.func private @layout_elements(tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+2 {{scale layout #fp4.scale_layout<tiled_128x4> expects elements of type f8E4M3FN or f8E8M0FNU, but got 'bf16'}}
// expected-note @+1 {{layouts of scales are of scale factors only: leave the encoding out}}
func.func private @layout_elements_bad(tensor<4x2xbf16, #fp4.scale_layout<tiled_128x4>>)

// -----

// The parser asks about the layout even where it found no element type.
func.func private @layout_type(tensor<16x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+1 {{expected non-function type}}
func.func private @layout_type_bad(tensor<16x4x, #fp4.scale_layout<tiled_128x4>>)

// -----

// scale_layout (C2)
func.func private @layout_rank(tensor<4x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
// expected-error @+2 {{scale layout #fp4.scale_layout<tiled_128x4> expects 2 dimensions, but got 1}}
// expected-note @+1 {{scales of several matrices are several tensors: tensor.extract_slice and tensor.collapse_shape take one out}}
func.func private @layout_rank_bad(tensor<8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)

// -----

// function (C1)
func.func private @name(tensor<4x8xbf16> {fp4.name = "x"})
// expected-error @+2 {{attribute 'fp4.name' of argument 0 must be a string, but got 7 : i64}}
// expected-note @+1 {{write {fp4.name = "x"}}}
func.func private @name_bad(tensor<4x8xbf16> {fp4.name = 7})

// -----

// function (C2)
func.func private @dims(tensor<4x8xbf16> {fp4.dims = ["M", "K"]})
// expected-error @+2 {{attribute 'fp4.dims' of argument 0 must be one string for each dimension of 'tensor<4x8xbf16>', but got ["M"]}}
// expected-note @+1 {{an empty string is a dimension without a name}}
func.func private @dims_bad(tensor<4x8xbf16> {fp4.dims = ["M"]})

// -----

// function (C3)
func.func private @names(tensor<f32> {fp4.name = "x"}, tensor<f32> {fp4.name = "y"}) -> (tensor<f32> {fp4.name = "x"})
// expected-error @+2 {{arguments 1 and 0 must have different names, but both are called "x"}}
// expected-note @+1 {{rename one of them with fp4.name}}
func.func private @names_bad(tensor<f32> {fp4.name = "x"}, tensor<f32> {fp4.name = "x"})

// -----

// expected-error @+2 {{results 0 and 1 must have different names, but both are called "r1"}}
// expected-note @+1 {{rename one of them with fp4.name}}
func.func private @default_name() -> (tensor<f32> {fp4.name = "r1"}, tensor<f32>)

// -----

// function (C476)
func.func private @strided(tensor<?x64xbf16> {fp4.strided})
// expected-error @+2 {{attribute 'fp4.strided' of argument 0 must be a unit attribute, but got 32 : i64}}
// expected-note @+1 {{write {fp4.strided}}}
func.func private @pitch(tensor<?x64xbf16> {fp4.strided = 32})

// -----

// function (C493)
func.func private @strided_result() -> (tensor<4x64xbf16> {fp4.strided})
// expected-error @+2 {{attribute 'fp4.strided' of result 0 must be on a matrix, but got 'tensor<2x4x64xbf16>'}}
// expected-note @+1 {{return each matrix of a batch as a result of its own}}
func.func private @strided_batch() -> (tensor<2x4x64xbf16> {fp4.strided})

// -----

// function (C477)
func.func private @strided_types(tensor<4x?xf4E2M1FN>, tensor<?x4x64xf8E5M2> {fp4.strided}, tensor<4x64xf4E2M1FN> {fp4.strided})
// expected-error @+2 {{attribute 'fp4.strided' of argument 0 must be on rows of static length, in two or three dimensions, of floats or codes and without an encoding, but got 'tensor<4x?xf4E2M1FN>'}}
// expected-note @+1 {{leave 'fp4.strided' out, and the caller's buffer is dense}}
func.func private @dynamic_rows(tensor<4x?xf4E2M1FN> {fp4.strided})

// -----

// function (C477)
func.func private @dynamic_result() -> (tensor<4x?xf8E4M3FN> {fp4.strided})
// expected-error @+2 {{attribute 'fp4.strided' of result 0 must be on rows, of static length where they are packed, in two or three dimensions, of floats or codes and without an encoding, but got 'tensor<4x?xf4E2M1FN>'}}
// expected-note @+1 {{leave 'fp4.strided' out, and the caller's buffer is dense}}
func.func private @dynamic_result_bad() -> (tensor<4x?xf4E2M1FN> {fp4.strided})

// -----

// function (C477)
func.func private @tiles(tensor<64x4xf8E4M3FN> {fp4.strided})
// expected-error @+2 {{attribute 'fp4.strided' of argument 0 must be on rows of static length}}
// expected-note @+1 {{leave 'fp4.strided' out, and the caller's buffer is dense}}
func.func private @tiles_bad(tensor<64x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>> {fp4.strided})

// -----

func.func private @known() -> (tensor<f32> {fp4.name = "alpha"})
// expected-error @+2 {{result 0 has the unknown attribute 'fp4.title'}}
// expected-note @+1 {{known are fp4.name, fp4.dims and fp4.strided}}
func.func private @unknown() -> (tensor<f32> {fp4.title = "alpha"})

// -----

// recipe (C1)
func.func private @recipe_name() attributes {ok = #fp4.recipe<mslk>}
// expected-error @+2 {{unknown recipe 'nvidia'}}
// expected-note @+1 {{known recipes: transformer_engine, transformer_engine_2_13}}
func.func private @recipe_name_bad() attributes {bad = #fp4.recipe<nvidia>}

// -----

// epilogue (C1)
func.func private @epilogue() attributes {ok = #fp4.epilogue<relu>, twice = #fp4.epilogue<relu, relu>}
// expected-error @+2 {{unknown epilogue step 'gelu'}}
// expected-note @+1 {{known epilogue steps: relu}}
func.func private @epilogue_bad() attributes {bad = #fp4.epilogue<relu, gelu>}

// -----

// recipe (C2)
func.func private @decision() attributes {ok = #fp4.recipe<vllm, scale_floor = 0.5>}
// expected-error @+2 {{recipe 'ocp_floor' of format mxfp4 has no decision 'scale_floor'}}
// expected-note @+1 {{its decisions are amax_nan, negative_zero, ties, nan_element, exponent, non_finite, zero_byte, nan_byte}}
func.func private @decision_bad() attributes {bad = #fp4.recipe<ocp_floor, scale_floor = 0.5>}

// -----

// recipe (C2)
func.func private @value() attributes {ok = #fp4.recipe<vllm, guard = none>}
// expected-error @+1 {{decision 'guard' must be one of clamp_drop_nan, clamp_keep_nan}}
func.func private @value_bad() attributes {bad = #fp4.recipe<vllm, guard = 0>}

// -----

// recipe (C2)
func.func private @range() attributes {ok = #fp4.recipe<vllm, e4m3_max = 256>}
// expected-error @+1 {{decision 'e4m3_max' must be a number from 2^-9 to 448, but got 0}}
func.func private @range_bad() attributes {bad = #fp4.recipe<vllm, e4m3_max = 0>}

// -----

// recipe (C3)
func.func private @sign() attributes {ok = #fp4.recipe<vllm, scale_floor = 0.5>}
// expected-error @+1 {{decision 'scale_floor' must be a number from 0 to 448, but got -0.5}}
func.func private @sign_bad() attributes {bad = #fp4.recipe<vllm, scale_floor = -0.5>}

// -----

// recipe (C3)
func.func private @integer_sign() attributes {ok = #fp4.recipe<vllm, scale_floor = 1>}
// expected-error @+1 {{decision 'scale_floor' must be a number from 0 to 448, but got -1}}
func.func private @integer_sign_bad() attributes {bad = #fp4.recipe<vllm, scale_floor = -1>}

// -----

// recipe (C3)
func.func private @decisions() attributes {ok = #fp4.recipe<torchao, tensor_scale = decode_multiply>}
// expected-error @+2 {{tensor_scale decode_divide, decode_multiply and supplied_decode have no encode scale, but the spellings of scale, encode, dequantize or alpha read it}}
// expected-note @+1 {{spellings of the decode scale are scale = divide_twice}}
func.func private @decisions_bad() attributes {bad = #fp4.recipe<transformer_engine, tensor_scale = decode_multiply>}

// -----

// recipe (C3): a supplied decode scale has no encode scale either.
func.func private @supplied() attributes {ok = #fp4.recipe<torchao, tensor_scale = supplied_decode>}
// expected-error @+2 {{tensor_scale decode_divide, decode_multiply and supplied_decode have no encode scale, but the spellings of scale, encode, dequantize or alpha read it}}
// expected-note @+1 {{spellings of the decode scale are scale = divide_twice}}
func.func private @supplied_bad() attributes {bad = #fp4.recipe<vllm, tensor_scale = supplied_decode>}

// -----

// hadamard (C3): the attribute has the constraints of the operation.
func.func private @size() attributes {ok = #fp4.hadamard<size = 64>}
// expected-error @+2 {{attribute 'size' must be 16, 32, 64 or 128, but got 8}}
// expected-note @+1 {{the transforms of TransformerEngine have 16}}
func.func private @size_bad() attributes {bad = #fp4.hadamard<size = 8>}

// -----

// hadamard (C8)
func.func private @hadamard_unrounded() attributes {ok = #fp4.hadamard<size = 16, rounding = none>}
// expected-error @+2 {{rounding none expects arithmetic butterfly, but got tensor_core}}
// expected-note @+1 {{leave 'rounding' out: the tensor core gets bf16}}
func.func private @hadamard_rounding() attributes {bad = #fp4.hadamard<size = 16, arithmetic = tensor_core, rounding = none>}

// -----

// hadamard (C6)
func.func private @mask() attributes {ok = #fp4.hadamard<size = 64, sign_mask = 0xFFFF>}
// expected-error @+2 {{attribute 'sign_mask' must have no bit set at or above 16, but got 65536}}
// expected-note @+1 {{bit i negates elements i, i + 16, ... of each group}}
func.func private @mask_bad() attributes {bad = #fp4.hadamard<size = 64, sign_mask = 0x10000>}

// -----

func.func private @field() attributes {ok = #fp4.hadamard<arithmetic = tensor_core>}
// expected-error @+2 {{expects size, sign_mask, arithmetic or rounding, but got dimension}}
// expected-note @+1 {{write #fp4.hadamard<size = 16, sign_mask = 55272>, for example}}
func.func private @field_bad() attributes {bad = #fp4.hadamard<dimension = 1>}

// -----

func.func private @empty() attributes {ok = #fp4.hadamard<>}
// expected-error @+1 {{expected valid keyword or string}}
func.func private @empty_bad() attributes {bad = #fp4.recipe<>}

// -----

func.func private @trailing() attributes {ok = #fp4.recipe<"transformer_engine">}
// expected-error @+1 {{expected valid keyword}}
func.func private @trailing_bad() attributes {bad = #fp4.recipe<transformer_engine,>}

// -----

// target (C1)
module attributes {fp4.target = #fp4.target<sm_100a, sms = 66>} {}
// expected-error @+2 {{unknown target 'sm_42'}}
// expected-note @+1 {{known targets: }}
module attributes {fp4.target = #fp4.target<sm_42>} {}

// -----

// target (C1)
// expected-error @+2 {{SMs of a target must be 0 to 65535, but got -1}}
// expected-note @+1 {{leave it out for those of the GPU}}
module attributes {fp4.target = #fp4.target<sm_100a, sms = -1>} {}

// -----

// target (C1)
module attributes {fp4.target = #fp4.target<sm_100a, sms = 65535>} {}
// expected-error @+2 {{SMs of a target must be 0 to 65535, but got 4294967296}}
// expected-note @+1 {{leave it out for those of the GPU}}
module attributes {fp4.target = #fp4.target<sm_100a, sms = 4294967296>} {}

// -----

// target (C2)
// expected-error @+2 {{attribute fp4.target must be a target such as #fp4.target<sm_100a>, but got "sm_100a"}}
// expected-note @+1 {{fp4-set-target makes it of a name}}
module attributes {fp4.target = "sm_100a"} {}

// -----

// target (C2)
// expected-error @+2 {{attribute fp4.target must be on a builtin.module}}
// expected-note @+1 {{fp4-set-target puts it there}}
func.func private @not_a_module() attributes {fp4.target = #fp4.target<sm_100a>}
