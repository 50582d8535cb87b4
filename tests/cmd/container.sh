#!/bin/sh
# container.sh FUSEPLAN: what containers lack and limit: /sys, a quota of CPU time, and file systems that run nothing.
# Exit 77 where mounts cannot be changed for a test alone.
set -eu
. "$(dirname "$0")/suite.sh"

# A user who is not root would take all above her own directories for a stranger's in such a namespace.
if [ "$(id -u)" -ne 0 ] || ! unshare -m --propagation private mount -t tmpfs none /mnt; then
  exit 77
fi

# with MOUNTS COMMAND...: runs it where these have been mounted, in the place of a subshell.
with() {
  mounts=$1
  shift
  exec unshare -m --propagation private sh -c "$mounts"' && exec "$@"' sh "$@" >said 2>&1
}
no_sys='mount -t tmpfs none /sys'
bench='fuseplan bench 0 --target cpu -b 1 -s 8 -m full -H 1 -W 8 -L 1 --baseline none'

# ---- /sys: OpenMP finds no cores to bind threads to by itself

value=$(fuseplan translate --segments 0-7,8-9,10-14 | cut -d ' ' -f 1)
fuseplan generate "$value" --target cpu -b 1 -s 8 -m causal -H 1 -W 4 -L 1 -q -o plan
make -s -j 2 -C plan CFLAGS='-O1 -march=native -fopenmp'
# It opens its file, here a FIFO, once OpenMP has bound its thread.
mkfifo pipe
with "$no_sys" plan/plan pipe &
pid=$!
until tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^OMP_PLACES={'; do
  kill -0 $pid || fail "it ended before it opened its file"
done
exec 3<pipe # waits until it has opened its file
bound=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$pid/status")
cat <&3 >y.npy
exec 3<&-
wait $pid || fail "the plan"
expr "$bound" : '[0-9]*$' >/dev/null || fail "without /sys a thread is bound to the cores $bound"
(with "$no_sys" fuseplan doctor) || fail doctor
grep -q '^warning *threads .*(/sys is not mounted)$' said || fail "doctor does not say that /sys is missing"
# shellcheck disable=SC2086
(with "$no_sys" $bench) || fail bench
grep -q '^fuseplan: threads: .*(/sys is not mounted); mount /sys' said || fail "no notice that /sys is missing"

# ---- quotas of CPU time: each version's files in what a container sees as the root of all groups

groups='mount -t tmpfs none /sys && mkdir -p /sys/fs/cgroup/cpu /sys/devices/system/cpu/cpu0/topology'
quota=0.5
(with "$groups && echo 50000 100000 >/sys/fs/cgroup/cpu.max && echo 50000 >/sys/fs/cgroup/cpu/cpu.cfs_quota_us &&
  echo 100000 >/sys/fs/cgroup/cpu/cpu.cfs_period_us" fuseplan doctor) || fail doctor
grep -q "^ok *threads *1 under a control group's quota of $quota cores$" said || fail "doctor does not say the quota"

# A worker, too, sees in its sandbox how long a quota has stopped it.
stat=/sys/fs/cgroup/cpu/cpu.stat
export FUSEPLAN_DB="$root/db"
for try in 1 2 3 4 5; do # on a loaded machine the clock of the quota may stand while a plan is timed
  [ "$try" = 1 ] || echo "no time of a quota passed: try $try"
  rm -f "$FUSEPLAN_DB" rows.txt
  # shellcheck disable=SC2016,SC2086
  (with "$groups"' && while kill -0 $$; do
    n=$((${n:-0} + 1)) && echo "throttled_time ${n}000000000" >'"$stat.new && mv $stat.new $stat"' && sleep 0.002
  done & :' $bench) || fail bench
  fuseplan db export -o rows.txt >said 2>&1 || fail export
  ! grep -qE 'stopped_share.{1,4}: (1|0\.0*[1-9])' rows.txt || break
done
grep -qE 'stopped_share.{1,4}: (1|0\.0*[1-9])' rows.txt || fail "no time was taken for stopped by a quota"

# ---- a cache where nothing can be run

noexec="mount -t tmpfs -o noexec,mode=0700 none $root/cache"
# shellcheck disable=SC2086
(with "$noexec" $bench) && fail "it ran code on a file system that is mounted noexec"
grep -q "'$root/cache', .* mounted noexec: .*; set FUSEPLAN_CACHE" said || fail "the message does not name the cache"
(with "$noexec" fuseplan doctor) && fail "doctor finds nothing missing"
grep -q '^warning *cache .*mounted noexec' said || fail "doctor does not say that the cache is mounted noexec"
grep -q 'apt install' said && fail "doctor advises to install what is there"
echo "all well"
