#!/bin/sh
# sweep.sh FUSEPLAN: tables of workloads: shards, signals, kills, damaged texts, rows that fail.  Every plan of
# a row's space is measured, so that the set of rows and plans is one, whatever happens.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
export FUSEPLAN_LOCK_DIR="$root" TMPDIR="$root/tmp"
mkdir tmp
options='-H 1 -W 8 -L 1 --space 41100..41101 --target cpu'
cat >table <<'END'
# a comment
-b 1 -s 8 -m causal -m 'sliding:w=2'   # two rows
-b 1 -s 16
-s 8 -b 1 -m causal # again
END
sweep() {
  action=$1
  shift
  fuseplan sweep "$action" table $options -q "$@" 2>said
}
# A settings file changes no row: neither here nor in the searches of its processes.
unset FUSEPLAN_CONFIG XDG_CONFIG_HOME
printf '[fuseplan]\nbatch = 7\neps = 0.5\ngate\ninit = wide\n' >fuseplan.conf
chmod 644 fuseplan.conf
measured() { # DATABASE: what was stopped early, as slower than the best, is measured too
  sqlite3 "$1" "SELECT text, plan FROM trial JOIN study ON study.id = study JOIN workload ON workload.id = workload
    WHERE kind = 'plan' AND status <> 'failed' ORDER BY text, plan"
}

echo "plan"
sweep plan --shards 3 --format json >plan.json
as_schema sweep plan.json
[ "$(grep -c '"state": "missing"' plan.json)" = 3 ] || fail "3 rows are missing: $(cat plan.json)"
[ ! -e suite.db ] || fail "plan made a database"

echo "run"
sweep run --db all.db --format json --events events.ndjson >run.json || fail "exit $?"
as_schema sweep run.json
as_schema events events.ndjson
[ "$(grep -c '"state": *"done"' run.json)" = 3 ] || fail "$(cat run.json)"
[ "$(grep -c '"event":"row"' events.ndjson)" = 3 ] || fail "$(cat events.ndjson)"
[ "$(measured all.db | wc -l)" = 6 ] || fail "$(measured all.db)"

echo "baselines that are named"
cp all.db based.db
sweep run --db based.db --baseline 41200 >out || fail "exit $?"
[ "$(measured based.db | grep -c '|41200$')" = 3 ] || fail "$(measured based.db)"

echo "no plan ran"
cp all.db none.db
sqlite3 none.db 'DELETE FROM trial; VACUUM'
sweep plan --db none.db --format json >out
[ "$(grep -c '"state": *"failed"' out)" = 3 ] || fail "searches that ended without a plan: $(cat out)"

echo "what only timed known plans is no search of a row"
for strategy in bench again precisions; do
  cp all.db timed.db
  sqlite3 timed.db "UPDATE search SET stopped_by = 'interrupted';
    INSERT INTO search SELECT lower(hex(randomblob(16))), study, '$strategy', '{}', '2999-01-01T00:00:00.000Z',
      '2999-01-01T00:00:01.000Z', 'done' FROM search; VACUUM"
  sweep plan --db timed.db --format json >out
  [ "$(grep -c '"state": *"cut short"' out)" = 3 ] || fail "$strategy ended searches that were interrupted: $(cat out)"
done

# A fuseplan whose workers note what they are asked, and serve once there is no file `hold`.
mkdir watched
cp "$(command -v fuseplan)" watched/
cat >watched/fuseplan-worker <<END
#!/bin/sh
echo "\$*" >>$root/asked
while [ "\$1" = --serve ] && [ -e $root/hold ]; do sleep 0.02; done
exec $(command -v fuseplan)-worker "\$@"
END
chmod +x watched/fuseplan-worker

echo "one worker says what the GPU of all rows is"
watched/fuseplan sweep plan table $options --target cuda --db all.db >out 2>said || fail "exit $?"
[ "$(cat asked)" = '--cuda-probe 0' ] || fail "workers of three rows: $(cat asked)"

echo "times in doubt"
cp all.db doubt.db
sqlite3 doubt.db "DELETE FROM trial WHERE kind = 'final'; VACUUM"
sweep plan --db doubt.db --format json >out
as_schema sweep out
[ "$(grep -c '"doubt": *"not compared"' out)" = 3 ] || fail "no doubt: $(cat out)"
cp all.db doubt.db
sqlite3 doubt.db "UPDATE trial SET conditions = '{\"waited_share\": 0.5, \"other_cores\": 1.9, \"stopped_share\": 0.0}' WHERE kind = 'final'; VACUUM"
sweep plan --db doubt.db --format json >out
[ "$(grep -c '"doubt": *"unstable"' out)" = 3 ] || fail "no doubt: $(cat out)"

