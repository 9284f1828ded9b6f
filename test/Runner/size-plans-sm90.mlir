// Plans for some sizes only: few rows (max_rows) and multiples of K (depth_unit). Host code does not launch a kernel for
// sizes that its plan does not hold for, however little it would cost. Kernel numbers are those of the plans in the
// list, and the last one is that of fp4.plan.

// RUN: fp4-runner %s --target=sm_90a --multiprocessors=2 --emit=so --ptxas=none -o %t.so
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=512 --check=strict --policy=random | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=130 --dim N=136 --dim K=1024 --check=strict --policy=lazy | FileCheck %s --check-prefixes=CHECK,SECOND
// RUN: fp4-run %t.so --device=sim --function=fp8 --dim M=70 --dim N=72 --dim K=640 --check=strict | FileCheck %s --check-prefixes=CHECK,LAST
// CHECK: passed
// FIRST: matmul_0
// SECOND: matmul_1
// LAST: matmul_2
// CHECK: kernels
// CHECK: equals the {{.*}}, bit for bit
// CHECK: hazards {{.*}}none (strict check)

!a = tensor<?x?xf8E4M3FN>
!s = tensor<?x?xf32>
func.func @fp8(%a: !a {fp4.dims = ["M", "K"]}, %s: !s {fp4.dims = ["M", "K/128"]},
               %b: !a {fp4.dims = ["N", "K"]}, %t: !s {fp4.dims = ["N/128", "K/128"]}) -> tensor<?x?xbf16> {
  %y = fp4.blockscaled_matmul %a scaled %s, %b scaled %t {format = #fp4.format<fp8_block128>,
      fp4.plan = #fp4.plan<tile_product, tile = [128, 64, 128], wave_cost = [99, 9, 9]>, fp4.size_plans = [
        #fp4.plan<tile_product, tile = [64, 32, 256], max_rows = 128, depth_unit = 512, wave_cost = [1, 1, 1]>,
        #fp4.plan<tile_product, tile = [256, 128, 128], depth_unit = 512, wave_cost = [20, 1, 1]>]} : (!a, !s, !a, !s) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}

