#!/bin/sh
# memory.sh FUSEPLAN VALGRIND: commands that compute, under valgrind, for reads of what was never written; all else
# AddressSanitizer finds in every suite.  The emitted code runs in the worker, which is not looked at.
set -eu
fuseplan=$1 valgrind=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
export HOME="$root" FUSEPLAN_DB="$root/v.db"

clean() {
  "$valgrind" -q --leak-check=no --error-exitcode=99 "$fuseplan" "$@" >out 2>err && return
  echo "FAILED: fuseplan $*" >&2
  cat err >&2
  exit 1
}

printf '1000101001000101 10\n1000101000000101 20\n' >times.txt
clean mask bigbird -s 130 -b 2 --avg-seq-len 70 --npy m.npy --svg m.svg
clean mask file:m.npy -s 130 -b 2
clean generate 41115 -b 1 -s 65 -m strided --target cpu -o plan
clean train --data times.txt
clean predict 5 0..20 --format csv
