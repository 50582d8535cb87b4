#!/bin/sh
# memory.sh FUSEPLAN [VALGRIND]: commands in success and in failure.  A program built with
# AddressSanitizer finds its faults and leaks itself and runs all of them; under valgrind those that
# compute run, for reads of what was never written.  The emitted code runs in the worker, which is
# not looked at.
set -eu
fuseplan=$1
tool=${2:+$2 -q --leak-check=no --error-exitcode=99}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
export HOME="$root" FUSEPLAN_DB="$root/v.db"

# clean CODE ARGUMENT...
clean() {
  wanted=$1 code=0
  shift
  # the tool has options
  # shellcheck disable=SC2086
  $tool "$fuseplan" "$@" >out 2>err || code=$?
  [ "$code" -eq "$wanted" ] && return
  echo "FAILED: exit $code, expected $wanted: fuseplan $*" >&2
  cat err >&2
  exit 1
}

printf '1000101001000101 10\n1000101000000101 20\n' >times.txt
clean 0 mask bigbird -s 130 -b 2 --avg-seq-len 70 --npy m.npy --svg m.svg
clean 0 mask file:m.npy -s 130 -b 2
clean 0 generate 41115 -b 1 -s 65 -m strided --target cpu -o plan
clean 0 train --data times.txt
clean 0 predict 5 0..20 --format csv
[ -z "$tool" ] || exit 0
clean 0 translate 0..300 --format json
clean 2 translate 65536
clean 2 serch
clean 3 predict 5 --name other
clean 3 query -b 1 -s 4
clean 2 query -b 1
clean 0 db info
clean 0 db check
clean 2 search -b 1 -s 4 --strategy none
clean 2 bench 5
clean 0 completion zsh
clean 0 help bench
