#!/bin/bash
# cluster.sh FUSEPLAN [ROUNDS]: the batch script of `sweep script slurm` on a Slurm of this host alone: an array of 8
# shards on two nodes, of which at random moments one task is requeued, one told to end, one killed by -9, one
# preempted, and one runs on on a node that is given up.  Every plan of a row's space is measured, so that rows and
# plans must be those of a run without Slurm.  Then a pod's command, and GNU parallel here and as by ssh.
# ROUNDS: how many arrays (1).  SEED: of the moments; it is printed.
# Exit 77 where Slurm is not installed, or this is not root.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
# shellcheck disable=SC1091 # sources suite.sh and env
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" -ne 0 ] || ! command -v slurmctld slurmd sbatch munged >/dev/null; then
  echo "skipped: needs root, slurmctld, slurmd, slurm-client and munge"
  exit 77
fi
. "$here/../cmd/suite.sh"
trap '"$here/stop.sh" "$root/slurm" >/dev/null 2>&1 || :; rm -rf "$root"' EXIT
chmod 755 "$root"
export TMPDIR="$root/tmp" FUSEPLAN_LOCK_DIR="$root"
mkdir -p "$TMPDIR/fuseplan-0" # the script's cache
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" "$TMPDIR/fuseplan-0/binaries"
# The last row takes the longest: its node dies.  From 41 plans on a search may converge before it has measured all, from
# 17 on where a near row was searched: the last one is longer than twice the others.
long='-b 4 -s 17 -m causal'
printf '%s\n' "-b 1,2,3,4,5,6,7 -s 8 -m causal -m 'sliding:w=2'" "$long --space 41100..41139" >table
options='-H 1 -W 8 -L 1 --space 41100..41115 --target cpu'
rounds=${2:-1}
RANDOM=${SEED:=$RANDOM}
echo "SEED=$SEED"
measured() { # DATABASE: what was stopped early, as slower than the best, is measured too
  sqlite3 "$1" "SELECT text, plan FROM trial JOIN study ON study.id = study JOIN workload ON workload.id = workload
    WHERE kind = 'plan' AND status <> 'failed' ORDER BY text, plan"
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
sweeps() { pgrep -f "fuseplan sweep run $root/table --shard $1/8"; } # processes of a shard, srun's too
own() { # SHARD: the process of fuseplan itself
  for pid in $(sweeps "$1"); do
    [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$(command -v fuseplan)")" ] || echo "$pid"
  done
}
is_begun() { ls "$TMPDIR"/fuseplan-sweep-*/plans.db; }
is_running() { [ -n "$(own "$1")" ] && is_begun; }
runs_elsewhere() { [ "$(own "$1" | grep -cvx "$2")" -gt 0 ]; } # SHARD PID: in another process than that one
is_gone() { [ ! -e "/proc/$1" ]; }
is_done() { [ -z "$(squeue -h)" ]; }
is_held() { [ "$(squeue -h -r -o %K)" = "$last" ]; } # all others are done
of_task() { squeue -h -r -j "${job}_$1" -o "$2"; } # SHARD FORMAT

# Disturbances of a shard that runs.
requeue() { scontrol requeue "${job}_$1"; }
end() { # its step alone, as before a limit
  # scancel may deliver the signal, try again and then say that there is no such step: what counts is Restarts.
  scancel --signal=TERM "$(of_task "$1" %A).0" 2>said || :
}
crash() { kill -9 "$(own "$1" | head -n 1)"; }
preempt() { sbatch --partition=urgent --exclusive --nodelist="$(of_task "$1" %N)" --output=/dev/null --wrap 'sleep 1' >said; }
lose_node() { # Slurm begins it again on the other node, and the old one runs on to its end
  old=$(own "$1")
  node=$(of_task "$1" %N)
  kill -9 "$(cat "$root/slurm/slurmd.$node.pid")"
  scontrol update nodename="$node" state=down reason=test
  wait_for scontrol update jobid="${job}_$1" StartTime=now # else seconds later
  wait_for runs_elsewhere "$1" "$old"
  kill -0 "$old" || fail "the task of the node that is given up ended before the other began"
  wait_for is_gone "$old"
  slurmd -N "$node" -f "$SLURM_CONF"
  scontrol update nodename="$node" state=resume 2>said || : # it may be up by itself
}

echo "without Slurm"
FUSEPLAN_CACHE="$TMPDIR/fuseplan-0" fuseplan sweep run table $options -q --db alone.db >out 2>said || fail "exit $?"
measured alone.db >without

echo "start"
"$here/start.sh" "$root/slurm" >said 2>&1 || fail "the cluster does not start"
# shellcheck disable=SC1091
. "$root/slurm/env"
export SLURM_CONF
fuseplan sweep script slurm "$root/table" --shards 8 $options --save "$root/sweep" -o job -q
bash -n job
sbatch --test-only job >said 2>&1 || fail "sbatch does not take the script"

last=$(fuseplan sweep plan "$root/table" --shards 8 $options --format csv -q | sed -n "s/^${long}[^,]*,\([0-9]*\),.*/\1/p")
# One array; its disturbances meet shards in random order, and the shard of the long row, which runs alone then, last.
disturbed_array() {
  rm -rf sweep suite.db "$TMPDIR"/fuseplan-sweep-*
  mkdir sweep
  job=$(sbatch --parsable --hold job)
  shards=()
  for ((k = 0; k < 8; k++)); do
    at=$((RANDOM % (${#shards[@]} + 1)))
    [ "$k" = "$last" ] || shards=("${shards[@]:0:at}" "$k" "${shards[@]:at}")
  done
  echo "shards ${shards[*]} and $last: requeued, told to end, killed, preempted, 3 undisturbed, given up"
  scontrol release "${job}_[$(IFS=,; echo "${shards[*]:4}")]"
  for what in requeue end crash preempt; do
    scontrol release "${job}_${shards[0]}"
    wait_for is_running "${shards[0]}"
    sleep "0.$((RANDOM % 10))"
    "$what" "${shards[0]}" || fail "$what ${shards[0]}"
    shards=("${shards[@]:1}")
  done
  wait_for is_held
  scontrol release "${job}_$last"
  wait_for is_running "$last"
  lose_node "$last"
  wait_for is_done
  restarted=$(scontrol show job "$job" | grep -c 'Restarts=[1-9]')
  [ "$restarted" = 4 ] || fail "$restarted tasks were begun again: all that were disturbed, but the killed one"
}

# Collects, and runs again what is named, until all rows are done.
collect_all() {
  for ((round = 0; round < 4; round++)); do
    code=0
    fuseplan sweep collect "$root/table" "$root/sweep" $options >out 2>said || code=$?
    [ $code != 0 ] || break
    [ $code = 3 ] || fail "collect: exit $code"
    again=$(sed -n 's/.*sbatch --array=\([0-9,]*\) .*/\1/p' said)
    echo "shards $again again"
    job=$(sbatch --parsable --array="$again" job)
    wait_for is_done
  done
  [ "$code" = 0 ] || fail "rows are missing"
  measured suite.db >with
  diff without with >&9 || fail "other plans than without Slurm"
  [ "$(sqlite3 suite.db "SELECT count(*) FROM trial WHERE status = 'failed'")" = 0 ] || fail "trials failed"
  fuseplan db check
}

for ((n = 1; n <= rounds; n++)); do
  since=$SECONDS
  echo "array $n of $rounds"
  disturbed_array
  collect_all
  echo "equal: $(wc -l <with) rows and plans, $((SECONDS - since)) s"
done

echo "stop, while a step of a node that is given up runs"
sbatch --nodelist=n0 --output=/dev/null --wrap 'sleep 1000; exit' >said
wait_for pgrep -f "$root/slurm/spool.n0/job"
kill -9 "$(cat "$root/slurm/slurmd.n0.pid")"
scontrol update nodename=n0 state=down reason=test
"$here/stop.sh" "$root/slurm" >said
! pgrep -f "$root/slurm" >&9 || fail "these are left"

export FUSEPLAN_CACHE="$TMPDIR/fuseplan-0"
# collected DIR: the shards saved there are whole.
collected() {
  fuseplan sweep collect "$root/table" "$1" $options --db "$1.db" >out 2>said || fail "$1: exit $?"
  [ "$(measured "$1.db")" = "$(cat without)" ] || fail "$1: other plans"
}

echo "process 1, as in a pod"
pod() {
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

# many FIRST [OPTION...]: the first of 3 shards by GNU parallel; those that are done are left out.
many() {
  first=$1
  shift
  seq 0 $((first - 1)) | parallel -j1 --joblog by_hand/jobs --resume-failed "$@" \
    fuseplan sweep run "$root/table" --shard '{}/3' --save by_hand -q $options >out 2>said
}
if command -v parallel >/dev/null; then
  echo "GNU parallel, killed once"
  mkdir by_hand
  rm -rf "$TMPDIR"/fuseplan-sweep-*
  many 2 &
  outside=$!
  wait_for is_begun
  kill -9 "$(pgrep -f "fuseplan sweep run $root/table --shard 0/3" | tail -n 1)"
  if wait "$outside"; then fail "the kill is not seen"; fi
  echo "the others as by ssh, on two hosts"
  # ssh HOST -- WORD...: a shell of another environment in another directory
  printf '#!/bin/sh\nshift 2\ncd / && exec env -i SHELL=/bin/sh PATH=/usr/bin:/bin sh -c "$*"\n' >ssh
  chmod +x ssh
  printf '%s\n' n0 n1 >hosts
  many 3 --ssh "$root/ssh" --sshloginfile hosts --wd "$root" --env PATH --env HOME --env TMPDIR --env FUSEPLAN_CACHE \
    --env FUSEPLAN_CONFIG --env FUSEPLAN_LOCK_DIR || fail "exit $?"
  [ "$(cut -f 2 by_hand/jobs | grep -cx 'n[01]')" = 2 ] || fail "$(cat by_hand/jobs)"
  collected by_hand
fi
