!q = tensor<1x128x4x64xbf16>
func.func @attention(%q: !q) -> (!q, tensor<1x128x4xf32>, !q) {
  %a, %l = fp4.attention %q, %q, %q scale 0.125 causal : !q, !q, !q -> !q, tensor<1x128x4xf32>
  %b = fp4.attention %q, %q, %q scale 0.125 causal window 4 : !q, !q, !q -> !q
  return %a, %l, %b : !q, tensor<1x128x4xf32>, !q
}
