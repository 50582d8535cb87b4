#!/bin/bash
# signals.sh FUSEPLAN [TIMES]: two SIGTERMs 10 ms apart end a sweep on the CPU at TIMES (10) random moments of its first
# 6 s: with exit status 130, within 2 s, and what the database has is in the saved texts.  Each run goes on where the
# last one ended.
# SEED: of the moments; it is printed.
set -eu
# shellcheck source=tests/cmd/suite.sh
. "$(cd "$(dirname "$0")" && pwd)/../cmd/suite.sh"
times=${2:-10} most_ms=2000
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"
export FUSEPLAN_LOCK_DIR="$root" TMPDIR="$root"
printf '%s\n' "-b 1,2,3,4 -s 8 -m causal -m 'sliding:w=2'" >table
options='-H 1 -W 8 -L 1 --space 41100..41163 --target cpu'
now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
worst=0 done_early=0
for ((n = 1; n <= times; n++)); do
  # shellcheck disable=SC2086
  fuseplan sweep run table $options -q --save saved --db run.db >out 2>said &
  pid=$!
  sleep "$((RANDOM % 6)).$((100 + RANDOM % 900))"
  begin=$(now_ms)
  if ! kill -TERM $pid 2>/dev/null; then
    wait $pid || fail "run $n ended by itself: exit $?"
    done_early=$((done_early + 1)) n=$((n - 1))
    rm -rf saved run.db
    continue
  fi
  sleep 0.01
  kill -TERM $pid 2>/dev/null || :
  code=0
  wait $pid || code=$?
  took=$(($(now_ms) - begin))
  [ $took -le $worst ] || worst=$took
  [ $code = 130 ] || fail "run $n: exit $code"
  [ $took -le $most_ms ] || fail "run $n: exit after $took ms"
  [ ! -e run.db-wal ] || fail "run $n: the database was not closed"
  fuseplan db export --db run.db -o all.ndjson -q
  # the texts of all runs so far together, as collect adds them
  rm -f again.db
  fuseplan db import saved/*.ndjson --db again.db -q >out || fail "run $n: a saved text is damaged"
  fuseplan db export --db again.db -o again.ndjson -q
  cmp all.ndjson again.ndjson || fail "run $n: what was measured is not saved"
done
echo "$times runs, $done_early more were done before; exit after at most $worst ms; $(grep -c '"trial"' all.ndjson) trials saved"
