// CHECK-LABEL: func.func @test_@name@
func.func @test_@name@() {
  // CHECK: pipe.@name@ 4
  pipe.@name@ 4
  return
}
