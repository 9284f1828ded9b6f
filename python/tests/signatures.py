"""The signatures of the packages that fp4.compat stands for, read from their sources.

Nothing is imported: a file is parsed, from a wheel, from a source distribution, or from where the
package is installed. Operators that have no function in Python are read where C++ defines them.
data/signatures.json has the result, with the version of each package.

    pip download --no-deps flashinfer-python torchao
    pip download --no-deps --no-binary vllm,flash-attn vllm flash-attn
    python3 python/tests/signatures.py flashinfer_python-*.whl torchao-*.whl *.tar.gz

prints a record of each, and writes it to data/signatures.json with --update.
"""

from __future__ import annotations

import argparse
import ast
import email
import importlib.metadata
import json
import pathlib
import re
import tarfile
import zipfile
from typing import Any

DATA = pathlib.Path(__file__).resolve().parent / "data" / "signatures.json"

#: Package, module of fp4.compat, and what the module has of each file of the package.
PACKAGES: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "flashinfer-python": ("fp4.compat.flashinfer", {
        "flashinfer/quantization/fp4_quantization.py": (
            "nvfp4_quantize", "mxfp4_quantize", "mxfp4_dequantize", "block_scale_interleave",
            "e2m1_and_ufp8sf_scale_to_float", "nvfp4_batched_quantize",
            "scaled_fp4_grouped_quantize", "silu_and_mul_nvfp4_quantize"),
        "flashinfer/quantization/fp8_quantization.py": ("mxfp8_quantize",),
        "flashinfer/gemm/gemm_base.py": ("mm_fp4",),
        "flashinfer/norm/__init__.py": ("rmsnorm_quant", "fused_add_rmsnorm_quant"),
        "flashinfer/fused_moe/fused_routing_dsv3.py": ("fused_topk_deepseek",),
        "flashinfer/rope.py": ("apply_rope_with_cos_sin_cache",
                               "apply_rope_with_cos_sin_cache_inplace"),
        "flashinfer/page.py": ("append_paged_kv_cache",),
        "flashinfer/decode.py": tuple(f"BatchDecodeWithPagedKVCacheWrapper.{name}"
                                      for name in ("__init__", "plan", "run")),
        "flashinfer/prefill.py": tuple(f"BatchPrefillWithPagedKVCacheWrapper.{name}"
                                       for name in ("__init__", "plan", "run")),
        "flashinfer/tllm_enums.py": ("SfLayout",)}),
    "flash-attn": ("fp4.compat.flash_attn", {
        "flash_attn/flash_attn_interface.py": ("flash_attn_func", "flash_attn_varlen_func")}),
    "vllm": ("fp4.compat.vllm", {
        "vllm/_custom_ops.py": ("scaled_fp4_quant", "cutlass_scaled_fp4_mm",
                                 "scaled_fp4_experts_quant", "rms_norm_dynamic_per_token_quant",
                                 "rotary_embedding", "fused_qk_norm_rope", "topk_softmax",
                                 "reshape_and_cache_flash", "grouped_topk", "moe_align_block_size"),
        "csrc/torch_bindings.cpp": ("rms_norm_static_fp8_quant",
                                    "fused_add_rms_norm_static_fp8_quant")}),
    "torchao": ("fp4.compat.torchao", {
        "torchao/prototype/mx_formats/nvfp4_tensor.py": (
            "NVFP4Tensor.to_nvfp4", "NVFP4Tensor.dequantize", "NVFP4Tensor.get_hp_scales",
            "nvfp4_quantize", "per_tensor_amax_to_scale"),
        "torchao/prototype/mx_formats/mx_tensor.py": ("MXTensor.to_mx", "MXTensor.dequantize",
                                                      "to_mx"),
        "torchao/prototype/mx_formats/config.py": ("ScaleCalculationMode",)}),
}


class Source:
    """The files and the version of a package."""

    def __init__(self, name: str, version: str, files: dict[str, str]) -> None:
        self.name, self.version, self.files = name, version, files


def wanted(name: str) -> tuple[str, ...]:
    return tuple(PACKAGES[name][1])


