#!/bin/bash
# races.sh FROM TO [FILTER]: runs Hopper's attention and GEMMs as a simulation of their text, by seeds FROM to TO, and looks
# for races; FILTER: of configurations' names.  Needs g++, no GPU; writes below ./build.
#
# gen.py turns each asm of the kernels into a call of sim.cpp, which runs the threads of several thread blocks as
# coroutines in random order.  Loads and stores come by the hooks of -fsanitize=thread; copies land and products read at
# random times; happens-before is kept by vector clocks, with the proxies of wgmma and TMA.
set -eu
cd "$(dirname "$0")"
kernels=$(cd ../../../kernels && pwd)
mkdir -p build/bin
rm -rf build/gen
python3 gen.py "$kernels/cuda" build/gen
cp gen_wgmma.cuh build/gen/wgmma.cuh
# att.cpp knows a key block by the product that overwrites its sums
sed -i 's/wgmma<D, BLOCK>::nt(r.c, r.q\[0\],/wgmma<D, BLOCK>::nt_set(r.c, r.q[0],/' build/gen/hopper_attention_compute.cuh
g++ -O2 -std=c++20 -w -I. -c sim.cpp -o build/sim.o

# build OUT SOURCE: by build/config.h
build() {
  g++ -O1 -g -std=c++20 -w -fsanitize=thread -I"$1.d" -Ibuild/gen -I"$kernels" -I. -c "$2" -o "$1.o"
  g++ "$1.o" build/sim.o -o "$1"
}

simulate() {
  echo "$3: $(timeout 900 "build/bin/$3" "$1" "$2" 2>&1 | tail -n 12)"
}

while IFS= read -r line; do
  name=${line%%|*} rest=${line#*|}
  [[ $name =~ ${3:-.} ]] || continue
  mkdir -p "build/bin/$name.d"
  echo "constexpr fp_hopper_attention A = ${rest%%\}*}}; constexpr int OPS = ${rest#*\}|};" >"build/bin/$name.d/att_config.h"
  build "build/bin/$name" att.cpp
  simulate "$1" "$2" "$name"
done <attention.txt
while IFS='|' read -r name fields others; do
  [[ $name =~ ${3:-.} ]] || continue
  mkdir -p "build/bin/$name.d"
  # shellcheck disable=SC2086 # words
  python3 - "$fields" $others >"build/bin/$name.d/gemm_config.h" <<'END'
import sys
order = 'rows columns step teams groups depth split cluster norm swap adds keeps rms gate e4m3 out_e4m3 out_both kept'.split()
given = {'split': '1', 'cluster': '1', **dict(x[1:].split('=') for x in sys.argv[1].split(','))}
print('constexpr fp_hopper_gemm G0 = {%s};' % ', '.join('.%s=%s' % (k, given[k]) for k in order if k in given))
for name, value in zip(('HEADS_IN', 'HEADS_OUT', 'TURN'), sys.argv[2:5]):
    print('#define', name, value)
print('constexpr int RANKS = %s, DEPTH = %s;' % tuple(sys.argv[5:7]))
END
  build "build/bin/$name" gemm.cpp
  simulate "$1" "$2" "$name"
done <gemm.txt
