// More groups than a CTA of the kernel that makes their table has threads. Warps add up the groups of their lanes, and
// the second CTA those of the first. Groups are empty, of few rows, and of several tiles. The
// first of several wrong groups is reported, whether the others are those of its lane, of another lane, or of another CTA.
// RUN: split-file %s %t
// RUN: %python %t/write.py %t
// RUN: fp4-runner %t/p.mlir --target=sm_90a --emit=so -o %t/p.so
// RUN: %python %t/run.py %t | FileCheck %t/p.mlir

//--- p.mlir
// CHECK: offsets right: 0
// CHECK-SAME: equals the wgmma model, bit for bit
// CHECK: offsets late: 2 error: {{.*}}400 rows of the matrix, but group 140 begins at row {{[0-9]+}} and ends at row 401
// CHECK: offsets several: 2 error: {{.*}}must not decrease, but group 5 begins at row 300 and ends at row 0
// CHECK: ranges right: 0
// CHECK-SAME: equals the wgmma model, bit for bit
// CHECK: ranges overlapping: 2 error: {{.*}}no row in common, but group 50 begins at row 60 and ends at row 61, and the groups before it end at row 90
// CHECK: ranges ctas: 2 error: {{.*}}no row in common, but group 130 begins at row 60 and ends at row 61, and the groups before it end at row 90
!a = tensor<400x128xf8E4M3FN>
!b = tensor<1200x128xf8E4M3FN>
!lhs = !fp4.scaled<fp8_block128, !a, tensor<400x1xf32>>
!rhs = !fp4.scaled<fp8_block128, !b, tensor<150x1xf32>>
func.func @offsets(%a: !a, %sa: tensor<400x1xf32>, %b: !b, %sb: tensor<150x1xf32>, %o: tensor<151xi64> {fp4.name = "o"}) -> tensor<400x8xbf16> {
  %x = fp4.scaled %a, %sa : !lhs
  %w = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %x, %w offsets %o : (!lhs, !rhs, tensor<151xi64>) -> tensor<400x8xbf16>
  return %y : tensor<400x8xbf16>
}
func.func @ranges(%a: !a, %sa: tensor<400x1xf32>, %b: !b, %sb: tensor<150x1xf32>, %o: tensor<150x2xi64> {fp4.name = "o"}) -> tensor<400x8xbf16> {
  %x = fp4.scaled %a, %sa : !lhs
  %w = fp4.scaled %b, %sb : !rhs
  %y = fp4.matmul %x, %w offsets %o : (!lhs, !rhs, tensor<150x2xi64>) -> tensor<400x8xbf16>
  return %y : tensor<400x8xbf16>
}

//--- cases.py
import itertools

ROWS = [(7 * group) % 4 // 2 + (130 if group in (6, 131) else 0) for group in range(150)]
ENDS = list(itertools.accumulate(ROWS, initial=0))
SEVERAL = ENDS[:5] + [300, 0, 7, 3] + ENDS[9:140] + [401] * 11
APART = [[begin, end] for begin, end in zip(ENDS, ENDS[1:])]


def ranges(**found):
    """Empty groups but for some."""
    return [found.get(f"g{group}", [0, 0]) for group in range(150)]


CASES = {"offsets": {"right": ENDS, "late": ENDS[:141] + [401] * 10, "several": SEVERAL},
         "ranges": {"right": APART, "overlapping": ranges(g10=[50, 90], g50=[60, 61], g51=[62, 63], g140=[-1, 4]),
                    "ctas": ranges(g10=[50, 90], g130=[60, 61], g149=[5, 401])}}

//--- write.py
import sys

import numpy

sys.path.insert(0, sys.argv[1])
import cases

for function, found in cases.CASES.items():
    for name, numbers in found.items():
        numpy.save(f"{sys.argv[1]}/{function}-{name}.npy", numpy.array(numbers, dtype=numpy.int64))

//--- run.py
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
import cases

for function, found in cases.CASES.items():
    for name in found:
        verify = [] if name == "right" else ["--no-verify"]
        ran = subprocess.run(["fp4-run", f"{sys.argv[1]}/p.so", f"--function={function}", "--device=sim",
                              "--check=strict", "--policy=random", *verify, "--input",
                              f"o={sys.argv[1]}/{function}-{name}.npy"], capture_output=True, text=True)
        said = ran.stderr.splitlines()[:1] or [line for line in ran.stdout.splitlines() if " r0 " in line]
        print(f"{function} {name}: {ran.returncode}", *said)
