#!/bin/sh
# run.sh FUSEPLAN CASES: runs each CASES/x.cmd with sh in an empty directory and compares what it
# prints and how it exits, byte for byte, with CASES/x.out.  A new case is these two files.
set -eu
cases=$(cd "$2" && pwd)
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export PATH HOME="$root/home" LC_ALL=C
unset FUSEPLAN_DB FUSEPLAN_CACHE XDG_DATA_HOME XDG_CACHE_HOME

failed=0
for case in "$cases"/*.cmd; do
  name=$(basename "$case" .cmd)
  rm -rf "${root:?}/work" "${root:?}/home"
  mkdir "$root/work" "$root/home"
  code=0
  (cd "$root/work" && sh "$case" >"$root/stdout" 2>"$root/stderr") || code=$?
  {
    cat "$root/stdout"
    if [ -s "$root/stderr" ]; then
      echo "--- stderr"
      cat "$root/stderr"
    fi
    [ "$code" -eq 0 ] || echo "--- exit $code"
  } >"$root/got"
  if ! diff -u "$cases/$name.out" "$root/got"; then
    echo "FAILED: $name"
    failed=$((failed + 1))
  fi
done
echo "$failed failed"
[ "$failed" -eq 0 ]
