// Rows of groups that only the device has. Rows that decrease, are not there, or are also those of another group
// are reported by name with the group and its rows, wherever the device finds them: where a kernel makes a table
// of groups, and where a kernel searches few of them itself. The reference, which reports them too, does not
// run. The strict check does: nothing outside of the operands is read or written.
// RUN: split-file %s %t
// RUN: %python %t/write.py %t
// RUN: fp4-runner %t/fp4.mlir --target=sm_100a --emit=so -o %t/fp4.so
// RUN: fp4-runner %t/fp4.mlir --target=sm_120a --emit=so -o %t/fp4_sm_120a.so
// RUN: fp4-runner %t/weights.mlir --target=sm_90a --emit=so -o %t/weights.so
// RUN: fp4-runner %t/p.mlir --target=sm_100a --emit=so -o %t/sm_100a.so
// RUN: fp4-runner %t/p.mlir --target=sm_90a --emit=so -o %t/sm_90a.so
// RUN: %python %t/run.py %t | FileCheck %t/p.mlir

//--- p.mlir
// Each library is told offsets that are right, and then those that are not.
// CHECK: fp4 right: 0
// CHECK-NEXT: fp4 negative: 2 error: operand 'offsets' of the matmul at fp4.mlir:{{[0-9]+:[0-9]+}} must not be negative, but group 0 begins at row -7
// CHECK-NEXT: fp4 decreasing: 2 error: operand 'offsets' of the matmul at fp4.mlir:{{[0-9]+:[0-9]+}} must not decrease, but group 1 begins at row 40 and ends at row 20
// CHECK-NEXT: fp4 exceeding: 2 error: operand 'offsets' of the matmul at fp4.mlir:{{[0-9]+:[0-9]+}} must not exceed the 70 rows of the matrix, but group 2 begins at row 30 and ends at row 71
// CHECK-NEXT: fp4 large: 2 error: operand 'offsets' {{.*}} must not exceed the 70 rows of the matrix, but group 0 begins at row 0 and ends at row 9223372036854775807
// CHECK: warps right: 0
// CHECK-NEXT: warps negative: 2 error: {{.*}}group 0 begins at row -7
// CHECK-NEXT: warps decreasing: 2 error: {{.*}}group 1 begins at row 40 and ends at row 20
// CHECK-NEXT: warps exceeding: 2 error: {{.*}}70 rows of the matrix, but group 2 begins at row 30 and ends at row 71
// CHECK-NEXT: warps large: 2 error: {{.*}}group 0 begins at row 0 and ends at row 9223372036854775807
// CHECK: weights right: 0
// CHECK-NEXT: weights negative: 2 error: {{.*}}group 0 begins at row -7
// CHECK-NEXT: weights decreasing: 2 error: {{.*}}group 1 begins at row 40 and ends at row 20
// CHECK-NEXT: weights exceeding: 2 error: {{.*}}70 rows of the matrix, but group 2 begins at row 30 and ends at row 71
// CHECK-NEXT: weights large: 2 error: {{.*}}group 0 begins at row 0 and ends at row 9223372036854775807
// CHECK: lanes right: 0
// CHECK-NEXT: lanes negative: 2 error: {{.*}}group 0 begins at row -7
// CHECK-NEXT: lanes decreasing: 2 error: {{.*}}group 1 begins at row 40 and ends at row 20
// CHECK-NEXT: lanes exceeding: 2 error: {{.*}}70 rows of the matrix, but group 2 begins at row 30 and ends at row 71
// CHECK-NEXT: lanes large: 2 error: {{.*}}group 0 begins at row 0 and ends at row 9223372036854775807
// CHECK: searched right: 0
// CHECK-NEXT: searched negative: 2 error: {{.*}}group 0 begins at row -7
// CHECK-NEXT: searched decreasing: 2 error: {{.*}}group 1 begins at row 40 and ends at row 20
// CHECK-NEXT: searched exceeding: 2 error: {{.*}}70 rows of the matrix, but group 2 begins at row 30 and ends at row 71
// CHECK-NEXT: searched large: 2 error: {{.*}}group 0 begins at row 0 and ends at row 9223372036854775807
// CHECK: many right: 0
// CHECK-NEXT: many exceeding: 2 error: {{.*}}70 rows of the matrix, but group 8 begins at row 9 and ends at row 4294967300

