#!/bin/sh
# stamps.sh FUSEPLAN FAKE_GPU: `bench --stamps` on a GPU whose driver is a fake: each of its kernels
# takes 4 us by its stamps, 1 of it for the hand-over; and where there are no stamps.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
fake=$2
use_fake_hopper "$fake"
layer='-b 1 -s 4 -H 1 -W 64 --ffn 64 -L 2'

# bench [ARGUMENT...]: words of $layer are options
bench() {
  fuseplan bench $layer --compiler nvcc --baseline none --stamps "$@"
}

# Operators 0-10 are a kernel of `generated`, 12-14 one of `hopper_gemm`.
expect 0 bench 8 --target cuda
for line in '32776 with stamps: [0-9.]* us a layer, [0-9.]* times the [0-9.]* without[.] .*' \
  'ops  *by  *hand-over  *loads  *products  *epilogue  *undivided  *last block  *sum' \
  '0-10  *generated  *1[.]00  *-  *-  *-  *[0-9.]*  *[0-9.]*  *4[.]00' \
  '12-14  *hopper_gemm  *1[.]00  *0[.]50  *1[.]50  *1[.]00  *-  *0[.]00  *4[.]00' \
  'of 12[.]0 us a layer: hand-overs 3[.]0, loads 0[.]5, products 1[.]5, epilogues 1[.]0, undivided .*' \
  'undivided: .*'; do
  grep -qx "$line" out || fail "no line '$line': $(cat out)"
done
expect 0 bench 8 --target cuda --format json
as_schema bench out
jq -e '.[0].stamps | (.kernels | map(.ops)) == [[0, 10], [11, 11], [12, 14]] and .reason == "" and
  .kernels[2].products_us > 1.49 and .kernels[2].undivided_us == null and .kernels[0].products_us == null and
  (.kernels | map(.sum_us) | add | . > 11.99 and . < 12.01) and .stamped_us_per_layer > 0' out >jq.txt || fail "JSON"

# A kernel that is wrong with stamps, and right without: the plan's own time stays.
sed "s/echo stamped/echo 'fake wrong stamped'/; s/>>/>/" nvcc >wrong && chmod +x wrong && mv wrong nvcc
mkdir fresh
FUSEPLAN_CACHE="$root/fresh" refused 0 '^fuseplan bench: 32776 with stamps: .*wrong' bench 8 --target cuda
grep -q 'with stamps:' out && fail "figures of a wrong plan"

# What has no stamps is refused by name.
unset FAKE_GPU FAKE_DTYPE
refused 2 '--stamps reads the clocks of a GPU in its kernels, and the target is cpu' bench 8 --target cpu --compiler cc
refused 2 '--stamps prints tables or JSON' bench 8 --target cpu --compiler cc --format csv
refused 2 '--stamps is about plans' bench --op attention --target cpu --compiler cc

# `explain` of a GPU's plan names the command.
expect 0 fuseplan explain 8 $layer --target cuda
grep -q "bench 32776 .* --target cuda --stamps' says what each kernel's time goes to" out || fail "explain names no command"
expect 0 fuseplan explain 8 $layer --target cpu
grep -q stamps out && fail "explain names a command for a CPU"
true
