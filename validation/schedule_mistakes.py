"""Mistakes of the passes of phase `scheduled`: changes of a line of their result, or of two.

Each function or pattern yields the texts of a kernel, a list of lines, that a wrong pass would have
made. validation/schedule_mutants.py tries them.
"""
import collections
import re

Mistake = collections.namedtuple("Mistake", "of name change")
MISTAKES = []


def mistake(of, name):
    """Registers a function that yields the changed texts of a kernel, which has `lines`."""
    def register(change):
        MISTAKES.append(Mistake(of, name, change))
        return change
    return register


def replaced(lines, number, *new):
    return lines[:number] + list(new) + lines[number + 1:]


def each(pattern, new, condition=lambda lines, number: True):
    """Replaces what `pattern` finds, in one line at a time; None deletes the line."""
    def change(lines):
        for number, line in enumerate(lines):
            found = re.search(pattern, line)
            if not found or not condition(lines, number):
                continue
            text = None if new is None else line[:found.start()] + found.expand(new) + line[found.end():]
            if text != line:
                yield replaced(lines, number, *[text] * (text is not None))
    return change


def add(of, name, pattern, new, condition=lambda lines, number: True):
    MISTAKES.append(Mistake(of, name, each(pattern, new, condition)))


def role_of(lines, number):
    return next((line for line in reversed(lines[:number + 1]) if "pipe.role " in line), "")


def in_role(text):
    return lambda lines, number: text in role_of(lines, number)


# --- pipe-expand-work: loops over work, directly in a role --------------------------------------
WORK = r"^(      {indent}(?:%\S+ = )?scf\.for %\w+ = )(%\w+)( to )(%\w+)( step )(%\w+)"
LOOP = WORK.format(indent="  ")


def dynamic(lines, number):
    """The loop ends at a number that is no constant, and another role has such a loop."""
    return not re.search(r" to %c\d+_i32", lines[number])


for name, new in [("a role begins at the first tile", r"\1%c0_i32\3\4\5\6"),
                  ("a role begins with the second turn", r"\1\6\3\4\5\6"),
                  ("a role has no tile", r"\1\2\3\2\5\6"),
                  ("a role ends with the first turn", r"\1\2\3\6\5\6"),
                  ("a role takes every tile", r"\1\2\3\4\5%c1_i32"),
                  ("a role takes one tile", r"\1\2\3\4\5\4")]:
    add("expand-work", name, LOOP, new, dynamic)


def carried(lines, number):
    """The iteration arguments of the loop at `number` with their first values, and its yield."""
    pairs = re.findall(r"(%\w+) = (%[\w#]+)", lines[number].partition("iter_args(")[2])
    indent = re.match(" *", lines[number])[0]
    end = next((n for n in range(number, len(lines)) if lines[n] in (indent + "}", indent + "} {pipe.work}")), None)
    yields = re.match(r"( *scf\.yield )(.*)( : .*)", lines[end - 1]) if pairs and end else None
    return pairs, (end - 1, yields[1], yields[2].split(", "), yields[3]) if yields else None


def loops(lines, pattern):
    for number, line in enumerate(lines):
        if re.match(pattern, line):
            pairs, last = carried(lines, number)
            if last:
                yield number, pairs, last


def yielding(lines, last, values):
    number, head, _, types = last
    return replaced(lines, number, head + ", ".join(values) + types)


@mistake("expand-work", "a counter stays as it is from tile to tile")
def keep_counter(lines):
    for _, pairs, last in loops(lines, LOOP):
        for i, (argument, _) in enumerate(pairs):
            if is_counter(lines, argument):
                values = list(last[2])
                values[i] = argument
                yield yielding(lines, last, values)


def is_counter(lines, argument):
    """The loop's argument counts stages: a channel, or an inner loop, takes it."""
    return any(re.search(rf"(\[{argument}\]|= {argument}[,)]|stage_of {argument} )", line) and "%" in line
               and ("pipe." in line or "iter_args" in line) for line in lines)


@mistake("expand-work", "a counter begins with 1")
def begin_counter(lines):
    for number, pairs, _ in loops(lines, LOOP):
        for argument, first in pairs:
            if first == "%c0_i32" and is_counter(lines, argument):
                yield replaced(lines, number,
                               lines[number].replace(f"{argument} = {first}", f"{argument} = %c1_i32"))


