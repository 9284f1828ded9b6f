// RUN: %fp4-opt-once %s -split-input-file -verify-diagnostics
// Devices of a target. The first attribute of a case is legal, the second differs in one place.

module attributes {test.target = #fp4.target<sm_90a, device = h200, sms = 66>} {}
// #fp4.target (C3)
// expected-error @+2 {{unknown device 'h300'}}
// expected-note @+1 {{devices of sm_90a: h100, h200}}
module attributes {test.target = #fp4.target<sm_90a, device = h300, sms = 66>} {}

// -----

module attributes {test.target = #fp4.target<sm_100a, device = b200>} {}
// #fp4.target (C3)
// expected-error @+2 {{device 'h200' must be one of target sm_100a, but is one of sm_90a}}
// expected-note @+1 {{devices of sm_100a: b200}}
module attributes {test.target = #fp4.target<sm_100a, device = h200>} {}

// -----

module attributes {test.target = #fp4.target<sm_110a>} {}
// #fp4.target (C3)
// expected-error @+2 {{unknown device 'thor'}}
// expected-note @+1 {{the target has no rows of devices: leave 'device' out}}
module attributes {test.target = #fp4.target<sm_110a, device = thor>} {}

// -----

module attributes {test.target = #fp4.target<sm_121a, device = gb10>} {}
// expected-error @+2 {{a target has no field 'gpu'}}
// expected-note @+1 {{sms = N is the number of SMs that kernels may fill, and device = NAME the product that plans are for}}
module attributes {test.target = #fp4.target<sm_121a, gpu = gb10>} {}

// -----

module attributes {test.target = #fp4.target<sm_90a, sms = 66, device = h200>} {}
// expected-error @+2 {{field 'device' must be given once}}
// expected-note @+1 {{remove all but one of them}}
module attributes {test.target = #fp4.target<sm_90a, device = h100, device = h200>} {}

// -----

// expected-error @+2 {{field 'sms' must be given once}}
// expected-note @+1 {{remove all but one of them}}
module attributes {test.target = #fp4.target<sm_90a, sms = 66, sms = 66>} {}
