"""The command fp4-sim of the wheel: executes the tool that the package brings."""

from __future__ import annotations

import os
import sys

from ..errors import UsageError
from .__main__ import find_tool


def main() -> int:
    try:
        tool = find_tool()
    except UsageError as error:
        print(f"fp4-sim: error: {error}", file=sys.stderr)
        return 2
    os.execv(tool, [tool, *sys.argv[1:]])
