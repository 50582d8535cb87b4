#!/bin/sh
# sweep_gpus.sh FUSEPLAN FAKE_GPU: tables of workloads on several devices at a time.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
export FUSEPLAN_LOCK_DIR="$root" TMPDIR="$root/tmp"
mkdir tmp

# A search costs less where nothing is compiled.
echo "two GPUs, and a third that goes on"
unset FUSEPLAN_TEST_BINARIES
use_fake_gpu "$2" right
printf '%s\n' '-b 1 -s 5' '-b 2 -s 5' '-b 1 -s 7' >table
gpus='-t fp32 -H 2 -W 16 -L 1 --space 41100..41101 --target cuda:all -q --db gpus.db'
gpu_sweep() { # VISIBLE: the table on these GPUs
  CUDA_VISIBLE_DEVICES=$1 fuseplan sweep run table $gpus --format ndjson --events events.ndjson >out 2>said || fail "exit $?"
  as_schema events events.ndjson
}
gpu_sweep 0,1
for gpu in 0 1; do
  grep -q "\"state\":\"done\",\"target\":\"cuda:$gpu\"" events.ndjson || fail "cuda:$gpu is idle: $(cat events.ndjson)"
done
[ "$(sqlite3 gpus.db 'SELECT count(DISTINCT uuid) FROM target JOIN study ON target = target.id')" = 2 ] || fail "one GPU"
fuseplan sweep plan table $gpus --format ndjson >out 2>said || fail "plan of several GPUs: exit $?"
[ "$(grep -c '"state":"done"' out)" = 3 ] || fail "plan of several GPUs: $(cat out)"
trials() { sqlite3 gpus.db "SELECT count(*) FROM trial WHERE kind = 'plan'"; }
before=$(trials)
for visible in 1,0 2; do
  gpu_sweep $visible
  [ "$(grep -c '"state":"done"' out)" = 3 ] || fail "$visible: $(cat out)"
  [ "$(trials)" = "$before" ] || fail "GPUs $visible measured again: $(trials) plans, $before before"
done

echo "searches of the next row and of the next family wait, and begin anew if they die"
cp table two
printf '%s\n' '-b 1 -s 5' '-b 1 -s 7' '-b 1 -s 5 -L 2' >table
# Starts a sweep as `pid`, and waits until three searches run.  `first` has the turn, and is held from when the second
# starts, so that it does not end; false if it was faster.
try_three() {
  rm -f turns.db*
  fuseplan sweep run table $gpus --target cuda --db turns.db --format ndjson --events events.ndjson >out 2>said &
  pid=$! first=
  while kill -0 $pid 2>/dev/null; do
    children=$(cat /proc/$pid/task/$pid/children 2>/dev/null || :)
    set -- $children
    [ $# -lt 2 ] || [ -n "$first" ] || { first=$1 && kill -STOP "$first"; } || break
    [ -z "$first" ] || [ "$first" = "${1:-}" ] || break
    [ $# != 3 ] || return 0
    sleep 0.02
  done
  kill -CONT "$first" 2>/dev/null || :
  kill -TERM $pid 2>/dev/null || :
  wait $pid || :
  return 1
}
start_three() {
  for try in 1 2 3 4 5 6 7 8 9 10; do
    try_three && return
    echo "the first search ended before it was held: try $try"
  done
  fail "no searches waited for their turns: $(cat events.ndjson)"
}
start_three
kill -KILL ${children#* }
kill -CONT "$first"
wait $pid || fail "exit $?: $(cat out)"
[ "$(sed -n 's/.*"event":"row".*"row":"\(-b . -s .\).*\(-L .\).*"state":"done".*/\1 \2/p' events.ndjson | tr '\n' ' ')" = \
  "-b 1 -s 5 -L 1 -b 1 -s 7 -L 1 -b 1 -s 5 -L 2 " ] || fail "other rows, or another order: $(cat events.ndjson)"
[ "$(sqlite3 turns.db "SELECT count(*) FROM search")" = 3 ] || fail "a row was searched twice"
start_three
kill -TERM $pid
kill -CONT "$first"
code=0
wait $pid || code=$?
[ $code -eq 130 ] || fail "exit $code, expected 130"
[ "$(sqlite3 turns.db "SELECT count(*) FROM search")" -le 1 ] || fail "searches that waited have begun"
mv two table
expect 2 fuseplan --in-turn search -b 1 -s 5 3>&-

echo "kernels compiled ahead, without a GPU"
rm -f fuseplan.conf
export FUSEPLAN_CACHE="$root/ahead"
sed -i "2a echo x >>'$root/calls'" nvcc
workload='-t fp32 -H 2 -W 16 -L 1'
program=$(command -v fuseplan)
LD_LIBRARY_PATH=$root expect 0 fuseplan sweep compile table $workload --arch sm_80 --shard 0/2 --format json --events events.ndjson -q
as_schema sweep-compile out
as_schema events events.ndjson
[ -s calls ] || fail "nothing was compiled"
rows=$(grep -c '"state": *"done"' out)
if [ "$rows" = 0 ] || [ "$rows" = 3 ]; then fail "a shard has $rows of 3 rows"; fi
: >calls
row=$(sed -n 's/.*"row": *"\([^"]*\) -H.*/\1/p' out | head -n 1)
fuseplan sweep compile table $workload --target cuda:all --shard 0/2 -q >out
[ ! -s calls ] || fail "a GPU of sm_80 wants $(wc -l <calls) other kernels"
fuseplan search $row $workload --target cuda --budget 3 -q --db ahead.db >out 2>said || fail "exit $?: $(cat out)"
found=$(sqlite3 ahead.db "SELECT count(*) FROM trial WHERE kind = 'segment' AND build_s = 0")
[ "$found" -ge 40 ] || fail "a search of $row found $found kernels, and compiled $(wc -l <calls)"
PATH=/usr/bin:/bin CUDA_HOME=$root/none LD_LIBRARY_PATH=$root expect 1 "$program" sweep compile table $workload --arch sm_80
expect 2 fuseplan sweep compile table --target cpu --arch sm_80
expect 2 fuseplan sweep compile table --arch sm_80,sm_90a
