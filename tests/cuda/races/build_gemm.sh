#!/bin/bash
# shellcheck disable=SC2086
# Writes beside itself what it builds; after races.sh.
# build_gemm.sh OUT GEN "init" HEADS_IN HEADS_OUT TURN RANKS DEPTH
set -e
d=$(mktemp -d ./b.XXXX)
{ echo "constexpr fp_hopper_gemm G0 = $3;"; echo "#define HEADS_IN $4"; echo "#define HEADS_OUT $5"; echo "#define TURN $6"; echo "constexpr int RANKS = $7, DEPTH = $8;"; } > $d/gemm_config.h
g++ -O1 -g -std=c++20 -w -fsanitize=thread -I$d -I$2 -I../../../kernels -I. -c gemm.cpp -o $d/g.o
g++ $d/g.o build/sim.o -o $1
rm -r "$d"
