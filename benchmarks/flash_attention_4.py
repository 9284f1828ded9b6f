#!/usr/bin/env python3
"""Predicts FlashAttention-4's forward on a B200, the peer of `blackwell.py plans --only attention`.

  PYTHON benchmarks/flash_attention_4.py WIDTH [--length TOKENS] [--build BUILD] [--ptx X.Y]

PYTHON has flash-attn-4 and a torch for CPUs (integration_test/foreign/corpus/corpus.py makes such a
folder). As in blackwell.py, there are 16384 tokens in all and 2048 elements of all heads. Numbers
are zeros, so that no sums are scaled. `fp4-sim run` predicts 1.965 GHz, a cold L2 and 0.5 us of
launch, with instructions counted in what ptxas makes. A ptxas older than the PTX of the CuTe DSL
takes it as X.Y.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKENS, ELEMENTS = 16384, 2048

#: ptxas {0} of any PTX as that of version {1}.
PTXAS = r"""#!/bin/sh
for word; do
  if [ -f "$word" ] && head -c 2000 "$word" | grep -q '^\.version'; then
    sed -i 's/^\.version .*/.version {1}/' "$word"
  fi
done
exec {0} "$@"
"""


def call(options):
    """Runs the kernel in the simulator."""
    import torch
    from flash_attn.cute import flash_attn_func
    shape = (TOKENS // options.length, options.length, ELEMENTS // options.width, options.width)
    flash_attn_func(*(torch.zeros(shape, dtype=torch.bfloat16).to("cuda") for _ in range(3)))


def predict(options, folder):
    """Returns the seconds of the only kernel."""
    there = os.environ | {"PYTHONPATH": f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"}
    if options.ptx:
        ptxas = folder / "ptxas"
        ptxas.write_text(PTXAS.format(there.get("FP4_PTXAS", "ptxas"), options.ptx))
        ptxas.chmod(0o755)
        there["FP4_PTXAS"] = str(ptxas)
    found = subprocess.run([options.build / "bin/fp4-sim", "run", "--device=b200", "--time-only", "--mix=cubin", "--check=off", "--",
                            sys.executable, "-m", "fp4.sim.script", "1", "1", __file__, *sys.argv[1:], "--call"],
                           capture_output=True, text=True, check=False, env=there)
    times = re.findall(r"predicted\s+([\d.]+) us", found.stdout + found.stderr)
    if found.returncode or len(times) != 1:
        sys.exit(f"{found.stdout}{found.stderr}error: expects the time of one kernel, but got {len(times)}")
    return float(times[0]) * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("width", type=int, choices=(64, 128))
    parser.add_argument("--length", type=int, default=4096, metavar="TOKENS")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ptx", metavar="X.Y")
    parser.add_argument("--call", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        call(options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        seconds = predict(options, pathlib.Path(scratch))
    flops = 4.0 * TOKENS * options.length * ELEMENTS
    print(f"{seconds * 1e6:.1f} us, {flops / seconds / 1e12:.0f} TFLOP/s (predicted)")


if __name__ == "__main__":
    main()
