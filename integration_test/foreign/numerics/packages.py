"""Quantizes blocks with one published package, in the Python that has PyTorch:

  python packages.py ADAPTER FOLDER IN.npz OUT.npz

FOLDER holds the package (`pip install --no-deps --target FOLDER ...`, or a checkout). IN has x, rows
of one block of fp32 each, amax, that of the tensor that each block is of, and bytes, scales to
dequantize sixteen codes with. OUT has scales, codes and back. A code that stands for a NaN is 255:
which one it is differs from machine to machine."""
import importlib
import pathlib
import sys
import types

import numpy as np
import torch

DEQUANTIZE_AMAX = 3.7  # of the tensor whose scales IN's bytes are


def unpacked(data):
    data = data.reshape(-1).view(torch.uint8).numpy()
    return np.stack([data & 15, data >> 4], 1).reshape(-1)


def bytes_of(scales):
    return scales.reshape(-1).view(torch.uint8).numpy()


def paired(codes):
    return torch.from_numpy(codes[:, 0::2] | codes[:, 1::2] << 4)


class TorchaoMX:
    """to_mx in eager mode on the CPU; a float4 type of PyTorch's that all versions share."""
    nan_byte = 0xFF

    def __init__(self, mode):
        from torchao.prototype.mx_formats import config, mx_tensor
        self.mx, self.mode = mx_tensor, config.ScaleCalculationMode[mode]

    def quantize(self, x, amax):
        scales, data = self.mx.to_mx(x, torch.float4_e2m1fn_x2, 32, self.mode)
        return bytes_of(scales), unpacked(data)

    def dequantize(self, codes, scales):
        return self.mx.to_dtype(paired(codes), scales.view(torch.float8_e8m0fnu)[:, None],
                                torch.float4_e2m1fn_x2, 32, torch.float32)


