// Programs that tosa can say and fp4 cannot do are errors at their places, with a remedy.

// RUN: fp4-opt %s --convert-tosa-to-fp4 -split-input-file -verify-diagnostics

func.func @recipe(%x: tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>) {
  // expected-error @+2 {{'tosa.cast_to_block_scaled' op has no counterpart in fp4: TOSA does not say how a scale derives from its block}}
  // expected-note @+1 {{say it with the option recipe, such as --convert-tosa-to-fp4=recipe=ocp_ceil}}
  %q, %s = tosa.cast_to_block_scaled %x {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>)
  return %q, %s : tensor<16x64xf4E2M1FN>, tensor<16x2xf8E8M0FNU>
}

// -----

func.func @six_bits(%a: tensor<1x16x64xf6E2M3FN>, %sa: tensor<1x16x2xf8E8M0FNU>,
                    %b: tensor<1x32x64xf6E2M3FN>, %sb: tensor<1x32x2xf8E8M0FNU>) -> tensor<1x16x32xf32> {
  // expected-error @+2 {{both sides must have elements of type f4E2M1FN, f8E4M3FN or f8E5M2, but got f6E2M3FN and f6E2M3FN}}
  // expected-note @+1 {{matmuls of 6-bit elements have no kernel; quantize both sides to 4 or 8 bits}}
  %y = tosa.matmul_t_block_scaled %a, %sa, %b, %sb {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<1x16x64xf6E2M3FN>, tensor<1x16x2xf8E8M0FNU>, tensor<1x32x64xf6E2M3FN>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<1x16x32xf32>
  return %y : tensor<1x16x32xf32>
}

// -----

// Two errors are both reported.
func.func @dynamic(%a: tensor<?x16x64xf4E2M1FN>, %sa: tensor<?x16x2xf8E8M0FNU>,
                   %b: tensor<1x32x64xf4E2M1FN>, %sb: tensor<1x32x2xf8E8M0FNU>) -> (tensor<?x16x32xf32>, tensor<?x16x64xf32>) {
  // expected-error @+2 {{the number of batches must be static}}
  // expected-note @+1 {{collapse batches and rows of the left side to dynamic rows}}
  %y = tosa.matmul_t_block_scaled %a, %sa, %b, %sb {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<?x16x64xf4E2M1FN>, tensor<?x16x2xf8E8M0FNU>, tensor<1x32x64xf4E2M1FN>,
         tensor<1x32x2xf8E8M0FNU>) -> tensor<?x16x32xf32>
  // expected-error @+2 {{only the rows of a matrix may be dynamic}}
  // expected-note @+1 {{collapse the dimensions in front of the last to rows}}
  %x = tosa.cast_from_block_scaled %a, %sa {block_size = #tosa.block_size<BLOCK_SIZE_32>}
      : (tensor<?x16x64xf4E2M1FN>, tensor<?x16x2xf8E8M0FNU>) -> tensor<?x16x64xf32>
  return %y, %x : tensor<?x16x32xf32>, tensor<?x16x64xf32>
}
