#!/usr/bin/env bash
# A project of its own builds against an install of this build tree, and its kernel runs.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
exec "$root/packages/build_embed.sh" "$1" "$1/embed-test"
