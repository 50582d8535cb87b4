#!/bin/sh
# Compiles the CUDA sources of all segments of three chains for sm_80 and sm_90a, a generated program and an exported
# library with a program on its CMake package: needs nvcc, no GPU.
# usage: tests/cuda/compile_all.sh, in a built tree
set -eu
cd "$(dirname "$0")/../.."
fuseplan=build/release/bin/fuseplan
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for what in all pre+rms+silu+gate+rope+bias relu+bias; do
  tests/codegen/compile_cuda.sh build/release/bin/emit_cuda build/release/bin/fuseplan-worker kernels/cuda $what
done
"$fuseplan" generate 41115 -b 1 -s 128 -m causal --target cuda --db "$dir/db" -q -o "$dir/plan"
make -s -C "$dir/plan"
"$fuseplan" export 43690 -b 1 -s 128 -m causal --target cuda --name sizes --db "$dir/db" -q -o "$dir/library"
make -s -C "$dir/library"
"$fuseplan" generate 41115 -b 1 -s 128 -m causal --norm pre --norm-kind rms --activation silu --gate --rope 100 --score-bias \
  --target cuda --db "$dir/db" -q -o "$dir/chain"
make -s -C "$dir/chain"
"$fuseplan" generate 48920 -b 1 -s 128 --precision fp8 --target cuda --db "$dir/db" -q -o "$dir/e4m3"
make -s -C "$dir/e4m3"
tests/cmd/package.sh "$dir/library" sizes tests/cmd/sizes.c build
