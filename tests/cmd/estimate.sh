#!/bin/sh
# estimate.sh FUSEPLAN CHECK_JSON SCHEMAS TABLES: search --rigor estimate on the recorded tables.
set -eu
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
check_json=$2 schema=$3/estimate.json tables=$4
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export PATH FUSEPLAN_DB="$root/a.db" FUSEPLAN_SYSTEM_DB='' FUSEPLAN_LOCK_DIR="$root" LC_ALL=C
cd "$root"
asked='-b 4 -s 256 -m causal --target cuda'

fail() {
  echo "FAILED: $*"
  exit 1
}

# refused TEXT COMMAND...: it exits 3, prints nothing and says the text.
refused() {
  text=$1 code=0
  shift
  "$@" >printed 2>said || code=$?
  [ "$code" -eq 3 ] || fail "$*: exit $code"
  [ ! -s printed ] || fail "$*: printed $(cat printed)"
  grep -q -- "$text" said || fail "$*: said $(cat said)"
}

# options are words
# shellcheck disable=SC2086
{
  echo "nothing known"
  refused 'there is no database' fuseplan search $asked --rigor estimate
  [ ! -e a.db ] || fail "a database was created"
  for known in b1-s128-sliding b1-s512-causal; do
    fuseplan db import-space "$tables/h200-$known-fp16.space.gz" -q >printed
  done
  refused "needs segment times of 3 workloads .* has those of 2; .* known are '-b 1 -s 128 -m" fuseplan search $asked --rigor estimate

  echo "estimate"
  for table in "$tables"/*.space.gz; do
    fuseplan db import-space "$table" -q >printed
  done
  before=$(cksum a.db)
  for format in json ndjson; do
    fuseplan search $asked --rigor estimate --format $format >out.$format 2>said
    "$check_json" "$schema" out.$format || fail "schema of $format"
  done
  jq -e '.best.predicted and .best.value == .plans[0].value and (.plans | length) == 16 and .interval == 0.9 and
    .best.ci_low_ms < .best.median_ms and .best.median_ms < .best.ci_high_ms and
    (.best.median_us | length) == (.best.segments | length) and .known.nearest == "-b 8 -s 128 -m sliding:w=11 --target cuda"' \
    out.json >jq.txt || fail "estimate: $(cat out.json)"
  fuseplan search $asked --rigor estimate --format csv >out.csv 2>said
  [ "$(cut -d , -f 1,7 out.csv)" = "value,predicted
$(jq .best.value out.json),true" ] || fail "csv: $(cat out.csv)"
  fuseplan search $asked --rigor estimate >text 2>said
  grep -q "^plan  *$(jq .best.value out.json), predicted, not measured$" text || fail "not said to be predicted"
  grep -q '^expected .* with 90 % between .* for 12 layers' text || fail "no interval"
  fuseplan search $asked --rigor estimate --space 41115 --format json 2>said |
    jq -e '[.plans[].value] == [41115]' >jq.txt || fail "not of --space"

  echo "nothing near"
  refused "the nearest workload, '-b 1 -s 128 --target cuda', is a factor 32 away" fuseplan search -b 1 -s 4 --target cuda --rigor estimate
  refused 'needs segment times of 3' fuseplan search -b 1 -s 128 -H 16 --target cuda --rigor estimate
  refused 'goes on with' fuseplan search $asked --rigor estimate --space 33450 # ops 0-4 are fused

  # An estimate is no result: what asks for a measured plan finds none.
  echo "nothing stored"
  [ "$(cksum a.db)" = "$before" ] || fail "the database changed"
  for command in query 'export best -o d' 'generate best -o d' 'explain best' 'predict best'; do
    refused 'nothing is stored' fuseplan $command $asked
  done
  fuseplan search -b 8 -s 512 -m causal --target cuda --rigor estimate >text 2>said
  grep -q "this workload was measured; 'fuseplan query' prints its best plan" said || fail "not said that it was measured"
}
