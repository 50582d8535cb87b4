#!/bin/sh
# replay.sh FUSEPLAN STRATEGY FILE...: fails if the strategy is worse on a recorded space than docs/search.md
# allows, and ends at the first bound that is broken: 10 seeds, at most 64 plans.
set -eu
fuseplan=$1 strategy=$2
shift 2

# rows BUDGET STRATEGIES NOISE FILE...: space, strategy, plans, mean, median and 95th percentile of the regret, noise.
rows() {
  budget=$1 strategies=$2 noise=$3
  shift 3
  "$fuseplan" replay -q --format csv --seeds 10 --budget "$budget" --strategy "$strategies" \
    --noise "$noise,$noise" "$@" |
    awk -F, -v noise="$noise" 'NR > 1 { print $1, $4, $5, $7, $8, $9, noise }'
}

{
  rows 12 "$strategy,additive" 0 "$@"
  rows 24 "$strategy" 0 "$@"
  rows 32 "$strategy,additive" 0 "$@"
  rows 64 "$strategy" 0.05 "$@"
} | awk -v strategy="$strategy" '
  function broken(what, limit) {
    printf "%s after %d plans, noise %g: %s is above %g\n", $1, $3, $7, what, limit
    failed = 1
    exit
  }
  { rows++ }
  $7 > 0 {
    if ($3 == 64 && $6 > 0.01) broken("a 95th percentile of " $6, 0.01)
    next
  }
  { mean[$1, $3, $2] = $4 }
  $2 == strategy && $3 == 12 && $5 > 0.002 { broken("a median regret of " $5, 0.002) }
  $2 == strategy && $3 == 24 && $6 > 0.002 { broken("a 95th percentile of " $6, 0.002) }
  $2 == "additive" && mean[$1, $3, strategy] > $4 + 0.002 {
    broken("a mean of " mean[$1, $3, strategy] " beside " $4 " of additive", $4 + 0.002)
  }
  END { if (rows == 0) print "no rows"; exit failed || rows == 0 }'
