#!/bin/sh
# faults.sh BIN bench|cost|memory: kernels that hang, crash and give nothing, planted by an nvcc of
# our own: each must be recorded with its reason, and all else must go on.  A program that takes the GPU's
# memory meanwhile must end the work, and nothing be stored of it.
set -u
bin=$1 what=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
workload='--target cuda --compiler nvcc -b 1 -s 128 -m causal'
export FUSEPLAN_CACHE="$dir/cache" FUSEPLAN_DB="$dir/db"
status=0

# expect WHAT PATTERN FILE
expect() {
  if grep -q -e "$2" "$3"; then
    echo "recorded: $1"
  else
    echo "FAILED: not recorded: $1"
    status=1
  fi
}

# now_ms: the time, in milliseconds.
now_ms() {
  echo $(($(date +%s%N) / 1000000))
}

expect_reasons() {
  expect 'a hang' "$2.*stopped after" "$1"
  expect 'a crash' "$3.*CUDA_ERROR_ILLEGAL_ADDRESS" "$1"
  expect 'a lost result' "$4.*wrong result" "$1"
}

# Five plans must fail, the sixth must not.  One layer: the deadline of a run grows with the layers.
planted_bench() {
  "$here/plant.sh" "$dir" hang=13-13 wild=10-14 lost=0-1 odd=7-9 trap=3-5 || exit 1
  # shellcheck disable=SC2086
  PATH=$dir:$PATH timeout 200 "$bin/fuseplan" bench $workload -L 1 --baseline none \
    43690 41120 40804 43755 44715 41115 >"$dir/out" 2>&1
  [ $? -eq 3 ] || status=1
  cat "$dir/out"
  expect_reasons "$dir/out" 'segment 13-13' 'segment 10-14' 'segment 0-1 '
  expect 'a misaligned access' 'segment 7-9.*CUDA_ERROR_MISALIGNED_ADDRESS' "$dir/out"
  expect 'a trap' 'segment 3-5.*CUDA_ERROR_\(LAUNCH_FAILED\|ILLEGAL_INSTRUCTION\)' "$dir/out"
  expect 'the time of 41115' '^ *41115 .*[0-9] .*ok' "$dir/out"
}

# timed_bench EXIT_STATUS PLAN...: the milliseconds that it takes.
timed_bench() {
  wanted=$1
  shift
  began=$(now_ms)
  # shellcheck disable=SC2086
  PATH=$dir:$PATH timeout 200 "$bin/fuseplan" bench $workload -L 1 --baseline none "$@" >"$dir/out" 2>&1
  [ $? -eq "$wanted" ] || {
    cat "$dir/out" >&2
    : >"$dir/other_status"
  }
  echo $(($(now_ms) - began))
}

# What a crashed candidate costs beside another one: two workers, as it is tried twice.  The least of
# three, all of them compiled before.
cost_of_a_crash() {
  "$here/plant.sh" "$dir" wild=10-14 || exit 1
  timed_bench 3 41120 41115 >/dev/null
  least=1000000
  for _ in 1 2 3; do
    cost=$(($(timed_bench 3 41120 41115) - $(timed_bench 0 41115)))
    [ $cost -ge $least ] || least=$cost
  done
  echo "a crashed candidate costs $least ms; 2000 are allowed"
  [ $least -le 2000 ] && [ ! -e "$dir/other_status" ] || status=1
}

# trials PATTERN: how many are stored that match; nothing where nobody can tell.
trials() {
  "$bin/fuseplan" db export -q >"$dir/stored" 2>"$dir/untold" && grep -c -e "$1" "$dir/stored"
}

# A search, whose finals find another program in possession of the GPU's memory, ends.  The same command
# goes on from there.  Segments are compiled before, so that only measuring is left.
memory_taken() {
  set -- search --target cuda -b 1 -s 512 -m causal -L 1 --budget 300 --seed 1 --strategy random
  mkfifo "$dir/hold"
  timeout 250 "$bin/fuseplan" "$@" >"$dir/out" 2>"$dir/said" &
  search=$!
  stored=0 # before there is a database nobody can tell
  while [ "${stored:-0}" -lt 20 ] && kill -0 $search 2>/dev/null; do
    sleep 0.1
    stored=$(trials '"trial":"plan"')
  done
  "$bin/cuda_hog" <"$dir/hold" >"$dir/hog" 2>&1 &
  hog=$!
  exec 9>"$dir/hold"
  wait $search
  code=$?
  cat "$dir/hog" "$dir/said" "$dir/out"
  exec 9>&- # ends the other program
  wait $hog
  [ $code -eq 1 ] || {
    echo "FAILED: the search ended with exit status $code, expected 1"
    status=1
  }
  expect 'who took the memory' 'another program has taken\|OUT_OF_MEMORY\|of GPU memory' "$dir/said"
  failed=$(trials 'GPU memory\|OUT_OF_MEMORY')
  echo "trials stored as failed for want of memory: $failed, expected 0"
  [ "$failed" = 0 ] || {
    cat "$dir/untold"
    status=1
  }
  timeout 250 "$bin/fuseplan" "$@" >"$dir/out" 2>"$dir/said" || status=1
  cat "$dir/said" "$dir/out"
}

case $what in
bench) planted_bench ;;
cost) cost_of_a_crash ;;
memory) memory_taken ;;
*)
  echo "faults.sh: no check '$what'; there are bench, cost and memory" >&2
  exit 2
  ;;
esac
exit $status
