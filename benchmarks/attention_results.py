#!/usr/bin/env python3
"""Attention whose epilogue region quantizes its elements, beside a quantizer of its own.

  benchmarks/attention_results.py pack BUILD FOLDER    compiles the programs for sm_90a
  benchmarks/attention_results.py run FOLDER [--json=FILE]

`run` needs a Hopper GPU and PyTorch. Cells have 16384 tokens in all and 16 heads of 128 elements in
bf16. Codes and scales of both ways must be equal bit for bit before they are timed; rounds
alternate between the ways. A line of JSON for each cell has microseconds: of elements in bf16
(`plain`) and in e4m3 with a factor of all (`bytes`), of codes and scales of the region (`mxfp4`,
`fp8_block128`), and of both kernels one behind the other (`..._apart`). Cells of one query, 64
sequences with 4096 keys, have FP8 of 128 alone.
"""
import itertools
import os

import kit
from attention import TOKENS, time_all

HEADS, ELEMENTS, LENGTHS = 16, 128, (2048, 8192)
COLUMNS = HEADS * ELEMENTS
CELLS = tuple(itertools.product(LENGTHS, (False, True)))
#: The type of codes, that of scales, the matrix of scales, and the recipe.
FORMATS = {
    "mxfp4": ("f4E2M1FN", "f8E8M0FNU", f"tensor<{TOKENS}x{COLUMNS // 32}xf8E8M0FNU, #fp4.scale_layout<tiled_128x4>>",
              "ocp_floor"),
    "fp8_block128": ("f8E4M3FN", "f32", f"tensor<{TOKENS}x{COLUMNS // 128}xf32>", "fp8_deepgemm"),
}


def attention(length, causal, inputs, region, result, results):
    matrix = f"tensor<{TOKENS // length}x{length}x{HEADS}x{ELEMENTS}xbf16>"
    names = ", ".join(f"%r{number}" for number in range(len(results)))
    factor = ", %f: tensor<f32>" if inputs else ""
    return f"""func.func @attention(%q: {matrix}, %k: {matrix}, %v: {matrix}{factor}) -> ({', '.join(results)}) {{
  {names} = fp4.attention %q, %k, %v scale {ELEMENTS ** -0.5:.9e}{' causal' if causal else ''}{inputs}{region}
      : {matrix}, {matrix}, {matrix} -> {result}
  return {names} : {', '.join(results)}
}}
"""


def texts(length, causal):
    """(name, text) of the attention programs of a cell."""
    matrix = f"tensor<{TOKENS // length}x{length}x{HEADS}x{ELEMENTS}x"
    yield "plain", attention(length, causal, "", "", f"{matrix}bf16>", [f"{matrix}bf16>"])
    yield "bytes", attention(length, causal, " inputs(%f : tensor<f32>)", """ epilogue {
  ^bb0(%x: f32, %g: f32):
    %y = arith.mulf %x, %g : f32
    fp4.yield %y : f32
  }""", f"{matrix}f8E4M3FN>", [f"{matrix}f8E4M3FN>"])
    for name, (code, scale, scales, recipe) in FORMATS.items():
        kinds = [f"tensor<{TOKENS}x{COLUMNS}x{code}>", scales]
        yield name, attention(length, causal, "", f""" epilogue {{
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %c, %s = fp4.epilogue_quantize %y {{recipe = #fp4.recipe<{recipe}>}} : (bf16) -> ({code}, {scale})
    fp4.yield %c, %s : {code}, {scale}
  }}""", f"quantized({', '.join(kinds)})", kinds)


def quantizer(name):
    code, _, scales, recipe = FORMATS[name]
    matrix, codes = f"tensor<{TOKENS}x{COLUMNS}xbf16>", f"tensor<{TOKENS}x{COLUMNS}x{code}>"
    return f"""func.func @quantize(%x: {matrix}) -> ({codes}, {scales}) {{
  %c, %s = fp4.quantize %x {{format = #fp4.format<{name}>, recipe = #fp4.recipe<{recipe}>}}
      : ({matrix}) -> ({codes}, {scales})
  return %c, %s : {codes}, {scales}
}}
"""


#: One query of each sequence: shapes of queries and keys, and elements of values that are keys.
DECODE = {"decode": ((64, 1, 32, 128), (64, 4096, 8, 128), 0), "latent": ((64, 1, 16, 576), (64, 4096, 1, 576), 512)}


