#!/bin/sh
# library.sh FUSEPLAN SOURCE RUNTIME [FLAG]: runs the host part of an exported CUDA library on this machine.
# The library RUNTIME stands in for CUDA's runtime, and its kernels are the oracle's operators.  FLAG: of
# compilers, the sanitizers that RUNTIME was built with.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
source=$2 runtime=$3 sanitize=${4:--g0}
. "$source/tests/cmd/suite.sh"
. "$source/tests/cuda/build.sh"

# cuBLASLt runs operators 0, 7-8 and 12-13
value=$(fuseplan translate --segments 2-6,7-8,10-11,12-13 | cut -d ' ' -f 1)
workload='-b 2 -s 100 -m causal -H 2 -W 16 --ffn 64 -L 3'
fuseplan export "$value" --target cuda -t fp32 --arch sm_80 $workload -q -o cuda
[ -e cuda/products.c ] || fail "no segment is a product"
build cuda "$source/tests/cmd/library.c"
cuda/run y || fail "the library"
build cuda "$source/tests/cmd/refused.c"
cuda/run || fail "what the library refuses"
build cuda "$source/tests/cmd/library.c"
for type in fp32 fp16 bf16; do
  fuseplan export "$value" --target cuda -t $type --arch sm_80 $workload -q -o embed_$type
  build embed_$type "$source/tests/cmd/embed.c"
  embed_$type/run || fail "embeddings in $type"
done
for gpu in 'none there is no usable device' 'old the driver is too old' 'other the library has no code for this device'; do
  FAKE_GPU=${gpu%% *} cuda/run z >said && fail "it runs without a GPU: $gpu"
  grep -q "^${gpu#* }: " said || fail "$gpu: $(cat said)"
done

# CUDA 12.0 lacks functions that later versions have.
cuda_version=12000
build cuda "$source/tests/cmd/library.c"
cuda/run z || fail "the library with CUDA 12.0"
cuda_version=13000

# A cuBLASLt of another version may propose fewer algorithms than the one that the plan was tuned with; the stand-in
# proposes four.
cp -r cuda elsewhere
sed -i '/_product = /{n;s/, 0};$/, 7};/;}' elsewhere/plan_*.c
grep -q ', 7};$' elsewhere/plan_*.c || fail "no product names its algorithm"
build elsewhere "$source/tests/cmd/library.c"
elsewhere/run z || fail "the library where cuBLASLt proposes fewer algorithms"
cmp y z || fail "another result where cuBLASLt proposes fewer algorithms"

build cuda "$source/tests/cuda/graphs.c"
cuda/run || fail "graphs of calls"

# Each launch of a size gets its shared memory, though one of another size shares its kernel and takes less.
fuseplan export 43690 --target cuda -t fp32 --arch sm_80 $workload -b 1,4 -s 4,20 -q -o sizes
build sizes "$source/tests/cuda/sizes.c"
sizes/run >out || fail "sizes: $(cat out)"
grep -q '^4 plans' out || fail "sizes: $(cat out)"

# as_on_cpu OUTPUT OPTION...: that the CPU's library computes nearly the same of the same inputs, which has no sanitizers.
as_on_cpu() {
  [ "$sanitize" = -g0 ] || return 0
  output=$1
  shift
  fuseplan export "$value" --target cpu $workload "$@" -q -o cpu
  make -s -j 2 -C cpu libencoder.a
  cc -std=gnu17 -O1 -fopenmp -Icpu -o cpu/run "$source/tests/cmd/library.c" cpu/libencoder.a -lopenblas -lm -pthread
  cpu/run x || fail "the library of the CPU: $*"
  cmp -s x "$output" && fail "two targets give the same bits: nothing was compared"
  "$source/tests/cmd/near.sh" x "$output" 1e-5 || fail "the targets differ: $*"
  rm -r cpu
}

# other_chain NAME OPTION...: layers of another chain, packed or not, as the CPU's library runs them.
other_chain() {
  export FAKE_CHAIN="$1"
  shift
  rm -rf chain chain--packed
  for packed in '' --packed; do
    fuseplan export "$value" --target cuda -t fp32 --arch sm_80 $workload "$@" $packed -q -o "chain$packed"
    build "chain$packed" "$source/tests/cmd/library.c"
    "chain$packed/run" "c$packed" || fail "the library of $FAKE_CHAIN, $packed"
  done
  build chain "$source/tests/cuda/graphs.c"
  chain/run || fail "graphs of calls of $FAKE_CHAIN"
  as_on_cpu c "$@"
  "$source/tests/cmd/near.sh" c c--packed 1e-6 || fail "the packed library gives another result for $FAKE_CHAIN"
  unset FAKE_CHAIN
}
other_chain pre+rms+silu+gate+rope+bias+hidden --norm pre --norm-kind rms --activation silu --gate --rope 100 \
  --score-bias --hidden 40

other_chain pre+gate+rope --norm pre --gate --rope 100 --local-mask sliding:w=5 --local-rope 10 --global-every 2

# The example captures a run into a graph, in which nothing may be allocated or waited for.
build cuda example
cuda/run >out
grep -q "^plan $value, batch 2, sequence length 100, 3 layers: .* ms" out || fail "example: $(cat out)"

as_on_cpu y

# Packed, products run on real tokens, and kernels read from the device how many there are.
fuseplan export "$value" --target cuda -t fp32 --arch sm_80 $workload --packed -q -o packed
build packed "$source/tests/cmd/library.c"
packed/run z || fail "the packed library"
"$source/tests/cmd/near.sh" y z 1e-6 || fail "the packed library gives another result"
build packed "$source/tests/cuda/graphs.c"
packed/run direct || fail "graphs of calls of the packed library"

# Packed without products.
fuseplan export "$(fuseplan translate --segments 0-14 | cut -d ' ' -f 1)" --target cuda -t fp32 --arch sm_80 $workload \
  --packed -q -o own
build own "$source/tests/cuda/graphs.c"
own/run lengths || fail "graphs of calls of the packed library without products"

# What warnings need optimisation: e4m3.sh has none, as it runs under sanitizers alone.
fp8() { fuseplan "$@" --target cuda -b 2 -s 100 -H 2 -W 64 --ffn 256 -L 3 -q; }
if [ "$sanitize" = -g0 ]; then
  "$source/tests/cuda/scales.py" 0123456789abcdef 3 >calibration.json
  fp8 export 48920 --precision fp8 --calibration calibration.json -t bf16 --packed -o codes
  fp8 generate 48743 --precision qkv,ffn2 -o program
  build codes "$source/tests/cuda/codes.c"
  build program
fi
echo "all well"
