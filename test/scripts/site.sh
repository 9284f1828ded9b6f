#!/usr/bin/env bash
# The documentation becomes a site without a link that leads nowhere, and such a link is found. mkdocs is
# installed into BUILD/site-env.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
env="$1/site-env"
if ! [ -x "$env/bin/mkdocs" ]; then
  rm -rf "$env"
  if ! { python3 -m venv "$env" && "$env/bin/pip" install -q mkdocs; } >/dev/null 2>&1; then
    rm -rf "$env"
    echo "pip cannot install mkdocs"
    exit 77
  fi
fi
"$env/bin/python" "$root/utils/build_site.py" --build "$1"
[ -f "$root/build/site/index.html" ] && [ -f "$root/build/site/docs/Spec.html" ]

# A copy of the tree, with a link that leads nowhere, and with one to a heading that is gone.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$copy" -x
git -C "$copy" init -q
for broken in docs/Nowhere.md docs/Spec.md#no-such-part; do
  { cat "$root/README.md" && echo "[x]($broken)"; } >"$copy/README.md"
  git -C "$copy" add -A
  if "$env/bin/python" "$copy/utils/build_site.py" >"$copy/build.log" 2>&1; then
    echo "$broken is not found"
    exit 1
  fi
  grep -q "README.md.*${broken%#*}" "$copy/build.log"
done
