"""Deletes one synchronization at a time from a kernel's PTX and runs the rest in the simulator.

usage: mutations.py FP4_RUN LIBRARY.so [--shape M]

The library holds the PTX as text; a deleted instruction becomes blanks, so nothing else moves. Every
deletion must make the run fail (hang, touch data that is not there, or give another result) under one
of the schedules; the library as it is passes under all of them.
"""
import re
import subprocess
import sys
import tempfile

SCHEDULES = [("lazy", 1), ("random", 1), ("random", 2)]

# What each pattern deletes; the group named "cut" where only a part of the match goes.
MUTATIONS = {
    "initialization": r"mbarrier\.init[^;]*;",
    "block barrier": r"bar\.sync[^;]*;",
    "wait": r"mbarrier\.try_wait[^;]*;\s*not\.pred[^;]*;\s*(?P<cut>@%p\d+ bra[^;]*;)",
    "expect_tx": r"mbarrier\.arrive\.expect_tx[^;]*;",
    "arrival": r"mbarrier\.arrive\.shared[^;]*;",
    "commit": r"tcgen05\.commit[^;]*;",
    "wait for loads": r"tcgen05\.wait::ld[^;]*;",
    "release of tensor memory": r"tcgen05\.dealloc[^;]*;",
}


def run(fp4_run, library, extra, policy, seed):
    """First error line of a run, or None if it passed."""
    command = [fp4_run, library, "--device=sim", f"--policy={policy}", f"--seed={seed}", *extra]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if result.returncode == 0:
        return None
    lines = [l.strip() for l in (result.stdout + result.stderr).splitlines()]
    return next((l for l in lines if "error" in l or "differ" in l), f"exit {result.returncode}")


def kernel_text(image):
    """Begin and end of the PTX of the tcgen05 kernel in the library's bytes."""
    inside = image.index(b"tcgen05.alloc")
    return image.rindex(b".version", 0, inside), image.index(b"\0", inside)


def main():
    fp4_run, library, extra = sys.argv[1], sys.argv[2], sys.argv[3:]
    image = open(library, "rb").read()
    begin, end = kernel_text(image)
    text = image[begin:end].decode()
    for policy, seed in SCHEDULES:
        error = run(fp4_run, library, extra, policy, seed)
        print(f"as it is, {policy} {seed}: {error or 'passes'}")
    caught = missed = 0
    for name, pattern in MUTATIONS.items():
        matches = list(re.finditer(pattern, text))
        if name == "initialization":  # one of many alike
            matches = matches[:1]
        for match in matches:
            first, last = match.span("cut" if "cut" in match.groupdict() else 0)
            blank = text[:first] + re.sub(r"\S", " ", text[first:last]) + text[last:]
            with tempfile.NamedTemporaryFile(suffix=".so") as mutant:
                mutant.write(image[:begin] + blank.encode() + image[end:])
                mutant.flush()
                errors = (run(fp4_run, mutant.name, extra, *schedule) for schedule in SCHEDULES)
                error = next((e for e in errors if e), None)
            line = text.count("\n", 0, match.start()) + 1
            print(f"without the {name} of line {line}: {'caught, ' + error if error else 'MISSED'}")
            caught, missed = caught + bool(error), missed + (not error)
    print(f"{caught} caught, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
