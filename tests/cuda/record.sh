#!/bin/sh
# record.sh BIN PREFIX "RIGOR BATCH SEQ_LEN MASK [OPTION...]"...: measures each workload from an empty cache and database,
# says when each phase of the search began, and records what was measured in
# PREFIX-bBATCH-sSEQ_LEN-MASK-fp16.ndjson.gz.  RIGOR:
#   exhaustive  every plan; says how many plans a second were measured
# An OPTION's digits are a part of the file's name.  RECORD_TARGET are the options of the target (--target cuda).
set -u
bin=$1 prefix=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export FUSEPLAN_CACHE="$dir/cache" FUSEPLAN_DB="$dir/db"
: "${RECORD_TARGET=--target cuda}"

# Each line with the seconds since the start in front.
stamp() {
  start=$(date +%s%N)
  while IFS= read -r line; do
    awk -v ns=$(($(date +%s%N) - start)) -v line="$line" 'BEGIN { printf "%7.2f  %s\n", ns / 1e9, line }'
  done
}

pace() {
  awk '
    / measuring all / { from = $1 }
    / side by side/ && from && !to { to = $1 }
    /^measured / { plans = $2 == "all" ? $3 : $2 }
    END {
      if (!to || !plans)
        exit 1
      printf "%d plans in %.1f s: %.2f ms a plan, %.0f plans a second\n", plans, to - from,
        1000 * (to - from) / plans, plans / (to - from)
    }' "$dir/said" "$dir/report"
}

# record RIGOR BATCH SEQ_LEN MASK [OPTION...]
record() {
  rigor=$1 file=$prefix-b$2-s$3-$(echo "$4" | tr ':=,' '---')-fp16 workload="-b $2 -s $3 -m $4"
  shift 4
  digits=$(echo "$*" | tr -cd '0-9.')
  file=$file${digits:+-$digits}
  case $rigor in
  exhaustive) how='--time-limit 480' ;;
  *)
    echo "record.sh: no rigor '$rigor'" >&2
    return 1
    ;;
  esac
  rm -rf "${dir:?}"/*
  # stdout goes to the report, stderr through the stamp
  {
    # the words of $how and $workload are options
    # shellcheck disable=SC2086
    timeout 600 "$bin/fuseplan" search $RECORD_TARGET --rigor "$rigor" --seed 1 $how $workload "$@" \
      2>&1 >"$dir/report"
    echo $? >"$dir/code"
  } | stamp | tee "$dir/said"
  cat "$dir/report"
  "$bin/fuseplan" db export | gzip -9n >"$file.ndjson.gz" || return 1
  [ "$rigor" != exhaustive ] || pace || return 1
  return "$(cat "$dir/code")"
}

failed=0
for entry; do
  # shellcheck disable=SC2086
  record $entry || failed=1
done
exit $failed
