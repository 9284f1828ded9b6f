#!/usr/bin/env bash
# Second spellings of a formula, and errors of the compiler without a remedy, are found. lint.sh checks
# the tree itself.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r lib include tools "$scratch"
mkdir "$scratch/wrong"
cp -r lib include tools "$scratch/wrong"
expected=()
refuses() { # a line put at the end of a file; words of the finding
  printf '%s\n' "$1" >> "$scratch/wrong/$2"
  expected+=("$2:$(wc -l < "$scratch/wrong/$2"): error: (spells $3 a second time|must not have $3)")
}
refuses 'auto a = LLVM::InlineAsmOp::create(b);' lib/Conversion/PipeToNVVM/Tcgen05/Mma.cpp 'inline assembly'
refuses 'bool b = model.computeMajor >= 10;' lib/Conversion/PipeToNVVM/Common/Loads.cpp 'versions of architectures'
refuses 'int o = row % 32 * 16;' lib/Numerics/ScaleMatrix.cpp 'the tiled layout of scales'
refuses 'int b = f == numerics::BlockFormat::NVFP4 ? 16 : 32;' lib/Numerics/Quantize.cpp 'comparisons of formats'
for file in lib/Conversion/PipeToNVVM/Tcgen05/Mma.cpp lib/Dialect/Fp4/IR/Signature.cpp lib/KernelArithmetic/HalfOperands.cpp; do
  refuses 'bool t = target.hasTcgen05;' "$file" 'the core of a GEMM'
done
refuses 'bool f = op.hasFloatLhs();' lib/Dialect/Fp4/Transforms/FuseResults.cpp 'the core of a GEMM'
refuses 'plan.swap = true;' lib/Plans/GemmPlans.cpp 'the orientation of a GEMM'
refuses '#ifndef FP4_ISA_SWIZZLE_H' include/fp4/ISA/Swizzle.h 'include guards'
refuses '#include "llvm/ADT/StringRef.h"' lib/ISA/Swizzle.cpp 'LLVM below the compiler'
refuses '#include <sys/mman.h>' lib/Runtime/Session.cpp 'calls of the operating system'
refuses '#include <dlfcn.h>' lib/Sim/Simulator.cpp 'calls of the operating system'
refuses '#include "Sim/State/Warp.h"' lib/Sim/Decode/Insn.h 'an arrow upward from lib/Sim/Decode'
refuses '#include "Sim/Insn/Lanes.h"' lib/Sim/State/Launch.h 'an arrow upward from lib/Sim/State'
refuses '#include "Sim/Run/Scheduler.h"' lib/Sim/Async/Ticket.h 'an arrow upward from lib/Sim/Async'
refuses '#include "Wgmma/Wgmma.h"' lib/Conversion/PipeToNVVM/Tcgen05/Lanes.h 'another core in lib/Conversion/PipeToNVVM/Tcgen05'
# One run finds each wrong line and nothing else, since a run takes seconds.
if python3 lint/check_laws.py "$scratch/wrong" > "$scratch/found"; then
  echo "error: check_laws.py must refuse wrong lines" >&2
  exit 1
fi
for finding in "${expected[@]}"; do
  grep -qxE "$finding" "$scratch/found" || { echo "error: expects '$finding', but found:"; cat "$scratch/found"; exit 1; }
done
[ "$(grep -c ': error: ' "$scratch/found")" == ${#expected[@]} ]
# The passing twins: an arrow downward, the same words in a comment, and with a reason.
printf '%s\n' '#include "Sim/Decode/Insn.h"' >> "$scratch/lib/Sim/Async/Ticket.h"
printf '%s\n' '// row % 32 * 16' 'int o = row % 32 * 16; // law: an example' >> "$scratch/lib/Numerics/ScaleMatrix.cpp"
python3 lint/check_laws.py "$scratch" > /dev/null

# An error without a note, beside those that have one or leave it to their callers.
remedies() { # code of a file; the lines of the findings
  printf '%s\n' "$1" > "$scratch/lib/Target/Added.cpp"
  { python3 lint/check_remedies.py "$scratch" || true; } | grep -o '^lib/.*error' | cut -d: -f2 | xargs
}
[ "$(remedies 'LogicalResult a() {
  return op.emitOpError("must be A");
}
InFlightDiagnostic must(Operation *op) { return op->emitOpError("must "); }
LogicalResult b() {
  if (x)
    return must(op) << "be B";
  auto other = op.emitError("B");
  return other;
}')" == '2 7 8' ]
[ -z "$(remedies 'LogicalResult a() {
  // emitError in a comment
  return withNote(op.emitOpError("must be A"), "write A");
}
InFlightDiagnostic must(Operation *op) { return op->emitOpError("must "); }
LogicalResult b() {
  if (x)
    return withNote(must(op) << "be B", "write B");
  auto other = op.emitError("B");
  other.attachNote() << "write B";
  return check([&] { return op.emitError(); });
}')" ]

# An operation of pipe that one place makes says why it is one; the twin is the tree itself (lint.sh).
sed -i '0,/One producer/s//One maker/' "$scratch/wrong/include/fp4/Dialect/Pipe/IR/PipeChannelOps.td"
if python3 lint/check_producers.py "$scratch/wrong" > "$scratch/found"; then
  echo "error: check_producers.py must refuse an operation with one producer and no reason" >&2
  exit 1
fi
grep -qx "pipe.role is made at 1 place: say 'One producer, ...' in its description" "$scratch/found"