@mistake("expand-work", "two counters change places")
def swap_counters(lines):
    for _, pairs, last in loops(lines, LOOP):
        for i in range(len(pairs) - 1):
            if is_counter(lines, pairs[i][0]) and is_counter(lines, pairs[i + 1][0]):
                values = list(last[2])
                values[i], values[i + 1] = values[i + 1], values[i]
                yield yielding(lines, last, values)


add("expand-work", "a tile is not handed over", r"^          pipe\.(producer_commit|consumer_release) ", None)

# --- pipe-place-scalars: copies of numbers at the begin of a role -------------------------------


def own_copy(lines, number):
    role = role_of(lines, number)
    before = lines[lines.index(role):number] if role else ["scf.for"]
    return not any("scf." in line for line in before) and any("pipe.opaque" in line for line in lines)


for name, pattern, new in [
        ("a copy subtracts what is added", r"^(        %\w+ = arith\.)addi ", r"\1subi "),
        ("a copy adds what is multiplied", r"^(        %\w+ = arith\.)muli ", r"\1addi "),
        ("a copy has the rest of a division", r"^(        %\w+ = arith\.)(?:div|ceildiv)ui ", r"\1remui "),
        ("a copy divides by 1", r"^(        %\w+ = arith\.divui %\w+, )%\w+", r"\1%c1_i32"),
        ("a copy has the CTA of another dimension", r"^(        %\w+ = gpu\.block_id  )x", r"\1y"),
        ("a copy has the CTAs of another dimension", r"^(        %\w+ = gpu\.grid_dim  )x", r"\1y"),
        ("a copy begins with another number", r"^(        %\w+ = arith\.(?:addi|muli) )%\w+(, %\w+)", r"\1%c1_i32\2"),
        ("a copy ends with another number", r"^(        %\w+ = arith\.(?:addi|muli) %\w+, )%\w+", r"\1%c0_i32"),
        ("a hidden number is another one", r"^(        %\w+ = pipe\.opaque )%\w+", r"\1%c1_i32"),
        ("an entry is that of another index", r"^(        %\w+ = pipe\.load_entry %\w+\[)%\w+", r"\1%c1_i32")]:
    add("place-scalars", name, pattern, new, own_copy)

# --- pipe-split-warps ---------------------------------------------------------------------------
SCALES = in_role("[scale_copy]")
add("split-warps", "MMAs name other columns", r"(pipe\.copy_scales .* at )(\d+)(?=.* copied)", r"\g<1>4")
add("split-warps", "copies fill other columns", r"(pipe\.copy_scales .* at )(\d+)", r"\g<1>4", SCALES)
add("split-warps", "MMAs name one set of two", r"(pipe\.copy_scales .* sets )2(?: set \d)?(?= copied)", r"\g<1>1")
add("split-warps", "copies fill one set of two", r"(pipe\.copy_scales .* sets )2(?: set \d)?", r"\g<1>1", SCALES)
add("split-warps", "the channel does not know of the copies", r"\[tensor, scale_copy\]( depth)", r"tensor\1")
add("split-warps", "a copy is lost", r"pipe\.copy_scales ", None, SCALES)
add("split-warps", "a copy does not wait for its set", r"pipe\.await_release ", None, SCALES)
add("split-warps", "the copies release nothing", r"pipe\.consumer_release ", None, SCALES)
add("split-warps", "the MMAs release nothing", r"pipe\.consumer_release ", None, in_role("drives [tensor]"))

# --- pipe-elect-threads -------------------------------------------------------------------------
add("elect-threads", "warps that compute are one that issues", r"(drives \[threads\])(?! whole)", r"\1 whole")
add("elect-threads", "warps with sums are one that issues", r"(drives \[tensor, threads\])(?! whole)", r"\1 whole")
add("elect-threads", "warps that store are one that issues", r"(drives \[bulk_store\])(?! whole)", r"\1 whole")
add("elect-threads", "two warps issue for one engine", r"(warps \d+ to )(\d+)( drives \[\w+\] whole)", r"\g<1>16\3")
add("elect-threads", "warps of two engines are whole",
    r"(drives \[tma\])( whole)?", r"drives [tma, threads] whole")
