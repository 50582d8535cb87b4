#!/bin/sh
# spaces.sh BIN LIMIT_S FILE WORKLOAD...: measures every plan of a space from an empty cache and database,
# says when each phase began and how many plans a second were measured, records the space in FILE
# unless that is "".
set -u
bin=$1 limit_s=$2 file=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="$dir/cache" FUSEPLAN_DB="$dir/db"

# Each line with the seconds since the start in front.
stamp() {
  start=$(date +%s%N)
  while IFS= read -r line; do
    awk -v ns=$(($(date +%s%N) - start)) -v line="$line" 'BEGIN { printf "%7.2f  %s\n", ns / 1e9, line }'
  done
}

# stdout goes to the report, stderr through the stamp
{
  timeout $((limit_s + 60)) "$bin/fuseplan" search --target cuda --rigor exhaustive --seed 1 \
    --time-limit "$limit_s" "$@" 2>&1 >"$dir/report"
  echo $? >"$dir/code"
} | stamp | tee "$dir/said"
cat "$dir/report"
[ -z "$file" ] || "$bin/fuseplan" db export-space --target cuda "$@" -o "$file" || exit 1
awk '
  / measuring all / { from = $1 }
  / side by side/ && from && !to { to = $1 }
  /^measured / { plans = $2 == "all" ? $3 : $2 }
  END {
    if (!to || !plans)
      exit 1
    printf "%d plans in %.1f s: %.2f ms a plan, %.0f plans a second\n", plans, to - from,
      1000 * (to - from) / plans, plans / (to - from)
  }' "$dir/said" "$dir/report" || exit 1
exit "$(cat "$dir/code")"