def from_installed(name: str) -> Source | None:
    """The package `name` where it is installed, which has no files of C++; else None."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    files = {path: pathlib.Path(str(distribution.locate_file(path))).read_text()
             for path in wanted(name) if path.endswith(".py")}
    return Source(name, distribution.version, files)


def from_archive(path: pathlib.Path) -> Source:
    """A wheel (.whl), or a source distribution (.tar.gz), whose files are below one folder."""
    members = _wheel(path) if path.suffix == ".whl" else _sdist(path)
    information = next(text for name, text in members.items()
                       if name.endswith(".dist-info/METADATA") or name == "PKG-INFO")
    headers = email.message_from_string(information)
    name = headers["Name"].lower().replace("_", "-")
    if name not in PACKAGES:
        raise SystemExit(f"{path}: no signatures of '{name}' are recorded")
    return Source(name, headers["Version"], {item: members[item] for item in wanted(name)})


def _reads(name: str) -> bool:
    known = {path for _, files in PACKAGES.values() for path in files}
    return name in known or name.endswith(".dist-info/METADATA") or name == "PKG-INFO"


def _wheel(path: pathlib.Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if _reads(name)}


def _sdist(path: pathlib.Path) -> dict[str, str]:
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if member.isfile() and _reads(name):
                file = archive.extractfile(member)
                assert file is not None
                found[name] = file.read().decode()
    return found


def definition(text: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """The last definition of `name`, or of `Class.method`, at the top of a module."""
    scope: list[ast.stmt] = ast.parse(text).body
    found: ast.FunctionDef | ast.ClassDef | None = None
    for part in name.split("."):
        matches = [node for node in scope
                   if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == part]
        if not matches:
            return None
        found = matches[-1]
        scope = found.body
    return found


def describe(text: str, name: str) -> list[str] | None:
    """The parameters of a function, each as "kind name = default", or the members of an
    enumeration as "NAME = value". Annotations are left out: callers do not see them."""
    if "ops.def(" in text:
        return _operator(text, name)
    found = definition(text, name)
    if found is None:
        return None
    if isinstance(found, ast.ClassDef):
        return [ast.unparse(node) for node in found.body if isinstance(node, ast.Assign)]
    arguments = found.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[Any] = [None] * (len(positional) - len(arguments.defaults))
    pairs = [("only position" if i < len(arguments.posonlyargs) else "any", item, default)
             for i, (item, default) in enumerate(zip(positional, defaults + arguments.defaults))]
    if arguments.vararg:
        pairs.append(("rest", arguments.vararg, None))
    pairs += [("only name", item, default)
              for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        pairs.append(("rest by name", arguments.kwarg, None))
    return [f"{kind} {item.arg}" + (f" = {ast.unparse(default)}" if default else "")
            for kind, item, default in pairs]


def _operator(text: str, name: str) -> list[str] | None:
    """The parameters of an operator whose schema is in strings of C++."""
    found = re.search(rf'ops\.def\(\s*((?:"{name}\([^"]*"\s*)(?:"[^"]*"\s*)*)', text)
    if found is None:
        return None
    schema = "".join(re.findall(r'"([^"]*)"', found[1]))
    parameters = schema.partition("(")[2].partition(")")[0].split(",")
    return [f"any {parameter.split()[-1]}" for parameter in parameters]


def record(source: Source) -> dict[str, Any]:
    """Returns the record of a package in data/signatures.json."""
    names = {}
    for path, items in PACKAGES[source.name][1].items():
        for item in items:
            found = describe(source.files[path], item)
            if found is None:
                raise SystemExit(f"{source.name} {source.version}: {path} has no '{item}'")
            names[item] = {"file": path, "parameters": found}
    return {"version": source.version, "module": PACKAGES[source.name][0], "names": names}


def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DATA.read_text())
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", nargs="*", type=pathlib.Path,
                        help="wheels and source distributions; none: what is installed")
    parser.add_argument("--update", action="store_true", help="write data/signatures.json")
    options = parser.parse_args()
    sources = [from_archive(path) for path in options.archive]
    if not sources:
        sources = [found for name in PACKAGES if (found := from_installed(name))]
    records = {source.name: record(source) for source in sources}
    if options.update:
        DATA.parent.mkdir(exist_ok=True)
        old = recorded() if DATA.exists() else {}
        DATA.write_text(json.dumps({**old, **records}, indent=1, sort_keys=True) + "\n")
    else:
        print(json.dumps(records, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
