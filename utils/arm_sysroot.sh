#!/usr/bin/env bash
# Makes the folder of Debian's arm64 packages that the preset aarch64 compiles against. Nothing is
# installed, and no root is needed: apt reads lists of arm64 into the folder, and the packages that are
# not there yet are downloaded and unpacked. With 'compiler', LLVM and MLIR are there, too; with
# 'python', Python 3.11. Exit code 77 where the lists have none of arm64.
#   arm_sysroot.sh [--to FOLDER] [compiler] [python]
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder=$root/build-aarch64/sysroot
packages=(libc6 libc6-dev linux-libc-dev libcrypt-dev libgcc-s1 libgcc-12-dev libstdc++6
  libstdc++-12-dev libfmt9 libfmt-dev libzstd1 libzstd-dev zlib1g zlib1g-dev libgtest-dev libgmock-dev
  googletest libcli11-dev libexpected-dev nlohmann-json3-dev)
while [ $# -gt 0 ]; do
  case $1 in
  --to) folder=${2:?--to expects a folder}; shift ;;
  compiler) packages+=(llvm-22-dev llvm-22-linker-tools libllvm22 libmlir-22-dev libmlir-22 libedit2
    libedit-dev libffi8 libffi-dev libxml2 libxml2-dev libicu72 liblzma5 libbsd0 libmd0 libtinfo6
    libncurses-dev libz3-4 libz3-dev) ;;
  python) packages+=(python3.11 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
    libpython3.11-dev libpython3.11 libexpat1 libexpat1-dev libssl3 libffi8 libbz2-1.0 liblzma5
    libtinfo6 libuuid1) ;;
  *) echo "error: arguments must be compiler or python, but got '$1'" >&2; exit 2 ;;
  esac
  shift
done

folder=$(realpath -m "$folder")
# A state of its own keeps the lists of this machine's apt as they are.
state=$folder/.apt
mkdir -p "$state/lists/partial" "$state/archives/partial" "$folder/usr/lib"
touch "$state/status" "$state/unpacked"
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | sort -u | grep -vxFf "$state/unpacked" || true)
[ ${#missing[@]} = 0 ] && exit
options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state"
  -o "Dir::State::status=$state/status" -o "Dir::Cache=$state" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update # a server has only the versions of its newest lists
if [ -z "$(apt-cache "${options[@]}" show "${missing[@]}" 2>/dev/null)" ]; then
  echo "apt finds none of ${missing[*]}"
  exit 77
fi
# /lib is a link to /usr/lib, as in an installed system. By way of this link clang names the headers of
# libstdc++ as /lib/gcc/x/12/../../../../include, of which ninja makes /include.
ln -sfn usr/lib "$folder/lib"
ln -sfn usr/include "$folder/include"
(cd "$state/archives" && apt-get "${options[@]}" download "${missing[@]}")
for package in "$state"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink
done
rm "$state"/archives/*.deb
# Absolute links would lead out of the folder, and the linker would take an archive instead.
find "$folder" -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$folder$(readlink "$link")" "$link"
done
# The exports of LLVM name its programs, of which this host's have the same version.
[ ! -d "$folder/usr/lib/llvm-22" ] || ln -sfn /usr/lib/llvm-22/bin "$folder/usr/lib/llvm-22/bin"
printf '%s\n' "${missing[@]}" >>"$state/unpacked"
echo "$folder has ${#missing[@]} more packages of arm64"
