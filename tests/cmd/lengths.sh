#!/bin/sh
# lengths.sh FUSEPLAN FAKE_GPU: with lengths plans run on packed tokens, in bench, generate and export as in a search.
# The words of $full and $some are options.
# shellcheck disable=SC2086
set -eu
. "$(dirname "$0")/suite.sh"
export FUSEPLAN_DB="$root/a.db" FUSEPLAN_LOCK_DIR="$root"
full='--target cpu -b 2 -s 16 -H 2 -W 4 -L 2'
some="$full --lengths 16,5"

# how DB PLAN [OPTION...]: whether bench runs a plan packed, for each plan that it times.
how() {
  db=$1
  shift
  fuseplan bench "$@" $some --db "$db" --format json -q | jq -c '[.[].packed]'
}

stored() {
  fuseplan db info --db "$1" --format json | jq -c '[.trials, .samples]'
}

# bench stores what it measures: the best plan is known then, and runs so.
[ "$(how a.db 41115 --baseline 43690)" = '[true,true]' ] || fail "bench does not pack tokens"
[ "$(fuseplan query $some --format json -q | jq .best.packed)" = true ] || fail "query"
[ "$(how a.db best --baseline none)" = '[true]' ] || fail "bench best"

# Rows of padding are computed where they are asked for, and nothing of that is stored.
before=$(stored a.db)
[ "$(how a.db 41115 --padded --baseline 41115)" = '[false,true]' ] || fail "--padded"
[ "$(stored a.db)" = "$before" ] || fail "--padded stored something"
refused 2 'no sequence has any' fuseplan bench 41115 $full --padded -q

# The best plan may be one that is faster with rows of padding.
fuseplan db export -o packed.text
grep -q '"packed":1' packed.text || fail "no packed result is stored"
sed 's/,"packed":1//; s/"packed":1,//' packed.text >padded.text
fuseplan db import padded.text --db padded.db -q >printed
[ "$(how padded.db best --baseline none)" = '[false]' ] || fail "the best plan was padded, and runs packed"

# written COMMAND PLAN OPTION...: whether a packed plan is written.
written() {
  command=$1
  shift
  rm -rf "$command"
  fuseplan "$command" "$@" -q -o "$command" >printed
  sed -n 's/.*\.packed = \([01]\),/\1/p' "$command"/plan*.c
}

for command in generate export; do
  [ "$(written $command 41115 $some)" = 1 ] || fail "$command with lengths"
  [ "$(written $command best $some)" = 1 ] || fail "$command best"
  [ "$(written $command best $some --db padded.db)" = 0 ] || fail "$command best, which was padded"
  [ "$(written $command 41115 $full)" = 0 ] || fail "$command without lengths"
done

# A generated program computes what bench does, zeros in the rows of padding included.
fuseplan bench 41115 $some --baseline none --dump arrays -q >printed
[ "$(written generate 41115 $some)" = 1 ] || fail "generate with lengths"
make -s -C generate
generate/plan y.npy >printed
cmp y.npy arrays/y.npy || fail "the program computes another y than bench"

[ "$(written export 41115 $full --packed)" = 1 ] || fail "export --packed"

# A plan that is wrong on packed tokens while its finals run, and right with rows of padding, has a row that says so.
export FUSEPLAN_DB="$root/leaky.db"
use_fake_hopper "$2"
sed -i 's/fake right/fake leaky/' nvcc
fuseplan search -b 2 -s 4 -H 1 -W 64 --ffn 64 -L 2 --lengths 2,3 --target cuda --space 48920..48923 --compiler nvcc \
  --baseline none >printed 2>said || fail "exit $?: $(cat said)"
grep -q '48920 fails in the finals: wrong result: while timed' said || fail "$(cat said)"
found=$(sqlite3 "$FUSEPLAN_DB" "SELECT group_concat(status || packed) FROM (SELECT status, packed FROM trial
  WHERE kind = 'final' AND plan = 48920 GROUP BY 1, 2 ORDER BY min(id))")
[ "$found" = failed1,ok0 ] || fail "finals: $found"
echo "all well"
