func.func @test_@name@() {
  pipe.@name@ 4
  return
}
