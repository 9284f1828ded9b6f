#!/usr/bin/env python3
"""Wrong results of the passes of phase `scheduled`, which pipe-verify-sync must refuse.

Every pass of lib/Dialect/Pipe/Schedule has a list of mistakes: changes of one line, or of two, that
turn its result into the one of a wrong pass, such as a wait that has lost its fence. Kernels of
validation/kernel_kinds.py in the scheduled form are changed at each place where a mistake applies,
and fp4-opt has to find an error before any simulation. Prints for each mistake at how many places
that was so. Changes without effect on the lowered kernel do not count, and mistakes that no kernel
of the sample can have are listed as such. A mistake counts as refused if that is so at four of five
places: at others two numbers are equal, or another channel implies the wait that is lost.

With --simulate the changes that fp4-opt accepts run in the simulator, with strict checks: eagerly,
lazily and in random orders, and those that are right in each of these in many orders.

Exits with 1 if fewer than eight of ten mistakes of a pass are refused, or if fp4-opt ends in
another way than with an error.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kernel_kinds
import mutate
import mutate_all
import sweep_fp8
from schedule_mistakes import MISTAKES

#: Kinds whose kernels show what each pass does: overlapped accumulators, pairs, one warp for MMAs
#: and copies, work taken over, stores by TMA, groups, wgmma with weights and with sums to promote.
KINDS = [
    "prepacked mxfp4 weights x bf16, tiles of 128 x 256",
    "NVFP4 GEMM by wgmma, dual GEMM with a gate, mxfp4 codes, amax, small M",
    "NVFP4 GEMM, 64 columns", "NVFP4 GEMM, 256 columns (overlapped accumulators)",
    "NVFP4 GEMM, pair of 256 x 192, two sets of scales", "NVFP4 GEMM, cluster of 2 x 1",
    "NVFP4 GEMM, one warp multiplies and copies scales", "NVFP4 GEMM, results stored by TMA",
    "NVFP4 GEMM, groups of the device", "NVFP4 GEMM by wgmma, groups",
    "FP8 with f32 scales by wgmma, results stored by TMA", "FP8 with f32 scales by wgmma, groups",
    "prepacked nvfp4 weights x bf16", "prepacked mxfp4 weights x f8E4M3FN",
    "NVFP4 GEMM, converted", "plain nvfp4 weights x bf16", "FP8 with f32 scales in tiles",
    "NVFP4 GEMM, work taken over", "NVFP4 GEMM by wgmma, groups of the device", "attention, full"]

#: Kernels that no kind has. One warp with two sets of scales waits by the stages, and a stage of
#: two k tiles of FP8 has two MMAs that begin together.
MORE = [
    kernel_kinds.Kind(
        "one warp, two sets of scales",
        kernel_kinds.gemm(192).replace("tile = [128, 192, 256]", "tile = [128, 192, 256], mma_warps = 1"), "sm_100a",
        None, ["--sms=2"]),
    kernel_kinds.Kind("FP8, two k tiles in a stage", kernel_kinds.planned(
        sweep_fp8.program("bf16", "fp8", "none", "chosen", "one", 130, 64, 1024), "tile = [64, 64, 256], stages = 4"),
        "sm_90a", None, ["--sms=2"])]


def program_of(kind):
    return kind.larger or kind.text


def kernels(build, names):
    """The kinds of the sample, or those with `names`, with the lines of their scheduled form."""
    for kind in [*(kind for kind in kernel_kinds.kinds() if kind.name in KINDS), *MORE]:
        if names and kind.name not in names:
            continue
        command = [build / "bin" / "fp4-runner", "-", f"--target={kind.target}", "--emit=mlir",
                   "--compile-to=scheduled", *kind.options]
        run = subprocess.run(command, input=program_of(kind), capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"error: {kind.name} is not compiled: {run.stderr}")
        yield kind, run.stdout.splitlines()


def lowered(build, text):
    """The kernel as NVVM IR."""
    command = [build / "bin" / "fp4-opt", "-", "--pass-pipeline=builtin.module(gpu.module("
               "convert-pipe-to-nvvm,canonicalize,cse))"]
    return subprocess.run(command, input=text, capture_output=True, text=True).stdout


#: Errors of a change that is no program.
UNPARSED = re.compile(r"undeclared SSA|does not dominate|different type|redefinition|expected ")


def verdict(build, lines, original=None):
    """'refused', 'accepted', 'unparsed', 'without effect' where the kernel is that of the
    `original` lines, or the exit code of a crash."""
    command = [build / "bin" / "fp4-opt", "-", "-pipe-verify-sync", "-o", os.devnull]
    text = "\n".join(lines)
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode == 0:
        same = original and lowered(build, text) == lowered(build, "\n".join(original))
        return "without effect" if same else "accepted"
    if result.returncode != 1 or "error:" not in result.stderr:
        return f"exit code {result.returncode}"
    return "unparsed" if UNPARSED.search(result.stderr) else "refused"


#===--- The simulator ----------------------------------------------------===#

PTX = ("builtin.module(gpu.module(convert-pipe-to-nvvm,canonicalize,cse),fp4-pdl-launches{all=false chosen=true},"
       "fp4-emit-kernels{dump-dir=%s})")


def emitted(build, lines):
    """The PTX of each kernel of a scheduled form, by name."""
    with tempfile.TemporaryDirectory(prefix="fp4-schedule-") as folder:
        command = [build / "bin" / "fp4-opt", "-", f"--pass-pipeline={PTX % folder}", "-o", os.devnull]
        subprocess.run(command, input="\n".join(lines), text=True, check=True)
        return {path.name: path.read_text() for path in pathlib.Path(folder).glob("*.ptx")}


def simulated(build, kind, lines, changes):
    """Returns for each changed form of a kind whose lines are `lines` what kills it, or how far it
    came: 'right in every order', or 'right in many orders'."""
    options = argparse.Namespace(build=build, check="strict", schedules=mutate.SCHEDULES, jobs=os.cpu_count(),
                                 limit_steps=1 << 26, extra=[], every_schedule=False)
    with tempfile.TemporaryDirectory(prefix="fp4-schedule-") as folder:
        scratch = pathlib.Path(folder)
        (scratch / "program.mlir").write_text(program_of(kind))
        arguments = [*kind.options, f"--target={kind.target}", *[f"--shape={kind.shape}"] * bool(kind.shape and not kind.rows)]
        library = mutate.compile_program(build / "bin", scratch, scratch / "program.mlir", arguments)
        texts = {text.strip(): text for text in mutate.kernels(library)}
        before = emitted(build, lines)
        edits = []
        for changed in changes:
            after = emitted(build, changed)
            name = next(name for name in before if after[name] != before[name])
            whole = texts.get(before[name].strip())
            if not whole:
                raise RuntimeError(f"{kind.name}: the library has other code than {name} of the scheduled form")
            edits.append(mutate.Edit(whole, 0, len(whole), after[name]))
        options.runs = mutate_all.runs_of(kind, scratch)
        killers = [next(filter(None, fates), None) for fates in mutate.judge_edits(library, edits, options)]
        alive = [number for number, killer in enumerate(killers) if not killer]
        options.schedules, options.extra = [("exhaustive", 1)], ["--max-orders=1000", "--seconds=60"]
        options.runs = [run for run in options.runs if not mutate.ends_with_error(run)]
        orders = mutate.judge_edits(library, [edits[number] for number in alive], options) if alive else []
    for number, (fate,) in zip(alive, orders):
        killers[number] = {None: "right in every order", "incomplete": "right in many orders",
                           "timeout": "right in many orders"}.get(fate, fate)
    return killers


def simulate_all(build, accepted):
    """Prints what the simulator says of changes that fp4-opt accepts, (mistake, kind, changed
    lines, lines) each. Returns those that no order shows."""
    by_kind, alive = collections.defaultdict(list), []
    for case in accepted:
        by_kind[case[1].name, case[1].target].append(case)
    for cases in by_kind.values():
        kind, lines = cases[0][1], cases[0][3]
        for case, fate in zip(cases, simulated(build, kind, lines, [case[2] for case in cases])):
            alive += [case] * fate.startswith("right")
            print(f"  {case[0].of}: {case[0].name}, in {kind.name}: {fate}: {first_change(lines, case[2])}")
    print(f"simulated: {len(accepted)} changes, {len(accepted) - len(alive)} killed, {len(alive)} right in the orders that ran")
    return alive


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default="build", help="build directory")
    parser.add_argument("--pass", dest="of", help="mistakes of one pass, such as fold-awaits")
    parser.add_argument("--kernel", action="append", help="name of a kernel of the sample (default: all)")
    parser.add_argument("--places", type=int, default=4, help="places of a mistake in each kernel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="print each place that is accepted")
    parser.add_argument("--simulate", action="store_true", help="run what is accepted in the simulator")
    return parser.parse_args()


def report(of, results, options):
    """Prints the mistakes of a pass; returns true when enough are refused."""
    good = tried = 0
    for name, places in results.items():
        places = [place for place in places if place[1] not in ("without effect", "unparsed")]
        count = collections.Counter(place[1] for place in places)
        refused, all_of = count["refused"], len(places)
        tried += all_of > 0
        good += refused >= 0.8 * all_of > 0
        note = "" if refused == all_of > 0 else " not applicable" if not places else " ".join(
            f" {number} {how}" for how, number in count.items() if how != "refused")
        print(f"  {name}: refused at {refused} of {all_of} places{note}")
        if options.verbose:
            for kernel, how, line in places:
                if how != "refused":
                    print(f"      {how} in {kernel}: {line}")
    print(f"{of}: {good} of {tried} mistakes refused")
    return good >= 0.8 * tried and bool(tried or options.kernel)


def first_change(old, new):
    return next((b.strip()[:160] for a, b in zip(old, new) if a != b), "")


def main():
    options = parse_arguments()
    cases = []
    for kind, lines in kernels(options.build, options.kernel):
        if verdict(options.build, lines) != "accepted":
            print(f"error: {kind.name} does not verify before it is changed")
            return 1
        for one in MISTAKES:
            if options.of in (None, one.of):
                for place, changed in zip(range(options.places), one.change(lines)):
                    cases.append((one, kind, changed, lines))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda case: verdict(options.build, case[2], case[3]), cases))
    results = collections.defaultdict(dict)
    for one in MISTAKES:
        if options.of in (None, one.of):
            results[one.of][one.name] = []
    for (one, kind, changed, lines), how in zip(cases, verdicts):
        results[one.of][one.name].append((kind.name, how, first_change(lines, changed)))
    enough = [report(of, found, options) for of, found in results.items()]
    crashed = sum("exit code" in how for how in verdicts)
    print(f"{len(cases)} places, {verdicts.count('refused')} refused, {crashed} crashes")
    accepted = [case for case, how in zip(cases, verdicts) if how == "accepted"]
    if options.simulate:
        simulate_all(options.build, accepted)
    return 0 if all(enough) and not crashed else 1


if __name__ == "__main__":
    sys.exit(main())
