#!/usr/bin/env python3
"""Counts the machine instructions with which a GEMM of prepacked weights decodes a weight.

  fp4-runner f.mlir --target=sm_90a --emit=cubin -o f.cubin
  validation/decode_count.py f.cubin               instructions per weight, and how many there are
                                                   of each
  validation/decode_count.py f.cubin --most=1.75   fails where there are more

The decoding is what the warps execute beside HGMMA instructions, without a branch, up to the last
of them: loads of codes and scales from shared memory, their conversion and whatever else is there,
but for WARPGROUP and uniform instructions, with which HGMMA are ordered and get their descriptors.
Other instructions that do not serve the weights are counted apart: the barriers and fences of the
stages, and loads of activations. An HGMMA has 8 weights of each thread. Beside activations of e4m3
the instruction is QGMMA and has 16. GEMMs of 8 rows have HMMA, with 8 weights.

Needs nvdisasm: on PATH, in $NVDISASM, or build/toolchain (utils/setup.sh fetches it).
"""
import argparse
import collections
import re
import subprocess
import sys

import sass_count

INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*([A-Z][\w.]*)")

# Barriers and fences of the stages, the election of who signals them, and the activations of GEMMs
# of warps. The instructions are known by name: a decoder that compares or exchanges would not be
# counted whole.
APART = ("SYNCS", "MEMBAR", "FENCE", "ISETP", "PLOP3", "SHFL", "R2UR", "LDSM")


def decoding(listing):
    """The mnemonics from the last label, or branch, before the first HGMMA up to the last HGMMA
    before the next, and the weights that a thread has of these HGMMA."""
    before, since, products, weights = [], [], 0, 0  # names of HGMMA's helpers begin with U or W
    for line in listing.splitlines():
        match = INSTRUCTION.match(line)
        if line.startswith(".L") or (match and match.group(1).split(".")[0] in ("BRA", "BSYNC")):
            if products:
                break
            since = []
        elif match and match.group(1).startswith(("HGMMA", "QGMMA", "HMMA")):
            products += 1
            weights += 16 if match.group(1).startswith("QGMMA") else 8
            before, since = before + since, []
        elif match and match.group(1)[0] not in "UW":
            since.append(match.group(1).split(".")[0])
    return before, weights


def show(words, names, weights):
    counts = ", ".join(f"{name} {count}" for name, count in collections.Counter(names).most_common())
    print(f"{len(names) / weights:.2f} {words}: {counts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubin")
    parser.add_argument("--most", type=float, help="instructions per weight")
    options = parser.parse_args()
    listing = subprocess.run([sass_count.find_nvdisasm(), "-c", options.cubin], check=True,
                             capture_output=True, text=True).stdout
    before, weights = decoding(listing)
    if not weights:
        sys.exit(f"error: '{options.cubin}' must have HGMMA, QGMMA or HMMA instructions, but has none")
    of_weights = [name for name in before if name not in APART]
    per_weight = len(of_weights) / weights
    show("instructions per weight", of_weights, weights)
    show("more, not of weights", [name for name in before if name in APART], weights)
    if options.most is not None and per_weight > options.most:
        sys.exit(f"error: '{options.cubin}' must have at most {options.most} instructions per weight, "
                 f"but has {per_weight:.2f}")


if __name__ == "__main__":
    main()