add("elect-threads", "an auxiliary role issues", r"(drives \[threads\](?: registers \d+)? auxiliary)(?! whole)", r"\1 whole")

add("elect-threads", "a role that takes work over is whole", r"(drives \[tma\])(?! whole)", r"\1 whole",
    lambda lines, number: any("pipe.next_work" in line for line in lines))
add("elect-threads", "a role that asks for work is whole", r"(drives \[work_queue\])(?! whole)", r"\1 whole")
add("elect-threads", "a role without engines is whole", r"(drives \[\])(?! whole)", r"\1 whole")
add("elect-threads", "threads share an entry that each loads for itself",
    r"(pipe\.load_entry %\w+\[%\w+\])(?! of_warp)", r"\1 of_warp")

# --- pipe-unroll --------------------------------------------------------------------------------
add("unroll", "the first tile takes the second set", r"(sets 2 set )0", r"\g<1>1")
add("unroll", "the second tile takes the first set", r"(sets 2 set )1", r"\g<1>0")
K_LOOP = WORK.format(indent="    ")


def unrolled(lines, number):
    """The loop at `number` hands over two stages of one channel in an iteration."""
    indent = re.match(" *", lines[number])[0]
    end = next(n for n in range(number, len(lines)) if lines[n] == indent + "}")
    waits = [line for line in lines[number:end] if "pipe.consumer_wait " in line]
    return len(waits) >= 2 and waits[0].split("consumer_wait ")[1][:8] == waits[-1].split("consumer_wait ")[1][:8]


add("unroll", "an iteration goes on by one tile", K_LOOP, r"\1\2\3\4\5%c1_i32", unrolled)
add("unroll", "the loop begins at another tile", K_LOOP, r"\1\6\3\4\5\6", unrolled)
add("unroll", "the loop ends too early", K_LOOP, r"\1\2\3\6\5\6", unrolled)
SECOND = r"^(            (?:%[^=]*= )?pipe\.(?:{op}) %\w+\[)(%\w+)"


def second_of(op):
    """Gives the second op of an iteration the counter of the first one."""
    def change(lines):
        for number, pairs, last in loops(lines, K_LOOP):
            if not unrolled(lines, number):
                continue
            found = [n for n in range(number, last[0]) if re.match(SECOND.format(op=op), lines[n])]
            for first, second in zip(found, found[1:]):
                a, b = (re.match(SECOND.format(op=op), lines[n])[2] for n in (first, second))
                same = lines[first].split("[")[0].split("pipe.")[1] == lines[second].split("[")[0].split("pipe.")[1]
                if a != b and same:
                    yield replaced(lines, second, lines[second].replace(f"[{b}]", f"[{a}]"))
    return change


MISTAKES.append(Mistake("unroll", "the second wait is for the first stage", second_of("consumer_wait")))
MISTAKES.append(Mistake("unroll", "the first stage is released twice", second_of("consumer_release")))


@mistake("unroll", "a counter goes on by one stage of two")
def count_one(lines):
    for number, pairs, last in loops(lines, K_LOOP):
        if not unrolled(lines, number):
            continue
        for i, (argument, _) in enumerate(pairs):
            one = next((line for line in lines[number:last[0]] if f"arith.addi {argument}, " in line), None)
            if one and is_counter(lines, argument) and one.split()[0] != last[2][i]:
                values = list(last[2])
                values[i] = one.split()[0]
                yield yielding(lines, last, values)


def inside(indent, pattern, new):
    def change(lines):
        for number, _, last in loops(lines, K_LOOP):
            if unrolled(lines, number):
                for n in range(number, last[0]):
                    if re.match(f"^ {{{indent}}}.*{pattern}", lines[n]):
                        yield replaced(lines, n, *new)
    return change


MISTAKES.append(Mistake("unroll", "an iteration releases one stage of two", inside(12, r"pipe\.consumer_release ", [])))


