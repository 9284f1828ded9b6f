# %% [markdown]
# # NVFP4 on your laptop, to the last bit
#
# You quantize a matrix, multiply two of them with the PTX that fp4 emits for a B200, look at what
# the simulator checks, and read a checkpoint. No GPU is needed: CPU tensors run in the simulator.
#
# The tutorial is a notebook in the percent format. VS Code, PyCharm and Jupytext open it as it is,
# `docgen/notebook.py` makes an .ipynb of it, and `python3 examples/python/tutorial.py` runs it.
# Each `assert` is a claim of the text, which the tests of the project check.

# %%
import pathlib
import tempfile

import fp4
import fp4.checkpoints
import fp4.torch
import torch

torch.manual_seed(0)
x = torch.randn(96, 256, dtype=torch.bfloat16)  # activations: M x K
w = torch.randn(64, 256, dtype=torch.bfloat16)  # weights: N x K

# %% [markdown]
# ## Quantize
#
# NVFP4 stores a number in 4 bits: a sign and one of 0, 0.5, 1, 1.5, 2, 3, 4, 6. Sixteen neighbours
# of a row share a block scale in E4M3, and the matrix has one more scale, which follows from its
# largest magnitude, its amax. A `Scaled` holds the three.

# %%
qx = fp4.torch.quantize(x, layout="linear")
print(qx)
print("data  ", qx.data.dtype, list(qx.data.shape), "two elements in a byte")
print("scales", qx.scales.dtype, list(qx.scales.shape), "one for 16 elements")
print("amax  ", qx.amax)
assert qx.nbytes < x.nbytes / 3.5

# %% [markdown]
# What the bits are is a decision, and libraries decide differently. The default recipe is
# TransformerEngine's. Here are its formulas in torch. The kernel in the simulator gives the same
# bytes, every one.

# %%
g = 2688 / x.float().abs().max()  # the encode scale: 2688 = 6 * 448, the largest element and scale
blocks = x.float().view(96, 16, 16)
amax = blocks.abs().amax(-1, keepdim=True)
scales = (amax * (g * torch.tensor(1 / 6))).to(torch.float8_e4m3fn)
scaled = blocks * (1 / (scales.float() * (1 / g)))

magnitude = scaled.abs()  # to the nearest element; ties go to the even code
code = sum((magnitude > edge).to(torch.uint8) for edge in (0.25, 1.25, 2.5, 5))
code += sum((magnitude >= edge).to(torch.uint8) for edge in (0.75, 1.75, 3.5))
code |= torch.signbit(scaled).to(torch.uint8) << 3
code = code.view(96, 256)

assert torch.equal(qx.scales.view(torch.uint8), scales.squeeze(-1).view(torch.uint8))
assert torch.equal(qx.data.view(torch.uint8), code[:, 0::2] | code[:, 1::2] << 4)

# %% [markdown]
# Another recipe is another name ([the list](../../docs/reference/recipes.md)).
# compressed-tensors divides in bf16, so some of its block scales are another number. Four over six
# tries two scales for each block, and keeps the one with the smaller error.

# %%


def bytes_that_differ(one: torch.Tensor, two: torch.Tensor) -> int:
    return int((one.view(torch.uint8) != two.view(torch.uint8)).sum())


for recipe in ("compressed_tensors", "four_over_six"):
    other = fp4.torch.quantize(x, layout="linear", recipe=recipe)
    print(f"{recipe}: {bytes_that_differ(other.scales, qx.scales)} of {qx.scales.numel()} block "
          f"scales and {bytes_that_differ(other.data, qx.data)} of {qx.data.numel()} bytes differ")
    assert bytes_that_differ(other.scales, qx.scales)

# %% [markdown]
# ## A matmul in the simulator
#
# Matmuls read the block scales as tiles of 128 x 4, the layout of the tensor core. Linear scales
# often have the same shape and are the wrong bytes, so nothing is rearranged unless you say so.

# %%
qw = fp4.torch.quantize(w)  # tiled_128x4 is the default
try:
    fp4.torch.linear(qx, qw)
except fp4.UsageError as error:
    print(error)
else:
    raise AssertionError("linear scales must be refused")

y = fp4.torch.linear(fp4.torch.swizzle(qx), qw)  # 96 x 64, bf16

# %% [markdown]
# The kernel is the one for a B200: `tcgen05.mma` with scales in tensor memory, executed
# instruction by instruction. Compare it with torch twice. Against the quantized numbers only the
# order of the sum and the last rounding are left. Against the original ones it is the error of 4
# bits.

# %%
dequantized = fp4.torch.dequantize(qx, torch.float32) @ fp4.torch.dequantize(qw, torch.float32).T
exact = x.float() @ w.float().T


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    return ((one.float() - two).norm() / two.norm()).item()


print(f"to the product of the quantized numbers: {distance(y, dequantized):.5f}")
print(f"to the product of the original numbers:  {distance(y, exact):.3f}")
assert distance(y, dequantized) < 2**-8 < 0.05 < distance(y, exact) < 0.2

