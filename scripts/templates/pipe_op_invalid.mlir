// Rules of pipe.@name@: one case for each, next to a legal operation.
// RUN: fp4-opt %s -verify-diagnostics -split-input-file

func.func @count() {
  pipe.@name@ 1
  // (@label@)
  // expected-error @+2 {{count must be at least 1, but got 0}}
  // expected-note @+1 {{leave the operation out where there is nothing to count}}
  pipe.@name@ 0
  return
}
