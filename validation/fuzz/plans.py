#!/usr/bin/env python3
"""Draws plans for small programs, compiles each and runs it in the simulator.

  validation/fuzz/plans.py [--build build] [--cases 500] [--first 0] [--seed 1] [--jobs 1]
  validation/fuzz/plans.py --reproduce NUMBER [--seed 1]    one case, with what fp4-runner prints

A plan is either refused with a located error (exit code 3; code 2 where its text is no plan), or its
kernel equals the reference under the strict hazard check (exit code 0). Everything else is a failure: another exit code, a signal, a
case that takes over a minute, an error without a place. Case i depends on the seed and i alone.
Prints every failure with the command that repeats it, then "N passed, N failed", and of the passed
ones how many ran and how many were refused.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "validation"))
import sweep  # noqa: E402
import sweep_fp8  # noqa: E402
import sweep_groups  # noqa: E402
import sweep_results  # noqa: E402
import sweep_weights  # noqa: E402
import sweep_wide  # noqa: E402

SECONDS = 60
TARGETS = ["sm_100a", "sm_103a", "sm_120a", "sm_90a"]
ROWS = [1, 40, 129, 300]
ORDERS = ["along_m", "along_n", "panels<1>", "panels<2>", "panels<7>"]
DEPTHS = ["", " depth 1", " depth 2", " depth 3", " depth 9"]
ENGINES = ["tma", "tensor", "scale_copy", "threads", "convert", "scheduler"]
SMALL = [1, 2, 3, 4, 5, 8, 9, 16]
TILE = {0: [8, 16, 64, 128, 256, 192, 512, 24], 1: [8, 16, 32, 64, 96, 128, 192, 256, 48, 272],
        2: [32, 64, 128, 256, 512, 768, 1024, 96]}
STREAM_THREADS = [32, 64, 96, 128, 256, 512, 1024, 33, 2048]


def layer(rng):
    fmt = rng.choice(["nvfp4", "mxfp4"])
    return sweep.program(fmt, rng.choice(sweep.RESULTS), rng.choice(["fp4", "bf16"]), "chosen",
                         rng.choice(["?", *map(str, ROWS)]), rng.choice(sweep.N), rng.choice([64, 256, 288, 1024]))


def groups(rng):
    form = rng.choice(["groups", "offsets", "split"])
    return sweep_groups.program(form, rng.choice(sweep_groups.ROWS[:4]), rng.choice(sweep_groups.N),
                                rng.choice(sweep_groups.K), rng.choice(["nvfp4", "mxfp4"]),
                                rng.choice(["bf16", "f32"]), rng.choice(["none", "one"]), "chosen")


def drawn(rng, values, exists):
    """A case of a sweep, without a plan of its own."""
    while True:
        case = [rng.choice(["chosen"] if "chosen" in choices else choices) for choices in values]
        if exists(tuple(case)):
            return case


def weights(rng):
    case = drawn(rng, sweep_weights.VALUES, sweep_weights.exists)
    return sweep_weights.program(*case[:-1], "?", "wgmma")


def results(rng):
    """One GEMM or two, whose results are quantized too."""
    sweep = sweep_results
    return sweep.program(drawn(rng, [sweep.FORMATS, sweep.INPUT, sweep.RESULT, sweep.OUTPUTS, sweep.SCALES, sweep.AMAX,
                                     sweep.ELEMENTS, sweep.TYPE, sweep.ROWS, sweep.N, sweep.K, ["chosen"]],
                               sweep.valid))


def wide(rng):
    """GEMMs of elements with 6 and 8 bits."""
    sweep = sweep_wide
    case = drawn(rng, [sweep.FORMATS, sweep.FORMATS, sweep.RESULTS, sweep.OPERANDS, sweep.EPILOGUES,
                       sweep.ROWS, ["chosen"], sweep.N, sweep.K, sweep.M], sweep.exists)
    rows = "?" if case[5] == "dynamic" else case[9]
    return sweep.program(*case[:5], case[6], rows, *case[7:9])


def fp8(rng):
    return sweep_fp8.program(rng.choice(["bf16", "f32"]), "fp8", "none", "chosen",
                             rng.choice(["one", "split", "groups"]), rng.choice([64, 130]),
                             rng.choice(sweep_fp8.N), rng.choice([512, 640]))


PROGRAMS = [layer, layer, groups, weights, results, wide, fp8]


def role_plan(rng):
    """Two to four roles of warps that mostly follow each other, with engines that may not fit."""
    text, at = [], 0
    drives = [["tma"], ["tensor", "scale_copy"], ["threads"], ["scheduler"]]
    if rng.random() < 0.3:
        drives = [rng.sample(ENGINES, rng.choice([1, 1, 2])) for _ in range(rng.randint(1, 4))]
    rng.shuffle(drives)
    for number, engines in enumerate(drives[:rng.randint(2, 4)]):
        size = rng.choice([1, 1, 4, 4, 8, 2])
        at += rng.choice([0, 0, 0, 0, 1, -1]) if at else 0
        registers = f" registers {rng.choice([24, 48, 100, 208, 256])}" if rng.random() < 0.2 else ""
        text.append(f"role{number} warps {max(at, 0)} to {max(at, 0) + size} drives "
                    f"[{', '.join(engines)}]{registers}")
        at += size
    return f"#pipe.role_plan<{', '.join(text)}>"


def known_fields(rng):
    """Fields that suit some program, to which another may be added: often the same once more."""
    plans = [plan for kind in sweep.PLANS.values() for plan in kind.values() if plan]
    return rng.choice(plans + [plan for more in (sweep_fp8.TILES, sweep_wide.TCGEN05) for plan in more.values() if plan])


def tile_gemm(rng):
    schedule = rng.choice([f"#pipe.static_persistent<{rng.choice(ORDERS)}>",
                           f"#pipe.cluster_launch<{rng.choice(ORDERS)}{rng.choice(DEPTHS)}>"])
    fields = {"tile": f"tile = [{', '.join(str(rng.choice(TILE[i])) for i in range(3))}]", "swap": "swap",
              "pair": "pair", "cluster": f"cluster = [{rng.choice([1, 2, 4, 8])}, {rng.choice([1, 1, 2, 3, 4])}]",
              "fallback": f"fallback = [{rng.choice([1, 2, 4])}, {rng.choice([1, 2])}]",
              "k_slices": f"k_slices = {rng.choice(SMALL)}", "store": f"store = {rng.choice(['tma', 'direct'])}",
              "schedule": f"schedule = {schedule}", "stages": f"stages = {rng.choice(SMALL)}",
              "accumulators": f"accumulators = {rng.choice(SMALL)}", "ctas_per_sm": f"ctas_per_sm = {rng.choice(SMALL)}",
              "roles": f"roles = {role_plan(rng)}"}
    weight = {"tile": 4, "pair": 3, "store": 2, "stages": 2, "roles": 0.5, "fallback": 0.7}
    names = {rng.choices(list(fields), [weight.get(name, 1) for name in fields])[0]: None
             for _ in range(rng.randint(1, 5))}
    if rng.random() < 0.6:
        return ", ".join(["tile_gemm", known_fields(rng), *(fields[name] for name in list(names)[:1])])
    return ", ".join(["tile_gemm", *(fields[name] for name in fields if name in names)])


def stream_blocks(rng):
    return (f"stream_blocks, threads = {rng.choice(STREAM_THREADS)}, blocks_per_thread = {rng.choice(SMALL)}"
            + rng.choice(["", f", ctas_per_sm = {rng.choice(SMALL)}"])
            + rng.choice(["", ", order = descending", ", amax = same", ", cache_hints"]))


def stream_items(rng):
    return f"stream_items, threads = {rng.choice(STREAM_THREADS)}, items_per_thread = {rng.choice(SMALL)}"


def reduce_grid(rng):
    return f"reduce_grid, threads = {rng.choice(STREAM_THREADS)}, grid = {rng.choice(SMALL)}"


PLANS = [tile_gemm] * 9 + [stream_blocks, stream_items, reduce_grid]
Case = collections.namedtuple("Case", "text options")


def case_of(seed, number):
    rng = random.Random(seed * 1000003 + number)
    text = rng.choice(PROGRAMS)(rng)
    target = rng.choices(TARGETS, [5, 1, 2, 3])[0]
    options = [f"--target={target}", "--plan", rng.choice(PLANS)(rng)]
    policy = rng.choice(["eager", "lazy", "random", "delay"])
    options += [f"--policy={policy}", f"--seed={rng.randint(1, 9)}"]
    if "?" in text:
        options.append(f"--shape={rng.choice(ROWS)}")
    return Case(text, options)


def command(build, file, case):
    return [build / "bin/fp4-runner", file, "--device=sim", "--check=strict", *case.options]


def complaint(code, output):
    """Returns what is wrong with a run, or ""."""
    if code == 0:
        return ""
    if code == 2 and output.startswith("error: a plan must be "):
        return ""
    if code != 3:
        return f"exit code {code}"
    if not re.search(r"\.mlir:\d+:\d+: error: ", output, re.M):
        return "an error without a place"
    return ""


def run(build, case, keep=None):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(keep or folder) / "program.mlir"
        file.write_text(case.text)
        try:
            done = subprocess.run(command(build, file, case), capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"over {SECONDS} seconds", "", None
        output = done.stdout + done.stderr
        return complaint(done.returncode, output), output, done.returncode


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    for name, value in (("cases", 500), ("first", 0), ("seed", 1), ("jobs", 1), ("reproduce", None)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def reproduce(options):
    case = case_of(options.seed, options.reproduce)
    what, output, _ = run(options.build, case)
    print(case.text, " ".join(map(str, command(options.build, "program.mlir", case))), output,
          what or "passed", sep="\n")
    return bool(what)


def main():
    options = options_of()
    if options.reproduce is not None:
        return reproduce(options)
    codes, failed = collections.Counter(), 0
    numbers = range(options.first, options.first + options.cases)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = pool.map(lambda number: run(options.build, case_of(options.seed, number)), numbers)
        for number, (what, output, code) in zip(numbers, runs):
            codes[code] += 1
            if what:
                failed += 1
                last = output.strip().splitlines()[-1:] or [""]
                print(f"{what}: {last[0]}\n  validation/fuzz/plans.py --seed {options.seed} --reproduce {number}", flush=True)
    print(f"{options.cases - failed} passed, {failed} failed ({codes[0]} ran, {codes[2] + codes[3]} were refused)")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
