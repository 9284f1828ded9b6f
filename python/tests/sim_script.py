"""A script for CUDA, which test_sim.py runs under python -m fp4.sim: `sim_script.py CASE...`."""

import copy
import ctypes
import sys

import numpy
import torch

DOUBLE = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 p, .param .u32 n) {
  .reg .pred %q;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %q, %r2, %r1;
  @%q bra END;
  mul.wide.u32 %d2, %r2, 4;
  add.u64 %d3, %d1, %d2;
  ld.global.f32 %f1, [%d3];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%d3], %f2;
END:
  ret;
}
.visible .entry wait(.param .u64 p, .param .u32 n) {
  .reg .pred %q;
  .reg .b32 %r<4>;
  .reg .b64 %d;
  ld.param.u64 %d, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %q, %r2, %r1;
  @%q atom.global.exch.b32 %r3, [%d], 2;
LOOP:
  atom.global.exch.b32 %r3, [%d+4], 3;
  ld.volatile.global.u32 %r3, [%d];
  setp.ne.u32 %q, %r3, 2;
  @%q bra LOOP;
  ret;
}
"""


class Address:
    """The address that a script keeps in place of the tensor."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def data_ptr(self) -> int:
        return self.pointer


def twice(x: torch.Tensor, count: int, blocks: int = 1) -> None:
    """Every CTA doubles the first `count` elements."""
    run(b"twice", x, count, blocks)


def run(name: bytes, x: torch.Tensor, count: int, blocks: int) -> None:
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuModuleLoadData(ctypes.byref(module), DOUBLE.encode() + b"\0") == 0
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
    pointer, size = ctypes.c_uint64(x.data_ptr()), ctypes.c_uint32(count)
    values = (ctypes.c_void_p * 2)(*(ctypes.addressof(value) for value in (pointer, size)))
    code = driver.cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, None, values, None)
    assert code == 0, code
    torch.cuda.synchronize()


def launch() -> None:
    x = torch.arange(100.0, device="cuda")
    twice(x, 100)
    assert torch.equal(x.cpu(), 2 * torch.arange(100.0))
    for count in range(1, 40):  # memory is used again, with other bounds
        y = torch.ones(count, device="cuda")
        twice(y, count)
        assert y.sum().item() == 2 * count
        del y


def compiled() -> None:
    """torch's compiler, which is imported now, does not look into the handlers of operations."""
    assert "torch._dynamo" not in sys.modules
    x = torch.arange(8.0, device="cuda")

    @torch.compile(backend="eager")  # type: ignore[untyped-decorator]
    def shifted(x: torch.Tensor) -> torch.Tensor:
        print(end="")  # breaks the graph
        return torch.relu(x - 3) + torch.ones(8, device="cuda")

    y = shifted(x)
    assert y.device.type == "cuda" and y.tolist() == [1.0] * 4 + [2.0, 3.0, 4.0, 5.0]


def beyond() -> None:
    twice(torch.ones(100, device="cuda"), 101)


def freed() -> None:
    """A kernel still has the address of a tensor that Python has freed."""
    x = torch.ones(100, device="cuda")
    view = x[50:]
    del x
    twice(view, 50)  # a view keeps it
    address = Address(view.data_ptr())
    del view
    twice(address, 100)  # type: ignore[arg-type]


def race() -> None:
    twice(torch.ones(100, device="cuda"), 100, 2)


def host() -> None:
    twice(torch.ones(100), 100)


def polls() -> None:
    """Every CTA waits for the last one."""
    x = torch.zeros(2, dtype=torch.int32, device="cuda")
    run(b"wait", x, 15, 16)
    assert x.tolist() == [2, 3]


def livelock() -> None:
    """... for one that is not there."""
    run(b"wait", torch.zeros(2, dtype=torch.int32, device="cuda"), 16, 16)


def written() -> None:
    """torch writes empty tensors before and after a kernel has them, and so do kernels."""
    x = torch.empty(100, device="cuda")
    x[:50].fill_(1)
    twice(x, 50)
    x[50:] = 1
    twice(x, 100)
    assert x.tolist() == [4.0] * 50 + [2.0] * 50
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    twice(y, 100)
    z = torch.empty(10, 10, device="cuda").t()
    z.copy_(torch.ones(10, 10))
    twice(z, 100)
    assert y.tolist() == [10.0] * 50 + [6.0] * 50 and z.sum().item() == 200


