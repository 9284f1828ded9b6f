"""TIRx kernels, which TVM compiles for Blackwell and Rubin, against torch or what the kernels' own tests compute."""
import functools
import os
import sys
import types

import torch
import tvm_ffi

from cases import case

SOURCE = "tirx"
DEFAULTS = {"devices": ("b200",), "policies": ("eager", "lazy"), "tolerance": 1e-2, "limit": 600}


@functools.cache
def prepared():
    """Has TVM compile to PTX for the device, with a compiler that knows Rubin."""
    from tvm.support import nvcc
    os.environ["TIRX_PREPARE_CUDA_ARCH"] = "sm_{}{}a".format(*torch.cuda.get_device_capability())
    tvm_ffi.register_global_func("tvm_callback_cuda_compile", override=True)(
        lambda code: nvcc.compile_cuda(code, target_format="ptx", compiler="nvrtc"))


def kernel(name):
    """The module of a kernel and TVM's compiler."""
    prepared()
    from tirx_kernels.registry import load_kernel
    from tirx_kernels.runner import compile_kernel
    return load_kernel(name), compile_kernel


def own_test(name, **config):
    """Runs the test that a kernel has, which compares with torch and raises."""
    kernel(name)[0].run_test(**config)


def stand_in(name, **functions):
    """A package that is not installed, of which kernels' tests call these functions."""
    module = sys.modules.setdefault(name, types.ModuleType(name))
    for key, function in functions.items():
        setattr(module, key, function)
    return module


#===--- Products ----------------------------------------------------------===#


@case(against="itself", verdict="early-exit",
      reason="a CTA may end before loaders of its peer arrive for the last tile: only its consumers wait for one another")
def fp16_bf16_gemm():
    own_test("fp16_bf16_gemm", dtype="fp16", M=1024, N=1024, K=256)


