#!/usr/bin/env python3
"""Makes the synchronization of kernels wrong, one place at a time: the simulator must notice.

  validation/mutate.py linear.so --shape=300            mutates every kernel that the library
                                                        carries as PTX
  validation/mutate.py linear.mlir --shape=300,384,272  compiles it first
  validation/mutate.py ... --limit=40                   a fixed sample of the mutants, for a quick
                                                        look

Each wait, fence, arrival, expect_tx, commit, barrier, initialization and phase update is deleted.
If it has an order, a scope, a count or a parity, that is weakened or made wrong (WEAKENINGS,
WRONG). Each is also moved past what it must precede or follow (MOVES). fp4-run --edits judges all
mutants of a library, with the same inputs. A mutant is killed when it fails under one of the
schedules with a hazard, an error of the simulator or a wrong result. Prints the survivors, and what
killed the others.

A mutant that is alive is equivalent if `subsumed` finds, in the text, the synchronization that
makes the mutated one redundant. The mutant is unreached if no run comes to its line, and redundant
if every order of its steps ends without a report and with the right result (--policy exhaustive):
no order of this problem needs what is missing. For weaker accesses to memory, such runs are no
proof, because the orders are not those of a weak memory. None is excused by name. Any other
survivor gives exit code 1. A problem so small that rings do not wrap around leaves survivors: take
one that fills every ring three times.
"""
import argparse
import collections
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER_OPTIONS = ("--shape", "--target", "--sms", "--plan")
SCHEDULES = [("eager", 1), ("lazy", 1), ("random", 1), ("random", 2), ("delay", 1)]

# Instructions that are deleted, with the predicate before them.
GUARD = r"(?:@!?%?\w+\s+)?"
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
    "dependent launch": r"griddepcontrol\.\w+;",
    "request for work": r"clusterlaunchcontrol\.try_cancel[^;]*;",
}

# Instructions that are weakened: the match becomes the text.
WEAKENINGS = {
    "arrival made relaxed": (r"(?<=mbarrier\.arrive)(?:\.release\.(?:cta|cluster))?(?=\.shared|\.b64)",
                             ".relaxed.cta"),
    "wait made relaxed": (r"(?<=wait\.parity)(?:\.acquire\.(?:cta|cluster))?(?=\.shared|\.b64)",
                          ".relaxed.cta"),
    "access made relaxed": (r"(?<=\bst)\.release|(?<=\bld)\.acquire|(?<=\batom)\.acq_rel", ".relaxed"),
    "scope narrowed": (r"(?:(?<=\.release)|(?<=\.acquire)|(?<=\.acq_rel)|(?<=\.relaxed))"
                       r"\.(?:cluster|gpu|sys)(?=\.)", ".cta"),
    "atomic narrowed": (r"(?:(?<=\batom)|(?<=\bred))(?=\.global)", ".relaxed.cta"),
    "response to one block": (r"(?<=complete_tx::bytes)\.multicast::cluster::all", ""),
    "wait for reads only": (r"(?<=wait_group)(?=\s+\d)", ".read"),
}

# Operands that are made wrong: {0}, {1}, .. are groups of the match. A PTX block has its own
# register.
WRONG = {
    "one arrival more": (r"(mbarrier\.init[^;]*,\s*)(%r\d+);",
                         "{{.reg .b32 %q;add.s32 %q,{1},1;{0}%q;}}"),
    "one arrival less": (r"(mbarrier\.init[^;]*,\s*)(%r\d+);",
                         "{{.reg .b32 %q;add.s32 %q,{1},-1;{0}%q;}}"),
    "16 bytes more": (r"(mbarrier\.(?:arrive\.)?expect_tx[^;]*,\s*)(%r\d+);",
                      "{{.reg .b32 %q;add.s32 %q,{1},16;{0}%q;}}"),
    "16 bytes less": (r"(mbarrier\.(?:arrive\.)?expect_tx[^;]*,\s*)(%r\d+);",
                      "{{.reg .b32 %q;add.s32 %q,{1},-16;{0}%q;}}"),
    "half of the lanes": (r"((?:shfl|redux|vote|match|elect|bar\.warp)\.[^;]*?[\s,])(?:-1|%r\d+);",
                          "{0}65535;"),
    "parity inverted": (r"(mbarrier\.try_wait\.parity[^;]*,\s*)(%r\d+);",
                        "{{.reg .b32 %q;xor.b32 %q,{1},1;{0}%q;}}"),
}

