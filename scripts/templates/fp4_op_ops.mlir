// CHECK-LABEL: func @test_@name@
func.func @test_@name@(%matrix: tensor<?x1024xbf16>) -> tensor<?x1024xbf16> {
  // CHECK: fp4.@name@ %{{.*}} : tensor<?x1024xbf16>
  %same = fp4.@name@ %matrix : tensor<?x1024xbf16>
  return %same : tensor<?x1024xbf16>
}
