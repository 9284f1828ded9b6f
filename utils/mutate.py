#!/usr/bin/env python3
"""Makes the synchronization of kernels wrong, one place at a time: the simulator must notice.

  utils/mutate.py linear.so --shape=300            mutates every kernel that the library carries as PTX
  utils/mutate.py linear.mlir --shape=300,384,272  compiles it first
  utils/mutate.py ... --limit=40                   a fixed sample of the mutants, for a quick look

Each wait, fence, arrival, expect_tx, commit, barrier, initialization and phase update is deleted, and
where it has an order or a scope, weakened (.acquire or .release to .relaxed, .cluster to .cta; a parity
becomes a constant). The library holds the PTX as text, in which nothing else moves. A mutant is killed
when fp4-run fails under one of the schedules: a hazard, an error of the simulator, or a wrong result.
Prints the kill rate of each schedule alone and of all together, then the survivors with the reason that
EQUIVALENT knows. Exit code 1 when one survives without a reason. A problem so small that rings do not
wrap around leaves survivors: take one that fills every ring three times.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEDULES = [("eager", 1), ("lazy", 1), ("random", 1), ("random", 2), ("delay", 1)]

# What is deleted.
DELETIONS = {
    "mbarrier wait": r"mbarrier\.try_wait[^;]*;\s*(?:not\.pred[^;]*;\s*)?@!?%p\d+ bra[^;]*;",
    "mbarrier init": r"mbarrier\.init[^;]*;",
    "expect_tx": r"mbarrier\.(?:arrive\.)?expect_tx[^;]*;",
    "arrival": r"mbarrier\.arrive\.(?!expect_tx)[^;]*;",
    "barrier": r"(?<!\w)(?:bar|barrier)\.(?:cta\.)?(?:sync|arrive|red)\b[^;]*;",
    "cluster barrier": r"barrier\.cluster\.(?:arrive|wait)[^;]*;",
    "warp barrier": r"bar\.warp\.sync[^;]*;",
    "fence": r"(?<![\w.])(?:fence|membar)\.[^;]*;",
    "tcgen05 fence": r"tcgen05\.fence::[^;]*;",
    "tcgen05 wait": r"tcgen05\.wait::[^;]*;",
    "tcgen05 commit": r"tcgen05\.commit[^;]*;",
    "tcgen05 dealloc": r"tcgen05\.dealloc[^;]*;",
    "bulk commit": r"cp\.async\.bulk\.commit_group[^;]*;",
    "bulk wait": r"cp\.async\.bulk\.wait_group[^;]*;",
    "wgmma": r"wgmma\.(?:fence|commit_group|wait_group)[^;]*;",
}

# What is weakened: the match becomes the text.
WEAKENINGS = {
    "arrival made relaxed": (r"(?<=mbarrier\.arrive)(?:\.release\.(?:cta|cluster))?(?=\.shared|\.b64)",
                             ".relaxed.cta"),
    "wait made relaxed": (r"(?<=wait\.parity)(?:\.acquire\.(?:cta|cluster))?(?=\.shared|\.b64)",
                          ".relaxed.cta"),
    "access made relaxed": (r"(?<=\bst)\.release|(?<=\bld)\.acquire|(?<=\batom)\.acq_rel", ".relaxed"),
    "scope narrowed": (r"(?<=\.release|\.acquire|\.acq_rel)\.(?:cluster|gpu)(?=\.)", ".cta"),
    "wait for reads only": (r"(?<=wait_group)(?=\s+\d)", ".read"),
}

AFTER = r"tcgen05\.fence::after_thread_sync;"
NO_OPERATION = r"(?s:(?!tcgen05\.(?:cp|mma|ld|st|shift|fence)\b).)*?"

# Mutants that change nothing which a program could observe: (mutation, pattern of its line and the
# next ones, why).
EQUIVALENT = [
    ("warp barrier deleted", r"bar\.warp\.sync.*\n(\s*\n)*\s*bar\.sync",
     "the block barrier that follows synchronizes lanes too"),
    ("warp barrier deleted", r"bar\.warp\.sync[^;]*;(\s|[^;]*;){0,3}?\s*tcgen05\.",
     "it converges the warp for .sync.aligned; the simulator waits for all lanes there"),
    ("tcgen05 fence deleted", AFTER + NO_OPERATION + AFTER,
     "another fence::after_thread_sync comes before the next tcgen05 operation"),
    ("tcgen05 fence deleted", AFTER + NO_OPERATION + r"tcgen05\.cp",
     "after a wait for copies to shared memory it orders nothing in tensor memory"),
]

DEFINITION = r"\b(?:bfe|and|xor|selp|shr)\.[bu]32\s+{},[^;]*;"


Mutant = collections.namedtuple("Mutant", "what line source context image")


def kernels(image):
    """(begin, end) of every PTX text in the library's bytes."""
    begin = image.find(b".version ")
    while begin >= 0:
        begin = image.rfind(b"\0", 0, begin) + 1
        end = image.index(b"\0", begin)
        yield begin, end
        begin = image.find(b".version ", end)


def phase_updates(text):
    """The instructions that compute the parity operand of a wait."""
    for parity in sorted(set(re.findall(r"wait\.parity[^;]*\], (%r\d+)[,;]", text))):
        for match in re.finditer(DEFINITION.format(parity), text):
            yield match, parity


