// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Shares of the work of a matmul: one case per constraint. The first attribute of a case is legal, the
// second differs from it in what the constraint is about.

module attributes {test.work = #fp4.work<split_k = 4>} {}
// work (C1)
// expected-error @+2 {{expects split_k, stream_k, groups, expected_rows or unspecified_rows, but got splits}}
// expected-note @+1 {{write #fp4.work<split_k = 4>, for example}}
module attributes {test.work = #fp4.work<splits = 4>} {}

// -----

module attributes {test.work = #fp4.work<split_k = 4>} {}
// work (C1)
// expected-error @+2 {{expects each member once, but got 'split_k' again}}
// expected-note @+1 {{leave one of them out}}
module attributes {test.work = #fp4.work<split_k = 4, split_k = 2>} {}

// -----

module attributes {test.work = #fp4.work<stream_k = [132, 128, 128], split_k = 1>} {}
// work (C2)
// expected-error @+2 {{expects no 'split_k' beside 'stream_k'}}
// expected-note @+1 {{leave 'stream_k' out}}
module attributes {test.work = #fp4.work<stream_k = [132, 128, 128], split_k = 2>} {}

// -----

module attributes {test.work = #fp4.work<stream_k = [132, 128, 128]>} {}
// work (C2)
// expected-error @+2 {{expects no 'groups' beside 'stream_k'}}
// expected-note @+1 {{leave 'stream_k' out}}
module attributes {test.work = #fp4.work<stream_k = [132, 128, 128], groups = [128]>} {}

// -----

module attributes {test.work = #fp4.work<split_k = 32>} {}
// work (C3)
// expected-error @+2 {{'split_k' must be 1 to 32, but got 33}}
// expected-note @+1 {{leave 'split_k' out for one part}}
module attributes {test.work = #fp4.work<split_k = 33>} {}

// -----

module attributes {test.work = #fp4.work<expected_rows = 1>} {}
// work (C3)
// expected-error @+2 {{'expected_rows' must be positive, but got 0}}
// expected-note @+1 {{leave it out where nothing is known of the rows}}
module attributes {test.work = #fp4.work<expected_rows = 0>} {}

// -----

module attributes {test.work = #fp4.work<split_k = fastest>} {}
// work (C1)
// expected-error @+2 {{expects split_k to be a number, fastest or fixed, but got slowest}}
// expected-note @+1 {{write split_k = 4, for example}}
module attributes {test.work = #fp4.work<split_k = slowest>} {}

// -----

module attributes {test.work = #fp4.work<stream_k = [132, 128, 128]>} {}
// work (C2)
// expected-error @+2 {{expects no 'split_k' beside 'stream_k'}}
// expected-note @+1 {{leave 'stream_k' out}}
module attributes {test.work = #fp4.work<stream_k = [132, 128, 128], split_k = fastest>} {}

// -----

module attributes {test.work = #fp4.work<split_k = 4>} {}
// work (C4)
// expected-error @+2 {{expects split_k to be a number, fastest or fixed, but got a list}}
// expected-note @+1 {{a factor by rows is that of a case: dispatch = [#fp4.case<m = [1, 64], split_k = 3 : tile_gemm>, #fp4.case<m = [65, ?] : tile_gemm>]}}
module attributes {test.work = #fp4.work<split_k = [4, 3, 2]>} {}

// -----

module attributes {test.work = #fp4.work<split_k = 4>} {}
// work (C4)
// expected-error @+2 {{expects no member 'split_rows'}}
// expected-note @+1 {{a factor by rows is that of a case: dispatch = }}
module attributes {test.work = #fp4.work<split_k = 4, split_rows = 64>} {}