@mistake("unroll", "the first tile is multiplied twice")
def tile_twice(lines):
    for number, _, last in loops(lines, K_LOOP):
        waits = [n for n in range(number, last[0]) if "pipe.consumer_wait " in lines[n]]
        if len(waits) != 2 or not unrolled(lines, number):
            continue
        tiles = [re.findall(r"%[\w#]+", lines[n].split("=")[0]) for n in waits]
        for n in range(waits[1], last[0]):
            text = lines[n]
            for a, b in zip(*tiles):
                text = re.sub(rf"{b}\b", a, text)
            if "pipe.mma " in text and text != lines[n]:
                yield replaced(lines, n, text)


# --- pipe-fold-awaits ---------------------------------------------------------------------------
FOLDED = r"pipe\.await_release (.*) folded"
add("fold-awaits", "the wait for a set is lost", FOLDED, None)
add("fold-awaits", "a wait for another distance is folded", r"(pipe\.await_release .* distance )2( folded)", r"\g<1>1\2")
add("fold-awaits", "there is one set", r"(pipe\.copy_scales .* sets )2(?: set \d)?", r"\g<1>1",
    lambda lines, number: any(" folded" in line for line in lines))
add("fold-awaits", "a wait of a warp that copies alone is folded", r"(pipe\.await_release .* distance 2)( :)", r"\1 folded\2", SCALES)
add("fold-awaits", "MMAs arrive twice", FOLDED, None)
MISTAKES[-1] = Mistake("fold-awaits", "MMAs arrive twice", lambda lines: (
    lines[:n] + [line] + lines[n:] for n, line in enumerate(lines) if re.search(FOLDED, line)))


def moved(pattern, over):
    """Moves a line behind the next one that `over` finds."""
    def change(lines):
        for n, line in enumerate(lines):
            if not re.search(pattern, line):
                continue
            to = next((m for m in range(n + 1, len(lines)) if re.search(over, lines[m])), None)
            if to and re.match(" *", lines[to])[0] == re.match(" *", line)[0]:
                yield lines[:n] + lines[n + 1:to + 1] + [line] + lines[to + 1:]
    return change


MISTAKES.append(Mistake("split-warps", "a copy waits behind itself",
                        moved(r"pipe\.await_release (?!.*folded)", r"pipe\.copy_scales ")))
MISTAKES.append(Mistake("fold-awaits", "MMAs arrive behind the copy", moved(FOLDED, r"pipe\.copy_scales ")))
MISTAKES.append(Mistake("fold-awaits", "MMAs arrive behind the release", moved(FOLDED, r"pipe\.consumer_release ")))
add("fold-awaits", "a wait is folded and waits, too", r"^( *)(pipe\.await_release .*) folded( : .*)$", r"\1\2 folded\3\n\1\2 folded\3")
add("fold-awaits", "the stage is released before its copy", r"pipe\.consumer_release ", None,
    lambda lines, number: any(" folded" in line for line in lines) and in_role("tensor, scale_copy")(lines, number))
add("fold-awaits", "a set of the next stage is filled", r"(pipe\.copy_scales .* sets 2 set )(\d)", r"\g<1>1",
    lambda lines, number: any(" folded" in line for line in lines))

# --- pipe-carry-stages --------------------------------------------------------------------------
STAGE = r"(pipe\.stage_of %\w+(?: ahead \d+)? at )(%[\w#]+), (%[\w#]+)( of )(\d+)"
add("carry-stages", "the ring is longer", STAGE, r"\1\2, \3\g<4>7")
add("carry-stages", "stage and phase change places", STAGE, r"\1\3, \2\4\5")
add("carry-stages", "the phase is that of a consumer", r"(pipe\.stage_of .*) opposite", r"\1")
add("carry-stages", "the phase is that of a producer", r"(pipe\.stage_of .* of \d+)$", r"\1 opposite")
add("carry-stages", "a wait is for the stage itself", r"(pipe\.stage_of %\w+) ahead \d+", r"\1")
# A stage goes on by `s + 1 == depth ? 0 : s + 1`, and its phase changes then.
add("carry-stages", "the ring begins anew with its second stage", r"^( *%\w+ = arith\.select %\w+, )%\w+(, %\w+)",
    r"\1%c1_i32\2", lambda lines, number: "arith.extui" in lines[number + 1])
