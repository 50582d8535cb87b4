#!/bin/sh
# replay.sh FUSEPLAN STRATEGY FILE...: fails if the strategy is worse on a recorded space than docs/search.md
# allows: 10 seeds, at most 32 plans.
set -eu
fuseplan=$1 strategy=$2
shift 2
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# rows BUDGET STRATEGIES FILE...: space, strategy, plans, mean, median and 95th percentile of the regret.
rows() {
  budget=$1 strategies=$2
  shift 2
  "$fuseplan" replay -q --format csv --seeds 10 --budget "$budget" --strategy "$strategies" "$@" |
    awk -F, 'NR > 1 { print $1, $4, $5, $7, $8, $9 }'
}

{
  rows 12 "$strategy,additive" "$@"
  rows 24 "$strategy" "$@"
  rows 32 "$strategy,additive" "$@"
} >"$out"
awk -v strategy="$strategy" '
  function broken(what, limit) {
    printf "%s after %d plans: %s is above %g\n", $1, $3, what, limit
    failed = 1
  }
  { mean[$1, $3, $2] = $4; median[$1, $3, $2] = $5; rows++ }
  # Not where the best plans have no small sums, so that those of the 12 least sums are worse, too.
  $2 == "additive" && $3 == 12 && $5 <= 0.002 && median[$1, 12, strategy] > 0.002 {
    broken("a median regret of " median[$1, 12, strategy], 0.002)
  }
  $2 == strategy && $3 == 24 && $6 > 0.002 { broken("a 95th percentile of " $6, 0.002) }
  $2 == "additive" && $3 != 12 && mean[$1, $3, strategy] > $4 + 0.002 {
    broken("a mean of " mean[$1, $3, strategy] " beside " $4 " of additive", $4 + 0.002)
  }
  END { if (rows == 0) print "no rows"; exit failed || rows == 0 }' "$out"
