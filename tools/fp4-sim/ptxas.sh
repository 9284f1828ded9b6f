#!/bin/sh
# A stand-in where Triton looks for ptxas under 'fp4-sim run': its machine code is the PTX, which
# the simulator's cuModuleLoadData takes. The version is part of the key of Triton's cache: nothing
# of a GPU's cache is used.
input='' output=''
while [ $# -gt 0 ]; do
  case "$1" in
  --version)
    echo 'fp4-sim: PTX as it is'
    echo 'Cuda compilation tools, release 13.0, V13.0.fp4'
    exit 0 ;;
  -o) output=$2; shift ;;
  *.ptx) input=$1 ;;
  esac
  shift
done
if [ -z "$input" ] || [ -z "$output" ]; then
  echo "ptxas of fp4-sim: expects a .ptx file and -o" >&2
  exit 1
fi
exec cp "$input" "$output"
