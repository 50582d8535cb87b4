#!/bin/sh
# run.sh: builds gemm for sm_90a and runs it; needs nvcc, cuBLASLt and a Hopper GPU, takes a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -I"$root/kernels/cuda" -I"$root/kernels" \
  -o "$dir/gemm" "$here/gemm.cu" -lcublasLt
"$dir/gemm"
