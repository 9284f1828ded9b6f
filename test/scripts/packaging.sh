#!/usr/bin/env bash
# Files for editors, containers and packagers: presets, the Dockerfile, the devcontainer, the conda
# recipe and the Debian package of a build tree. A builder of images builds the Dockerfile where
# FP4_BUILD_IMAGE is set, since that takes as long as the whole build.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
build="$(cd "$1" && pwd)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root"
fail() { echo "error: $*"; exit 1; }

cmake --list-presets=all >"$scratch/presets"
python3 - "$scratch/presets" <<'PY'
import json, pathlib, re, sys
listed = pathlib.Path(sys.argv[1]).read_text()
presets = json.loads(pathlib.Path("CMakePresets.json").read_text())
names = [each["name"] for each in presets["configurePresets"] if not each.get("hidden")]
builds = {each["configurePreset"] for each in presets["buildPresets"]}
table = re.findall(r"^\| `([\w-]+)` \|", pathlib.Path("CONTRIBUTING.md").read_text(), re.M)
for name in names:
    assert f'"{name}"' in listed, f"cmake does not list the preset {name}"
    assert name in builds, f"{name} must have a preset for builds"
    assert name in table, f"CONTRIBUTING.md must have the preset {name}"
version = re.search(r'^version = "(.+)"', pathlib.Path("pyproject.toml").read_text(), re.M)[1]
recipe = pathlib.Path("packages/conda/meta.yaml").read_text()
assert f'{{% set version = "{version}" %}}' in recipe, f"the conda recipe must have version {version}"
container = json.loads(pathlib.Path(".devcontainer/devcontainer.json").read_text())
assert "utils/setup.sh" in container["onCreateCommand"] and container["postCreateCommand"].split()[-1] in names
docker = pathlib.Path("Dockerfile").read_text()
assert re.findall(r"^FROM (\S+)", docker, re.M) == ["debian:12", "debian:12-slim"], "two stages"
for file in re.findall(r"(?:utils|packages)/[\w./-]+", docker):
    assert pathlib.Path(file).exists(), f"the Dockerfile names {file}, which is not there"
PY
for builder in docker podman buildah; do
  if [ -n "${FP4_BUILD_IMAGE:-}" ] && command -v $builder >/dev/null; then
    $builder build -t fp4-test .
    break
  fi
done

# LLVM of another version is refused by name.
printf '#!/bin/sh\necho 21.1.0\n' >"$scratch/llvm-config"
chmod +x "$scratch/llvm-config"
if cmake --preset release -B "$scratch/tree" -DFP4_LLVM_CONFIG="$scratch/llvm-config" -DFP4_UNITY=OFF \
  >"$scratch/log" 2>&1; then
  fail "LLVM 21 is taken"
fi
tr -s ' \n' ' ' <"$scratch/log" | grep -q "must have LLVM and MLIR 22.1 or later, but $scratch/llvm-config is of 21.1.0" ||
  { cat "$scratch/log"; exit 1; }

# The Debian package of the tree.
command -v dpkg-shlibdeps >/dev/null || { echo "the Debian package needs dpkg-dev"; exit 77; }
(cd "$scratch" && cpack --config "$build/CPackConfig.cmake" -B "$scratch/deb" >"$scratch/log" 2>&1) ||
  { cat "$scratch/log"; exit 1; }
package=$(echo "$scratch"/deb/*.deb)
dpkg-deb --field "$package" Package Version Architecture Depends | tee "$scratch/fields"
dpkg-deb --contents "$package" >"$scratch/contents"
for file in usr/bin/fp4-sim usr/bin/fp4-run usr/lib/libfp4rt.so usr/include/fp4-c/Loader.h share/doc/fp4.*/copyright; do
  grep -q "$file" "$scratch/contents" || fail "the package must have $file"
done
if [ -x "$build/bin/fp4-opt" ]; then
  grep -q '^Depends: .*mlir-22' "$scratch/fields" || fail "the package must depend on MLIR 22"
fi
if command -v lintian >/dev/null; then
  lintian --tag-display-limit 0 --allow-root --fail-on error "$package" >"$scratch/lintian" ||
    { grep '^E:' "$scratch/lintian"; exit 1; }
fi
echo "presets, containers, recipe and package are right"
