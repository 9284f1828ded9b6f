#!/usr/bin/env python3
"""compare.py A B: the images of two devices, byte for byte. Prints one line per difference and one
line per family; exit code 0 when both folders hold the same files with the same bytes."""
import collections
import pathlib
import sys


def describe(name, a, b):
    """Says where two images differ, in words of 4 bytes as the kernels write them."""
    at = next(i for i in range(min(len(a), len(b)) + 1) if a[i : i + 1] != b[i : i + 1])
    count = sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))
    word = at - at % 4
    return (f"{name}: {count} of {max(len(a), len(b))} bytes differ, first at {at}: "
            f"{a[word:word + 4].hex()} and {b[word:word + 4].hex()}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    first, second = ({p.name: p.read_bytes() for p in pathlib.Path(arg).glob("*.bin")}
                     for arg in sys.argv[1:])
    equal, total = collections.Counter(), collections.Counter()
    for name in sorted(first.keys() | second.keys()):
        family = name.split("_")[0]
        total[family] += 1
        if name not in first or name not in second:
            print(f"{name}: only in {sys.argv[1] if name in first else sys.argv[2]}")
        elif first[name] != second[name]:
            print(describe(name, first[name], second[name]))
        else:
            equal[family] += 1
    for family in sorted(total):
        print(f"{family}: {equal[family]} of {total[family]} images equal")
    return 0 if total and equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
