#!/bin/sh
# run.sh: builds the experiments for sm_90a and runs them; needs nvcc and a Hopper GPU, takes half a minute.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for program in stream breath; do
  nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o "$dir/$program" "$here/$program.cu"
  "$dir/$program"
done
