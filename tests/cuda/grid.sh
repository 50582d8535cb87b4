#!/bin/sh
# grid.sh BIN FILE.csv "BATCH SEQ_LEN MASK"...: two tables of the encoder layer, a row a point, microseconds a layer.
#   1. the best plan of a search; the same plan by `bench` and by a generated program that know nothing, so that
#      they run the default schedules
#   2. the best plan beside PyTorch (bench/peers.py), whose times FILE.csv gets
# GRID_TARGET are the options of the target (--target cuda), GRID_SECONDS limits a search (60), GRID_VARIANTS names
# PyTorch's variants (sdpa,compile,flex).
set -u
bin=$1 file=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="$dir/cache" FUSEPLAN_DB="$dir/db"
: "${GRID_TARGET=--target cuda}" "${GRID_SECONDS=60}" "${GRID_VARIANTS=sdpa,compile,flex}"

# program VALUE WORKLOAD: the time of a generated program with the default schedules, in ms.
program() {
  rm -rf "$dir/program"
  # shellcheck disable=SC2086
  "$bin/fuseplan" generate "$1" --db "$dir/empty" $GRID_TARGET $2 -q -o "$dir/program" &&
    make -s -j "$(nproc)" -C "$dir/program" >&2 && "$dir/program/plan" | sed -n 's/^plan [0-9]*: \([0-9.]*\) ms.*/\1/p'
}

# point BATCH SEQ_LEN MASK: its row.
point() {
  workload="-b $1 -s $2 -m $3"
  # shellcheck disable=SC2086
  "$bin/fuseplan" search $GRID_TARGET $workload --seed 1 --time-limit "$GRID_SECONDS" --format json -q \
    >"$dir/best" || return 1
  value=$(jq .best.value "$dir/best")
  rm -f "$dir/empty"
  # shellcheck disable=SC2086
  "$bin/fuseplan" bench "$value" --db "$dir/empty" $GRID_TARGET $workload --baseline none --format json -q \
    >"$dir/bench" || return 1
  rm -f "$dir/empty"
  ms=$(program "$value" "$workload")
  jq -r --arg point "($1,$2) $3" --arg program "${ms:-0}" --slurpfile bench "$dir/bench" '
    def round2: . * 100 | round / 100;
    .best as $b | $bench[0][0] as $e | ($program | tonumber) as $p
    | ($b.us_per_layer / $b.median_ms) as $scale
    | [$point, $b.value, ($b.us_per_layer | round2), ($b.ci_low_ms * $scale | round2),
       ($b.ci_high_ms * $scale | round2), (.seconds | round), ($e.us_per_layer | round2),
       ($e.median_ms / $b.median_ms | round2), ($p * $scale | round2), ($p / $b.median_ms | round2)]
    | @tsv' "$dir/best" | tee -a "$dir/rows"
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
printf 'point\tplan\tus\tlow\thigh\ts\tbench\tratio\tprogram\tratio\n'
for entry; do
  # shellcheck disable=SC2086
  set -- $entry
  point "$1" "$2" "$3" || failed=1
  echo "$1x$2 $3" >>"$dir/points"
done
mean 8 bench
mean 10 'a generated program'

# PyTorch starts once for all masks of a size.
echo variant,dtype,batch,seq_len,mask,us >"$file"
cut -d ' ' -f 1 "$dir/points" | sort -u >"$dir/sizes"
while read -r size; do
  rm -f "$dir/peers"
  masks=$(sed -n "s/^$size //p" "$dir/points" | paste -sd ,)
  python3 "$here/../../bench/peers.py" --fuseplan "$bin/fuseplan" \
    --variants "$GRID_VARIANTS" -m "$masks" -o "$dir/peers" "$size" >"$dir/beside.size" || failed=1
  cat "$dir/beside.size"
  cat "$dir/beside.size" >>"$dir/beside"
  [ ! -e "$dir/peers" ] || tail -n +2 "$dir/peers" >>"$file"
done <"$dir/sizes"
awk '
  /^ *\(/ && match($0, /[0-9.]+ \([0-9.]+ to/) {
    ratio = substr($0, RSTART) + 0
    kind = $2 == "full" || $2 == "causal" ? "full and causal" : "sparse masks"
    sum[kind] += log(ratio); n[kind]++
    if (!(kind in least) || ratio < least[kind]) least[kind] = ratio
  }
  END {
    for (k in n)
      printf "%s: %.2f times as fast as the fastest peer in the geometric mean, at least %.2f, %d points\n",
        k, exp(sum[k] / n[k]), least[k], n[k]
  }' "$dir/beside"
exit $failed