def decode_text(name, kind):
    query, key, latent = DECODE[name]
    elements = latent or query[3]
    rows, columns = query[0] * query[1], query[2] * elements
    of_query, of_keys = ("tensor<" + "x".join(map(str, shape)) + "xbf16>" for shape in (query, key))
    matrix, codes, scales = (f"tensor<{rows}x{x}>" for x in (f"{columns}xbf16", f"{columns}xf8E4M3FN",
                                                             f"{columns // 128}xf32"))
    if kind == "quantize":
        return f"""func.func @quantize(%x: {matrix}) -> ({codes}, {scales}) {{
  %c, %s = fp4.quantize %x {{format = #fp4.format<fp8_block128>, recipe = #fp4.recipe<fp8_deepgemm>}}
      : ({matrix}) -> ({codes}, {scales})
  return %c, %s : {codes}, {scales}
}}
"""
    region = "" if kind == "plain" else """ epilogue {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    %c, %s = fp4.epilogue_quantize %y {recipe = #fp4.recipe<fp8_deepgemm>} : (bf16) -> (f8E4M3FN, f32)
    fp4.yield %c, %s : f8E4M3FN, f32
  }"""
    plain = "tensor<" + "x".join(map(str, (*query[:3], elements))) + "xbf16>"
    kinds = [plain] if kind == "plain" else [codes, scales]
    result = plain if kind == "plain" else f"quantized({codes}, {scales})"
    names = ", ".join(f"%r{number}" for number in range(len(kinds)))
    values = "" if latent else f", %v: {of_keys}"
    options = f" latent {latent}" if latent else ""
    return f"""func.func @attention(%q: {of_query}, %k: {of_keys}{values}) -> ({', '.join(kinds)}) {{
  {names} = fp4.attention %q, %k, {'%k' if latent else '%v'} scale {query[3] ** -0.5:.9e}{options}{region}
      : {of_query}, {of_keys}, {of_keys} -> {result}
  return {names} : {', '.join(kinds)}
}}
"""


def name_of(kind, length, causal):
    return f"attention_{kind}_{length}_{'causal' if causal else 'full'}"


def pack(build, folder):
    kit.begin(folder, __file__, os.path.join(os.path.dirname(__file__), "attention.py"),
              os.path.join(os.path.dirname(__file__), "flash_attention_3.py"))
    kit.copy_package(build, folder)
    kit.compile_programs(build, folder, [
        *((f"quantize_{name}", quantizer(name)) for name in FORMATS),
        *((f"{name}_{kind}", decode_text(name, kind)) for name in DECODE for kind in ("plain", "fused", "quantize")),
        *((name_of(kind, *cell), text) for cell in CELLS for kind, text in texts(*cell))])


def measure(folder):
    torch = kit.open_package(folder)
    import fp4

    def load(name):
        return fp4.load(os.path.join(folder, f"{name}.so"))

    yield from measure_decode(folder, torch, fp4)
    quantizers = {name: load(f"quantize_{name}") for name in FORMATS}
    factor = torch.tensor(2.0, device="cuda")
    for length, causal in CELLS:
        q, k, v = (torch.randn(TOKENS // length, length, HEADS, ELEMENTS, device="cuda").bfloat16() for _ in range(3))
        programs = {kind: load(name_of(kind, length, causal)) for kind in ("plain", "bytes", *FORMATS)}
        elements = programs["plain"](q, k, v)
        functions = {"plain": lambda: programs["plain"](q, k, v), "bytes": lambda: programs["bytes"](q, k, v, factor)}
        row = {"length": length, "causal": causal}
        distance = (functions["bytes"]().float() - 2 * elements.float()).abs()
        row["bytes_steps"] = (distance / (2 * elements.float()).abs().clamp(min=2 ** -6)).max().item()
        for name, apart in quantizers.items():
            functions[name] = lambda name=name: programs[name](q, k, v)
            functions[f"{name}_apart"] = lambda apart=apart: apart(programs["plain"](q, k, v).view(TOKENS, COLUMNS))
            for mine, theirs in zip(functions[name](), functions[f"{name}_apart"]()):
                mine, theirs = (x.view(torch.uint8) for x in (mine, theirs))
                row[f"{name}_differences"] = row.get(f"{name}_differences", 0) + int((mine != theirs).sum())
        row.update(time_all(functions))
        yield row


def measure_decode(folder, torch, fp4):
    for name, (query, key, latent) in DECODE.items():
        programs = [fp4.load(os.path.join(folder, f"{name}_{kind}.so")) for kind in ("plain", "fused", "quantize")]
        q = torch.randn(*query, device="cuda").bfloat16()
        operands = [q, *(torch.randn(*key, device="cuda").bfloat16() for _ in range(1 if latent else 2))]
        functions = {"plain": lambda: programs[0](*operands), "fp8_block128": lambda: programs[1](*operands),
                     "fp8_block128_apart": lambda: programs[2](programs[0](*operands).view(query[0], -1))}
        row = {"cell": name, "fp8_block128_differences": 0}
        for mine, theirs in zip(functions["fp8_block128"](), functions["fp8_block128_apart"]()):
            row["fp8_block128_differences"] += int((mine.view(torch.uint8) != theirs.view(torch.uint8)).sum())
        row.update(time_all(functions))
        yield row


if __name__ == "__main__":
    kit.main(__doc__, pack, measure)
