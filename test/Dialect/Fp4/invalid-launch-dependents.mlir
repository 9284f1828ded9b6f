// RUN: fp4-opt %s -split-input-file -verify-diagnostics
// The labels (C1), ... are those of Fp4Constraints.td.

// launch_dependents (C1)
// expected-error @+2 {{attribute fp4.pdl must be a place such as #fp4.launch_dependents<before_wait>, but got unit}}
// expected-note @+1 {{the places are before_wait, in_turn, behind_loads and at_end; a launch without PDL has no fp4.pdl}}
func.func private @unit() attributes {fp4.pdl}

// -----

// launch_dependents (C1)
// expected-error @+2 {{attribute fp4.pdl must be a place such as #fp4.launch_dependents<before_wait>, but got "in_turn"}}
// expected-note @+1 {{the places are before_wait, in_turn, behind_loads and at_end; a launch without PDL has no fp4.pdl}}
func.func private @text() attributes {fp4.pdl = "in_turn"}

// -----

// launch_dependents (C1)
// expected-error @+2 {{attribute fp4.pdl must be a place such as #fp4.launch_dependents<before_wait>, but got #fp4.launch_dependents<none>}}
// expected-note @+1 {{the places are before_wait, in_turn, behind_loads and at_end; a launch without PDL has no fp4.pdl}}
func.func private @none() attributes {fp4.pdl = #fp4.launch_dependents<none>}

// -----

func.func private @right() attributes {fp4.pdl = #fp4.launch_dependents<in_turn>}