PUBLISHES = r"(?:mbarrier\.arrive|tcgen05\.commit|bar\.sync|barrier\.cluster\.arrive|st\.release|red\.release)[^;]*;"
WAIT = r"\$L\w+:(?:(?!\$L)[^:])*?try_wait(?:(?!\$L\w+:).)*?bra[^;]*;"
# Instructions that move over others: the first group of a match and the last change places.
MOVES = {
    "moved behind the arrival": (
        r"((?:tcgen05\.fence::before_thread_sync|tcgen05\.wait::\w+\.sync\.aligned|fence\.[\w.:]+"
        r"|tcgen05\.mma[^;]*);)((?:(?!\$L|tcgen05\.mma|bra\b)[^{}])*?)(" + PUBLISHES + ")"),
    "store moved behind the arrival": r"(st\.shared[^;]*;)((?:(?!\$L|bra\b)[^{}])*?)(" + PUBLISHES + ")",
    "wait moved behind the use": (
        r"(" + WAIT + r")()((?:(?!\$L|try_wait|bra\b)[^{}]|\{%r[^}]*\})*?"
        r"(?:cp\.async\.bulk\.tensor|tcgen05\.(?:cp|mma|ld)|(?:ld|st)\.shared)[^;]*;)"),
    "moved before the wait": r"(" + WAIT + r")((?:(?!\$L)[^:])*?)(tcgen05\.fence::after_thread_sync;)",
}

# Accesses and arrivals that tcgen05 fences do not order.
OF_THREADS = (r"(?<![\w.:])(?:ld|st|red|atom|cp|mbarrier|bar|barrier)\.(?!param)"
              r"|tcgen05\.(?:ld|st|wait|alloc|dealloc)\b")

DEFINITION = r"\b(?:bfe|and|xor|selp|shr)\.[bu]32\s+{},[^;]*;"


#: An edit of a PTX text: characters from `begin` to `end` become `text`.
Edit = collections.namedtuple("Edit", "ptx begin end text")

#: `source` is the line of what is mutated, `removed` that itself; `before` and `behind` are the
#: text around it.
Mutant = collections.namedtuple("Mutant", "what line source removed before behind edit")


def kernels(library):
    """Every PTX text of the library; kernels that share one are one."""
    head = rb"//\n// Generated by LLVM"
    texts = re.findall(head + rb"(?:(?!" + head + rb")[\t\n\x20-\x7e])*", library.read_bytes())
    return list(dict.fromkeys(text.decode() for text in texts))


def phase_updates(text):
    """The instructions that compute the parity operand of a wait."""
    for parity in sorted(set(re.findall(r"wait\.parity[^;]*\], (%r\d+)[,;]", text))):
        for match in re.finditer(DEFINITION.format(parity), text):
            yield match, parity


def edits(text):
    """(what, first, last, replacement) of every mutation of a PTX text."""
    for what, pattern in DELETIONS.items():
        for match in re.finditer(GUARD + pattern, text):
            yield what + " deleted", *match.span(), ""
    for what, (pattern, weaker) in WEAKENINGS.items():
        for match in re.finditer(pattern, text):
            yield what, match.start(), match.end(), weaker
    for what, (pattern, wrong) in WRONG.items():
        for match in re.finditer(pattern, text):
            yield what, *match.span(), wrong.format(*match.groups())
    for what, pattern in MOVES.items():
        for match in re.finditer(f"(?={pattern})", text, re.S):  # they may overlap
            first, between, last = match.groups()
            yield what, match.start(1), match.end(3), last + between + first
    for match, parity in phase_updates(text):
        for constant in "01":
            yield "phase constant " + constant, *match.span(), f"mov.b32 {parity}, {constant};"


