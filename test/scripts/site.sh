#!/usr/bin/env bash
# The documentation becomes a site with the explorer's page of an example and without a link that leads
# nowhere, and such a link is found. mkdocs is installed into BUILD/site-env.
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
"$env/bin/python" "$root/docgen/build_site.py" --build "$1"
[ -f "$root/build/site/index.html" ]
[ -f "$root/build/site/docs/reference/semantics.html" ]
# Guides lead to the explorer's page, which has the program of the example and its verdict.
for page in guides/tools concepts/phases; do
  grep -q 'href="../../generated/explorer.html"' "$root/build/site/docs/$page.html"
done
grep -q '"file":"examples/nvfp4_linear.mlir"' "$root/build/site/generated/explorer.html"
grep -q '"passed":true' "$root/build/site/generated/explorer.html"
[ -f "$root/build/site/generated/Plots.html" ]
[ -f "$root/build/site/generated/plots/01.svg" ]

# A copy of the tree, with a link that leads nowhere, and with one to a heading that is gone.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# A plot has the numbers of its table, and documents without numbers are an error.
mkdir -p "$copy/plots/docs/performance"
touch "$copy"/plots/docs/{performance/quantizers,Models,Python,Simulator}.md
if python3 "$root/docgen/plot_benchmarks.py" --root "$copy/plots" "$copy/plots/out" 2>"$copy/plot.log"; then
  echo "documents without tables are plotted"
  exit 1
fi
grep -q "no document has a table of measurements" "$copy/plot.log"
printf '%s\n' '# A' '| kernel | median us | of copy |' '|---|---|---|' '| `k` | 1,012.5 (x) | 3 |' '| l | - | 4 |' \
  >"$copy/plots/docs/performance/quantizers.md"
python3 "$root/docgen/plot_benchmarks.py" --root "$copy/plots" "$copy/plots/out" | grep -qx "1 plots of 1 tables"
grep -q '<title>median us: 1012.5 us</title>' "$copy/plots/out/plots/01.svg"
if grep '>l</text>\|of copy' "$copy/plots/out/plots/01.svg"; then exit 1; fi
rm -rf "$copy/plots"

# A build without the compiler is an error, and so is a compiler that fails.
mkdir -p "$copy/bin"
if "$env/bin/python" "$root/docgen/build_site.py" --build "$copy" 2>"$copy/explore.log"; then
  echo "a site without the explorer's page is built"
  exit 1
fi
grep -q "must have fp4-runner" "$copy/explore.log"
printf '#!/bin/sh\necho "error: no kernel" >&2\nexit 3\n' >"$copy/bin/fp4-runner"
chmod +x "$copy/bin/fp4-runner"
if "$env/bin/python" "$root/docgen/build_site.py" --build "$copy" 2>"$copy/explore.log"; then
  echo "a site of a compiler that fails is built"
  exit 1
fi
grep -q "the page of examples/nvfp4_linear.mlir cannot be written: error: no kernel" "$copy/explore.log"
rm -r "$copy/bin"
git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$copy" -x
git -C "$copy" init -q
broken=(docs/Nowhere.md docs/reference/semantics.md#no-such-part)
{ cat "$root/README.md" && printf '[x](%s)\n' "${broken[@]}"; } >"$copy/README.md"
git -C "$copy" add -A
if "$env/bin/python" "$copy/docgen/build_site.py" --build "$1" >"$copy/build.log" 2>&1; then
  echo "links that lead nowhere are not found"
  exit 1
fi
for link in "${broken[@]}"; do
  grep -q "^WARNING .*README.md.*'$link'" "$copy/build.log"
done
grep -q "^Aborted with 2 warnings" "$copy/build.log" # each of the two is enough for an error