add("carry-stages", "the ring never begins anew", r"^( *%\w+ = arith\.cmpi )eq(, %\w+, %\w+ : i32)$", r"\1slt\2",
    lambda lines, number: [word for line in lines[number + 1:number + 4] for word in ("select", "extui")
                           if f"arith.{word}" in line] == ["select", "extui"])
add("carry-stages", "the phase never changes", r"^( *%\w+ = arith\.)extui (%\w+) : i1 to i32", r"\1constant 0 : i32")


def begins_stage(lines, number):
    """The three lines from `number` on are the stage and the phase of an iteration."""
    return ["remui" in lines[number], "divui" in lines[number + 1], "andi" in lines[number + 2]] == [True] * 3


add("carry-stages", "the first stage is the second", r"(arith\.)remui (%\w+), %\w+", r"\1addi \2, %c1_i32", begins_stage)
add("carry-stages", "the first phase is the other one", r"(arith\.andi )%\w+, (%\w+)", r"\1\2, \2",
    lambda lines, number: begins_stage(lines, number - 2))

# --- pipe-defer-releases ------------------------------------------------------------------------
LOOPED = lambda lines, number: any("chain until_iteration" in line for line in lines)
MATH = lambda lines, number: LOOPED(lines, number) and in_role("tensor, threads")(lines, number)


def released_if(condition):
    """Finds releases in a branch whose condition compares what `condition` finds."""
    def found(lines, number):
        branch = next((n for n in range(number, 1, -1) if "scf.if " in lines[n]), None)
        return MATH(lines, number) and branch and number - branch < 16 and bool(
            re.search(rf"arith\.cmpi sgt, {condition}, ", lines[branch - 1]))
    return found


# Releases are in `if the iteration is not the first` in the loop, and `if there was one` behind it.
add("defer-releases", "the last stage is not released", r"pipe\.consumer_release ", None, released_if(r"%(?!arg)\w+"))
add("defer-releases", "no stage is released in the loop", r"pipe\.consumer_release ", None, released_if(r"%arg\d+"))
#: An MMA in registers that is complete when it ends.
OWN = r"(pipe\.mma (?=.*!pipe\.fragment)(?!.*chain)[^:]*?)( :)"
add("defer-releases", "MMAs go on that are awaited", OWN, r"\1 chain until_iteration\2")
add("defer-releases", "the last MMAs await others of the iteration", r"(pipe\.mma .* chain )until_iteration", r"\1until_mma")


@mistake("defer-releases", "the stage of the running MMAs is released")
def release_running(lines):
    for number, line in enumerate(lines):
        found = re.search(r"pipe\.consumer_release (%\w+)\[(%\w+)\]", line)
        if not found or not MATH(lines, number):
            continue
        wait = next((old for old in reversed(lines[:number])
                     if f"pipe.consumer_wait {found[1]}[" in old), None)
        at = wait and re.search(r"consumer_wait %\w+\[(%\w+)\]", wait)[1]
        if at and at != found[2]:
            yield replaced(lines, number, line.replace(f"[{found[2]}]", f"[{at}]"))


MISTAKES.append(Mistake("defer-releases", "a stage is released before its MMAs", lambda lines: (
    new for n, line in enumerate(lines) if "pipe.consumer_release " in line and MATH(lines, n)
    for new in [move_up(lines, n, r"pipe\.mma ")] if new)))


def move_up(lines, number, over):
    to = next((m for m in range(number - 1, 0, -1) if re.search(over, lines[m])), None)
    if not to or re.match(" *", lines[to])[0] != re.match(" *", lines[number])[0]:
        return None
    return lines[:to] + [lines[number]] + lines[to:number] + lines[number + 1:]


MISTAKES.append(Mistake("defer-releases", "a stage is released twice", lambda lines: (
    lines[:n] + [line] + lines[n:] for n, line in enumerate(lines)
    if "pipe.consumer_release " in line and MATH(lines, n))))

def in_branch(lines, number):
    """The line is one of the first two of a branch with a release."""
    return MATH(lines, number) and any("scf.if " in line for line in lines[number - 2:number]) and any(
        "pipe.consumer_release " in line for line in lines[number:number + 12])


