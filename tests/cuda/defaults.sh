#!/bin/sh
# defaults.sh BIN "BATCH SEQ_LEN MASK"...: what the default schedules cost.  A row a point: the best plan that
# FUSEPLAN_DB knows, its microseconds a layer, and those of the same plan by `bench` and by a generated program that
# know nothing.  DEFAULTS_OPTIONS are options of the target (--target cuda).
set -u
bin=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: "${DEFAULTS_OPTIONS=--target cuda}"

# program VALUE WORKLOAD: the time of a generated program with the default schedules, in ms.
program() {
  rm -rf "$dir/program"
  # shellcheck disable=SC2086
  "$bin/fuseplan" generate "$1" --db "$dir/empty" $DEFAULTS_OPTIONS $2 -q -o "$dir/program" &&
    make -s -j "$(nproc)" -C "$dir/program" >&2 && "$dir/program/plan" | sed -n 's/^plan [0-9]*: \([0-9.]*\) ms.*/\1/p'
}

# point BATCH SEQ_LEN MASK: its row.
point() {
  workload="-b $1 -s $2 -m $3"
  # shellcheck disable=SC2086
  "$bin/fuseplan" query $DEFAULTS_OPTIONS $workload --format json -q >"$dir/best" || return 1
  value=$(jq .best.value "$dir/best")
  rm -f "$dir/empty"
  # shellcheck disable=SC2086
  "$bin/fuseplan" bench "$value" --db "$dir/empty" $DEFAULTS_OPTIONS $workload --baseline none --format json -q \
    >"$dir/bench" || return 1
  rm -f "$dir/empty"
  ms=$(program "$value" "$workload")
  jq -r --arg point "($1,$2) $3" --arg program "${ms:-0}" --slurpfile bench "$dir/bench" '
    def round2: . * 100 | round / 100;
    .best as $b | $bench[0][0] as $e | ($program | tonumber) as $p | ($b.us_per_layer / $b.median_ms) as $us
    | [$point, $b.value, ($b.us_per_layer | round2), ($e.us_per_layer | round2), ($e.median_ms / $b.median_ms | round2),
       ($p * $us | round2), ($p / $b.median_ms | round2)] | @tsv' "$dir/best" | tee -a "$dir/rows"
}

# mean COLUMN NAME: the geometric mean of a column and its largest value.
mean() {
  awk -F '\t' -v column="$1" -v name="$2" '
    $column > 0 { sum += log($column); n++; if ($column > most) most = $column }
    END { if (n) printf "%s over the best plan: geometric mean %.3f, at most %.2f, %d points\n", name, exp(sum / n), most, n }' \
    "$dir/rows"
}

: >"$dir/rows"
failed=0
printf 'point\tplan\tus\tbench\tratio\tprogram\tratio\n'
for entry; do
  # shellcheck disable=SC2086
  point $entry || failed=1
done
mean 5 bench
mean 7 'a generated program'
exit $failed
