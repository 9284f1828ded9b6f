#!/usr/bin/env bash
# Makes the folder of Debian's arm64 packages that the preset aarch64 compiles against. Nothing is
# installed: the packages are downloaded and unpacked. Usage: arm_sysroot.sh [FOLDER]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(realpath -m "${1:-$root/build-aarch64/sysroot}")"
packages=(libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 libgcc-12-dev libstdc++6
  libstdc++-12-dev libfmt9 libfmt-dev libzstd1 libzstd-dev zlib1g-dev libgtest-dev libgmock-dev)
independent=(googletest libcli11-dev libexpected-dev nlohmann-json3-dev)

if ! dpkg --print-foreign-architectures | grep -qx arm64; then
  echo "error: apt must know arm64 packages
note: 'dpkg --add-architecture arm64 && apt-get update' as root" >&2
  exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# /lib is a link to /usr/lib, as in an installed system.
mkdir -p "$folder/usr/lib"
ln -sfn usr/lib "$folder/lib"
(cd "$scratch" && apt-get download -qq "${packages[@]/%/:arm64}" "${independent[@]}")
for package in "$scratch"/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink
done
# Absolute links would lead out of the folder, and the linker would take an archive instead.
find "$folder" -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$folder$(readlink "$link")" "$link"
done
echo "$folder has $(ls "$scratch" | wc -l) packages of arm64"
