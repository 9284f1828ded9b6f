"""Torch's allocator under memory pressure: results and temporary memory are reused at once."""

import collections
import unittest
from typing import Any

import fp4
import torch
from operations import difference, matrix, program, same

LIMIT = 96 << 20
ROWS = 2048


class Memory(unittest.TestCase):
    def setUp(self) -> None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(
            (torch.cuda.memory_reserved() + LIMIT) / total)

    def tearDown(self) -> None:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()

    def test_results_and_temporary_memory_are_reused(self) -> None:
        inputs = [matrix(ROWS, seed).cuda() for seed in range(3)]
        expected = [[tensor.cpu() for tensor in program()(x, function="whole")] for x in inputs]
        streams = [torch.cuda.Stream() for _ in range(2)]
        torch.cuda.synchronize()
        kept: Any = collections.deque(maxlen=3)
        addresses = set()
        for index in range(120):
            with torch.cuda.stream(streams[index % 2]):
                found = program()(inputs[index % 3], function="whole")
                for size in (4, ROWS * 64, ROWS * 512):  # the temporary memory, if it is free
                    torch.full((size,), 255, dtype=torch.uint8, device="cuda")
            addresses.add(found[0].data_ptr())
            kept.append((index, found))
            if index % 10 == 9:
                torch.cuda.synchronize()
                for at, results in kept:
                    self.assertTrue(same(results, expected[at % 3]),
                                    difference(results, expected[at % 3]))
        self.assertLess(len(addresses), 60, "no memory was reused")

    def test_no_memory_is_an_exception_and_the_next_call_works(self) -> None:
        for function in ("amax", "whole"):
            x = matrix(ROWS).cuda()
            expected = [tensor.cpu() for tensor in self.call(x, function)]
            held, failure = [], None
            try:
                while len(held) < 100_000:
                    held.append(self.call(x, function))
                    held.append(torch.empty(1 << 21, dtype=torch.uint8, device="cuda"))
            except (torch.OutOfMemoryError, fp4.DeviceError) as error:
                failure = error
            self.assertIsNotNone(failure)
            try:
                while len(held) < 200_000:  # to the last byte
                    held.append(torch.empty(512, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                pass
            with self.assertRaises((torch.OutOfMemoryError, fp4.DeviceError)):
                for _ in range(100):
                    held.append(self.call(x, function))
            held.clear()
            torch.cuda.synchronize()
            self.assertTrue(same(self.call(x, function), expected))

    def call(self, x: Any, function: str) -> Any:
        found = program()(x, function=function)
        return found if isinstance(found, tuple) else (found,)

    def test_nothing_leaks(self) -> None:
        x = matrix(64).cuda()
        program()(x, function="whole")
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(500):
            program()(x, function="whole")
        torch.cuda.synchronize()
        self.assertEqual(torch.cuda.memory_allocated(), before)
