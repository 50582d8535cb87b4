#!/bin/sh
# figures.sh BIN_DIR [TRIALS]: seconds that the commands take on a database of so many trials
# (1000000), which db_many writes.  No test: it takes minutes, and times mean something only on a
# quiet machine.
set -eu
PATH=$(cd "$1" && pwd):$PATH
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cd "$root"
export PATH LC_ALL=C

# seconds NAME COMMAND...
seconds() {
  name=$1
  shift
  start=$(date +%s%N)
  "$@" >out
  echo "$name $((($(date +%s%N) - start) / 1000000)) ms"
}

seconds write db_many a.db "${2:-1000000}"
for _ in 1 2 3; do
  seconds list fuseplan db list --db a.db
  seconds query fuseplan query -b 1 -s 64 -m causal --target cuda --db a.db -q
  seconds explain fuseplan explain best -b 1 -s 64 -m causal --target cuda --db a.db -q
done
seconds merge fuseplan db merge a.db --db m.db -q
seconds export fuseplan db export --db a.db -o a.ndjson -q
seconds import fuseplan db import a.ndjson --db i.db -q
seconds "export again" fuseplan db export --db i.db -o i.ndjson -q
cmp a.ndjson i.ndjson && echo "the texts are the same"