def trap(text):
    """The edit that stops a kernel where it begins."""
    first = re.compile(r"^\t(?![./])\S", re.M).search(text, text.index("\n{")).start()
    return Edit(text, first, first, "\ttrap;")


def trap_at(mutant):
    """The edit that stops whoever comes to the line of a mutant."""
    begin = mutant.before.rfind("\n") + 1
    return Edit(mutant.edit.ptx, begin, begin, "\ttrap;\n")


def idle_kernels(texts, library, options):
    """Returns the kernels that no run launches: mutants of these prove nothing."""
    traps = [trap(text) for text in texts]
    runs = [judged(library, arguments, traps, options) for arguments in options.runs]
    return {text for text, *fates in zip(texts, *runs) if not any(fate[0] for fate in fates)}


def mutants(texts):
    for text in texts:
        for what, first, last, replacement in edits(text):
            line_begin = text.rfind("\n", 0, first) + 1
            source = " ".join(text[line_begin:text.find("\n", first)].split())
            yield Mutant(what, text.count("\n", 0, first) + 1, source, text[first:last],
                         text[:first], text[last:], Edit(text, first, last, replacement))


def write_edits(chosen, path):
    """For fp4-run --edits."""
    with path.open("w") as file:
        ptx = None
        for edit in chosen:
            if edit.ptx is not ptx:
                ptx = edit.ptx
                print(json.dumps({"ptx": ptx}), file=file)
            print(json.dumps({"begin": edit.begin, "end": edit.end, "text": edit.text}), file=file)


def judged(library, arguments, chosen, options):
    """Returns the fate of each edit: for each schedule that ran a rule, an error, or None.
    Schedules after one that kills do not run if one is enough."""
    with tempfile.TemporaryDirectory(prefix="fp4-edits-") as folder:
        path = pathlib.Path(folder) / "edits.jsonl"
        write_edits(chosen, path)
        names = ",".join(f"{policy}:{seed}" for policy, seed in options.schedules)
        command = [options.build / "bin/fp4-run", library, "--device=sim", f"--edits={path}",
                   f"--check={options.check}", f"--schedules={names}", f"--jobs={options.jobs}",
                   f"--limit={options.limit_steps}", *options.extra, *arguments]
        if options.every_schedule:
            command.append("--every-schedule")
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{library} did not start: {result.stderr}")
    fates = {verdict["edit"]: [fate if fate != "unused" else None for fate in verdict["fates"]]
             for verdict in map(json.loads, result.stdout.splitlines())}
    missing = len(options.schedules) * [None]
    return [(fates[number] + missing)[:len(missing)] for number in range(len(chosen))]


def behind_fence(mutant):
    """PTX ISA, tcgen05, "Canonical synchronization patterns": a relaxed wait and the fence."""
    if mutant.what != "wait made relaxed":
        return None
    behind = re.match(r"[^\n]*?;(?:\s*not\.pred[^;]*;)?\s*@[^;]*bra[^;]*;"
                      r"\s*tcgen05\.fence::after_thread_sync;(.*?)mbarrier\.try_wait",
                      mutant.behind, re.S)
    if not behind or re.search(OF_THREADS, behind.group(1)):
        return None
    return "a tcgen05 fence follows, and only operations of the tensor core up to the next wait"


def hint(mutant):
    """PTX ISA, griddepcontrol.launch_dependents: others begin when a grid ends without it."""
    if mutant.what != "dependent launch deleted" or "launch_dependents" not in mutant.removed:
        return None
    return "the next grid begins when this one has ended, instead of earlier"


def straight(text, end):
    """Returns what is executed from the beginning of `text` to the first match of `end`, where
    branches in between lead forward to places in between; or None."""
    match = re.search(end, text)
    between = text[:match.start()] if match else ""
    labels = set(re.findall(r"^(\$L\w+):", between, re.M))
    jumps = set(re.findall(r"\bbra(?:\.uni)?\s+(\$L\w+)", between))
    ends = re.search(r"\b(?:ret|exit)\b", between)
    return between if match and jumps <= labels and not ends else None


