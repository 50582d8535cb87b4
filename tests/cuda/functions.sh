#!/bin/sh
# functions.sh BIN "BATCH SEQ_LEN"...: what a function of a layer costs.  Chains that differ from BERT-base's in one
# function are searched, then `bench` times their best plans in turn, FUNCTIONS_ROUNDS times (5).  Prints each time as it
# comes, microseconds a layer and of kernel 10-11, then ratios of the same rounds: median (lowest to highest).  10-11 with
# a gate stands beside that of twice as many columns, which makes as large a product.
# FUNCTIONS_SECONDS limits a search (15); FUNCTIONS_OPTIONS are further options of all (--target cuda -L 4).
set -u
bin=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: "${FUNCTIONS_SECONDS=15}" "${FUNCTIONS_ROUNDS=5}" "${FUNCTIONS_OPTIONS=--target cuda -L 4}"

options_of() {
  case $1 in
  post) ;;
  pre) echo --norm pre ;;
  rope) echo --rope 10000 ;;
  gate) echo --gate ;;
  wide) echo --ffn 6144 ;;
  esac
}

# round N BATCH SEQ_LEN CHAIN...: "N CHAIN PLAN US US_OF_10_AND_11" for each chain, also to the file of times.
round() {
  n=$1 b=$2 s=$3
  shift 3
  for chain; do
    # shellcheck disable=SC2046,SC2086
    "$bin/fuseplan" bench best $FUNCTIONS_OPTIONS -b "$b" -s "$s" $(options_of "$chain") --baseline none --format json \
      -q >"$dir/bench" || return 1
    jq -r --arg begin "$n $chain" '.[0] |
      ([.kernels[] | select(.ops[0] >= 10 and .ops[1] <= 11).median_us] | add) as $ffn1
      | "\($begin) \(.value) \(.us_per_layer) \($ffn1)"' "$dir/bench" | tee -a "$dir/times"
  done
}

# point BATCH SEQ_LEN: its table.
point() {
  : >"$dir/times"
  echo "($1,$2): round, chain, plan, us a layer, us of 10-11"
  for chain in post pre rope gate wide; do
    # shellcheck disable=SC2046,SC2086
    "$bin/fuseplan" search $FUNCTIONS_OPTIONS -b "$1" -s "$2" $(options_of "$chain") --seed 1 \
      --time-limit "$FUNCTIONS_SECONDS" -q >"$dir/search" || return 1
  done
  n=0
  while [ "$n" -lt "$FUNCTIONS_ROUNDS" ]; do
    n=$((n + 1))
    case $n in
    *[13579]) round "$n" "$1" "$2" post pre rope gate wide ;;
    *) round "$n" "$1" "$2" wide gate rope pre post ;;
    esac || return 1
  done
  awk -v point="($1,$2)" '
    # The values of an array of n, sorted in place.
    function sort(a, n,   i, j, t) {
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    }
    function ratio(name, times, of, over,   i) {
      for (i = 1; i <= rounds; i++) a[i] = times[i, of] / times[i, over]
      sort(a, rounds)
      printf "%s %s %.3f (%.3f to %.3f)\n", point, name, a[int((rounds + 1) / 2)], a[1], a[rounds]
    }
    { us[$1, $2] = $4; ffn1[$1, $2] = $5; rounds = $1 }
    END {
      ratio("pre / post", us, "pre", "post")
      ratio("rope / none", us, "rope", "post")
      ratio("10-11: gate / twice the columns", ffn1, "gate", "wide")
    }' "$dir/times"
}

failed=0
for entry; do
  # shellcheck disable=SC2086
  set -- $entry
  point "$1" "$2" || failed=1
done
exit $failed
