"""Random misuse ends in an exception of fp4, TypeError or ValueError, and nothing is harmed."""

import random
import unittest
from collections.abc import Callable
from typing import Any

import fp4
import numpy as np
from programs import QUANTIZE, compiled, matrix, product

CASES = 400
SEED = 20261121
REFUSED = (fp4.Error, TypeError, ValueError)

JUNK: "list[Any]" = [None, 3, 2.5, "x", b"bytes", [1.0], {}, object(), float, True, (1, 2), 1j]


def wrong_arrays(rng: random.Random, right: Any) -> "list[Callable[[], Any]]":
    """What `right`, a NumPy array that fits, could be instead."""
    dtypes = [np.float64, np.int8, np.bool_, np.complex64, np.int32, "V4", "O", ">f4", "S3"]
    return [
        lambda: rng.choice(JUNK),
        lambda: np.zeros(right.shape, rng.choice(dtypes)),
        lambda: np.zeros((*right.shape, rng.randint(2, 3)), right.dtype),
        lambda: np.zeros(tuple(size + rng.choice((-1, 1, 7)) for size in right.shape) or (1,),
                         right.dtype),
        lambda: np.zeros((*right.shape[:-1], 0), right.dtype),
        lambda: np.zeros(right.shape[::-1] or (2,), right.dtype).T,
        lambda: fp4.tiled(right, rng.randint(1, 300), rng.randint(1, 9)),
    ]


def fits(index: int, value: Any) -> bool:
    """The few random arrays that are not wrong."""
    return index == 0 and isinstance(value, np.ndarray) and value.flags.c_contiguous and \
        value.dtype == np.uint16 and value.ndim == 2 and value.shape[0] > 0 and \
        value.shape[1] == 64


def misuse_call(rng: random.Random) -> "Callable[[], Any]":
    function = rng.choice(["amax", "linear"])
    right = [matrix(), np.float32(3)][:1 if function == "amax" else 2]
    index = rng.randrange(len(right))
    arguments: list[Any] = list(right)
    while True:
        arguments[index] = rng.choice(wrong_arrays(rng, np.asarray(right[index])))()
        if not fits(index, arguments[index]):
            return lambda: compiled()(*arguments, function=function)


def misuse_count(rng: random.Random) -> "Callable[[], Any]":
    count = rng.choice([0, 2, 3, 9])
    return lambda: compiled()(*[matrix()] * count, function="amax")


def misuse_name(rng: random.Random) -> "Callable[[], Any]":
    name = rng.choice([None, "", "AMAX", "amax\0", "é", 3, b"amax", "\ud800"])
    return lambda: compiled()(matrix(), function=name)


def misuse_text(rng: random.Random) -> "Callable[[], Any]":
    text = rng.choice([QUANTIZE, product()])
    body = text[:text.rindex("}")]
    if rng.random() < 0.5:
        return lambda: fp4.compile(body[:rng.randrange(text.index("@") + 1, len(body))])
    place = rng.randrange(len(body))
    return lambda: fp4.compile(body[:place] + rng.choice("\0\x01\x7f☃") + body[place:] + "(")


def misuse_options(rng: random.Random) -> "Callable[[], Any]":
    value = rng.choice([*JUNK[1:9], "", "sm_1", -1, 2**70, "\0"])
    if rng.random() < 0.5:
        name = rng.choice(["check", "policy", "target", "timeline"])
        wrong = value if value != "x" or name != "timeline" else 5
        return lambda: fp4.Device("sim", **{name: wrong if wrong not in ("sm_1",) else ""})
    return lambda: fp4.compile(QUANTIZE, dims={"M": value if isinstance(value, str) else "M"})


def misuse_other(rng: random.Random) -> "Callable[[], Any]":
    junk = rng.choice([value for value in JUNK if value is not None])
    return rng.choice([
        lambda: fp4.load(junk), lambda: compiled().ir(junk), lambda: fp4.Device(junk),
        lambda: compiled().save(b"/x"), lambda: compiled().program().on(junk),
        lambda: fp4.tiled(matrix(), "3", junk), lambda: fp4.compile(junk),
        lambda: compiled()(fp4.Tiled(matrix(), junk), function="amax"),
        lambda: fp4.Device("sim", seed=rng.choice([0, -1, 2**64, 1.5, "x"])),
        lambda: fp4.Device("sim", threads=rng.choice([0, -1, 2**32, 1.5, "x"])),
    ])


class Misuse(unittest.TestCase):
    def test_random_misuse_is_refused(self) -> None:
        rng = random.Random(SEED)
        expected = compiled()(matrix(), function="amax")
        kinds = [misuse_call] * 6 + [misuse_count, misuse_name, misuse_text, misuse_options,
                                     misuse_other]
        for case in range(CASES):
            kind = rng.choice(kinds)
            wrong = kind(rng)
            with self.subTest(case=case, kind=kind.__name__), self.assertRaises(REFUSED):
                wrong()
        self.assertEqual(compiled()(matrix(), function="amax", verify=True), expected)


if __name__ == "__main__":
    unittest.main()