PRODUCT = r"wgmma\.mma_async[^;]*;"
HANDED_OVER = r"(?<![\w.:])(?:mbarrier\.arrive|bar|barrier|st|stmatrix|red|atom|cp)\."
REGISTER = r"%[rf]\d+"

#: An operation whose registers nobody touches before a wait: what begins the wait that is missing,
#: and the one that waits for all.
PENDING = {
    "wgmma deleted": (PRODUCT, r"wgmma\.(?:commit_group|wait_group\.sync\.aligned\s+[1-9])",
                      r"wgmma\.wait_group\.sync\.aligned\s+0;"),
    "tcgen05 wait deleted": (r"tcgen05\.ld[^;{]*\{[^}]*\}", r"tcgen05\.wait::ld",
                             r"tcgen05\.wait::ld\.sync\.aligned;"),
}


def waits_later(mutant):
    """PTX ISA, wgmma.wait_group and tcgen05.wait: nobody touches the registers of an MMA or load,
    and what it reads, before it is complete."""
    if mutant.what not in PENDING:
        return None
    operation, partial, whole = PENDING[mutant.what]
    if not re.match(partial, mutant.removed):
        return None
    between = straight(mutant.behind, whole)
    pending = re.split(whole + r"|^\$L\w+:", mutant.before, flags=re.M)[-1]
    registers = set(re.findall(REGISTER, " ".join(re.findall(operation, pending))))
    if between is None or "$L" in between or re.search(HANDED_OVER, between):
        return None
    others = re.sub(operation, "", between) if operation == PRODUCT else between
    if registers & set(re.findall(REGISTER, others)):
        return None
    return "nothing touches registers or operands of these before a wait for all of them"


def acquires_later(mutant):
    """PTX ISA, fence: it orders what the thread read before, however long before."""
    if mutant.what != "fence deleted" or not mutant.removed.startswith("fence.acquire."):
        return None
    between = straight(mutant.behind, re.escape(mutant.removed))
    if between is None or re.search(OF_THREADS.replace("mbarrier|", "mbarrier.arrive|"), between) \
            or re.search(r"tcgen05|wgmma", between):
        return None
    return "the same fence follows, and only waits and arithmetic in between"


NEEDS_ALL = r"\.aligned\b|(?<![\w.:])(?:bar|barrier)\."
TOGETHER = r"bar\.warp\.sync\s+-1;|(?:shfl|vote|match|redux)\.sync[^;]*,\s*-1;"


def statements(text):
    """Returns the statements of PTX, and the labels."""
    parts = re.split(r"(^\$L\w+:)|(?<=;)", text, flags=re.M)
    return [part for part in parts if part and part.strip()]


def meets_again(mutant):
    """Lanes that have parted meet where all of them execute one instruction with the mask of all.
    The checker finds the accesses to memory that a barrier orders."""
    is_all = re.match(r"bar\.warp\.sync\s+-1;", mutant.removed)
    if mutant.what != "warp barrier deleted" or not is_all:
        return None
    before, behind = statements(mutant.before), statements(mutant.behind)
    labels = {text[:-1]: place for place, text in enumerate(before + behind) if text.endswith(":")}
    open_places, seen = [len(before)], set()
    while open_places:
        place = open_places.pop()
        text = (before + behind + ["ret;"])[place]
        if place in seen or re.search(TOGETHER, text):
            continue
        if re.search(NEEDS_ALL, text):
            return None
        seen.add(place)
        is_certain = "@" not in text
        jump = re.search(r"\bbra(?:\.uni)?\s+(\$L\w+)", text)
        if jump:
            open_places.append(labels[jump.group(1)])
        if not (is_certain and (jump or re.search(r"\b(?:ret|exit);", text))):
            open_places.append(place + 1)
    return "all lanes meet again before they need each other, on every path"


