#!/bin/bash
# shellcheck disable=SC2086
# Writes beside itself what it builds; after races.sh.
# build_att.sh OUT GEN "A init" "OPS"
set -e
d=$(mktemp -d ./b.XXXX)
echo "constexpr fp_hopper_attention A = $3; constexpr int OPS = $4;" > $d/att_config.h
g++ -O1 -g -std=c++20 -w -fsanitize=thread -I$d -I$2 -I. -c att.cpp -o $d/att.o
g++ $d/att.o build/sim.o -o $1
rm -r "$d"