!lhs = !fp4.scaled<fp8_block128, tensor<70x128xf8E4M3FN>, tensor<70x1xf32>>
!rhs = !fp4.scaled<fp8_block128, tensor<24x128xf8E4M3FN>, tensor<3x1xf32>>
// A range without rows may be anywhere.
// CHECK: ranges right: 0
// CHECK-NEXT: ranges overlapping: 2 error: {{.*}}no row in common, but group 1 begins at row 19 and ends at row 30, and the groups before it end at row 20
// CHECK-NEXT: ranges exceeding: 2 error: {{.*}}70 rows of the matrix, but group 1 begins at row 60 and ends at row 71
// CHECK: unspecified right: 0
// CHECK-NEXT: unspecified overlapping: 2 error: {{.*}}no row in common, but group 1 begins at row 19 and ends at row 30
// CHECK-NEXT: unspecified exceeding: 2 error: {{.*}}70 rows of the matrix, but group 1 begins at row 60 and ends at row 71
// CHECK: lane-ranges right: 0
// CHECK-NEXT: lane-ranges overlapping: 2 error: {{.*}}no row in common, but group 1 begins at row 19 and ends at row 30, and the groups before it end at row 20
// CHECK-NEXT: lane-ranges exceeding: 2 error: {{.*}}70 rows of the matrix, but group 1 begins at row 60 and ends at row 71
func.func @fp8(%a: tensor<70x128xf8E4M3FN>, %sa: tensor<70x1xf32>, %b: tensor<24x128xf8E4M3FN>, %sb: tensor<3x1xf32>,
               %o: tensor<4xi64> {fp4.name = "o"}) -> tensor<70x8xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o : (!lhs, !rhs, tensor<4xi64>) -> tensor<70x8xbf16>
  return %y : tensor<70x8xbf16>
}
!rhs2 = !fp4.scaled<fp8_block128, tensor<72x128xf8E4M3FN>, tensor<9x1xf32>>
func.func @many(%a: tensor<70x128xf8E4M3FN>, %sa: tensor<70x1xf32>, %b: tensor<72x128xf8E4M3FN>, %sb: tensor<9x1xf32>,
                %o: tensor<10xi64> {fp4.name = "o"}) -> tensor<70x8xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs2
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs2, tensor<10xi64>) -> tensor<70x8xbf16>
  return %y : tensor<70x8xbf16>
}
func.func @ranges(%a: tensor<70x128xf8E4M3FN>, %sa: tensor<70x1xf32>, %b: tensor<24x128xf8E4M3FN>, %sb: tensor<3x1xf32>,
                  %o: tensor<3x2xi64> {fp4.name = "o"}) -> tensor<70x8xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o
      : (!lhs, !rhs, tensor<3x2xi64>) -> tensor<70x8xbf16>
  return %y : tensor<70x8xbf16>
}
// If no rows are cleared, the kernel checks nonetheless.
func.func @unspecified(%a: tensor<70x128xf8E4M3FN>, %sa: tensor<70x1xf32>, %b: tensor<24x128xf8E4M3FN>, %sb: tensor<3x1xf32>,
                       %o: tensor<3x2xi64> {fp4.name = "o"}) -> tensor<70x8xbf16> {
  %a_scaled = fp4.scaled %a, %sa : !lhs
  %b_scaled = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %a_scaled, %b_scaled offsets %o {work = #fp4.work<unspecified_rows>}
      : (!lhs, !rhs, tensor<3x2xi64>) -> tensor<70x8xbf16>
  return %y : tensor<70x8xbf16>
}

//--- fp4.mlir
!s = tensor<384x4xf8E4M3FN, #fp4.scale_layout<tiled_128x4>>
!lhs = !fp4.scaled<nvfp4, tensor<70x64xf4E2M1FN>, !s>
!rhs = !fp4.scaled<nvfp4, tensor<24x64xf4E2M1FN>, !s>
func.func @fp4(%q: tensor<70x64xf4E2M1FN>, %s: !s, %w: tensor<24x64xf4E2M1FN>, %sw: !s, %o: tensor<4xi64> {fp4.name = "o"})
    -> tensor<70x8xbf16> {
  %q_scaled = fp4.scaled %q, %s : !lhs
  %w_scaled = fp4.scaled %w, %sw : !rhs
  %y = fp4.matmul %q_scaled, %w_scaled offsets %o : (!lhs, !rhs, tensor<4xi64>) -> tensor<70x8xbf16>
  return %y : tensor<70x8xbf16>
}

//--- weights.mlir
!p = tensor<3x1x4608xi8, #fp4.weight_layout<wgmma>>
func.func @fp4(%x: tensor<70x64xbf16>, %p: !p, %o: tensor<4xi64> {fp4.name = "o"}) -> tensor<70x128xbf16> {
  %y = fp4.matmul %x, %p offsets %o : (tensor<70x64xbf16>, !p, tensor<4xi64>) -> tensor<70x128xbf16>
  return %y : tensor<70x128xbf16>
}

//--- cases.py
FOUR = {"right": [3, 40, 40, 70], "negative": [-7, 40, 40, 70], "decreasing": [0, 40, 20, 99],
        "exceeding": [0, 30, 30, 71], "large": [0, 2**63 - 1, 2**63 - 1, 2**63 - 1]}
NINE = {"right": [*range(9), 70], "exceeding": [1, 2, 3, 4, 5, 6, 7, 8, 9, 2**32 + 4]}
RANGES = {"right": [[0, 20], [0, 0], [20, 70]], "overlapping": [[0, 20], [19, 30], [5, 9]],
          "exceeding": [[0, 20], [60, 71], [70, 70]]}
CASES = {"fp4": ("fp4", "fp4", FOUR), "warps": ("fp4_sm_120a", "fp4", FOUR), "weights": ("weights", "fp4", FOUR), "lanes": ("sm_100a", "fp8", FOUR), "searched": ("sm_90a", "fp8", FOUR),
         "many": ("sm_90a", "many", NINE), "ranges": ("sm_90a", "ranges", RANGES),
         "unspecified": ("sm_90a", "unspecified", RANGES), "lane-ranges": ("sm_100a", "ranges", RANGES)}

//--- write.py
import sys

import numpy

sys.path.insert(0, sys.argv[1])
import cases

for case, (_, _, offsets) in cases.CASES.items():
    for name, numbers in offsets.items():
        numpy.save(f"{sys.argv[1]}/{case}-{name}.npy", numpy.array(numbers, dtype=numpy.int64))

//--- run.py
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import cases

for case, (library, function, offsets) in cases.CASES.items():
    for name in offsets:
        ran = subprocess.run(["fp4-run", f"{sys.argv[1]}/{library}.so", f"--function={function}", "--device=sim",
                              "--check=strict", "--policy=random", "--no-verify", "--input",
                              f"o={sys.argv[1]}/{case}-{name}.npy"], capture_output=True, text=True)
        print(f"{case} {name}: {ran.returncode}", *ran.stderr.splitlines()[:1])