def fp4(rows, columns):
    """Small whole numbers as codes, two in a byte, with scales in e4m3 in tiles of 128 x 4; and what they stand for."""
    import ml_dtypes
    numbers = torch.randint(-3, 4, (rows, columns))
    codes = torch.from_numpy(numbers.numpy().astype(ml_dtypes.float4_e2m1fn).view("uint8"))
    scales = torch.randint(1, 4, (rows, columns // 16))
    tiled = scales.float().to(torch.float8_e4m3fn).view(torch.uint8).view(rows // 128, 4, 32, columns // 64, 4)
    return (codes[:, ::2] | codes[:, 1::2] << 4, tiled.permute(0, 3, 2, 1, 4).contiguous(),
            (numbers * scales.repeat_interleave(16, 1)).double())


@case(tolerance=0.0)
def nvfp4_gemm():
    """Every sum is exact in float32, so that results are those of one rounding to bfloat16."""
    module, _ = kernel("nvfp4_gemm")
    shape = M, N, K = 512, 512, 512
    (a, scales_a, left), (b, scales_b, right) = fp4(M, K), fp4(N, K)
    out = torch.empty(M, N, dtype=torch.bfloat16, device="cuda")
    operands = [x.to("cuda") for x in (a, b, scales_a, scales_b, torch.tensor([0.25]))]
    module._compile_executable(*shape)(*operands, out)
    yield "result", out, (left @ right.T * 0.25).bfloat16()


def packed_scales(scales, rows, columns, recipe, **options):
    """DeepGEMM's layout of scales that are powers of two: four exponents in a word, rows first."""
    scales = scales.cpu().repeat_interleave(recipe[0], 0)[:rows].contiguous()
    exponents = (scales.view(torch.int32) >> 23).to(torch.uint8)
    words = torch.nn.functional.pad(exponents, (0, -exponents.shape[1] % 4)).view(torch.int32)
    room = torch.zeros(words.shape[1], -(-rows // 4) * 4, dtype=torch.int32)
    room[:, :rows] = words.T
    return room.to("cuda").T[:rows]


def read_scales(codes, scales):
    """Numbers of FP8 codes with a scale for each 128 of K, and of a row or 128 of them."""
    scales = scales.repeat_interleave(-(-codes.shape[0] // scales.shape[0]), 0)[:codes.shape[0]]
    return codes.float() * scales.repeat_interleave(128, 1)[:, :codes.shape[1]]


def deep_gemm():
    """DeepGEMM's Python files for operands, without its library."""
    for name in ("deep_gemm", "deep_gemm.utils"):
        stand_in(name).__path__ = [os.path.join(os.environ["FP4_SOURCES_deepgemm"], *name.split("."))]
    stand_in("deep_gemm", transform_sf_into_required_layout=packed_scales)


@case(verdict="unwritten", reason="docs/reference/found-bugs.md: scale factors behind a tile of fewer than 128 columns, as in DeepGEMM")
def fp8_gemm_1d1d():
    deep_gemm()
    module, _ = kernel("deepgemm_sm100_fp8_gemm_1d1d")
    config = {"M": 128, "N": 256, "K": 512, "major_a": "k", "major_b": "k", "accumulate": False, "cd_dtype": "bf16", "b_dtype": "fp8"}
    data = module.prepare_data(seed=17, **config)
    module._tirx_launch(data, config)()
    left, right = (read_scales(data[name].cpu(), data[f"{name}_raw_sf"].cpu()) for name in "ab")
    yield "result", data["d"], left @ right.T


@case("vr200", against="itself")
def dense_blockscaled_gemm_sm107():
    """Bits are those of an oracle in float64. Rubin's MMAs of 128 elements of K, tensor memory of 576 columns and 327 KiB of shared memory."""
    module, _ = kernel("dense_blockscaled_gemm_sm107")
    for mode, kind in (("nvfp4", "float16"), ("mxfp4", "bfloat16")):
        config = {"M": 520, "N": 520, "K": 512, "sf_mode": mode, "out_dtype": kind, "alpha": 0.75, "tactic": 0}
        data = module.prepare_data(**config)
        module._tirx_launch(module._compile_executable(*config.values()), data)()
        module._validate_outputs(data, with_source=False, with_oracle=True)


#===--- Attention ---------------------------------------------------------===#


def attention(causal):
    import importlib
    _, compile_kernel = kernel("fp16_bf16_gemm")
    module = importlib.import_module("tirx_kernels.ported.flashattention.flash_attention4")
    rows, heads, groups, width = 256, 2, 1, 128
    q, k, v, _ = module.prepare_data(1, rows, rows, heads, groups, width)
    out = torch.empty(1, rows, heads, width, dtype=torch.float16, device="cuda")
    shape = {"batch_size": 1, "seq_len_q": rows, "seq_len_kv": rows, "num_qo_heads": heads, "num_kv_heads": groups, "head_dim": width}
    executable = compile_kernel(module.get_flash_attention4_kernel(*shape.values(), is_causal=causal))
    module._build_launch(executable, *(x.to("cuda") for x in (q, k, v)), out, **shape, is_causal=causal)()
    q, k, v = (x.cpu().float() for x in (q, k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(heads // groups, 2)) * width ** -0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(rows, rows).tril().bool(), -torch.inf)
    expected = torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v.repeat_interleave(heads // groups, 2))
    yield "result", out, expected


@case()
def flash_attention4():
    yield from attention(False)


@case()
def flash_attention4_causal():
    yield from attention(True)


@case(against="itself")
def sparse_flashmla_prefill_head64():
    own_test("sparse_flashmla_prefill_head64_phase1", s_q=3, s_kv=300, topk=128, d_qk=576, h_q=64, have_attn_sink=True)


@case(against="itself")
def sparse_flashmla_prefill_head128():
    own_test("sparse_flashmla_prefill_head128_phase1", s_q=2, s_kv=300, topk=1408, d_qk=576, h_q=128, have_attn_sink=True)


@case(against="itself")
def sparse_flashmla_prefill_head128_small_topk():
    own_test("sparse_flashmla_prefill_head128_small_topk_phase1", s_q=2, s_kv=300, topk=128, d_qk=512, h_q=128, have_attn_sink=True)


@case(against="itself", compares=False)
def csa_compressor():
    """Two launches have the same bits; what cuDNN's own kernel gives is not there to compare with."""
    module, compile_kernel = kernel("cudnn_sm100_csa_compressor_fwd")
    config = module._kernel_config({"seq_lens": (260,), "head_dim": 128, "coff": 1, "capacity_pad": 0})
    data, executable = module.prepare_data(**config), compile_kernel(module.get_kernel(**config))
    for more in ((), ("repeat_out",)):
        module._launch(executable, data, *more)
    module._validate_outputs(data, include_source=False)


#===--- Norms and quantizers ----------------------------------------------===#


def normed(x, weight, epsilon, more=0.0):
    x = x.cpu().float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * (weight.cpu().float() + more)


def flashinfer():
    """FlashInfer's norms in float32, which kernels' tests compare with."""
    def rmsnorm(x, weight, epsilon=1e-6, enable_pdl=False, out=None):
        found = normed(x, weight, epsilon).to(x.dtype).to("cuda")
        return found if out is None else out.copy_(found)
    stand_in("flashinfer", norm=stand_in("flashinfer.norm", rmsnorm=rmsnorm))


@case(against="itself")
def rmsnorm():
    flashinfer()
    for columns in (4096, 1024):
        own_test("rmsnorm", hidden_size=columns, batch_size=7)