add("defer-releases", "the first iteration releases a stage, too", r"(arith\.cmpi )sgt(, %arg\d+, )", r"\1sge\2",
    lambda lines, number: MATH(lines, number) and "scf.if " in lines[number + 1])
add("defer-releases", "the stage of the next iteration is released",
    r"^( *%\w+ = arith\.)subi (%[\w#]+, %c1_i32)", r"\1addi \2", in_branch)
add("defer-releases", "the stage of two iterations before is released",
    r"^( *%c1_i32\w* = arith\.constant )1", r"\g<1>2", in_branch)

# --- pipe-elide-sync ----------------------------------------------------------------------------
add("elide-sync", "no stage is released", r"(pipe\.channel .* barriers \d+)(?! without)", r"\1 without_empty")
for op in ["producer_acquire", "consumer_wait", "await_release", "consumer_release", "producer_commit"]:
    add("elide-sync", f"{op} has no fence", rf"(pipe\.{op} %\w+\[%\w+\](?: distance \d+)?)(?! unfenced)(.*? : )", r"\1 unfenced\2")
add("elide-sync", "nobody arrives for a release", r"(pipe\.consumer_release %\w+\[%\w+\](?: unfenced)?)(?: by \w+)?( :)", r"\1 by nobody\2")
add("elide-sync", "a stage is released twice", r"(pipe\.consumer_release .*) by nobody", r"\1")
add("elide-sync", "an MMA has lost its fence", r"(pipe\.mma .*) fencing", r"\1")
add("elide-sync", "lanes that read by themselves arrive as one", r"(pipe\.consumer_release .* by )warps", r"\1aligned_warps")
add("elide-sync", "a release is left out", r"pipe\.consumer_release ", None)

# --- pipe-chain-mmas ----------------------------------------------------------------------------
add("chain-mmas", "an MMA goes on, and nothing follows it", OWN, r"\1 chain until_mma\2")
add("chain-mmas", "the next MMA does not begin", r"(pipe\.mma .*) chain follows", r"\1")
add("chain-mmas", "an MMA begins too early", r"(pipe\.mma .*) chain leads", r"\1")
add("chain-mmas", "an MMA begins with itself", r"(pipe\.mma (?=.*!pipe\.fragment)(?!.*chain)[^:]*?)( :)", r"\1 chain follows\2")
add("chain-mmas", "an MMA waits for one that is not there", r"(pipe\.mma (?=.*!pipe\.fragment)(?!.*chain)[^:]*?)( :)", r"\1 chain leads\2")
add("chain-mmas", "the order of two MMAs is turned around", r"(pipe\.mma .* chain )leads", r"\1follows")
add("chain-mmas", "two MMAs lead", r"(pipe\.mma .* chain )follows", r"\1leads")
add("chain-mmas", "an MMA that goes on begins with the next one", r"(pipe\.mma .* chain )until_mma", r"\1leads")


def both(lines):
    """The numbers of each MMA that leads, and of the one that follows it."""
    for first, line in enumerate(lines):
        if "chain leads" in line:
            yield first, next(n for n in range(first, len(lines)) if "chain follows" in lines[n])


@mistake("chain-mmas", "two MMAs that begin together have one set of sums")
def same_sums(lines):
    for first, second in both(lines):
        sums = [re.search(r"pipe\.mma (%[\w#]+)", lines[n])[1] for n in (first, second)]
        yield replaced(lines, second, lines[second].replace(sums[1], sums[0], 1))


@mistake("chain-mmas", "the tile of the second MMA comes behind the first")
def late_tile(lines):
    for first, second in both(lines):
        tile = re.search(r"pipe\.mma %[\w#]+, %[\w#]+(?:\[\d+\])?, (%\w+)", lines[second])[1]
        wait = next((n for n in range(first) if re.match(rf" *(?:%\w+, )*{tile}\b.* = pipe\.consumer_wait ", lines[n])), None)
        if wait and not any(re.search(rf"{name}\b", line) for line in lines[wait + 1:first + 1]
                            for name in re.findall(r"%\w+", lines[wait].split("=")[0])):
            yield lines[:wait] + lines[wait + 1:first + 1] + [lines[wait]] + lines[first + 1:]
