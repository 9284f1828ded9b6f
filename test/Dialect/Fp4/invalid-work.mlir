// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Shares of the work of a matmul: one case per constraint. The first attribute of a case is legal, the
// second differs from it in what the constraint is about.

module attributes {test.work = #fp4.work<split_k = 4, split_rows = 16>} {}
// work (C1)
// expected-error @+2 {{expects split_k, split_rows, stream_k, groups, expected_rows or unspecified_rows, but got splits}}
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
// expected-error @+2 {{expects split_k to be a number, a list of numbers, fastest or fixed, but got slowest}}
// expected-note @+1 {{write split_k = 4, for example}}
module attributes {test.work = #fp4.work<split_k = slowest>} {}

// -----

module attributes {test.work = #fp4.work<split_k = [4, 3, 2], split_rows = [16, 64]>} {}
// work (C4)
// expected-error @+2 {{'split_rows' must be positive, ascend, and have a number for each factor of 'split_k', or for all but the last, but got [64, 16] beside the factors [4, 3, 2]}}
// expected-note @+1 {{such as split_k = [3, 2], split_rows = 64: 3 up to 64 rows, else 2}}
module attributes {test.work = #fp4.work<split_k = [4, 3, 2], split_rows = [64, 16]>} {}

// -----

module attributes {test.work = #fp4.work<split_k = [4, 3], split_rows = [16, 64]>} {}
// work (C4)
// expected-error @+2 {{but got [16] beside the factors [4, 3, 2]}}
// expected-note @+1 {{such as split_k}}
module attributes {test.work = #fp4.work<split_k = [4, 3, 2], split_rows = 16>} {}

// -----

module attributes {test.work = #fp4.work<stream_k = [132, 128, 128]>} {}
// work (C2)
// expected-error @+2 {{expects no 'split_k' beside 'stream_k'}}
// expected-note @+1 {{leave 'stream_k' out}}
module attributes {test.work = #fp4.work<stream_k = [132, 128, 128], split_k = fastest>} {}

// -----

module attributes {test.work = #fp4.work<split_k = fixed>} {}
// work (C4)
// expected-error @+2 {{expects no 'split_rows' beside 'split_k' = fixed}}
// expected-note @+1 {{leave it out: the policy chooses rows too}}
module attributes {test.work = #fp4.work<split_k = fixed, split_rows = 64>} {}

// -----

module attributes {test.work = #fp4.work<split_k = [2, 32], split_rows = 64>} {}
// work (C3)
// expected-error @+2 {{'split_k' must be 1 to 32, but got 33}}
// expected-note @+1 {{leave 'split_k' out for one part}}
module attributes {test.work = #fp4.work<split_k = [2, 33], split_rows = 64>} {}
