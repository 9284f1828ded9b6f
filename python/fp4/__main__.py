"""fp4, or python -m fp4: the cache of compiled programs, and checkpoints in 4 bits."""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import time
from collections.abc import Callable

from . import _cache, _cache_tune
from .errors import Error, UsageError

_EXIT_CODES = ("exit codes: 0 success, 1 a difference was found, 2 usage, 3 unknown recipe, "
               "4 device (Diagnostics)")
_Adder = Callable[..., argparse.ArgumentParser]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fp4", description=__doc__, epilog=_EXIT_CODES)
    add: _Adder = parser.add_subparsers(dest="command", required=True).add_parser
    _add_cache(add("cache", help="compiled programs on disk"))
    _add_quantize_model(add("quantize-model", help="quantize the linear layers of a checkpoint",
                            description="Writes the folder OUT: the model of IN with its linear "
                            "layers in 4 bits, in the layout compressed-tensors, and prints the "
                            "error of each layer. OUT is there at the end, or not at all.",
                            epilog=_EXIT_CODES))
    _add_compare(add("compare-checkpoints", help="find the first bits in which two checkpoints "
                     "in 4 bits differ", epilog=_EXIT_CODES))
    return parser


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_cached)
    cache = parser.add_subparsers(dest="action", required=True)
    cache.add_parser("list", help="print every entry, the most used last")
    prune = cache.add_parser("prune", help="remove damaged entries and those of other compilers")
    prune.add_argument("--unused-for", type=float, default=30, metavar="DAYS",
                       help="remove also what was not used for so long (default 30)")
    prune.add_argument("--all", action="store_true", help="remove every entry")
    export = cache.add_parser("export", help="copy the entries of this compiler into a folder that "
                              "serves as $FP4_CACHE elsewhere, also without a compiler")
    export.add_argument("folder", type=pathlib.Path)
    tune = cache.add_parser("tune", help="search plans for an entry with fp4-runner --tune; its "
                            "program has them from then on, also where it is exported to")
    tune.add_argument("name", help="the begin of its name, as 'list' prints it")
    tune.add_argument("options", nargs=argparse.REMAINDER,
                      help="of fp4-runner, such as --dim=M=64 or --tune-limit=32")


def _add_quantize_model(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_quantized)
    parser.add_argument("source", type=pathlib.Path, metavar="IN",
                        help="folder with config.json and safetensors files in 16 bits")
    parser.add_argument("target", type=pathlib.Path, metavar="OUT", help="folder to make")
    parser.add_argument("--format", choices=("nvfp4", "mxfp4"), default="nvfp4")
    parser.add_argument("--recipe", default="", help="rounding of the numbers (default: that of "
                        "compressed-tensors)")
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN",
                        help="layers that stay as they are, such as '*.down_proj'; repeatable")
    parser.add_argument("--head", action="store_true", help="quantize the head too")
    parser.add_argument("--bits", type=float, help="mean bits of a weight: the layers with the "
                        "largest error stay as they are until it is reached")
    parser.add_argument("--calibrate", type=pathlib.Path, metavar="TEXT", help="round by GPTQ, so "
                        "that the results of each layer on this text change least; needs "
                        "transformers, memory for the model, and 4 * K * K bytes for each group of "
                        "layers of a file that have one input of K features")
    parser.add_argument("--calibrate-tokens", type=int, metavar="N",
                        help="of the text that are used (default 65536)")
    parser.add_argument("--device", default="cpu", help="that quantizes: cuda, or cpu, which is "
                        "the simulator (default)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_compared)
    parser.add_argument("one", type=pathlib.Path, metavar="A")
    parser.add_argument("two", type=pathlib.Path, metavar="B")
    parser.add_argument("--original", type=pathlib.Path, metavar="DIR", help="the model in 16 "
                        "bits, which tells the recipe that each of the two follows")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _line(item: _cache.Entry | tuple[pathlib.Path, str]) -> str:
    if not isinstance(item, _cache.Entry):
        return f"{item[0].stem[:12]}  damaged: {item[1]}"
    key, days = item.key, (time.time() - item.modified) / 86400
    mine = _cache.compiler() in (None, item.facts["compiler"])
    name = re.search(r"func\.func @([\w.]+)\(([^{]*)", key.text)
    what = f"@{name[1]}({' '.join(name[2].split())}, ...)" if name else ""
    target = key.target + (f"/{key.device}" if key.device else "")
    return (f"{key.name[:12]}  {target:12} {key.code:5} {item.bytes / 1024:7.0f} KiB  "
            f"{days:5.1f} days  {'' if mine else 'of another compiler: '}"
            f"{'tuned ' if 'tuned' in item.facts else ''}{what}")


def _cached(options: argparse.Namespace) -> tuple[str, int]:
    root = _cache.folder()
    if root is None:
        return "the cache is off ($FP4_CACHE)", 0
    if options.action == "list":
        found = sorted(_cache.entries(), key=lambda item: (
            item.modified if isinstance(item, _cache.Entry) else 0.0))
        return "\n".join([*map(_line, found), f"{len(found)} entries in {root}"]), 0
    if options.action == "prune":
        count, size = _cache.prune(options.unused_for, options.all)
        return f"removed {count} entries, {size / 2**20:.1f} MiB", 0
    if options.action == "tune":
        return _cache_tune.tune(options.name, options.options), 0
    return f"copied {_cache.export(options.folder)} entries to {options.folder}", 0


def _quantized(options: argparse.Namespace) -> tuple[str, int]:
    from .checkpoints._calibrate import Text
    from .checkpoints._quantize_model import Request, quantize_model

    tokens: int | None = options.calibrate_tokens
    if tokens is not None and options.calibrate is None:
        raise UsageError("--calibrate-tokens needs --calibrate TEXT",
                         "name the text with --calibrate, or leave out --calibrate-tokens")
    text = options.calibrate and Text(options.calibrate, Text.tokens if tokens is None else tokens)
    request = Request(options.format, options.recipe, tuple(options.exclude), options.bits,
                      options.head, options.device, text)
    report = quantize_model(options.source, options.target, request,
                            lambda text: print(text, file=sys.stderr))
    return json.dumps(report.to_dict(), indent=2) if options.json else str(report), 0


def _compared(options: argparse.Namespace) -> tuple[str, int]:
    from .checkpoints._compare import compare_checkpoints

    found = compare_checkpoints(options.one, options.two, options.original)
    text = json.dumps(found.to_dict(), indent=2) if options.json else str(found)
    return text, 1 if found.different else 0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        text, code = options.run(options)
    except (Error, OSError, ImportError) as error:
        print(f"fp4: error: {error}", file=sys.stderr)
        return error.kind if isinstance(error, Error) else 2
    print(text)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
