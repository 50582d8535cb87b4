#!/bin/sh
# joined.sh FUSEPLAN SOURCE RUNTIME FAKE_GPU [FLAG]: exported libraries whose attention takes tiles of joined rows, on the
# stand-in of CUDA's runtime, and bench on that of its driver: both compute nothing where tiles and lists differ in the keys of a
# token.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
source=$2 runtime=$3 fake=$4 sanitize=${5:--g0}
. "$source/tests/cmd/suite.sh"
. "$source/tests/cuda/build.sh"
use_fake_hopper "$fake"
export LD_LIBRARY_PATH="$root:$fake"
for how in 'full -t fp16' 'sliding:w=9 -t bf16 --lengths 37,30' 'causal -t fp16 --local-mask sliding:w=40 --global-every 2'; do
  case $sanitize$how in -f*full*) continue ;; esac # sanitizers see the others
  workload="--target cuda -b 2 -s 100 -H 2 -W 64 --ffn 256 -L 3 -m $how"
  export FAKE_DTYPE=fp16
  case $how in *bf16*) FAKE_DTYPE=bf16 ;; esac
  rm -f "$FUSEPLAN_DB"
  fuseplan bench 48920 $workload --compiler nvcc --baseline none >out 2>said || fail "bench"
  change "$FUSEPLAN_DB" "UPDATE schedule SET knobs = 'shape=64 cover=joined' WHERE impl = 'hopper_attention'"
  fuseplan bench 48920 $workload --compiler nvcc --baseline none >out 2>said || fail "bench of joined rows"
  grep -q 'cover=joined' out || fail "bench ran others: $(cat out)"
  for packed in '' --packed; do
    fuseplan export 48920 $workload $packed -q --force -o library 2>said || fail "export"
    grep -q '\.most = ' library/plan_*.c || fail "no plan has joined rows: $how"
    build library "$source/tests/cuda/joined.c"
    library/run >out || fail "$how $packed: $(cat out)"
  done
done
echo "all well"
