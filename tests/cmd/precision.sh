#!/bin/sh
# precision.sh FUSEPLAN FAKE_GPU: plans whose GEMMs have operands of e4m3, on a GPU whose driver is a
# fake: what is searched, compared, stored, explained and refused.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
fake=$2
use_fake_hopper "$fake"
layer='-b 1 -s 4 -H 1 -W 64 --ffn 64 -L 3 --target cuda'

# errors FFN2: what `accuracy` prints of a model
errors() {
  jq -n --argjson last "$1" '[{precision: "fp16", gemms: null, weight_scales: null, errors: [0.001]},
    ({qkv: 0.012, out: 0.006, ffn1: 0.018, ffn2: $last} | to_entries[] |
      {precision: "fp8", gemms: .key, weight_scales: "tensor", errors: [.value]})]' >errors.json
}

# fuse COMMAND [ARGUMENT...]: of the layer; words of $layer are options
fuse() {
  command=$1
  shift
  fuseplan "$command" $layer "$@"
}
echo "a GEMM that merges heads"
for how in '' '--precision qkv,ffn2'; do
  fuse bench 40472 $how --baseline none --db merged.db >out 2>said || fail "bench 40472 $how"
done

errors 0.9
refused 2 "'fp9' is no precision; expected fp16, fp8, or" fuse search --precision fp9
refused 1 'the cpu target has no kernels for ffn1 in e4m3' fuseplan bench 41115 -b 1 -s 4 --target cpu \
  --precision ffn2,ffn1
refused 2 '--error needs the errors of the model' fuse search --error 0.02
refused 2 'leave one of them out' fuse search --error 0.02 --precision fp8 --accuracy errors.json
refused 2 'expected what .fuseplan accuracy' fuse search --error 0.02 --accuracy "$schemas/search.json"
refused 2 'give --weights' fuse bench default --precision fp8 --calibration errors.json
refused 1 'plan 43690 has no kernel for operators 6-6 where the precision is fp8' fuse bench 43690 --precision fp8
refused 1 'no kernels for qkv on sm_90a in e4m3; without --precision all GEMMs are in tf32' \
  fuse bench default -t tf32 --precision fp8
refused 2 'no plan from 43690 to 43690 has kernels for all operators where the precision is fp8' \
  fuse search --precision fp8 \
  --space 43690..43690
refused 3 'no ' fuse query --precision fp8

# One plan: in fp16, with the largest precisions within the error, and with a GEMM less than the fastest of these.
options='--space 48920..48920 --baseline 48920 --compiler nvcc'
fuse search $options --error 0.0201 --accuracy errors.json --format json >search.json 2>said || fail "exit $?"
as_schema search search.json
jq -e '(.precisions[:3] | map(.precision)) == ["fp16", "out,ffn1", "qkv,out"] and
  all(.precisions[]; .value == 48920 and .speedup > 0 and .error < 0.0201) and .precisions[0].error == 0.001 and
  (.precisions[2].error - 0.0134164) < 1e-6 and .best.compared' search.json >jq.txt || fail "$(jq -c .precisions search.json)"
jq -e '(.precisions[3:] | map(.precision) | sort) as $smaller |
  any([["ffn1", "out"], ["out", "qkv"], ["ffn1", "out", "qkv"]][]; . == $smaller)' search.json >jq.txt ||
  fail "$(jq -c .precisions search.json)"
[ "$(sqlite3 "$FUSEPLAN_DB" "SELECT count(DISTINCT precision) FROM trial WHERE kind = 'final'
  AND comparison = (SELECT comparison FROM trial ORDER BY id DESC LIMIT 1)")" = "$(jq '.precisions | length' search.json)" ] ||
  fail "not one comparison of all"
# Nothing is left to measure.
fuse search $options --error 0.0201 --accuracy errors.json --format json 2>said |
  jq -e --slurpfile first search.json '(.precisions | sort) == ($first[0].precisions | sort)' >jq.txt || fail "measured again"

# Nor does it matter by which searches these plans were found, or whether a limit was spent.
{
  fuse search $options --db apart.db -q >out 2>&1 || fail "search"
  fuse search $options --db apart.db --precision out,ffn1 -q >out 2>&1 || fail "search out,ffn1"
  fuse search $options --db apart.db --precision qkv,out -q >out 2>&1 || fail "search qkv,out"
  fuse search $options --db apart.db --error 0.0201 --accuracy errors.json --time-limit 60 --format json >apart.json 2>said ||
    fail "search by an error"
  jq -e '.precisions | length >= 5 and all(.[]; .value == 48920)' apart.json >jq.txt || fail "$(jq -c .precisions apart.json)"
  fuse search $options --db apart.db --error 0.0201 --accuracy errors.json --time-limit 60 --format json 2>said |
    jq -e --slurpfile first apart.json '(.precisions | sort) == ($first[0].precisions | sort)' >jq.txt || fail "measured again"
}

fuse query --format json >query.json 2>said
jq -e '.best.precision == "fp16"' query.json >jq.txt || fail "nobody asked for e4m3"
fuse query --precision out,qkv --format json >query.json 2>said
as_schema search query.json
jq -e '.best.precision == "qkv,out" and any(.best.schedule[]; contains("e4m3=qkv"))' query.json >jq.txt || fail "query"
fuse explain best --precision qkv,out --accuracy errors.json --format json >explain.json 2>said
as_schema explain explain.json
jq -e '.precision == "qkv,out" and .errors.qkv == 0.012 and .kernels[0].without_e4m3_us > 0 and
  .kernels[3].without_e4m3_us == null' explain.json >jq.txt || fail "explain"
fuse explain best --precision qkv,out --accuracy errors.json >out 2>said
grep -q '^in e4m3 *qkv (error alone 0.012), out (error alone 0.006); together 0.013$' out || fail "$(head -n 4 out)"
grep -q '^| e4m3 *operands of out; .* us alone without' out || fail "explain says no gain"

fuseplan report -q -o page.html
sed -n 's/.*<script type="application\/json" id="data">\([^<]*\)<\/script>.*/\1/p' page.html |
  jq -e --slurpfile first search.json '.[0].precisions | all(.[]; .value == 48920 and .compared and .error > 0 and .us > 0)
    and (map(.precision) | sort) == ($first[0].precisions | map(.precision) | sort) and
    all(.[]; .gemms == (if .precision == "fp16" then 0 else (.precision | split(",") | length) end))' >jq.txt ||
  fail "report"

# What is verified in fp16 after plans in e4m3 does not get the inputs of theirs.
fuse search --space 7960..8423 --baseline 48920 --compiler nvcc --precision fp8 --format json >search.json 2>said ||
  fail "exit $?"
jq -e '.best.precision == "fp8" and .precisions[0].value == 48920 and .precisions[0].speedup > 0' search.json >jq.txt ||
  fail "$(jq -c .precisions search.json)"
worst=$(sqlite3 "$FUSEPLAN_DB" "SELECT group_concat(relative_error) FROM trial WHERE kind = 'final' AND precision = 0
  AND relative_error > 0.001")
[ -z "$worst" ] || fail "errors in fp16: $worst"

# A plan beside itself in fp16.
fuse bench best --precision qkv,out --baseline 48920 --compiler nvcc --format json >bench.json 2>said
as_schema bench bench.json
jq -e 'map([.value, .precision, .status]) == [[48920, "qkv,out", "ok"], [48920, "fp16", "ok"]] and
  .[0].baselines[0].speedup > 0' bench.json >jq.txt || fail "bench"
fuseplan db check >out || fail "$(cat out)"
