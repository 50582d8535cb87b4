#!/bin/sh
# compile_cuda.sh EMIT_CUDA KERNELS sample|all: compiles emitted CUDA sources with nvcc, a warning
# being an error, one of lost speed too.  Needs no GPU.  Exit 77: skipped.
set -eu
emit=$1 kernels=$(realpath "$2") what=$3
if ! command -v nvcc >/dev/null; then
  echo "skipped: there is no nvcc on PATH"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$emit" "$what" "$dir" >"$dir/list"
cd "$dir"
echo '#include <cublasLt.h>' >headers.cu
if ! nvcc -E headers.cu >headers.out 2>&1; then
  echo "there is no cublasLt.h: sources that call cuBLASLt are left out"
  sed -i '/_library/d' list
fi
# shellcheck disable=SC2016
xargs -P "$(nproc)" -L 1 sh -c '
  nvcc -cubin -std=c++17 -Werror all-warnings -Xptxas --warning-as-error -I "$0" \
    "$2" -o "$1.cubin" "$1" >"$1.log" 2>&1 || { echo "$1 $2:"; cat "$1.log"; exit 1; }' \
  "$kernels" <list
if grep -H 'Potential Performance Loss' ./*.log; then
  exit 1
fi
echo "$(wc -l <list) sources compiled for $(sed 's/.*-arch=//' list | sort -u | tr '\n' ' ')"
