#!/bin/sh
# stamps.sh FUSEPLAN [VALUE]: exports a plan (48920) for one sentence of 16 and of 128 tokens, and prints what its
# kernels wait for; needs nvcc and a Hopper GPU, takes a minute.  Schedules are those that FUSEPLAN_DB knows, else the
# default ones.
set -eu
fuseplan=$1
plan=${2:-48920}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
flags="-std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for kind in untraced traced; do
  "$fuseplan" export "$plan" -b 1 -s 16,128 --target cuda --arch sm_90a -o "$dir/$kind"
  [ "$kind" = untraced ] || flags="$flags -I. -I'$here' -include traced.cuh"
  make -s -j4 -C "$dir/$kind" NVCCFLAGS="$flags" libencoder.a
  nvcc -O3 -std=c++17 -I"$dir/$kind" -o "$dir/$kind/stamps" "$here/stamps.cu" "$dir/$kind/libencoder.a"
  "$dir/$kind/stamps"
done
