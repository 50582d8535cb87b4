#!/bin/sh
# end_to_end.sh FUSEPLAN: the commands that measure, on a workload that takes
# microseconds; what they store, what they print, and that every JSON output is as its schema says.
set -eu
. "$(dirname "$0")/suite.sh"
unset FUSEPLAN_CC MAKEFLAGS # all as users compile it; fused plans are to be the faster ones
export FUSEPLAN_DB="$root/e2e.db"
workload='--target cpu -b 1 -s 8 -m causal -H 1 -W 4 -L 1'

# json SCHEMA COMMAND...: as JSON and as NDJSON.
json() {
  schema=$1
  shift
  "$@" --format json >"out.json"
  as_schema "$schema" out.json
  "$@" --format ndjson >"out.ndjson"
  as_schema "$schema" out.ndjson
}

echo "nothing known"
# words of $workload are options
# shellcheck disable=SC2086
{
  expect 3 fuseplan query $workload
  [ ! -e e2e.db ] || fail "a query made a database"

  echo "outputs that need no measurement"
  json translate fuseplan translate 0..300
  json mask fuseplan mask bigbird -s 200 -b 2 --avg-seq-len 90
  json doctor fuseplan doctor
  fuseplan generate 41115 $workload -q -o plan
  [ ! -e e2e.db ] || fail "generate made a database"
  as_schema manifest plan/manifest.json
  make -s -C plan
  plan/plan y.npy | grep -q '^plan 41115: .* ms' || fail "the generated program"

  echo "bench"
  fuseplan bench 41115 $workload --dump arrays --format csv >bench.csv
  [ "$(wc -l <bench.csv)" -eq 3 ] || fail "bench: not a line for 41115 and one for 43690"
  [ "$(find arrays -name '*.npy' | wc -l)" -eq 15 ] || fail "--dump: not 15 arrays"
  cmp y.npy arrays/y.npy || fail "the generated program's result is another than bench's"
  expect 2 fuseplan bench 41115 $workload --dump arrays
  json bench fuseplan bench 41115 $workload
  fuseplan bench 41115 $workload -v >bench.txt 2>&- || fail "bench: its notes went where they harm"
  jq -e '.[0].baselines | map(.value) == [43690, 41115] and all(.tie != null) and
    .[0].median_ms / .[0].speedup < .[0].median_ms and .[1].speedup == 1' out.json >jq.txt ||
    fail "bench: not the baselines"
  fuseplan bench 41115 $workload -q >bench.txt
  grep -q '^41115 (attention, .*): .* \[.*\] times as fast as 43690 (unfused: .*)$' bench.txt || fail "bench: no speed-up"
  [ "$(grep -c '^41115 .*2-6  *handwritten' bench.txt)" -eq 1 ] || fail "bench: no kernel 2-6"
  grep -q '^41115  sum .*[0-9]$' bench.txt || fail "bench: no sum of the kernels"
  grep -q '^43690  *[0-9-]*  *generated' bench.txt && fail "bench: kernels of a plan not given"
  grep -q 'regs' bench.txt && fail "bench: a column that nothing fills"
  cat >failing_cc <<'END'
#!/bin/sh
for file; do case $file in *.c) grep -q 'Operators 0-0 ' "$file" && exit 1 ;; esac; done
exec cc "$@"
END
  chmod +x failing_cc
  FUSEPLAN_CC="$root/failing_cc" \
    expect 0 fuseplan bench 32769 $workload --db failing.db --baseline 21845 --format json
  as_schema bench out
  jq -e '.[0].baselines[0] | .value == 43690 and .median_ms == null and .tie == null' out >jq.txt ||
    fail "bench: a time of a baseline that failed"
  grep -q '^fuseplan: baseline 43690 (unfused: .*) has no time: segment 0-0' said || fail "bench: did not say why a baseline has no time"
  failures="SELECT (SELECT count(*) FROM trial WHERE status = 'failed' AND kind = 'plan'), (SELECT count(*) FROM failure)"
  expect 0 fuseplan bench 32769 $workload --db failing.db --baseline 21845
  [ "$(sqlite3 failing.db "$failures")" = "1|0" ] || fail "bench: a stored failure of a plan did not stay"
  expect 0 fuseplan bench 32769 $workload --db failing.db --baseline 21845 --retry-failed
  [ "$(sqlite3 failing.db "$failures")" = "0|1" ] || fail "bench: did not measure a stored failure again"
  refused 3 'no earlier comparison is stored' \
    fuseplan bench 41115 $workload --baseline none --fail-above 0.01 --db first.db
  expect 4 fuseplan bench 41115 $workload --baseline none --fail-above 0.01
  expect 0 fuseplan bench 41115 $workload --baseline none --fail-above 1000

  echo "a compiler with arguments"
  printf '#!/bin/sh\necho "$@" >>"%s"\nexec "$@"\n' "$root/wrapped" >wrapper
  chmod +x wrapper
  mkdir fresh
  FUSEPLAN_CACHE="$root/fresh" CC="$root/wrapper cc -O1 -g0" fuseplan bench 32769 $workload --db words.db --baseline none -q >bench.txt ||
    fail "a compiler behind a wrapper, with options"
  grep -q '^cc --version$' wrapped || fail "the wrapped compiler was not asked for its version"
  grep -q '^cc .*-O[23] .*-O1 -g0 ' wrapped || fail "the options do not come last"

  echo "programs with stored schedules"
  fuseplan bench 43754 $workload --baseline none -q --db stored.db >bench.txt
  change stored.db "UPDATE schedule SET knobs = 'lowering=rowwise row_block=64 col_block=even'
    WHERE segment IN (SELECT id FROM segment WHERE first_op = 7 AND last_op = 9)"
  fuseplan bench 43754 $workload --baseline none -q --db stored.db --dump stored >bench.txt
  fuseplan generate 43754 $workload --db stored.db -o plan 2>said
  grep -q 'segments run with the fastest schedules known' said || fail "generate: did not say what it took"
  grep -q '_rowwise, {1, 64, 0}}' plan/plan_b1_s8.c || fail "generate: not the stored schedule"
  make -s -C plan
  plan/plan y.npy >plan.txt
  cmp y.npy stored/y.npy || fail "generate: another result than bench's"
  change stored.db "UPDATE target SET device = 'an abacus'"
  fuseplan generate 43754 $workload --db stored.db -o plan 2>said
  grep -q "measured on 'an abacus', another device" said || fail "generate: did not say where"

  sqlite3 stored.db ".backup failed.db"
  change failed.db "UPDATE schedule SET knobs = 'lowering=tiled row_block=256 col_block=even'
      WHERE knobs LIKE '%rowwise%';
    UPDATE trial SET status = 'failed', reason_code = 'wrong', reason = 'row 3 is wrong', median_ms = NULL,
      ci_low_ms = NULL, ci_high_ms = NULL
      WHERE kind = 'segment' AND schedule IN (SELECT schedule.id FROM schedule JOIN segment
        ON segment.id = schedule.segment WHERE first_op = 7 AND last_op = 9)"
  fuseplan generate 43754 $workload --db failed.db -o plan 2>said
  grep -q 'the schedule of ops 7-9 failed when it was measured: row 3 is wrong' said || fail "generate: did not say what fails"

  # The same rows, as if an H200 had given them.
  sqlite3 stored.db ".backup h200.db"
  change h200.db "UPDATE target SET kind = 'cuda', device = 'NVIDIA H200', capability = 'sm_90';
    UPDATE workload SET text = replace(replace(text, 'w=4 f=16', 'w=16 f=64'), 'fp32', 'fp16');
    UPDATE trial SET resources = '{\"registers\":255,\"shared_static_bytes\":16,\
      \"shared_dynamic_bytes\":98304,\"stack_bytes\":24,\"spill_bytes\":20,\"spill_load_bytes\":28,\
      \"grid\":[264,1,1],\"block\":[384,1,1],\"occupancy\":0.125,\
      \"compiler_warning\":\"\u009b31m\"}' WHERE kind = 'segment';
    UPDATE schedule SET impl = 'hopper_gemm', knobs = 'tile=64x64 split=1 norm=cluster'
    WHERE segment IN (SELECT id FROM segment WHERE first_op = 10 AND last_op = 10)"
  cuda="43754 -b 1 -s 8 -m causal -H 1 -W 16 -L 1 --target cuda --db h200.db -o cuda"
  fuseplan generate $cuda --arch sm_90a 2>said
  grep -q "^fuseplan: 1 of 13 segments run .* measured on 'NVIDIA H200'" said || fail "generate: did not say where"
  grep -q 'slower schedules' said && fail "generate: replaced what every architecture runs"
  as_schema manifest cuda/manifest.json
  jq -e '.segments | map(select(.ops == [10, 10])) | .[0] | .implementation == "hopper_gemm" and
    .resources.registers == 255 and .launch.threads == 384 and .launch.cooperative == false and
    .launch.tiles == 1 and .resources.compiler_warning == "\u009b31m"' cuda/manifest.json >jq.txt ||
    fail "manifest: not the stored choice"
  LC_ALL=C grep -q "$(printf '\302\233')" cuda/manifest.json &&
    fail "manifest: holds a control sequence of a terminal"
  fuseplan generate $cuda --arch sm_80,sm_90a 2>said
  grep -q "^fuseplan: the plan was measured on '.*'; so that it runs on sm_80,sm_90a, ops 10 take schedules that were slower there; '--arch sm_90a' keeps the fastest" said || fail "generate: did not say what runs slower"
  as_schema manifest cuda/manifest.json
  fuseplan export ${cuda%-o cuda} -o library -q --arch sm_80
  as_schema export library/manifest.json
  jq -e 'any(.segments[].implementation; startswith("hopper"))' cuda/manifest.json >jq.txt && fail "generate: a choice that sm_80 does not run"

  echo "search"
  # compiling alone takes longer
  FUSEPLAN_CACHE="$root/empty" refused 3 'no plan was tried within the time limit' fuseplan search $workload -s 12 \
    --time-limit 0.1
  FUSEPLAN_CACHE="$root/empty" expect 3 fuseplan search $workload -b 1,2 -s 12 --total-time 0.2
  [ "$(grep -c 'no plan was tried within the time limit' said)" -eq 2 ] || fail "search: --total-time limits not every size"
  json search fuseplan search $workload --space 41115 --budget 2
  fuseplan search $workload -s 9 --space 41115 --budget 1 --baseline none --events events.ndjson >found 2>said
  grep -q ': searching 1 plan$' said || fail "searching: not one plan"
  as_schema events events.ndjson
  jq -se '(map(select(.event == "plan")) | length == 1 and .[0].plan == .[0].best and .[0].plan.value == 41115) and
    (map(select(.event == "step") | .phase) | index(["segments"]) < index(["plans"]) and
      index(["plans"]) < index(["finals"]))' events.ndjson >jq.txt || fail "search: not the events of one plan"
  grep -q '"new":0,"total":2' out.ndjson || fail "plans that bench measured were measured again"
  json search fuseplan query $workload --top 2
  jq -e '.top[0].value == .best.value and (.top | length) == 2' out.json >jq.txt || fail "query: not the fastest plans"
  jq -e '.baselines | map(.value) == [43690, 41115] and all(.speedup > 0 and .compared_at > "2")' out.json >jq.txt ||
    fail "query: not the baselines that were compared"
  fuseplan search $workload --space 41115 --budget 2 -q >found
  grep -q 'measured  *1 of 1 plans, 1 outside the space' found || fail "43690 counts as a plan of a space that it is not in"
  grep -q 'for 1 layer, .* a layer$' found || fail "search: not the time of one layer"
  grep -q 'no plan measured is faster than baseline 41115 ' found || fail "search: the best plan is compared with itself"
  fuseplan query $workload | grep '^baseline\|as fast\|faster' >again
  grep '^baseline\|as fast\|faster' found | diff - again || fail "query says otherwise of the baselines"
  sqlite3 "$FUSEPLAN_DB" ".backup noisy.db"
  change noisy.db "UPDATE trial SET conditions = '{\"waited_share\": 0.43, \"other_cores\": 1, \"stopped_share\": 0}' WHERE kind = 'final'"
  fuseplan query $workload --db noisy.db >found
  grep -q "on a quiet machine 'fuseplan search -b 1 .* --db noisy.db --again' times it anew" found ||
    fail "query: no remedy of noise: $(cat found)"
  sqlite3 "$FUSEPLAN_DB" ".backup spent.db"
  change spent.db "UPDATE search SET stopped_by = 'time', options = json_set(options, '\$.time_limit_s', 3600);
    DELETE FROM sample; UPDATE trial SET conditions = '', sample_count = 0, median_ms = 1, ci_low_ms = 1, ci_high_ms = 1"
  expect 0 fuseplan search $workload --space 41115 --time-limit 1h --db spent.db
  [ "$(grep -c 'an earlier search spent' said)" -eq 1 ] || fail "search: did not say once that its limit is spent"
  fuseplan search $workload --space 41115 --budget 2 --baseline 4,3 >found 2>said
  grep -q '4 names the same plan as 32772' said || fail "search: did not say what plan 4 is"
  [ "$(grep -c '\(times as fast as 3277[12]\| faster than baseline 3277[12]\)$' found)" -eq 2 ] || fail "search: not the baselines added"
  fuseplan query $workload | grep -q 'measured  *4 of 16640 plans' || fail "query counts otherwise"
  fuseplan search $workload --budget 2 --format csv 2>/dev/null | cut -d, -f1 >found
  fuseplan query $workload --format csv | cut -d, -f1 | diff found - || fail "query found another"

  json explain fuseplan explain best $workload
  jq -e '.source == "compared" and .kernels_us > 0 and (.neighbours | length) > 13 and
    ([.kernels[] | .least_us <= .median_us * 1.001] | all)' out.json >jq.txt || fail "explain: $(cat out.json)"
  json explain fuseplan explain 43690 $workload -s 10

  echo "interrupt"
  line=
  mkfifo progress
  env -u LD_PRELOAD fuseplan search $workload -b 64 -s 9 --budget 1000 >interrupted 2>progress & # it lasts: the signal is to come before its end
  pid=$!
  exec 4<progress
  until [ "$line" = 'fuseplan: building and timing each segment alone' ]; do
    read -r line <&4 || fail "interrupted: it ended before"
  done
  while kill -TERM "$pid" 2>/dev/null; do :; done # as a scheduler does, and then a script's trap
  code=0
  wait "$pid" || code=$?
  [ $code -eq 130 ] || fail "exit $code, expected 130"
  grep -q '^stopped by .*interrupted' interrupted || fail "interrupted: no report"
  [ ! -e e2e.db-wal ] || fail "interrupted: the database was left open"

  echo "database"
  json db-info fuseplan db info
  json db-list fuseplan db list
  fuseplan db export -o e2e.ndjson
  json db-merge fuseplan db import e2e.ndjson --db moved.db
  fuseplan db export --db moved.db | cmp - e2e.ndjson || fail "export, import, export"
  json db-forget fuseplan db forget $workload --dry-run --db moved.db
  fuseplan db check --db moved.db >found || fail "what was imported"
  fuseplan query $workload --db moved.db --format json >found
  fuseplan query $workload --format json | cmp - found || fail "an imported answer"
  fuseplan db check --format json >out.json
  as_schema db-check out.json
  fuseplan db check | grep -q 'is whole' || fail "the database is not whole"
  study=$(sed -n 's/.*"study":"\([0-9a-f]*\)","inputs".*b=1 s=8 .*mask=causal.*/\1/p' e2e.ndjson | head -n 1)
  grep -e '"format"' -e "$study" e2e.ndjson >study.ndjson
  json replay fuseplan replay study.ndjson --budget 2 --seeds 2 -q
  expect 2 fuseplan db info $workload

  echo "models"
  awk 'BEGIN { for (i = 0; i < 64; i++) { b = ""; for (k = 0; k < 6; k++) b = b int(i / 2 ^ k) % 2;
    print "1000101000" b, 10 + i } }' >times.txt
  json train fuseplan train --data times.txt
  json predict fuseplan predict 0..300
  for format in table json ndjson csv; do
    fuseplan predict 0..9 --format "$format" >/dev/null
  done

  echo "a database of an older version"
  sqlite3 e2e.db ".backup old.db"
  change old.db "PRAGMA user_version = 10"
  refused 1 'schema version 10, .* any command that stores' fuseplan query $workload --db old.db
}
echo "all well"
