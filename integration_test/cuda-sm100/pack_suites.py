#!/usr/bin/env python3
"""Writes suites.json of the kit: for each target the suites of fp4-cts that it has, with hashes of their images.

  pack_suites.py --build BUILD FOLDER TARGET...

The images are the simulator's. A suite whose PTX names sm_90a is for sm_90a alone; the others are PTX that the driver
of any later GPU assembles.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def suites_of(cts: pathlib.Path) -> list[str]:
    listed = subprocess.run([cts, "--gtest_list_tests"], capture_output=True, text=True, check=True,
                            env=os.environ | {"FP4_DEVICE": "sim"}).stdout
    return [line.rstrip(".").split(".")[0] for line in listed.splitlines() if line and line[0] not in " d" and "Fault" not in line]


def simulate(cts: pathlib.Path, suite: str, scratch: pathlib.Path) -> tuple[dict[str, str], bool]:
    """Hashes of the images, and whether another target than sm_90a can run it."""
    images, ptx = scratch / "images", scratch / "ptx"
    environment = {"FP4_DEVICE": "sim", "FP4_IMAGES": str(images), "FP4_PTX": str(ptx), "FP4_PTX_FOLDER": "."}
    ran = subprocess.run([cts, "--gtest_brief=1", f"--gtest_filter={suite}.*"], capture_output=True, text=True, check=False,
                         env=os.environ | environment, cwd=cts.parent)
    if ran.returncode:
        print(f"suite {suite} is left out: {ran.stdout.strip().splitlines()[-1]}")
        return {}, False
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(images.glob("*.bin"))}
    return hashes, not any(".target sm_90a" in path.read_text() for path in ptx.glob("*.ptx"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args()
    found: dict[str, dict[str, dict[str, str]]] = {target: {} for target in options.targets}
    cts = (options.build / "unittests/fp4-cts").resolve()
    for suite in suites_of(cts):
        with tempfile.TemporaryDirectory() as scratch:
            hashes, portable = simulate(cts, suite, pathlib.Path(scratch))
        for target in options.targets if portable else [t for t in options.targets if t == "sm_90a"]:
            if hashes:
                found[target][suite] = hashes
    (options.folder / "suites.json").write_text(json.dumps(found) + "\n")
    print("suites: " + ", ".join(f"{target} {len(suites)}" for target, suites in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
