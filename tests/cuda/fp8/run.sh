#!/bin/sh
# run.sh: builds the experiments for sm_90a and runs them; needs nvcc, cuBLASLt and a Hopper GPU, takes a minute or two.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for program in cvt gemm tiles; do
  nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -I"$root/kernels/cuda" -I"$root/kernels" \
    -o "$dir/$program" "$here/$program.cu" -lcublasLt
  "$dir/$program"
done
