"""fp4 cache, or python -m fp4 cache: the cache of compiled programs (fp4/_cache.py)."""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
import time

from . import _cache
from .errors import Error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("fp4", description=__doc__)
    cache = parser.add_subparsers(dest="command", required=True).add_parser(
        "cache", help="compiled programs on disk").add_subparsers(dest="action", required=True)
    cache.add_parser("list", help="print every entry, the most used last")
    prune = cache.add_parser("prune", help="remove damaged entries and those of other compilers")
    prune.add_argument("--unused-for", type=float, default=30, metavar="DAYS",
                       help="remove also what was not used for so long (default 30)")
    prune.add_argument("--all", action="store_true", help="remove every entry")
    export = cache.add_parser("export", help="copy the entries of this compiler into a folder that "
                              "serves as $FP4_CACHE elsewhere, also without a compiler")
    export.add_argument("folder", type=pathlib.Path)
    return parser


def _line(item: _cache.Entry | tuple[pathlib.Path, str]) -> str:
    if not isinstance(item, _cache.Entry):
        return f"{item[0].stem[:12]}  damaged: {item[1]}"
    key, days = item.key, (time.time() - item.modified) / 86400
    mine = _cache.compiler() in (None, item.facts["compiler"])
    name = re.search(r"func\.func @([\w.]+)\(([^{]*)", key.text)
    what = f"@{name[1]}({' '.join(name[2].split())}, ...)" if name else ""
    target = key.target + (f"/{key.device}" if key.device else "")
    return (f"{key.name[:12]}  {target:12} {key.code:5} {item.bytes / 1024:7.0f} KiB  "
            f"{days:5.1f} days  {'' if mine else 'of another compiler: '}{what}")


def _run(options: argparse.Namespace) -> str:
    root = _cache.folder()
    if root is None:
        return "the cache is off ($FP4_CACHE)"
    if options.action == "list":
        found = sorted(_cache.entries(), key=lambda item: (
            item.modified if isinstance(item, _cache.Entry) else 0.0))
        return "\n".join([*map(_line, found), f"{len(found)} entries in {root}"])
    if options.action == "prune":
        count, size = _cache.prune(options.unused_for, options.all)
        return f"removed {count} entries, {size / 2**20:.1f} MiB"
    return f"copied {_cache.export(options.folder)} entries to {options.folder}"


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        print(_run(options))
    except (Error, OSError) as error:
        print(f"fp4: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
