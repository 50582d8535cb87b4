#!/bin/sh
# faults.sh BIN bench|search: kernels that hang, crash and give nothing, planted by an nvcc of our own:
# each must be recorded with its reason, and all else must go on.
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

expect_reasons() {
  expect 'a hang' "$2.*stopped after" "$1"
  expect 'a crash' "$3.*CUDA_ERROR_ILLEGAL_ADDRESS" "$1"
  expect 'a lost result' "$4.*wrong result" "$1"
}

# Three plans must fail, the fourth must not.  One layer: the deadline of a run grows with the layers.
planted_bench() {
  "$here/plant.sh" "$dir" hang=13-13 wild=10-14 lost=0-1 || exit 1
  # shellcheck disable=SC2086
  PATH=$dir:$PATH timeout 200 "$bin/fuseplan" bench $workload -L 1 --baseline none \
    43690 41120 40804 41115 >"$dir/out" 2>&1
  [ $? -eq 3 ] || status=1
  cat "$dir/out"
  expect_reasons "$dir/out" 'segment 13-13' 'segment 10-14' 'segment 0-1 '
  expect 'the time of 41115' '^ *41115 .*[0-9] .*ok' "$dir/out"
}

# search STRATEGY: goes on from where the one before stopped.
planted_search() {
  # shellcheck disable=SC2086
  PATH=$dir:$PATH timeout 280 "$bin/fuseplan" search $workload --strategy "$1" --budget 500 --seed 1 \
    --format csv >"$dir/report" 2>"$dir/said.$1" || status=1
  cat "$dir/said.$1" "$dir/report"
}

# The best plan beside that of the recorded space, where there is one: within 1 %.
compare_best() {
  for space in "$here"/../data/*b1-s128-causal-fp16.space.gz; do
    [ -e "$space" ] || {
      echo "no recorded space to compare the best plan with"
      return
    }
    us=$(gunzip -c "$space" | head -n 1 | sed 's/.*"best":{[^}]*"median_us":\([0-9.]*\).*/\1/')
    awk -F, -v us="$us" '
      NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
      {
        ms = $at["median_ms"]
        printf "best plan %s: %s ms, recorded optimum %.5f ms, ratio %.4f\n", $1, ms, us / 1e3, 1e3 * ms / us
        exit 1e3 * ms / us > 1.01
      }' "$dir/report" || status=1
  done
}

# Faults in segments that neither the unfused plan nor 41115 nor the fastest plans have.  The guided
# search converges early; random plans make up the 500.
planted_searches() {
  "$here/plant.sh" "$dir" hang=3-5 wild=10-14 lost=7-9 || exit 1
  planted_search guided
  planted_search random
  compare_best
  expect_reasons "$dir/said.guided" 'ops 3-5' 'ops 10-14' 'ops 7-9'
}

case $what in
bench) planted_bench ;;
search) planted_searches ;;
esac
exit $status
