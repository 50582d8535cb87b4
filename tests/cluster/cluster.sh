#!/bin/bash
# cluster.sh FUSEPLAN: the batch script of `sweep script slurm` on a Slurm of this host alone: an array on two nodes,
# one task of which is requeued, one told to end, one killed, and one of whose nodes is given up.  Every plan of a row's
# space is measured, so that rows and plans must be those of a run without Slurm.
# Exit 77 where Slurm is not installed, or this is not root.
# usage: cluster.sh FUSEPLAN
set -eu
# shellcheck disable=SC1091 # sources suite.sh and env
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" -ne 0 ] || ! command -v slurmctld slurmd sbatch munged >/dev/null; then
  echo "skipped: needs root, slurmctld, slurmd, slurm-client and munge"
  exit 77
fi
. "$here/../cmd/suite.sh"
trap '"$here/stop.sh" "$root/slurm" >/dev/null 2>&1; rm -rf "$root"' EXIT
chmod 755 "$root"
export TMPDIR="$root/tmp" FUSEPLAN_LOCK_DIR="$root"
mkdir -p "$TMPDIR/fuseplan-0" # the script's cache
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" "$TMPDIR/fuseplan-0/binaries"
printf '%s\n' "-b 1,2,3,4 -s 8 -m causal -m 'sliding:w=2'" >table
options='-H 1 -W 8 -L 1 --space 41100..41115 --baseline none --target cpu'
measured() { # DATABASE
  sqlite3 "$1" "SELECT text, plan FROM trial JOIN study ON study.id = study JOIN workload ON workload.id = workload
    WHERE kind = 'plan' AND status = 'ok' ORDER BY text, plan"
}
wait_for() { # COMMAND...: two minutes at most
  for ((k = 0; k < 1200; k++)); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  squeue >&9 2>&1
  tail -n 5 sweep/log.* >&9 2>&1
  fail "not within two minutes: $*"
}
sweeps() { pgrep -f "fuseplan sweep run $root/table --shard $1/4"; } # processes of a shard, srun's too
own() { # SHARD: the process of fuseplan itself
  for pid in $(sweeps "$1"); do
    [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$(command -v fuseplan)")" ] || echo "$pid"
  done
}
is_running() { [ -n "$(own "$1")" ] && ls "$TMPDIR"/fuseplan-sweep-*/plans.db; }
is_begun() { ls "$TMPDIR"/fuseplan-sweep-*/plans.db; }
is_done() { [ -z "$(squeue -h)" ]; }
work() { # SHARDS: an array of them
  job=$(sbatch --parsable --array="$1" job)
}

echo "without Slurm"
# shellcheck disable=SC2086 # $options are words
FUSEPLAN_CACHE="$TMPDIR/fuseplan-0" fuseplan sweep run table $options -q --db alone.db >out 2>said || fail "exit $?"

echo "start"
"$here/start.sh" "$root/slurm" >said 2>&1 || fail "the cluster does not start"
# shellcheck disable=SC1091
. "$root/slurm/env"
export SLURM_CONF
# shellcheck disable=SC2086
fuseplan sweep script slurm "$root/table" --shards 4 $options --save "$root/sweep" -o job -q
bash -n job
sbatch --test-only job >said 2>&1 || fail "sbatch does not take the script"

echo "an array, disturbed"
work 0-3
wait_for is_running 0
scontrol requeue "${job}_0"
wait_for is_running 1
kill -9 "$(own 1 | head -n 1)"
wait_for is_running 2
scancel --signal=TERM "${job}_2"
wait_for is_running 3
node=$(squeue -h -o '%N %K' | awk '$2 == 3 { print $1 }')
kill -9 "$(cat "$root/slurm/slurmd.$node.pid")"
scontrol update nodename="$node" state=down reason=test
slurmd -N "$node" -f "$SLURM_CONF"
scontrol update nodename="$node" state=resume 2>said || : # it may be up by itself
wait_for is_done
restarted=$(scontrol show job "$job" | grep -c 'Restarts=[1-9]')
[ "$restarted" -ge 3 ] || fail "$restarted tasks were requeued: 0 by hand, 2 by the script, 3 with its node"

echo "collect"
for ((round = 0; round < 4; round++)); do
  code=0
  # shellcheck disable=SC2086
  fuseplan sweep collect "$root/table" "$root/sweep" $options >out 2>said || code=$?
  [ $code != 0 ] || break
  [ $code = 3 ] || fail "collect: exit $code"
  again=$(sed -n 's/.*sbatch --array=\([0-9,]*\) .*/\1/p' said)
  echo "shards $again again"
  work "$again"
  wait_for is_done
done
[ "$code" = 0 ] || fail "rows are missing"
[ "$(measured suite.db)" = "$(measured alone.db)" ] || fail "other plans than without Slurm"
[ "$(sqlite3 suite.db "SELECT count(*) FROM trial WHERE status = 'failed'")" = 0 ] || fail "trials failed"
fuseplan db check

export FUSEPLAN_CACHE="$TMPDIR/fuseplan-0"
# collected DIR: the shards saved there are whole.
collected() {
  # shellcheck disable=SC2086
  fuseplan sweep collect "$root/table" "$1" $options --db "$1.db" >out 2>said || fail "$1: exit $?"
  [ "$(measured "$1.db")" = "$(measured alone.db)" ] || fail "$1: other plans"
}

echo "process 1, as in a pod"
pod() {
  # shellcheck disable=SC2086
  exec unshare -pf fuseplan sweep run "$root/table" --shard "$JOB_COMPLETION_INDEX/1" --save pod $options -q >out 2>said
}
export JOB_COMPLETION_INDEX=0
rm -rf "$TMPDIR"/fuseplan-sweep-*
pod &
outside=$!
wait_for is_begun
kill -TERM "$(pgrep -P "$outside")"
code=0
wait "$outside" || code=$?
[ "$code" = 130 ] || fail "stopped: exit $code"
(pod) || fail "exit $?"
collected pod

if command -v parallel >/dev/null; then
  echo "GNU parallel, killed once"
  mkdir by_hand
  many() {
    # shellcheck disable=SC2086
    seq 0 2 | parallel -j1 --joblog by_hand/jobs --resume-failed \
      fuseplan sweep run "$root/table" --shard '{}/3' --save by_hand -q $options >out 2>said
  }
  rm -rf "$TMPDIR"/fuseplan-sweep-*
  many &
  outside=$!
  wait_for is_begun
  kill -9 "$(pgrep -f "fuseplan sweep run $root/table --shard 0/3" | tail -n 1)"
  if wait "$outside"; then fail "the kill is not seen"; fi
  many || fail "exit $?"
  collected by_hand
fi
