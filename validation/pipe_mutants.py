#!/usr/bin/env python3
"""Deletes or repeats channel operations of a pipelined kernel, one at a time: the verifiers must
object.

Reads IR from standard input. Every line of the kernel that works on a channel is removed and, in a
second mutant, written twice. A wait for a release is removed or moved one stage too late, scale
tiles get one set less, and a channel of a cluster becomes one of its CTA. fp4-opt with
pipe-verify-sync must reject each mutant with an error. Prints how many it rejected; exits with 1 if
a mutant passed or fp4-opt ended in another way.
"""
import concurrent.futures
import re
import subprocess
import sys

CHANNEL_OP = re.compile(
    r"pipe\.(producer_acquire|producer_commit|consumer_wait|consumer_release|expect_tx|load )")


AWAIT = re.compile(r"(pipe\.await_release .* distance )(\d+)")
SETS = re.compile(r"(pipe\.copy_scales .* sets )(\d+)")
SCOPE = " scope cluster"


def counted(match, change):
    return f"{match.group(1)}{int(match.group(2)) + change}"


def verdict(text):
    command = ["fp4-opt", "-", "-pipe-verify-sync", "-o", "/dev/null"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def mutants(lines):
    for number, line in enumerate(lines):
        if CHANNEL_OP.search(line):
            if " partial " not in line:  # a stage may be released as a whole alone
                yield "deleted", line, lines[:number] + lines[number + 1:]
            yield "repeated", line, lines[:number] + [line] + lines[number:]
        elif AWAIT.search(line):
            yield "deleted", line, lines[:number] + lines[number + 1:]
            late = AWAIT.sub(lambda match: counted(match, 1), line)
            yield "too late", line, lines[:number] + [late] + lines[number + 1:]
        elif SETS.search(line):
            fewer = SETS.sub(lambda match: counted(match, -1), line)
            yield "a set less", line, lines[:number] + [fewer] + lines[number + 1:]
        elif SCOPE in line:
            yield "scope cta", line, lines[:number] + [line.replace(SCOPE, "")] + lines[number + 1:]


def main():
    lines = sys.stdin.read().splitlines()
    if verdict("\n".join(lines)).returncode != 0:
        print("error: the kernel does not verify before it is changed")
        return 1
    cases = list(mutants(lines))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda case: verdict("\n".join(case[2])), cases))
    survivors = 0
    for (how, line, _), result in zip(cases, results):
        if result.returncode != 1 or "error:" not in result.stderr:
            survivors += 1
            print(f"error: {how} and accepted (exit code {result.returncode}): {line.strip()}")
    print(f"{len(cases) - survivors} of {len(cases)} mutants rejected")
    return 1 if survivors or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