def subsumed(mutant):
    """Returns what makes the mutated synchronization redundant, found in the text; or None."""
    rules = (behind_fence, hint, waits_later, acquires_later, meets_again)
    return next(filter(None, (rule(mutant) for rule in rules)), None)


def judge_edits(library, chosen, options):
    """Returns the fate of each edit under each schedule. The next run gets those that are alive, or
    where every schedule counts, all."""
    verdicts = [len(options.schedules) * [None] for _ in chosen]
    for arguments in options.runs:
        left = [number for number, verdict in enumerate(verdicts)
                if options.every_schedule or not any(verdict)]
        fates = judged(library, arguments, [chosen[number] for number in left], options)
        for number, fate in zip(left, fates):
            verdicts[number] = [old or new for old, new in zip(verdicts[number], fate)]
    return verdicts


def judge_all(library, chosen, options):
    verdicts = judge_edits(library, [mutant.edit for mutant in chosen], options)
    refused = [mutant for mutant, verdict in zip(chosen, verdicts) if "refused" in verdict]
    if refused:
        raise RuntimeError(f"{library}: the simulator refuses {refused[0].what}: {refused[0].source}")
    return verdicts


def compile_program(tools, scratch, source, arguments):
    library = scratch / "program.so"
    chosen = [argument for argument in arguments if argument.startswith(COMPILER_OPTIONS)]
    subprocess.run([tools / "fp4-runner", source, *chosen, "--emit=so", "-o", library], check=True)
    return library


def is_weaker_access(mutant):
    """Returns True for mutants of which the orders of steps show nothing. An atomic that was
    relaxed before orders nothing: if it is narrower, it may race, which the checker finds in any
    order."""
    return (mutant.what == "access made relaxed" or
            (mutant.what == "scope narrowed" and "mbarrier" not in mutant.source))


def ends_with_error(arguments):
    return any(argument.startswith("--expect-error") for argument in arguments)


def reached(library, chosen, options):
    """Returns the mutants to whose lines a run comes."""
    fates = judge_edits(library, [trap_at(mutant) for mutant in chosen], options) if chosen else []
    return [mutant for mutant, fate in zip(chosen, fates) if any(fate)]


def explored(library, alive, options):
    """Returns what every order of each mutant comes to, in the first `options.explored` runs: None
    where all are right. Runs that end with an error do not say whether these were all."""
    chosen = [mutant for mutant in alive if not is_weaker_access(mutant)]
    every = copy.copy(options)
    every.runs = [arguments for arguments in options.runs if not ends_with_error(arguments)]
    every.runs = every.runs[:options.explored]
    if every.runs != options.runs:
        chosen = reached(library, chosen, every)
    every.schedules, every.check = [("exhaustive", 1)], "strict"
    every.extra = [f"--max-orders={options.max_orders}", f"--seconds={options.seconds}"]
    verdicts = judge_all(library, chosen, every) if chosen else []
    return {mutant: verdict[0] for mutant, verdict in zip(chosen, verdicts)}


ALIVE = ("equivalent", "redundant", "unreached", "SURVIVED")


