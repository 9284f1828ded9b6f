"""A case of the kit: a kernel `k(in, out)`, its input, and the size of its output."""
from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

# Targets by what they have.
TCGEN05 = ("sm_100a", "sm_103a")
BLACKWELL = (*TCGEN05, "sm_120a", "sm_121a")
CLUSTERS = ("sm_90a", *TCGEN05)  # of two CTAs and more; sm_120 launches clusters of one
EVERY = ("sm_90a", *BLACKWELL)

HEADER = ".version @VERSION@\n.target @TARGET@\n.address_size 64\n"


@dataclass(frozen=True)
class TensorMap:
    """A map of the input buffer, which the driver encodes and the kernel has as its third parameter.
    `type` is the number of CUtensorMapDataType; strides are in bytes, of all dimensions but the first."""
    type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0


@dataclass(frozen=True)
class Case:
    """One kernel and its data. The image of a case is what `out` holds after the launch, which begins
    with `before` in every byte; the simulator's image is the expected one."""
    name: str  # FAMILY_WHAT
    ptx: str
    data: bytes | Callable[[], bytes]  # of the input; a function where it takes time to make
    size: int  # of the output, in bytes
    targets: tuple[str, ...] = TCGEN05
    block: int = 128
    grid: int = 1
    shared: int = 0
    before: int = 0xEE
    map: TensorMap | None = None
    compared: int | None = None  # bytes of the image that must agree, where others depend on the order of CTAs

    def contents(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else self.data()


@dataclass(frozen=True)
class Answer:
    """One possible behaviour of a device, and whether an image shows it."""
    text: str
    holds: Callable[[bytes], bool]


@dataclass(frozen=True)
class Probe:
    """A fact that the simulator infers ([uncertain], docs/reference/simulator.md) and a case that shows it."""
    case: Case
    question: str
    where: str  # the function that assumes it
    answers: tuple[Answer, ...]
    words: Callable[[bytes], str] = field(default=lambda image: image[:32].hex())
    assumes: str = ""  # where the simulator refuses the case: what it takes for granted

    def answer(self, image: bytes) -> str:
        """Returns the answer that holds for the image, else its first words."""
        found = [answer.text for answer in self.answers if answer.holds(image)]
        if found or not self.answers:
            return " and ".join(found) or self.words(image)
        return f"none of the expected answers: {self.words(image)}"


def words(values: Iterable[int]) -> bytes:
    listed = list(values)
    return struct.pack(f"<{len(listed)}I", *listed)


def unpack(image: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(image) // 4}I", image)


def noise(count: int, seed: int) -> bytes:
    """Random bytes that are equal on every machine."""
    return random.Random(seed).randbytes(count)
