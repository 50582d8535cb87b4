#!/bin/sh
# environments.sh FUSEPLAN TARGET [FAKE_CUDA]: one workload measured under many environments, one plan more under each,
# is one study of one target, with which a search goes on.  TARGET: cpu, cuda, or fake with the directory of the
# fake driver.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
fuseplan=$(command -v fuseplan)
export FUSEPLAN_DB="$root/e.db"
target=$2
fake=${3:-}
unset LC_ALL OMP_WAIT_POLICY OPENBLAS_CORETYPE
if [ "$target" = fake ]; then
  target=cuda
  use_fake_gpu "$fake" right
fi
workload="--target $target -t fp32 -b 1 -s 16 -H 2 -W 16 -L 1"
cat >shell_file <<'END'
echo 'a file that shells read'
END

# Each line is the environment of one measurement: variables without blanks in their values.
cat >environments <<END
NOTHING=
OMP_NUM_THREADS=many OMP_DISPLAY_ENV=true KMP_VERSION=1 KMP_AFFINITY=verbose
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 GOTO_NUM_THREADS=1 OMP_PLACES={0} OMP_PROC_BIND=close GOMP_CPU_AFFINITY=0
OMP_NUM_THREADS=77 OMP_DYNAMIC=true OMP_THREAD_LIMIT=1 GOMP_CPU_AFFINITY=900-901 GOMP_SPINCOUNT=x
OMP_NUM_THREADS= OMP_PLACES=nonsense OMP_PROC_BIND=nonsense OMP_STACKSIZE=1x OMP_SCHEDULE=nonsense
OMP_WAIT_POLICY=active OMP_TARGET_OFFLOAD=mandatory OPENBLAS_CORETYPE=nonsense
OPENBLAS_CORETYPE=Nehalem OPENBLAS_VERBOSE=2 GCC_COLORS=error=01;31 DEBUGINFOD_URLS=http://nowhere
LD_PRELOAD=/nowhere/lib.so FUSEPLAN_PASS= LD_DEBUG=libs LD_BIND_NOW=1 LD_SHOW_AUXV= LD_TRACE=
MALLOC_PERTURB_=85 MALLOC_CHECK_=3 GLIBC_TUNABLES=glibc.malloc.check=3 LC_ALL=de_DE.UTF-8 LANGUAGE=de LANG=nonsense
PATH=$(echo "$PATH" | sed 's,/usr/bin,/usr//bin/,') TZ=Pacific/Kiritimati POSIXLY_CORRECT=1 COLUMNS=20 TERM= CDPATH=/usr IFS=/
PATH=/nowhere:$PATH TMPDIR=/nowhere BASH_ENV=$root/shell_file ENV=$root/shell_file LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:/nowhere
CUDA_LAUNCH_BLOCKING=1 NVIDIA_TF32_OVERRIDE=1 CUBLASLT_LOG_LEVEL=5 CUBLASLT_LOG_MASK=31 CUDA_MODULE_LOADING=EAGER
END

least=12
if [ "$fake" ]; then # on the stand-in GPU those that a driver or a loader of libraries might read
  grep -E 'NOTHING|CUDA|LD_|PATH|LC_ALL' environments >some && mv some environments
  least=6
fi

# A machine with a GPU may lack sqlite3.
query() { python3 -c 'import sqlite3, sys; [print(*row) for row in sqlite3.connect("e.db").execute(sys.argv[1])]' "$1"; }

counts() {
  query "SELECT (SELECT count(*) FROM target), (SELECT count(*) FROM study), count(*) FROM trial WHERE kind = 'plan'"
}

n=0
while read -r line; do
  n=$((n + 1)) code=0
  env $line "$fuseplan" bench $((32767 + n)) $workload --baseline none -q >out 2>said </dev/null || code=$?
  [ $code -eq 0 ] || fail "exit $code under '$line': $(tail -n 3 said)"
  [ "$(counts)" = "1 1 $n" ] ||
    fail "not one target, one study and one plan more under '$line': $(counts); $(query 'SELECT * FROM target')"
done <environments
[ $n -ge $least ] || fail "only $n environments"
"$fuseplan" search $workload --space 32768..32799 --strategy random --baseline none --budget $((n + 1)) -q >out 2>said ||
  fail "exit $?: $(cat out said)"
[ "$(counts)" = "1 1 $((n + 1))" ] || fail "the search measured plans again"
echo "$n environments, one target: $(query 'SELECT device, compiler, libraries FROM target')"

# A GPU's time is printed with its clock, and with how long it was timed.
if [ "$fake" ]; then
  "$fuseplan" query $workload >out || fail "query: exit $?"
  grep -q '^clock  *[0-9]* of [0-9]* MHz, in a short run' out || fail "no clock in query: $(cat out)"
  "$fuseplan" bench best $workload --baseline none -q >out || fail "bench: exit $?"
  grep -q '^clock: [0-9]* of [0-9]* MHz, in a sustained run' out || fail "no clock in bench: $(cat out)"
fi

# What breaks a compiler or the worker's program is named.
broken() {
  if env FUSEPLAN_CACHE="$root/new" "$1" "$fuseplan" bench 32768 $workload --baseline none -q >out 2>said; then
    fail "$1 breaks nothing"
  fi
  grep -q "${1%%=*} is set: is it right" said || fail "$1 is not named: $(cat said)"
}
if [ "$target" = cpu ]; then
  mkdir empty
  : >empty/libopenblas.so.0
  echo '#error of another package' >empty/cblas.h
  unset CUDA_HOME CUDA_PATH LD_LIBRARY_PATH
  broken LD_LIBRARY_PATH="$root/empty"
  broken GCC_EXEC_PREFIX=/nowhere/
  broken CPATH="$root/empty"
fi
