"""A stale or a wrong stream is seen: producers that are late, on other streams.

A producer first keeps its stream busy for some 50 ms and then writes the argument. A call that
waits for it returns the bytes of the simulator. A call on another stream that does not wait reads
what was there before, and these tests fail if it does not: a test that cannot see a wrong stream
would prove nothing about a right one.
"""

import threading
import unittest
from typing import Any

import fp4
import torch
from operations import ROWS, amax_of, difference, matrix, operations, program, same

LONG = 100_000_000  # clocks


def late(values: Any, stream: Any) -> Any:
    """A tensor of zeros that becomes `values` when `stream` gets there."""
    tensor = torch.zeros_like(values)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        tensor.copy_(values)
    return tensor


class Streams(unittest.TestCase):
    def setUp(self) -> None:
        self.x = matrix(256).cuda()
        self.amax = amax_of(self.x)
        self.producer, self.consumer = torch.cuda.Stream(), torch.cuda.Stream()
        self.expected = self.quantize(self.x)  # and the plan of later calls
        self.stale = self.quantize(torch.zeros_like(self.x))
        torch.cuda.synchronize()
        self.assertFalse(same(self.expected, self.stale))

    def quantize(self, x: Any, **options: Any) -> Any:
        return program()(x, self.amax, function="quantize", **options)

    def check(self, found: Any, expected: Any) -> None:
        torch.cuda.synchronize()
        self.assertTrue(same(found, expected), difference(found, expected))

    def test_operations_on_a_stream_of_their_own(self) -> None:
        for rows in ROWS:
            for name, operation in operations().items():
                x = matrix(rows, rows)
                with self.subTest(name, rows=rows):
                    with torch.cuda.stream(torch.cuda.Stream()):
                        moved = x.cuda()
                        first, second = operation(moved), operation(moved)
                    expected = operation(x)
                    self.check(first, expected)
                    self.check(second, expected)

    def test_a_producer_on_the_same_stream(self) -> None:
        x = late(self.x, self.producer)
        with torch.cuda.stream(self.producer):
            found = self.quantize(x)
        self.check(found, self.expected)

    def test_a_producer_on_another_stream_and_no_event(self) -> None:
        for _ in range(3):
            x = late(self.x, self.producer)
            with torch.cuda.stream(self.consumer):
                found = self.quantize(x)
            self.consumer.synchronize()
            self.assertFalse(self.producer.query(), "the producer was not late enough")
            self.check(found, self.stale)

    def test_a_producer_on_another_stream_and_an_event(self) -> None:
        for _ in range(3):
            x = late(self.x, self.producer)
            self.consumer.wait_event(self.producer.record_event())
            with torch.cuda.stream(self.consumer):
                found = self.quantize(x)
            self.assertFalse(self.producer.query(), "the call waited on the host")
            self.check(found, self.expected)

    def test_a_stream_that_is_given_waits_for_the_current_one(self) -> None:
        for stream in (self.consumer, self.consumer.cuda_stream):
            x = late(self.x, self.producer)
            with torch.cuda.stream(self.producer):
                found = self.quantize(x, stream=stream)
            self.assertFalse(self.producer.query(), "the call waited on the host")
            self.consumer.synchronize()  # the results are ready on that stream
            self.assertTrue(same(found, self.expected), difference(found, self.expected))

    def test_a_stream_that_is_given_does_not_wait_for_a_third_one(self) -> None:
        x = late(self.x, self.producer)
        found = self.quantize(x, stream=self.consumer)
        self.consumer.synchronize()
        self.assertFalse(self.producer.query(), "the producer was not late enough")
        self.check(found, self.stale)

    def test_results_in_tensors_of_the_caller(self) -> None:
        out = tuple(torch.empty_like(one.view(torch.uint8)).view(one.dtype)
                    for one in self.expected)
        for wait, right in ((True, self.expected), (False, self.stale)):
            x = late(self.x, self.producer)
            if wait:
                self.consumer.wait_event(self.producer.record_event())
            with torch.cuda.stream(self.consumer):
                self.assertIs(self.quantize(x, out=out), out)
            self.assertFalse(self.producer.query())
            self.check(out, right)
        with self.assertRaisesRegex(fp4.UsageError, "must be of torch on cuda:0, as the arg"):
            self.quantize(self.x, out=tuple(one.cpu() for one in out))

    def test_memory_of_arguments_is_kept_until_the_given_stream_read_it(self) -> None:
        with torch.cuda.stream(self.consumer):
            torch.cuda._sleep(LONG)
        x = self.x.clone()
        address = x.data_ptr()
        found = self.quantize(x, stream=self.consumer)
        del x
        others = [torch.full_like(self.x, 7) for _ in range(8)]
        self.assertNotIn(address, [other.data_ptr() for other in others])
        self.check(found, self.expected)

    def test_threads_have_streams_of_their_own(self) -> None:
        inputs = [matrix(64, seed).cuda() for seed in range(4)]
        expected = [program()(x, function="whole") for x in inputs]
        torch.cuda.synchronize()
        failures: list[str] = []

        def work(index: int) -> None:
            try:
                with torch.cuda.stream(torch.cuda.Stream()) as _:
                    found = [program()(inputs[index], function="whole") for _ in range(100)]
                    torch.cuda.current_stream().synchronize()
                failures.extend(difference(one, expected[index]) for one in found
                                if not same(one, expected[index]))
            except BaseException as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
