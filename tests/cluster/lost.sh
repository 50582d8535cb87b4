#!/bin/bash
# lost.sh FUSEPLAN [TIMES]: what is lost where a node dies: a sweep on the CPU, in the middle of a row, is killed with its
# searches at TIMES (1) random moments between 35 and 65 s.  The newest trial in the saved text must be less than 60 s old.
# SEED: of the moments; it is printed.
set -eu
# shellcheck source=tests/cmd/suite.sh
. "$(cd "$(dirname "$0")" && pwd)/../cmd/suite.sh"
times=${2:-1} most_s=60
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"
export FUSEPLAN_LOCK_DIR="$root" TMPDIR="$root"
echo '-b 4 -s 64 -H 4 -W 64 -L 1 --target cpu' >table
in_group() { [ -n "$(pgrep -g "$1")" ]; }
for ((n = 1; n <= times; n++)); do
  rm -rf saved run.db*
  setsid fuseplan sweep run table -q --save saved --db run.db >out 2>said &
  pid=$!
  sleep $((35 + RANDOM % 30))
  kill -0 $pid || fail "it ended before"
  kill -9 -- -$pid
  died=$EPOCHREALTIME
  wait $pid 2>/dev/null || :
  while in_group $pid; do sleep 0.1; done
  newest=$(sed -n 's/.*"stored_utc":"\([^"]*\)".*/\1/p' saved/*.ndjson | sort | tail -n 1)
  [ -n "$newest" ] || fail "nothing is saved"
  lost=$(awk -v died="$died" -v at="$(date -d "$newest" +%s.%N)" 'BEGIN { printf "%.1f", died - at }')
  echo "run $n: lost $lost s, $(grep -hc '"trial"' saved/*.ndjson) of $(sqlite3 run.db \
    'SELECT count(*) FROM trial') trials saved"
  awk -v lost="$lost" -v most=$most_s 'BEGIN { exit !(lost < most) }' || fail "more than $most_s s of work are lost"
done
