"""Each neighbour of GEMMs in a CUDA graph, whose replays have the simulator's bytes."""

import unittest
from typing import Any

import neighbours
import torch
from operations import ROWS, difference, matrix, same


class Graphs(unittest.TestCase):
    def replayed(self, call: Any, rows: int) -> None:
        inputs = [matrix(rows, seed) for seed in (rows, rows + 1)]
        expected = [call(x) for x in inputs]
        source, graph = inputs[0].cuda(), torch.cuda.CUDAGraph()
        call(source)  # what is allocated and loaded at first
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="relaxed"):
            found = call(source)
        for x, right in [*zip(inputs, expected)] * 2:
            source.copy_(x)
            graph.replay()
            torch.cuda.synchronize()
            self.assertTrue(same(found, right), difference(found, right))

    def test_every_operation(self) -> None:
        for name, call in neighbours.operations().items():
            for rows in ROWS[:2]:
                with self.subTest(name, rows=rows):
                    self.replayed(call, rows)
