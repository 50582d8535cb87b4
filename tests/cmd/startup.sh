#!/bin/sh
# startup.sh FUSEPLAN: how long commands take that measure nothing, the best of several tries.
set -eu
fuseplan=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export HOME="$root"
unset FUSEPLAN_DB XDG_DATA_HOME

# now: microseconds.
now() {
  echo $(($(date +%s%N) / 1000))
}

# count: a fixed piece of work, of 10 ms on the machine for which the limits below were set.
counting=10000
count() {
  i=0
  while [ "$i" -lt 10000 ]; do i=$((i + 1)); done
}

# within MS COMMAND...: a machine that takes longer to count gets as many times longer.
within() {
  limit=$1 best=1000000000 count=1000000000 tries=0
  shift
  while [ "$tries" -lt 20 ]; do
    start=$(now)
    count
    end=$(now)
    [ $((end - start)) -ge "$count" ] || count=$((end - start))
    start=$(now)
    "$@" >/dev/null 2>&1 || true
    end=$(now)
    [ $((end - start)) -ge "$best" ] || best=$((end - start))
    allowed=$((limit * 1000 * (count > counting ? count : counting) / counting))
    [ "$best" -gt "$allowed" ] || break
    tries=$((tries + 1))
  done
  echo "$best us, at most $allowed: $*"
  [ "$best" -le "$allowed" ]
}

within 100 "$fuseplan" translate 0..65535
within 20 "$fuseplan" --version
within 20 "$fuseplan" search --help
within 20 "$fuseplan" mask strided -s 128
within 20 "$fuseplan" query -b 1 -s 128 -m causal
within 20 "$fuseplan" search --target cpu -b 1 -s 65536 # refused before its mask is built
