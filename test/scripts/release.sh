#!/usr/bin/env bash
# The parts of a release that need no build: two runs write the same bytes, their checksums hold, and a
# tree that cannot be released is refused. Wheels, the site and promises have tests of their own.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
if ! command -v dpkg-query >/dev/null; then
  echo "the list of libraries takes their versions from dpkg-query, which this machine has not"
  exit 77
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tree"
git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$copy/tree" -x
cd "$copy/tree"
commit() {
  git add -A
  GIT_COMMITTER_DATE="2026-01-02T03:04:05Z" \
    git -c user.name=fp4 -c user.email=fp4@localhost commit -q -m "$1"
}
git init -q
commit first
parts=(sdist notes sbom)
# refused WORDS: no release is made, and the error has the words.
refused() {
  rm -rf "$copy/refused"
  if utils/release.py --out "$copy/refused" "${parts[@]}" >/dev/null 2>"$copy/log"; then
    echo "a release is made although $1"
    exit 1
  fi
  grep -q "$1" "$copy/log" || { cat "$copy/log"; exit 1; }
}

utils/release.py --out "$copy/one" "${parts[@]}"
touch README.md
utils/release.py --out "$copy/two" "${parts[@]}" >/dev/null
diff -r "$copy/one" "$copy/two"
(cd "$copy/one" && sha256sum --check --strict --quiet SHA256SUMS && [ "$(wc -l <SHA256SUMS)" = 3 ])
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
tar -tzf "$copy/one/fp4-$version.tar.gz" >"$copy/names"
grep -qx "fp4-$version/PKG-INFO" "$copy/names"
grep -qx "fp4-$version/LICENSE" "$copy/names"
grep -qx "# fp4 $version" "$copy/one/NOTES.md"
if grep '^## ' "$copy/one/NOTES.md"; then exit 1; fi
python3 - "$copy/one/fp4.cdx.json" <<'PY'
import json, sys
bill = json.load(open(sys.argv[1]))
assert bill["metadata"]["timestamp"] == "2026-01-02T03:04:05Z", bill["metadata"]
assert {"LLVM", "MLIR", "fmt"} <= {part["name"] for part in bill["components"]}
assert all(part["version"] and part["licenses"] for part in bill["components"])
PY

# The wheels and the site are made by known versions; another Python has none.
python3 -m venv --without-pip "$copy/empty"
if PATH="$copy/empty/bin:$PATH" utils/release.py --out "$copy/unknown" wheels >/dev/null 2>"$copy/log"; then
  echo "wheels are made by unknown versions"
  exit 1
fi
grep -q "auditwheel must have version .*, but this Python has none" "$copy/log"
grep -q "pip install -r packages/requirements.txt" "$copy/log"

# The wheels would have a file that no commit has.
touch python/fp4/new.py
refused "must be committed, but this is changed"
rm python/fp4/new.py
touch docs/new.md
utils/release.py --out "$copy/other" "${parts[@]}" >/dev/null
rm docs/new.md

# A site without machine code has other bytes than one with it.
explorer() {
  echo "{\"no_sass\":\"$1\"}" >"$copy/explorer.html"
  python3 -B -c "import pathlib, sys
sys.path.insert(0, 'utils')
import release
release.check_explorer(pathlib.Path('$copy/explorer.html'))" 2>"$copy/log"
}
explorer ""
if explorer "there is no nvdisasm"; then
  echo "a site without machine code is released"
  exit 1
fi
grep -q "must show machine code, but there is no nvdisasm" "$copy/log"

# A record of another release is found, and the twin passes.
cp -r packages/promises "$copy/record"
record() { python3 -B -c "import pathlib, sys
sys.path.insert(0, 'utils')
import release
release.compare_records(pathlib.Path('packages/promises'), pathlib.Path('$copy/record'))" 2>"$copy/log"; }
record
echo >>"$copy/record/options.json"
if record; then
  echo "a record of another release is taken"
  exit 1
fi
grep -q "packages/promises/options.json must be that of this release" "$copy/log"

echo >>README.md
refused "the tree must be committed"
commit "another README"
utils/release.py --out "$copy/three" "${parts[@]}" >/dev/null
if cmp -s "$copy/one/SHA256SUMS" "$copy/three/SHA256SUMS"; then exit 1; fi
sed -i 's/^version = .*/version = "9.9.9"/' packages/fp4-sim/pyproject.toml
commit "another version"
refused "must need packages of its version 9.9.9"
git reset -q --hard HEAD~1
sed -i 's/(fp4 VERSION [0-9.]*/(fp4 VERSION 9.9.9/' CMakeLists.txt
commit "another version of CMake"
refused "CMakeLists.txt must have version $version"
git reset -q --hard HEAD~1
sed -i '/^## /,$d' CHANGELOG.md
commit "no changes"
refused "must have a part '## $version' or '## Unreleased'"