def unwritten() -> None:
    x = torch.empty(100, device="cuda")
    x[:99].fill_(1)
    twice(x, 100)


def devices() -> None:
    cuda = torch.device("cuda", 0)
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (9, 0)
    assert "H200" in torch.cuda.get_device_name() or torch.cuda.get_device_name()
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
    x = torch.rand(4, 6, device="cuda", requires_grad=True)
    assert x.is_cuda and x.device == cuda and x.get_device() == 0 and "cuda:0" in repr(x)
    numbers = torch.Generator(device="cuda").manual_seed(3)
    drawn = torch.randn(4, device="cuda", generator=numbers)
    again = torch.randn(4, generator=torch.Generator().manual_seed(3))
    assert numbers.device == drawn.device == cuda and torch.equal(drawn.cpu(), again)
    made = [x.t(), x[1:], x + 1, x.half(), torch.empty_like(x), x.new_zeros(3), x.detach().clone(),
            torch.zeros(3, device=x.device), x.to(torch.float64), torch.tensor([1, 2]).to(x.device),
            torch.ones(2).cuda(), copy.deepcopy(torch.nn.Linear(2, 2).cuda()).weight.data + 0,
            torch.nn.Linear(2, 2, device="cuda").weight]
    for index, y in enumerate(made):
        assert y.device == cuda, index
    for y in (x.cpu(), x.to("cpu"), torch.zeros_like(x, device="cpu"), torch.zeros(3), x.cpu() + 1):
        assert y.device.type == "cpu" and not y.is_cuda
    assert torch.ones(3).to(dtype=torch.int32, device="cuda").is_cuda
    assert not x.to(dtype=torch.int32, device="cpu").is_cuda
    assert x.to("cuda") is x or x.to("cuda").data_ptr() == x.data_ptr()
    assert x.cpu().data_ptr() != x.data_ptr()
    (x * 2).sum().backward()
    assert x.grad is not None and x.grad.is_cuda
    for wrong in (lambda: x.detach().numpy(), lambda: torch.zeros(2, device="cuda:1")):
        try:
            wrong()
        except (TypeError, RuntimeError):
            continue
        raise AssertionError("expected an error")
    assert torch.empty(4, dtype=torch.uint8, device="cuda").tolist() == [0xCD] * 4


def dlpack() -> None:
    x, host = torch.ones(50, device="cuda"), torch.ones(2)
    assert x.__dlpack_device__() == (2, 0) and host.__dlpack_device__() == (1, 0)
    twice(x, 50)
    for y in (torch.from_dlpack(x), torch.from_dlpack(x.__dlpack__()),
              torch.utils.dlpack.from_dlpack(x)):
        assert y.is_cuda and y.data_ptr() == x.data_ptr() and y.tolist() == [2.0] * 50
    assert not torch.from_dlpack(host).is_cuda
    try:
        numpy.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError):
        return
    raise AssertionError("NumPy took memory of the device")


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        y = x.clone()
        twice(y, y.numel())
        return y

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        assert gradient.is_cuda
        one = torch.tensor(1.0, device=gradient.device)
        made = torch.zeros(gradient.shape, device=gradient.device) + gradient * one
        twice(made, made.numel())
        return made


def gradients() -> None:
    x = torch.ones(50, device="cuda", requires_grad=True)
    Twice.apply(x).backward(torch.full((50,), 3.0, device="cuda"))
    assert x.grad is not None and x.grad.tolist() == [6.0] * 50


def operations() -> None:
    """An operation of a library that has it for CUDA alone."""
    @torch.library.custom_op("fp4_tests::doubled", mutates_args=(), device_types="cuda")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        twice(y, y.numel())
        return y

    y = doubled(torch.full((70,), 4.0, device="cuda"))
    assert y.is_cuda and y.tolist() == [8.0] * 70
    try:
        doubled(torch.ones(3))
    except NotImplementedError:
        return
    raise AssertionError("an operation for CUDA took a tensor of the host")


if __name__ == "__main__":
    assert sys.argv[0] == __file__
    for case in sys.argv[1:]:
        globals()[case]()
        print(f"{case} ended")
