#!/usr/bin/env python3
"""Draws plans for small programs, compiles each and runs it in the simulator.

  validation/fuzz/plans.py [--build build] [--cases 500] [--first 0] [--seed 1] [--jobs 1]
  validation/fuzz/plans.py --reproduce NUMBER [--seed 1]    one case, with what fp4-runner prints

A plan is either refused with a located error (exit code 3; code 2 where its text is no plan), or
its kernel equals the reference under the strict hazard check (exit code 0). Everything else is a
failure: another exit code, a signal, a case that takes over a minute, an error without a place.
Case i depends on the seed, i and the tables of validation/tables.py, from which targets, families,
fields and words are. Prints every failure with the command that repeats it, then "N passed, N
failed", and how many of the passed ones ran and were refused.
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
import tables  # noqa: E402

SECONDS = 60
TARGETS = {target: {"sm_100a": 5, "sm_90a": 3, "sm_120a": 2}.get(target, 1)
           for target in tables.targets()}
ROWS = [1, 40, 129, 300]
ORDERS = [*tables.rasters().values(), "panels<1>", "panels<7>"]
DEPTHS = ["", " depth 1", " depth 2", " depth 3", " depth 9"]
ENGINES = tables.words("Engine")
SMALL = [1, 2, 3, 4, 5, 8, 9, 16]
TILE = {0: [8, 16, 64, 128, 256, 192, 512, 24], 1: [8, 16, 32, 64, 96, 128, 192, 256, 48, 272],
        2: [32, 64, 128, 256, 512, 768, 1024, 96]}
STREAM_THREADS = [32, 64, 96, 128, 256, 512, 1024, 33, 2048]


def layer(rng):
    fmt = rng.choice(sweep.FORMATS)
    return sweep.program(fmt, rng.choice(sweep.RESULTS), rng.choice(["fp4", "bf16"]), "chosen",
                         rng.choice(["?", *map(str, ROWS)]), rng.choice(sweep.N), rng.choice([64, 256, 288, 1024]))


def groups(rng):
    form = rng.choice(["groups", "offsets", "split"])
    return sweep_groups.program(form, rng.choice(sweep_groups.ROWS[:4]), rng.choice(sweep_groups.N),
                                rng.choice(sweep_groups.K), rng.choice(sweep_groups.FORMATS),
                                rng.choice(sweep_groups.RESULTS), rng.choice(["none", "one"]), "chosen")


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
    drives = [["tma"], ["tensor", "scale_copy"], ["threads"], ["work_queue"]]
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


def route(rng):
    """Some axes of a route, of which few pairs have all."""
    axes = {"core": ["tcgen05", "wgmma", "mma_sync"], "a": ["as_is", "registers", "tmem", "pre", "unit_scales"],
            "b": ["as_is", "shared", "pre", "unit_scales"], "accumulate": ["core", "promote(128)", "fast"],
            "orientation": ["normal", "swapped", "swapped"]}
    names = rng.sample(list(axes), rng.choice([1, 1, 1, 2, 3]))
    return f"<{', '.join(f'{name} = {rng.choice(axes[name])}' for name in names)}>"


def schedule(rng):
    return rng.choice([f"#pipe.static_persistent<{rng.choice(ORDERS)}>",
                       f"#pipe.cluster_launch<{rng.choice(ORDERS)}{rng.choice(DEPTHS)}>"])


def numbers(*choices):
    """A value of several numbers."""
    return lambda rng: f"[{', '.join(str(rng.choice(values)) for values in choices)}]"


# Values of fields whose type in C++ does not say which values may fit.
VALUES = {"route": route, "tile": numbers(*TILE.values()), "cluster": numbers([1, 2, 4, 8], [1, 1, 2, 3, 4]),
          "fallback": numbers([1, 2, 4], [1, 2]), "schedule": schedule, "roles": role_plan,
          "threads": lambda rng: rng.choice(STREAM_THREADS), "wave_cost": numbers(SMALL, SMALL, SMALL)}
WEIGHTS = {"tile": 4, "pair": 3, "store": 2, "stages": 2, "roles": 0.5, "fallback": 0.7,
           "wave_cost": 0.2}  # the last is of lists of plans


def has_values(field):
    return field.name in VALUES or field.kind in ("bool", "int64_t") or field.kind.isidentifier() and (
        field.kind != "Attribute")


def drawn_field(rng, field):
    """The text of a field: a flag, a number, a word of its enumeration, or one of VALUES."""
    if field.name in VALUES:
        return f"{field.name} = {VALUES[field.name](rng)}"
    if field.kind == "bool":
        return field.name
    values = SMALL if field.kind == "int64_t" else tables.words(field.kind)
    return f"{field.name} = {rng.choice(values)}"


def tile_gemm(rng, fields):
    names = {field.name: field for field in fields}
    weights = [WEIGHTS.get(name, 1) for name in names]
    chosen = list(dict.fromkeys(rng.choices(list(names), weights, k=rng.randint(1, 5))))
    if rng.random() < 0.6:
        return [known_fields(rng), drawn_field(rng, names[chosen[0]])]
    return [drawn_field(rng, field) for name, field in names.items() if name in chosen]


def plan(rng):
    """A plan of any family, mostly of GEMMs; a plan of another has most of the fields that it
    needs."""
    families = tables.plan_fields()
    family = rng.choices(list(families), [9 if name == "tile_gemm" else 0.6 for name in families])[0]
    fields = families[family]
    if family == "tile_gemm":
        return ", ".join([family, *tile_gemm(rng, fields)])
    chosen = [field for field in fields if rng.random() < (0.3 if field.is_optional else 0.9)]
    return ", ".join([family, *(drawn_field(rng, field) for field in chosen)])


def check_fields():
    """Ends the program where a field of plans has no values."""
    for family, fields in tables.plan_fields().items():
        for field in fields:
            if not has_values(field):
                raise SystemExit(f"error: the field '{field.name}' of {family} must have values\n"
                                 "  note: add its name to VALUES of validation/fuzz/plans.py")


Case = collections.namedtuple("Case", "text options")


def case_of(seed, number):
    rng = random.Random(seed * 1000003 + number)
    text = rng.choice(PROGRAMS)(rng)
    target = rng.choices(list(TARGETS), TARGETS.values())[0]
    options = [f"--target={target}", "--plan", plan(rng)]
    options += [f"--policy={rng.choice(tables.policies())}", f"--seed={rng.randint(1, 9)}"]
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
    check_fields()
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