class Tally:
    """The mutants of one library and what killed them."""

    def __init__(self, library, chosen, options):
        self.chosen, self.verdicts = chosen, judge_all(library, chosen, options)
        self.killers = [next((v for v in verdict if v), None) for verdict in self.verdicts]
        alive = [mutant for mutant, killer in zip(chosen, self.killers) if not killer]
        self.equivalent = [mutant for mutant in alive if subsumed(mutant)]
        left = [mutant for mutant in alive if not subsumed(mutant)]
        come_to = reached(library, left, options)
        self.unreached = [mutant for mutant in left if mutant not in come_to]
        left = come_to
        orders = explored(library, left, options)
        self.redundant = [mutant for mutant in left if orders.get(mutant, "none") is None]
        late = {mutant: fate for mutant, fate in orders.items() if fate not in (None, "incomplete", "timeout")}
        self.killers = [killer or late.get(mutant) for mutant, killer in zip(chosen, self.killers)]
        self.survivors = [mutant for mutant in left
                          if mutant not in self.redundant and mutant not in late]

    def fate(self, mutant, killer):
        if mutant in self.equivalent:
            return "equivalent"
        if mutant in self.unreached:
            return "unreached"
        if mutant in self.redundant:
            return "redundant"
        return killer or "SURVIVED"

    def killed(self):
        return sum(map(bool, self.killers))

    def fates(self):
        return [(mutant, self.fate(mutant, killer))
                for mutant, killer in zip(self.chosen, self.killers)]

    def summary(self):
        return (f"{self.killed()} of {len(self.chosen)} mutants killed, "
                f"{len(self.equivalent)} equivalent, {len(self.redundant)} redundant, "
                f"{len(self.unreached)} unreached, {len(self.survivors)} survived")

    def print(self, options):
        for mutant, fate in self.fates():
            if options.verbose or fate in ALIVE:
                why = subsumed(mutant) or "" if fate == "equivalent" else ""
                print(f"{mutant.line}: {mutant.what}: {fate}: {mutant.source} {why}".rstrip())
        if options.every_schedule:
            for index, (policy, seed) in enumerate(options.schedules):
                killed = sum(bool(verdict[index]) for verdict in self.verdicts)
                print(f"{policy} {seed}: {killed} of {len(self.chosen)} killed")
        for killer, count in collections.Counter(filter(None, self.killers)).most_common():
            print(f"  {killer}: {count}")
        print(self.summary())


def tally(library, options):
    """Runs the program as it is, then its mutants."""
    texts = kernels(library)
    for arguments in options.runs:
        as_it_is = judged(library, arguments, [Edit(texts[0], 0, 0, "")], options)[0]
        if any(as_it_is):
            raise RuntimeError(f"{library} fails as it is: {as_it_is}")
    idle = idle_kernels(texts, library, options)
    if idle:
        print(f"no run launches {len(idle)} of the kernels, which are left out")
    chosen = list(mutants(text for text in texts if text not in idle))
    if options.limit and len(chosen) > options.limit:
        chosen = random.Random(1).sample(chosen, options.limit)
    return Tally(library, chosen, options)


def schedules(text):
    return [(policy, int(seed)) for policy, seed in (item.split(":") for item in text.split(","))]


def parser(description):
    result = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build tree")
    result.add_argument("--check", default="strict", choices=["off", "default", "strict"])
    result.add_argument("--schedules", type=schedules, default=SCHEDULES,
                        help="POLICY:SEED,...; default: " +
                        ",".join(f"{policy}:{seed}" for policy, seed in SCHEDULES))
    result.add_argument("--limit", type=int, default=0, help="at most so many mutants")
    result.add_argument("--limit-steps", type=int, default=1 << 26,
                        help="warp instructions without progress that end a mutant")
    result.add_argument("--every-schedule", action="store_true",
                        help="go on behind a schedule that kills, and print the rate of each")
    result.add_argument("--max-orders", type=int, default=200,
                        help="orders in which each mutant runs that is alive")
    result.add_argument("--seconds", type=int, default=60, help="for the orders of each mutant")
    result.set_defaults(extra=[], explored=None)
    result.add_argument("--verbose", action="store_true", help="a line for each mutant")
    result.add_argument("--jobs", type=int, default=os.cpu_count())
    return result


def main():
    arguments = parser(__doc__)
    arguments.add_argument("program", type=pathlib.Path, help="a library, or the .mlir to compile")
    options, options.arguments = arguments.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="fp4-mutate-") as folder:
        scratch = pathlib.Path(folder)
        library = options.program
        if library.suffix == ".mlir":
            library = compile_program(options.build / "bin", scratch, library, options.arguments)
            options.arguments = [argument.split(",")[0] for argument in options.arguments
                                 if not argument.startswith(COMPILER_OPTIONS[1:])]
        options.runs = [options.arguments]
        result = tally(library, options)
        result.print(options)
        return 1 if result.survivors or not result.chosen else 0


if __name__ == "__main__":
    sys.exit(main())
