// A GEMM of @lhs@ times @rhs@ on @target@, with residues in M and N, in the simulator with its strict
// hazard check. The result equals the model of the target's instructions, bit for bit.

// RUN: fp4-runner %s --device=sim --target=@target@ --check=strict --policy=random | FileCheck %s
// RUN: fp4-runner %s --device=sim --target=@target@ --check=strict --policy=lazy --seed=2 | FileCheck %s
// CHECK: passed
// CHECK: y {{.*}}equals the {{.*}}, bit for bit
// CHECK: hazards {{.*}}none (strict check)

@program@