def edits(text):
    """(what, first, last, replacement) of every mutation of a PTX text."""
    for what, pattern in DELETIONS.items():
        for match in re.finditer(pattern, text):
            yield what + " deleted", *match.span(), ""
    for what, (pattern, weaker) in WEAKENINGS.items():
        for match in re.finditer(pattern, text):
            yield what, match.start(), match.end(), weaker
    for match, parity in phase_updates(text):
        for constant in "01":
            yield "phase constant " + constant, *match.span(), f"mov.b32 {parity}, {constant};"


def fit(text, length):
    """The text with as many bytes as it had: comments make room, blanks fill it."""
    for comment in re.findall(r"//[^\n]+", text):
        if len(text) <= length:
            break
        text = text.replace(comment, "", 1)
    return text.ljust(length) if len(text) <= length else None


def mutants(image):
    for begin, end in kernels(image):
        text = image[begin:end].decode()
        for what, first, last, replacement in edits(text):
            lines = re.sub(r"[^\n]", "", text[first:last])  # so that line numbers stay
            mutated = fit(text[:first] + replacement + lines + text[last:], len(text))
            if mutated is None:
                continue
            line_begin = text.rfind("\n", 0, first) + 1
            source = " ".join(text[line_begin:text.find("\n", first)].split())
            yield Mutant(what, text.count("\n", 0, first) + 1, source,
                         text[line_begin:line_begin + 4000],
                         image[:begin] + mutated.encode() + image[end:])


def run(tools, library, check, arguments, schedule):
    """Why the run failed: a rule, "error", "result", or None when it passed."""
    policy, seed = schedule
    command = [tools / "fp4-run", library, "--device=sim", f"--policy={policy}", f"--seed={seed}",
               f"--check={check}", "--threads=1", *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "timeout"
    if result.returncode == 0:
        return None
    rule = re.search(r"error: .*\[([a-z0-9-]+)\]$", result.stderr, re.M)
    return rule.group(1) if rule else "result" if result.returncode == 1 else "error"


def reason(mutant):
    return next((why for what, pattern, why in EQUIVALENT
                 if mutant.what == what and re.match(r"\s*" + pattern, mutant.context)), None)


def judge(tools, scratch, number, mutant, options):
    library = scratch / f"mutant{number}.so"
    library.write_bytes(mutant.image)
    verdicts = []
    # The reference costs more than most runs: it is asked only when nothing else noticed.
    for verify in (["--no-verify"], []):
        verdicts = []
        for schedule in options.schedules:
            verdicts.append(run(tools, library, options.check, options.arguments + verify, schedule))
            if verdicts[-1] and options.stop_early:
                break
        if any(verdicts):
            break
    library.unlink()
    return verdicts


def compile_program(tools, scratch, source, arguments):
    library = scratch / "program.so"
    shapes = [argument for argument in arguments if argument.startswith("--shape")]
    subprocess.run([tools / "fp4-runner", source, *shapes, "--emit=so", "-o", library], check=True)
    return library


def report(chosen, verdicts, options):
    survivors = []
    killers = collections.Counter()
    for mutant, verdict in zip(chosen, verdicts):
        killer = next((v for v in verdict if v), None)
        killers[killer or "survived"] += 1
        if options.verbose:
            fate = killer or ("equivalent" if reason(mutant) else "SURVIVED")
            print(f"{mutant.line}: {mutant.what}: {fate}: {mutant.source}")
        if not killer:
            survivors.append(mutant)
    if not options.stop_early:
        for index, (policy, seed) in enumerate(options.schedules):
            killed = sum(bool(verdict[index]) for verdict in verdicts)
            print(f"{policy} {seed}: {killed} of {len(chosen)} killed")
    for killer, count in killers.most_common():
        print(f"  {killer}: {count}")
    unexplained = 0
    for mutant in survivors:
        why = reason(mutant)
        unexplained += not why
        print(f"survived, {why or 'WITHOUT A REASON'}: line {mutant.line}, {mutant.what}: "
              f"{mutant.source}")
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} mutants killed, {len(survivors) - unexplained} equivalent, "
          f"{unexplained} survived")
    return 1 if unexplained or not chosen else 0


def schedules(text):
    return [(policy, int(seed)) for policy, seed in (item.split(":") for item in text.split(","))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="a library, or the .mlir to compile")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    parser.add_argument("--check", default="strict", choices=["off", "default", "strict"])
    parser.add_argument("--schedules", type=schedules, default=SCHEDULES,
                        help="POLICY:SEED,...; default: " +
                        ",".join(f"{policy}:{seed}" for policy, seed in SCHEDULES))
    parser.add_argument("--limit", type=int, default=0, help="at most so many mutants")
    parser.add_argument("--stop-early", action="store_true", help="one schedule that kills is enough")
    parser.add_argument("--verbose", action="store_true", help="a line for each mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options, options.arguments = parser.parse_known_args()
    tools = options.build / "bin"
    with tempfile.TemporaryDirectory(prefix="fp4-mutate-") as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        scratch = pathlib.Path(folder)
        library = options.program
        if library.suffix == ".mlir":
            library = compile_program(tools, scratch, library, options.arguments)
            options.arguments = [argument.split(",")[0] for argument in options.arguments]
        for schedule in options.schedules:
            if why := run(tools, library, options.check, [*options.arguments, "--no-verify"], schedule):
                print(f"error: the program fails as it is under {schedule}: {why}")
                return 1
        chosen = list(mutants(library.read_bytes()))
        if options.limit and len(chosen) > options.limit:
            chosen = random.Random(1).sample(chosen, options.limit)
        futures = [pool.submit(judge, tools, scratch, number, mutant, options)
                   for number, mutant in enumerate(chosen)]
        return report(chosen, [future.result() for future in futures], options)


if __name__ == "__main__":
    sys.exit(main())
