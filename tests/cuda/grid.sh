#!/bin/sh
# grid.sh BIN FILE.csv "BATCH SEQ_LEN MASK"...: searches each point, and times its best plan beside PyTorch in turn
# (peers.py), size after size.  FILE.csv gets PyTorch's times.  FUSEPLAN_DB keeps the searches: those that ended
# are not repeated.  GRID_SECONDS limits a search (60), GRID_VARIANTS names variants of peers.py
# (sdpa,compile,cudnn,fa4,flex,flex-flash,hf), GRID_OPTIONS are further options of both, such as
# '--target cuda --preset vit-base' (--target cuda).
# shellcheck disable=SC2086 # variables that are not quoted are words
set -u
bin=$1 file=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: "${GRID_SECONDS=60}" "${GRID_VARIANTS=sdpa,compile,cudnn,fa4,flex,flex-flash,hf}" "${GRID_OPTIONS=--target cuda}"

# point BATCH SEQ_LEN MASK: searches it, and prints its plan with the time of the finals and their interval.
point() {
  "$bin/fuseplan" search $GRID_OPTIONS -b "$1" -s "$2" -m "$3" --seed 1 --time-limit "$GRID_SECONDS" --format json -q \
    >"$dir/json" || return 1
  jq -r --arg point "($1,$2)" --arg mask "$3" '
    def round2: . * 100 | round / 100;
    .best as $b | ($b.us_per_layer / $b.median_ms) as $us
    | "\($point) \($mask): plan \($b.value), \($b.us_per_layer | round2) us a layer in its finals, "
      + "\($b.ci_low_ms * $us | round2) to \($b.ci_high_ms * $us | round2), searched for \(.seconds | round) s"' \
    "$dir/json"
}

# size BATCHxSEQ_LEN: all of its points, PyTorch started once.
size() {
  batch=${1%x*} seq_len=${1#*x} masks=
  while read -r mask; do
    if point "$batch" "$seq_len" "$mask"; then masks=$masks,$mask; else failed=1; fi
  done <"$dir/$1"
  [ -n "$masks" ] || return
  python3 "$here/peers.py" $GRID_OPTIONS --fuseplan "$bin/fuseplan" \
    --variants "$GRID_VARIANTS" -m "${masks#,}" -o "$dir/peers" "$1" >"$dir/table" || failed=1
  cat "$dir/table"
  cat "$dir/table" >>"$dir/beside"
  [ ! -e "$dir/peers" ] || tail -n +2 "$dir/peers" >>"$file"
}

failed=0
for entry; do
  set -- $entry
  [ -e "$dir/$1x$2" ] || echo "$1x$2" >>"$dir/sizes"
  echo "$3" >>"$dir/$1x$2"
done
echo variant,dtype,batch,seq_len,mask,us,preset >"$file"
: >"$dir/beside"
while read -r s <&3; do
  size "$s"
done 3<"$dir/sizes"
awk '
  /^ *\(/ {
    sub(/ \([0-9.]+ to [0-9.]+\)$/, "") # the interval of the ratio
    ratio = $NF
    if (ratio == "-") next
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
