// fp4-opt --@flag@
// expected-remark @+1 {{has 2 operations of dialect pipe}}
module {
  func.func @scalars(%p: !pipe.global<f32>, %q: !pipe.global<f32>) {
    %a = pipe.load_entry %p : !pipe.global<f32> -> f32
    %b = pipe.load_entry %q : !pipe.global<f32> -> f32
    return
  }
}
