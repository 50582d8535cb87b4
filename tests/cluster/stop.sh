#!/bin/bash
# Ends the cluster of start.sh: its jobs, the steps that a killed slurmd left behind, then the daemons whose numbers
# start.sh noted.
# usage: stop.sh DIR
dir=$1
[ -e "$dir/pids" ] || { echo "stop.sh: no cluster in '$dir'" >&2; exit 1; }
export SLURM_CONF=$dir/slurm.conf
timeout 10 scancel --user=root 2>/dev/null
for ((k = 0; k < 100; k++)); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break; sleep 0.1; done
is_ours() { # a number that another process took meanwhile is not ours
    cat "/proc/$1/cmdline" "/proc/$1/environ" 2>/dev/null | tr '\0' '\n' | grep -q -F -e "$dir"
}
tree() { echo "$1"; for child in $(pgrep -P "$1"); do tree "$child"; done; }
for step in $(pgrep -x slurmstepd); do
    # shellcheck disable=SC2046 # numbers
    is_ours "$step" && kill -9 $(tree "$step")
done
# a daemon that was started again since has another number in its own file
cat "$dir"/slurm*.pid "$dir/munge/pid" >>"$dir/pids" 2>/dev/null
for pid in $(tac "$dir/pids" | awk '!seen[$0]++'); do is_ours "$pid" && kill "$pid"; done
for ((k = 0; k < 100; k++)); do
    left=; while read -r pid; do is_ours "$pid" && left="$left $pid"; done < <(sort -u "$dir/pids")
    [ -z "$left" ] && break; sleep 0.1
done
for pid in $left; do kill -9 "$pid"; done
rm -f "$dir/pids"
echo "stopped${left:+, by force:$left}"