# %% [markdown]
# ## Look inside
#
# `fp4.compile` takes a program as text, or as a `fp4.Builder`. The result has every phase of the
# compiler, the PTX, and what it decided to fuse. `verify=True` compares a result with the
# reference model of the tensor core, bit for bit.

# %%
builder = fp4.Builder()
f = builder.function("linear_relu")
a = f.argument("x", ("M", 256), "bf16")  # the rows are known when the function is called
b = f.argument("w", (64, 256), "bf16")
qa = f.quantize(a, "nvfp4", amax=f.amax(a), layout="tiled_128x4")
qb = f.quantize(b, "nvfp4", amax=f.amax(b), layout="tiled_128x4")
f.returns(y=f.matmul(qa, qb, alpha=f.matmul_alpha(qa, qb), epilogue=["relu"]))
program = fp4.compile(builder, remarks=True)

positive = program(x, w, verify=True)
assert torch.equal(positive, y.relu())
for kernel in program.kernels:
    print(f"{kernel.name}: {kernel.ptx.count(chr(10))} lines of PTX")
print("after the phases:", ", ".join(fp4.PHASES))
assert "tcgen05.mma" in "".join(kernel.ptx for kernel in program.kernels)

# %% [markdown]
# ## Hazards
#
# A kernel like this is a handful of warps that exchange buffers through mbarriers, fences and
# waits. Leave one out, and the results are still right, nearly always. The simulator knows the
# order that PTX promises, so it reports what is missing, even where this run went well.
#
# Make such a bug: save the program, and blank the wait for loads from tensor memory in its PTX.

# %%
folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name)
program.save(path / "good.so")
wait = b"tcgen05.wait::ld.sync.aligned;"
code = (path / "good.so").read_bytes()
assert wait in code
(path / "bad.so").write_bytes(code.replace(wait, b" " * len(wait)))

assert torch.equal(fp4.load(path / "good.so")(x, w), positive)
bad = fp4.load(path / "bad.so")
try:
    bad(x, w)
except fp4.HazardError as hazard:
    print("\n".join(str(hazard).splitlines()[:6]))
else:
    raise AssertionError("the wait is missing")

# %% [markdown]
# Read it from the top: what is wrong, with the rule in brackets; the two instructions that nothing
# orders; and after `missing:`, what would order them. `fp4-run --explain tmem-freed` says more.
# Without the checker the same program runs, and its numbers are right here, which is why such bugs
# live long.

# %%
with fp4.Device("sim", check="off") as unchecked:
    assert torch.equal(bad.on(unchecked)(x, w), positive)

# %% [markdown]
# ## Read a checkpoint
#
# Packages store NVFP4 under different names, and write the scale of a tensor in two ways: ModelOpt
# as amax / 2688, by which data are multiplied, compressed-tensors as 2688 / amax, by which they
# were multiplied. A reader that mistakes one for the other is wrong by a factor of millions. Here
# is a file as ModelOpt writes it.

# %%
modelopt = fp4.torch.quantize(w, layout="linear", recipe="modelopt")
fp4.checkpoints.write(path / "model.safetensors", {"layers.0.proj": modelopt}, "modelopt",
                      tensors={"layers.0.proj.bias": torch.ones(64, dtype=torch.bfloat16)})

with fp4.checkpoints.open(path / "model.safetensors") as checkpoint:
    print(checkpoint)
    for name, entry in checkpoint.items():
        print(f"{name}: {entry.shape[0]} x {entry.shape[1]} {entry.format}, {entry.tensors}")
    weight = checkpoint.read("layers.0.proj")
    bias = checkpoint.tensor("layers.0.proj.bias")

assert torch.equal(weight.data.view(torch.uint8), modelopt.data.view(torch.uint8))
assert torch.equal(fp4.torch.dequantize(weight), fp4.torch.dequantize(modelopt))

# %% [markdown]
# Multiply with it: the activations take the recipe of the weight's package, which also decides how
# the scales of the two tensors become one factor.

# %%
y = fp4.torch.linear(fp4.torch.quantize(x, recipe="modelopt"), fp4.torch.swizzle(weight), bias)
assert distance(y, exact + 1) < 0.2

# %% [markdown]
# That weight as compressed-tensors writes it: a number is looked for that decodes to the same
# weights, to the last bit. Not every weight has one. A weight without one is refused, but for
# `nearest=True`.

# %%
fp4.checkpoints.write(path / "other.safetensors", {"layers.0.proj": weight}, "compressed-tensors",
                      nearest=True)
with fp4.checkpoints.open(path / "other.safetensors") as checkpoint:
    again = checkpoint.read("layers.0.proj")
print("decode scale", weight.decode_scale.item(), "and encode scale", again.encode_scale.item())
error = distance(fp4.torch.dequantize(again, torch.float32),
                 fp4.torch.dequantize(weight, torch.float32))
print(f"relative change of the weights: {error:.1e}")
assert error < 2**-22

# %% [markdown]
# Next: [docs/guides/python.md](../../docs/guides/python.md) has the whole package,
# [docs/reference/hazards.md](../../docs/reference/hazards.md) the rules of the hazard checker, and
# `fp4.torch.quantize_(model)` swaps the linear layers of a model.

# %%
folder.cleanup()