class TorchaoWide(TorchaoMX):
    """TorchaoMX for elements of 6 and 8 bits, a byte each."""
    TYPES = {"mxfp6_e2m3": "fp6_e2m3", "mxfp6_e3m2": "fp6_e3m2",
             "mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2}

    def __init__(self, format, mode):
        super().__init__(mode)
        self.element = self.TYPES[format]

    def marked(self, x, scales, codes):
        """Elements of 6 bits have no NaN, and torchao casts NaN as it comes."""
        if not isinstance(self.element, str):
            return codes
        no_number = np.isnan(x) | (scales == 0xFF)[:, None] & ~np.isin(codes, (0, 32))
        return np.where(no_number, 255, codes)

    def quantize(self, x, amax):
        scales, data = self.mx.to_mx(x, self.element, 32, self.mode)
        return bytes_of(scales), bytes_of(data)

    def dequantize(self, codes, scales):
        data = torch.from_numpy(codes)
        if not isinstance(self.element, str):
            data = data.view(self.element)
        return self.mx.to_dtype(data, scales.view(torch.float8_e8m0fnu)[:, None], self.element, 32,
                                torch.float32)


class TorchaoNV:
    nan_byte = 0x7F

    def __init__(self, levels):
        from torchao.prototype.mx_formats import nvfp4_tensor
        self.nv, self.two_levels = nvfp4_tensor, levels == "2"

    def global_scale(self, amax):
        return self.nv.per_tensor_amax_to_scale(amax) if self.two_levels else None

    def quantize(self, x, amax):
        scales, data = self.nv.nvfp4_quantize(x, 16, self.global_scale(amax))
        return bytes_of(scales), unpacked(data)

    def dequantize(self, codes, scales):
        p = self.global_scale(torch.tensor(DEQUANTIZE_AMAX))
        return self.nv.NVFP4Tensor(paired(codes), scales.view(torch.float8_e4m3fn)[:, None], 16,
                                   torch.float32, p).dequantize(torch.float32)


class ModelOpt:
    nan_byte = 0x7F

    def __init__(self):
        torch.cuda.get_device_capability = lambda *_: (9, 0)  # 0.44 asks on CPUs too
        from modelopt.torch.quantization.qtensor import NVFP4QTensor
        self.tensor = NVFP4QTensor

    def quantize(self, x, amax):
        data, scales, _ = self.tensor.quantize(x.clone(), 16, None, amax / 2688)
        return bytes_of(scales), unpacked(data._quantized_data)

    def dequantize(self, codes, scales):
        return self.tensor(torch.Size(codes.shape), torch.float32, paired(codes)).dequantize(
            scale=scales.view(torch.float8_e4m3fn)[:, None], block_sizes={-1: 16},
            double_scale=torch.tensor(DEQUANTIZE_AMAX) / 2688)


class ModelOptStatic(ModelOpt):
    """The static quantizer's scales, from the amaxes that a calibration would have left."""

    def quantize(self, x, amax):
        static = types.SimpleNamespace(block_sizes={-1: 16}, global_amax=amax,
                                       _amax=x.abs().amax(1))
        scales, p = self.tensor.get_weights_scaling_factor_from_quantizer(static, x)
        data, _, _ = self.tensor.quantize(x.clone(), 16, scales, p)
        return bytes_of(scales), unpacked(data._quantized_data)


class ModelOptMX:
    nan_byte = 0xFF

    def __init__(self):
        torch.cuda.get_device_capability = lambda *_: (9, 0)
        importlib.metadata.version = lambda name: "0"
        from modelopt.torch.quantization.qtensor.mxfp4_tensor import MXFP4QTensor
        self.tensor = MXFP4QTensor

    def quantize(self, x, amax):
        data, scales = self.tensor.quantize(x.clone(), 32)
        return bytes_of(scales), unpacked(data._quantized_data)

    def dequantize(self, codes, scales):
        return self.tensor(torch.Size(codes.shape), torch.float32, paired(codes)).dequantize(
            scale=scales, block_sizes={-1: 32})


class CompressedTensors:
    """The steps of llm-compressor's minmax observers and of the packed compressors."""

    def __init__(self, kind, dtype):
        from compressed_tensors.compressors.mx_utils import compress_mx_scale
        from compressed_tensors.compressors.nvfp4 import helpers as packing
        from compressed_tensors.quantization import QuantizationArgs
        from compressed_tensors.quantization.utils import helpers
        self.packing, self.helpers, self.mx_bytes = packing, helpers, compress_mx_scale
        self.dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[dtype]
        self.mx = kind == "mx"
        self.size, self.nan_byte = (32, 0xFF) if self.mx else (16, 0x7F)
        self.arguments = QuantizationArgs(
            num_bits=4, type="float", strategy="group" if self.mx else "tensor_group",
            symmetric=True, group_size=self.size,
            scale_dtype=torch.uint8 if self.mx else torch.float8_e4m3fn)

    def global_scale(self, amax):
        amax = torch.as_tensor(amax).to(self.dtype)
        return None if self.mx else self.helpers.generate_gparam(-amax, amax)

    def quantize(self, x, amax):
        x, g = x.to(self.dtype), self.global_scale(amax)
        scales, _ = self.helpers.calculate_qparams(x.amin(1), x.amax(1), self.arguments, g)
        data = self.packing.quantize_and_pack_fp4(x.clone(), scales[:, None], g,
                                                  group_size=self.size)
        stored = self.mx_bytes(scales, torch.uint8) if self.mx else scales.to(torch.float8_e4m3fn)
        codes = unpacked(data).reshape(-1, self.size)
        codes[torch.isnan(scales).numpy()] = 255
        return bytes_of(stored), codes

    dequantize = None


class Gguf:
    """The quantizer of MXFP4 in numpy; gguf has none of NVFP4."""
    nan_byte = 0xFF

    def __init__(self):
        import gguf
        self.quants, self.kind = gguf.quants, gguf.GGMLQuantizationType.MXFP4

    def quantize(self, x, amax):
        blocks = self.quants.quantize(x.numpy(), self.kind).reshape(-1, 17)
        data = blocks[:, 1:]
        return blocks[:, 0], np.concatenate([data & 15, data >> 4], 1)

    dequantize = None


class FourOverSix:
    """The reference that its tests compare the CUDA and Triton kernels with."""

    def __init__(self, kind, rule):
        for name in ("", ".quantize", ".kernels", ".quantize.pytorch"):  # whose imports need CUDA
            package = types.ModuleType("fouroversix" + name)
            package.__path__ = [str(folder / package.__name__.replace(".", "/"))]
            sys.modules[package.__name__] = package
        self.reference = importlib.import_module("fouroversix.quantize.pytorch.reference")
        utils = importlib.import_module("fouroversix.utils")
        self.options = {"fp4_format": utils.DataType(kind), "scale_rule": utils.ScaleRule(rule),
                        "use_blackwell_scale_layout": False}
        self.nan_byte = 0x7F if kind == "nvfp4" else 0xFF

    def quantize(self, x, amax):
        data, scales, _ = self.reference.quantize(x, amax, **self.options)
        codes = unpacked(data).reshape(x.shape).copy()
        if self.nan_byte == 0x7F:  # Codes that overflow, under a stale amax or an infinite g.
            codes[((x.abs().amax(1) > amax) | (amax < 2.0**-117)).numpy()] = 255
        return bytes_of(scales), codes

    dequantize = None


ADAPTERS = {"torchao_mx": TorchaoMX, "torchao_wide_mx": TorchaoWide, "torchao_nv": TorchaoNV, "modelopt": ModelOpt,
            "modelopt_static": ModelOptStatic, "modelopt_mx": ModelOptMX,
            "compressed_tensors": CompressedTensors, "gguf_mx": Gguf, "fouroversix": FourOverSix}


def nan_marked(x, scales, codes, nan_byte):
    """Codes of what is no number: of NaN, of infinities that do not saturate, of zero times an
    infinite factor, under a NaN scale."""
    nan_scale = (scales & (0x7F if nan_byte == 0x7F else 0xFF)) == nan_byte
    nonzero = ~np.isin(codes, (0, 8))
    no_number = np.isnan(x) | np.isinf(x) & ~np.isin(codes, (0, 7, 8, 15)) | (x == 0) & nonzero
    return np.where(no_number | nan_scale[:, None] & nonzero, 255, codes)


def main(adapter, blocks, out):
    name, *arguments = adapter.split(":")
    package = ADAPTERS[name](*arguments)
    x, amaxes = blocks["x"], blocks["amax"]
    scales, codes = np.zeros(len(x), np.uint8), np.zeros(x.shape, np.uint8)
    for bits in np.unique(amaxes.view(np.uint32)):
        rows = amaxes.view(np.uint32) == bits
        amax = torch.from_numpy(amaxes[rows][:1])[0]
        s, c = package.quantize(torch.from_numpy(x[rows].copy()), amax)
        scales[rows], codes[rows] = s, c.reshape(-1, x.shape[1])
    marked = package.marked(x, scales, codes) if isinstance(package, TorchaoWide) else nan_marked(
        x, scales, codes, package.nan_byte)
    if package.nan_byte == 0x7F:
        scales = np.where(scales == 0xFF, 0x7F, scales)  # the sign of a NaN is the machine's
    back = np.zeros((0, 16), np.float32)
    if package.dequantize:
        ramp = np.tile(np.arange(16, dtype=np.uint8), (len(blocks["bytes"]), x.shape[1] // 16))
        back = package.dequantize(ramp, torch.from_numpy(blocks["bytes"])).numpy()[:, :16]
    np.savez(out, scales=scales, codes=marked, back=back)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(folder))
    main(sys.argv[1], np.load(sys.argv[3]), sys.argv[4])
