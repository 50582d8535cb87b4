#!/bin/bash
# Starts a private Slurm cluster on the loopback of this machine, as root, beside nothing else:
# own munge key, socket and daemon, one slurmctld, N slurmd ("nodes") of this one host.
# usage: start.sh DIR; then . DIR/env, and sbatch, squeue, scontrol work; stop.sh DIR ends it
set -eu
dir=$1
nodes=${NODES:-2}          # slurmd processes
cpus=${CPUS:-4}            # CPUs that a node claims; more than there are is allowed, see config_overrides
base=${PORT:-26817}        # base: slurmctld, base+1...: slurmd
for need in munged slurmctld slurmd sbatch; do
    command -v $need >/dev/null || { echo "start.sh: $need is missing" >&2; exit 1; }
done
[ ! -e "$dir/pids" ] || { echo "start.sh: '$dir' has a cluster; stop.sh ends it" >&2; exit 1; }
mkdir -p "$dir"/{munge,state,log}
chmod 755 "$dir"
host=$(hostname -s)
# munged looks at every directory above its key, socket, log and seed: none may be writable for
# group or others unless it is sticky; the socket's must be 0711 or more, the key's 0700.
chmod 711 "$dir/munge"
mkdir -p "$dir/munge/private"; chmod 700 "$dir/munge/private"
[ -s "$dir/munge/private/key" ] || (umask 077; head -c 1024 /dev/urandom >"$dir/munge/private/key")
cat >"$dir/slurm.conf" <<CONF
ClusterName=loop
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd.%n
SlurmctldDebug=info
SlurmdDebug=info
# no cgroups: this root may not make them
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SrunPortRange=26900-26999
MailProg=/bin/true
# no slurmdbd: scontrol show job tells of the ended for MinJobAge; jobcomp keeps a line for each
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/jobcomp
MinJobAge=3600
MaxArraySize=2001
MaxJobCount=5000
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,bf_interval=5,sched_min_interval=100000,batch_sched_delay=0,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
JobRequeue=1
OverTimeLimit=0
PropagateResourceLimits=NONE
$(for ((i = 0; i < nodes; i++)); do
    echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$((base + 1 + i)) CPUs=$cpus RealMemory=4000 State=UNKNOWN"
done)
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10 State=UP OverSubscribe=NO PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=10 State=UP OverSubscribe=NO PriorityTier=10 PreemptMode=OFF
CONF
# Detecting the version fails where nothing is mounted on /sys/fs/cgroup; v1 without its controllers needs no mount.
cat >"$dir/cgroup.conf" <<CONF
CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainCores=no
ConstrainDevices=no
ConstrainRAMSpace=no
CONF
echo "export SLURM_CONF=$dir/slurm.conf" >"$dir/env"
export SLURM_CONF=$dir/slurm.conf
: >"$dir/pids"
munged --force --num-threads=1 --socket="$dir/munge/socket" --key-file="$dir/munge/private/key" \
    --log-file="$dir/munge/log" --pid-file="$dir/munge/pid" --seed-file="$dir/munge/private/seed" \
    --origin=127.0.0.1
cat "$dir/munge/pid" >>"$dir/pids"
munge -n --socket="$dir/munge/socket" | unmunge --socket="$dir/munge/socket" >/dev/null
slurmctld -c -f "$dir/slurm.conf"
for ((k = 0; k < 100; k++)); do [ -s "$dir/slurmctld.pid" ] && scontrol ping 2>/dev/null | grep -q UP && break; sleep 0.1; done
cat "$dir/slurmctld.pid" >>"$dir/pids"
for ((i = 0; i < nodes; i++)); do
    mkdir -p "$dir/spool.n$i"
    slurmd -N n$i -f "$dir/slurm.conf"
done
for ((i = 0; i < nodes; i++)); do
    for ((k = 0; k < 100; k++)); do [ -s "$dir/slurmd.n$i.pid" ] && break; sleep 0.1; done
    [ -s "$dir/slurmd.n$i.pid" ] || {
        tail -n 5 "$dir/log/slurmd.n$i" >&2
        echo "start.sh: slurmd does not start; above is its log" >&2
        exit 1
    }
    cat "$dir/slurmd.n$i.pid" >>"$dir/pids"
done
for ((k = 0; k < 300; k++)); do
    [ "$(sinfo -h -N -p all -o %T | grep -c idle)" = "$nodes" ] && exit
    sleep 0.1
done
sinfo -N -p all -o '%N %T %c %m %E'
echo "start.sh: not all nodes are idle after 30 s" >&2
exit 1
