// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// One case per constraint of Fp4Constraints.td. The first operation of a case is legal, the second differs
// from it in what the constraint is about.

// matmul_alpha (C1)
func.func @alpha_operand(%ok: tensor<f32>, %bad: tensor<1x1xf32>) {
  %0 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{operand 'rhs_amax' must be a tensor<f32>, but got 'tensor<1x1xf32>'}}
  // expected-note @+1 {{one number in device memory}}
  %1 = fp4.matmul_alpha %ok, %bad : tensor<f32>, tensor<1x1xf32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C5)
func.func @alpha_lines(%ok: tensor<f32>, %m: tensor<?xf32>, %n: tensor<8xf32>) {
  %0 = fp4.matmul_alpha %ok, %n : tensor<f32>, tensor<8xf32> -> tensor<1x8xf32>
  // expected-error @+2 {{operand 'rhs_amax' must be a scalar where operand 'lhs_amax' has one number for each row, but got 'tensor<8xf32>'}}
  // expected-note @+1 {{quantize one of the operands, the weights, with one amax}}
  %1 = fp4.matmul_alpha %m, %n : tensor<?xf32>, tensor<8xf32> -> tensor<?x8xf32>
  return
}

// -----

// matmul_alpha (C3): a supplied decode scale is none either.
func.func @alpha_supplied_decode(%ax: tensor<f32>) {
  %0 = fp4.matmul_alpha %ax, %ax
      {lhs_recipe = #fp4.recipe<torchao, tensor_scale = supplied_decode>, rhs_recipe = #fp4.recipe<torchao>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{attribute 'lhs_recipe' must be a recipe with a tensor scale that derives from the amax}}
  // expected-note @+1 {{alpha = decode_scales takes the supplied scale}}
  %1 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<torchao, tensor_scale = supplied_decode, alpha = amax_product>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C2)
func.func @alpha_rows_result(%one: tensor<f32>, %m: tensor<4xf32>) {
  %0 = fp4.matmul_alpha %m, %one : tensor<4xf32>, tensor<f32> -> tensor<4x1xf32>
  // expected-error @+1 {{result 'alpha' must be 'tensor<4x1xf32>', but got 'tensor<4xf32>'}}
  %1 = fp4.matmul_alpha %m, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  return
}

// -----

// matmul_alpha (C4)
func.func @alpha_rules(%ax: tensor<f32>) {
  %0 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<vllm>, rhs_recipe = #fp4.recipe<compressed_tensors>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{expects recipes with one decision 'alpha', but got over_encode_scales of the lhs and decode_scales of the rhs}}
  // expected-note @+1 {{write alpha = decode_scales in lhs_recipe, or the other in rhs_recipe}}
  %1 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<vllm>, rhs_recipe = #fp4.recipe<modelopt>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C3): a supplied scale is no amax.
func.func @alpha_supplied(%ax: tensor<f32>) {
  %0 = fp4.matmul_alpha %ax, %ax
      {lhs_recipe = #fp4.recipe<vllm, tensor_scale = supplied>, rhs_recipe = #fp4.recipe<vllm, tensor_scale = supplied>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{attribute 'lhs_recipe' must be a recipe with a tensor scale that derives from the amax}}
  // expected-note @+1 {{alpha = over_encode_scales takes the supplied scale}}
  %1 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<vllm, tensor_scale = supplied, alpha = amax_product>}
      : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C2)
func.func @alpha_result(%ok: tensor<f32>) {
  %0 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+1 {{result 'alpha' must be 'tensor<f32>', but got 'tensor<bf16>'}}
  %1 = fp4.matmul_alpha %ok, %ok : tensor<f32>, tensor<f32> -> tensor<bf16>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x64xbf16>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// scaled (C1)
func.func @matmul_data(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_b: tensor<8x64xbf16>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'data' must have elements of type f4E2M1FN, but got 'tensor<8x64xbf16>'}}
  // expected-note @+1 {{the element type is that of format mxfp4}}
  %bad_b_scaled = fp4.scaled %bad_b, %sb : !rhs2
  %1 = fp4.matmul %a_scaled, %bad_b_scaled : (!lhs, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x96xf4E2M1FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C2)
func.func @matmul_k(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_b: tensor<8x96xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %bad_b_scaled = fp4.scaled %bad_b, %sb : !rhs2
  // expected-error @+2 {{expects operands 'lhs' and 'rhs' with equal dimensions 1, but got 64 and 96}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K and rhs is N x K}}
  %1 = fp4.matmul %a_scaled, %bad_b_scaled : (!lhs, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x32xf4E2M1FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C2): the other way round
func.func @matmul_k(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %bad_b: tensor<8x32xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %bad_b_scaled = fp4.scaled %bad_b, %sb : !rhs2
  // expected-error @+2 {{expects operands 'lhs' and 'rhs' with equal dimensions 1, but got 64 and 32}}
  // expected-note @+1 {{both are contracted along dimension 1: lhs is M x K and rhs is N x K}}
  %1 = fp4.matmul %a_scaled, %bad_b_scaled : (!lhs, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp4, tensor<?x48xf4E2M1FN>,
                    tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x48xf4E2M1FN>,
                    tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C3)
func.func @matmul_block(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_a: tensor<?x48xf4E2M1FN>, %bad_b: tensor<8x48xf4E2M1FN>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %bad_a_scaled = fp4.scaled %bad_a, %sa : !lhs2
  %bad_b_scaled = fp4.scaled %bad_b, %sb : !rhs2
  // expected-error @+2 {{operand 'lhs' must have a dimension 1 that is a multiple of 32, but got 48}}
  // expected-note @+1 {{a block of format mxfp4 has 32 elements of the contraction axis; pad that axis with zeros}}
  %1 = fp4.matmul %bad_a_scaled, %bad_b_scaled : (!lhs2, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                    tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// scaled (C2)
func.func @matmul_scale_elements(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sa: tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'scales' must have elements of type f8E8M0FNU, but got 'tensor<?x2xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{the scale type is that of format mxfp4}}
  %a_scaled2 = fp4.scaled %a, %bad_sa : !lhs2
  %1 = fp4.matmul %a_scaled2, %b_scaled : (!lhs2, !rhs) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs2 = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU>>
// scaled (C3)
func.func @matmul_scale_layout(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sb: tensor<8x2xf8E8M0FNU>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'scales' must have layout #fp4.scale_layout<tiled_128x4>, but got 'tensor<8x2xf8E8M0FNU>'}}
  // expected-note @+1 {{insert fp4.swizzle_scales}}
  %b_scaled2 = fp4.scaled %b, %bad_sb : !rhs2
  %1 = fp4.matmul %a_scaled, %b_scaled2 : (!lhs, !rhs2) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!lhs2 = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                    tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C6)
func.func @matmul_scale_shape(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %bad_sa: tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %a_scaled2 = fp4.scaled %a, %bad_sa : !lhs2
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>', but got 'tensor<?x4xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>'}}
  // expected-note @+1 {{a scale of format mxfp4 is that of a row and 32 elements along K}}
  %1 = fp4.matmul %a_scaled2, %b_scaled : (!lhs2, !rhs) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C7)
func.func @matmul_alpha_type(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %alpha: tensor<f32>, %bad: tensor<8xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled alpha %alpha : (!lhs, !rhs, tensor<f32>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'alpha' must be a tensor<f32>, or have two dimensions, but got 'tensor<8xf32>'}}
  // expected-note @+1 {{a factor for each row of the result is M x 1, one for each column 1 x N}}
  %1 = fp4.matmul %a_scaled, %b_scaled alpha %bad : (!lhs, !rhs, tensor<8xf32>) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C7)
func.func @matmul_alpha_rows(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>,
    %rows: tensor<?x1xf32>, %bad: tensor<1x16xf32>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled alpha %rows
      : (!lhs, !rhs, tensor<?x1xf32>) -> tensor<?x8xf32>
  // expected-error @+2 {{operand 'alpha' must be 'tensor<1x8xf32>', but got 'tensor<1x16xf32>'}}
  // expected-note @+1 {{a factor for each row of the result is M x 1, one for each column 1 x N}}
  %1 = fp4.matmul %a_scaled, %b_scaled alpha %bad
      : (!lhs, !rhs, tensor<1x16xf32>) -> tensor<?x8xf32>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C9)
func.func @matmul_result_elements(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  %e4m3 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf8E4M3FN>
  // expected-error @+2 {{result 'result' must have elements of type bf16, f16, f32 or f8E4M3FN, but got 'tensor<?x8xf8E5M2>'}}
  // expected-note @+1 {{convert the tensor to one of these types first}}
  %1 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf8E5M2>
  return
}

// -----

!lhs = !fp4.scaled<mxfp4, tensor<?x64xf4E2M1FN>,
                   tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
!rhs = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>,
                   tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
// matmul (C10)
func.func @matmul_result_shape(%a: tensor<?x64xf4E2M1FN>, %sa: tensor<?x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>, 
    %b: tensor<8x64xf4E2M1FN>, %sb: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %0 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<?x8xf32>
  // expected-error @+1 {{result 'result' must be 'tensor<?x8xf32>', but got 'tensor<8x?xf32>'}}
  %1 = fp4.matmul %a_scaled, %b_scaled : (!lhs, !rhs) -> tensor<8x?xf32>
  return
}

// -----

// matmul_alpha (C3)
func.func @alpha_recipe(%ax: tensor<f32>) {
  %0 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<cutlass>} : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{attribute 'lhs_recipe' must be a recipe with a tensor scale that derives from the amax, but got torchao_1level}}
  // expected-note @+1 {{an operand of this recipe has no amax to be multiplied}}
  %1 = fp4.matmul_alpha %ax, %ax {lhs_recipe = #fp4.recipe<torchao_1level>} : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

// matmul_alpha (C3)
func.func @alpha_format(%ax: tensor<f32>) {
  %0 = fp4.matmul_alpha %ax, %ax {rhs_recipe = #fp4.recipe<cutlass>} : tensor<f32>, tensor<f32> -> tensor<f32>
  // expected-error @+2 {{attribute 'rhs_recipe' must be a recipe with a tensor scale that derives from the amax, but got ocp_floor}}
  // expected-note @+1 {{an operand of this recipe has no amax to be multiplied}}
  %1 = fp4.matmul_alpha %ax, %ax {rhs_recipe = #fp4.recipe<ocp_floor>} : tensor<f32>, tensor<f32> -> tensor<f32>
  return
}

// -----

!operand = !fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>,
                       tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
!lhs = !fp4.scaled<nvfp4, tensor<64x128xf4E2M1FN>,
                   tensor<512x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>>
// matmul (C6): tiles of groups are not those of the whole.
func.func @groups(%x: tensor<64x128xbf16>, %a: tensor<f32>, %ag: tensor<2xf32>) {
  %q, %s = fp4.quantize %x amax %a {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>}
      : (tensor<64x128xbf16>, tensor<f32>)
      -> (tensor<64x128xf4E2M1FN>, tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %q_scaled = fp4.scaled %q, %s : !operand
  %0 = fp4.matmul %q_scaled, %q_scaled : (!operand, !operand) -> tensor<64x64xf32>
  %qg, %sg = fp4.quantize %x amax %ag {format = #fp4.format<nvfp4>, recipe = #fp4.recipe<transformer_engine>, groups = array<i64: 40, 24>}
      : (tensor<64x128xbf16>, tensor<2xf32>)
      -> (tensor<64x128xf4E2M1FN>, tensor<512x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>)
  %qg_scaled = fp4.scaled %qg, %sg : !lhs
  // expected-error @+2 {{operand 'lhs_scales' must be 'tensor<64x8xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>', but got}}
  // expected-note @+1 {{the scales are tiles of several groups; give the matmul the same 'groups' too, or leave them out of the quantizer}}
  %1 = fp4.matmul %qg_scaled, %q_scaled : (!lhs, !operand) -> tensor<64x64xf32>
  return
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @body(%a: tensor<256x256xf4E2M1FN>, %s: !s, %bias: tensor<1x256xf32>) -> tensor<256x256xbf16> {
  %a_scaled = fp4.scaled %a, %s : !operand
  // matmul (C12)
  // expected-error @+2 {{epilogue region must take 'f32', 'f32' and yield 'bf16' in one block with fp4.yield, but got 'f32', 'f32' and 'f32'}}
  // expected-note @+1 {{the region takes the sum, in f32, that of 'rhs2' if there is one, and the elements of the epilogue inputs}}
  %y = fp4.matmul %a_scaled, %a_scaled epilogue(%bias) {
  ^bb0(%x: f32, %b: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, tensor<1x256xf32>) -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @operation(%a: tensor<256x256xf4E2M1FN>, %s: !s) -> tensor<256x256xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  // matmul (C12)
  // expected-error @+2 {{epilogue region must be elementwise, but 'math.tan' has no elementwise step; these have one: arith.addf}}
  // expected-note @+1 {{compute the rest outside of the operation; fp4-fuse puts into the region what it can}}
  %y = fp4.matmul %a_scaled, %a_scaled epilogue() {
  ^bb0(%x: f32):
    %l = math.tan %x : f32
    fp4.yield %l : f32
  } : (!operand, !operand) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

!s = tensor<256x16xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!operand = !fp4.scaled<nvfp4, tensor<256x256xf4E2M1FN>, !s>
func.func @input(%a: tensor<256x256xf4E2M1FN>, %s: !s, %bias: tensor<1x128xf32>) -> tensor<256x256xf32> {
  %a_scaled = fp4.scaled %a, %s : !operand
  // matmul (C13)
  // expected-error @+2 {{epilogue input must be f32, bf16 or f16, and a scalar, M x 1, 1 x N or M x N, but got 'tensor<1x128xf32>'}}
  // expected-note @+1 {{a thread finds its element by row and column: expand a vector of columns to 1 x N, one of rows to M x 1}}
  %y = fp4.matmul %a_scaled, %a_scaled epilogue(%bias) {
  ^bb0(%x: f32, %b: f32):
    fp4.yield %x : f32
  } : (!operand, !operand, tensor<1x128xf32>) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// -----

!b = !fp4.scaled<mxfp4, tensor<8x64xf4E2M1FN>, tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>>
func.func @batch(%x: tensor<4x64xbf16>, %y: tensor<2x4x64xbf16>, %w: tensor<8x64xf4E2M1FN>,
                 %s: tensor<8x2xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>) {
  %b = fp4.scaled %w, %s : !b
  %0 = fp4.matmul %x, %b : (tensor<4x64xbf16>, !b) -> tensor<4x8xf32>
  // matmul (C1)
  // expected-error @+2 {{operand 'lhs' must have 2 dimensions, but got 'tensor<2x4x64xbf16>'}}
  // expected-note @+1 {{tensor.collapse_shape makes a matrix of a batch}}
  %1 = fp4.matmul %y, %b : (tensor<2x4x64xbf16>, !b) -> tensor<8x8xf32>
  return
}
