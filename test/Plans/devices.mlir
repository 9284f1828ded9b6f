// Plans are chosen for a device of the target: its memory decides how many split-K ranges few rows have. With the policy
// fixed the bits are those of all devices.
// RUN: fp4-opt %s "-fp4-set-target=target=sm_90a device=h100" -fp4-choose-splits | FileCheck %s --check-prefixes=CHECK,H100
// RUN: fp4-opt %s "-fp4-set-target=target=sm_90a device=h200" -fp4-choose-splits | FileCheck %s --check-prefixes=CHECK,H200
// RUN: fp4-opt %s "-fp4-set-target=target=sm_90a device=h200 sms=66" -fp4-choose-splits | FileCheck %s --check-prefix=FIXED
// RUN: fp4-opt %s "-fp4-set-target=target=sm_90a" -fp4-choose-splits | FileCheck %s --check-prefix=FIXED
// RUN: fp4-runner %s --target=sm_90a --plan-device=h200 --emit=mlir --compile-to=planned | FileCheck %s --check-prefix=RUNNER
// RUNNER: #fp4.target<sm_90a, device = h200>
// RUN: not fp4-opt %s "-fp4-set-target=target=sm_120a device=gb10" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: device 'gb10' must be one of target sm_120a, but is one of sm_121a
// OTHER: note: devices of sm_120a: rtx5090
// RUN: not fp4-runner %s --target=sm_90a --plan-device=a100 --emit=mlir --compile-to=planned 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: unknown device 'a100'
// NONE: note: devices of sm_90a: h100, h200

// H100: #fp4.target<sm_90a, device = h100>
// H200: #fp4.target<sm_90a, device = h200>
// CHECK-LABEL: @rows
// H100: dispatch = [#fp4.case<m = [1, 128], split_k = 2 : tile_gemm>,
// H200: dispatch = [#fp4.case<m = [1, 16], split_k = 4 : tile_gemm>, #fp4.case<m = [17, 128], split_k = 2 : tile_gemm>,
!w = tensor<48x64x4608xi8, #fp4.weight_layout<wgmma>>
func.func @rows(%x: tensor<?x4096xbf16>, %w: !w) -> tensor<?x6144xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fastest>}
      : (tensor<?x4096xbf16>, !w) -> tensor<?x6144xbf16>
  return %y : tensor<?x6144xbf16>
}

// CHECK-LABEL: @fixed
// CHECK: work = #fp4.work<split_k = 4>
// FIXED-LABEL: @fixed
// FIXED: work = #fp4.work<split_k = 4>
func.func @fixed(%x: tensor<?x4096xbf16>, %w: !w) -> tensor<?x6144xbf16> {
  %y = fp4.matmul %x, %w {work = #fp4.work<split_k = fixed>}
      : (tensor<?x4096xbf16>, !w) -> tensor<?x6144xbf16>
  return %y : tensor<?x6144xbf16>
}