echo "two devices"
fuseplan sweep run table $options --target cpu,cpu -q --db two.db >out 2>said || fail "exit $?"
[ "$(measured two.db)" = "$(measured all.db)" ] || fail "other plans: $(measured two.db)"

# Runs a sweep as `pid` until a search of it waits for its worker, so that nothing ends before `hold` is removed.
held_sweep() {
  : >asked
  : >hold
  watched/fuseplan sweep run table $options -q "$@" >out 2>said &
  pid=$!
  until grep -q -e --serve asked; do
    kill -0 $pid 2>/dev/null || fail "it ended before its search: $*"
    sleep 0.02
  done
}

echo "shards, a signal sent twice, a kill"
sweep run --shard 0/3 --save saved >out || fail "exit $?"
held_sweep --shard 1/3 --save saved
kill -TERM $pid
kill -TERM $pid
code=0
wait $pid || code=$?
[ $code -eq 130 ] || fail "exit $code, expected 130"
held_sweep --shard 2/3 --save saved
kill -KILL $pid
rm hold
wait $pid 2>/dev/null || :
expect 3 sweep collect saved --format json
as_schema sweep out
for shard in 1 2; do sweep run --shard $shard/3 --save saved >out || fail "exit $?"; done
printf '{"fuseplan"' >saved/1-of-3.cut.ndjson
: >saved/2-of-3.empty.ndjson
refused 1 'left out: .*1-of-3.cut' fuseplan sweep collect table saved $options -q
grep -q 'left out: .*2-of-3.empty' said || fail "the empty text is not named"
rm saved/1-of-3.cut.ndjson saved/2-of-3.empty.ndjson
sweep collect saved >out || fail "exit $?"
[ "$(measured suite.db)" = "$(measured all.db)" ] || fail "other plans: $(measured suite.db)"
fuseplan db check

echo "rows that fail"
cat >table <<'END'
-b 1 -s 8 -m causal
-b 256 -s 16384
-b 1 -s 16
END
expect 3 sweep run --db all.db --format json
[ "$(grep -c '"state": *"done"' out)" = 2 ] || fail "the other rows are not done: $(cat out)"
grep -q '"reason": *"this workload needs about' out || fail "no reason: $(cat out)"
echo "-b 1 -s 8 -m none.npy" >>table
refused 2 'table, line 4: .*none.npy' sweep run --db all.db

echo "a search that is killed alone"
echo '-b 1 -s 12' >table
held_sweep --db killed.db
kill -KILL "$(cat /proc/$pid/task/$pid/children | tr -d ' ')"
rm hold
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit $code, expected 1"

echo "a machine that fails"
printf '%s\n' '-b 1 -s 4' '-b 2 -s 4' '-b 3 -s 4' '-b 4 -s 4' >table
FUSEPLAN_LOCK_DIR=$root/none/there FUSEPLAN_CC=false expect 1 sweep run --db new.db --format ndjson
[ "$(grep -c '"state":"failed"' out)" = 3 ] || fail "it did not end after three rows: $(cat out)"

echo "batch script"
if sweep script slurm --shards 4 >out; then fail "table is no scheduler"; fi
fuseplan sweep script slurm table --shards 4 $options -o job -q
bash -n job
grep -q -- "fuseplan sweep run table --shard \"\$SLURM_ARRAY_TASK_ID/4\" --save sweep -H 1" job || fail "$(cat job)"
grep -q -- "'fuseplan sweep collect table sweep -H 1 .*--target cpu" job || fail "collect has other rows: $(cat job)"
fuseplan sweep script slurm table --shards 4 --save "it's here" -o job4 -q
collect_reads() { # DIRECTORY: as a shell reads the command that it is told to copy
  directory=$1
  eval "set -- $(sed -n 's/.*--wrap //p' job4)"
  [ $# = 1 ] || fail "collect is $# words: $(cat job4)"
  eval "set -- $1"
  [ "$5" = "$directory" ] || fail "collect reads '$5': $(cat job4)"
}
collect_reads "it's here"
grep -q -x -- "#SBATCH --output='it'.''s here'/log.%a" job4 || fail "Slurm reads another log: $(cat job4)"
fuseplan sweep script slurm table --shards 4 -o job2 -q
[ "$(grep -c -- '--target cuda' job2)" = 2 ] || fail "the target is open: $(cat job2)"
grep -q -- '--gres=gpu:1' job2 || fail "no GPU: $(cat job2)"
echo '-b 1 -s 8 --target cpu' >rows
fuseplan sweep script slurm rows --shards 1 -o job3 -q
{ grep -q -- --exclusive job3 && ! grep -q gres job3; } || fail "rows of the CPU: $(cat job3)"
[ -d sweep ] || fail "the directory of the log is missing"
