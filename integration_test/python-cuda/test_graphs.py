"""Calls that are captured into a CUDA graph and replayed."""

import unittest
from typing import Any

import fp4
import torch
from operations import amax_of, difference, matrix, program, same


class Graphs(unittest.TestCase):
    def replayed(self, function: str, rows: int, known: bool) -> None:
        """Captures a call, whose types may be known, and replays it with other values."""
        ours = program() if known else fp4.Program(program()._code)
        inputs = [matrix(rows, seed).cuda() for seed in range(3)]
        scale = amax_of(inputs[0])
        extra = (scale,) if function == "quantize" else ()
        expected = [program()(x, *extra, function=function) for x in inputs]
        source, graph = inputs[0].clone(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            found = ours(source, *extra, function=function)
        for _ in range(20):
            for x, right in zip(inputs, expected):
                source.copy_(x)
                graph.replay()
                poison = [torch.full((size,), 255, dtype=torch.uint8, device="cuda")
                          for size in (4, 512, 1 << 16, 1 << 20)]
                torch.cuda.synchronize()
                self.assertTrue(same(found, right), difference(found, right))
                del poison

    def test_one_kernel(self) -> None:
        self.replayed("quantize", 130, True)

    def test_several_kernels_with_temporary_memory(self) -> None:
        self.replayed("whole", 130, True)

    def test_a_call_that_is_checked_while_a_graph_is_captured(self) -> None:
        self.replayed("quantize", 77, False)
        self.replayed("whole", 77, False)

    def test_a_chain_on_a_side_stream(self) -> None:
        x = matrix(64).cuda()
        expected = program()(x, program()(x, function="amax"), function="quantize")
        source, graph = x.clone(), torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            found = program()(source, program()(source, function="amax"), function="quantize")
        source.zero_()
        graph.replay()
        torch.cuda.synchronize()
        self.assertFalse(same(found, expected))
        source.copy_(x)
        graph.replay()
        torch.cuda.synchronize()
        self.assertTrue(same(found, expected), difference(found, expected))

    def test_an_error_while_a_graph_is_captured(self) -> None:
        x, graph = matrix(64).cuda(), torch.cuda.CUDAGraph()
        program()(x, function="amax")
        found: Any = None
        with torch.cuda.graph(graph):
            with self.assertRaisesRegex(fp4.UsageError, "must be contiguous"):
                program()(x.t(), function="amax")
            found = program()(x, function="amax")
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(found, amax_of(x))
