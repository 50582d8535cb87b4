#!/bin/sh
# run.sh FUSEPLAN FILES...: each file of cases is a transcript: `$ command` (`2$ command` if it exits 2), `> ` before
# its further lines, what it prints, and `! ` before what it prints to standard error.  Each `=== title` starts in an
# empty directory with fresh variables; a line after `## ` is a comment.  Compared byte for byte.
# UPDATE=1 writes the files anew: write a new case without its output, and read what comes of it.
set -eu
CASES=$(cd "$(dirname "$0")" && pwd)
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
shift
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export CASES PATH HOME="$root/home" LC_ALL=C
umask 022
unset FUSEPLAN_DB FUSEPLAN_WISDOM FUSEPLAN_CACHE FUSEPLAN_CONFIG XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME

# known_db FILE: makes a database with two workloads of "a processor".  b=1 s=128 causal has plans 43690, 41115 and 36507
# timed side by side, and plan 32769, which was only searched; b=2 s=64 with 8 heads has plan 43690, measured before.
known_db() { fuseplan db import "$CASES/../data/known.ndjson" --db "$1" -q >"$root/printed"; }

run_command() {
  [ -n "$case_command" ] || return 0
  case_code=0
  eval "$case_command" >"$root/stdout" 2>"$root/stderr" 9<&- </dev/null || case_code=$?
  [ $case_code -ne 0 ] || case_code=
  printf '%s$ %s\n' "$case_code" "$case_command" | sed '2,$s/^/> /'
  cat "$root/stdout"
  sed 's/^/! /' "$root/stderr"
  case_command=
}

run_section() { # FILE: prints it with what its commands print now
  rm -rf "${root:?}/work" "${root:?}/home"
  mkdir "$root/work" "$root/home"
  cd "$root/work"
  case_command=
  while IFS= read -r case_line <&9; do
    case $case_line in
    '$ '* | [0-9]'$ '* | [0-9][0-9]'$ '* | [0-9][0-9][0-9]'$ '*)
      run_command
      case_command=${case_line#*\$ }
      ;;
    '> '*) [ -z "$case_command" ] || case_command=$(printf '%s\n%s' "$case_command" "${case_line#> }") ;;
    *)
      run_command
      case $case_line in '## '* | '=== '*) printf '%s\n' "$case_line" ;; esac
      ;;
    esac
  done 9<"$1"
  run_command
}

failed=0
for file in "$@"; do
  rm -f "$root"/section.*
  awk -v at="$root/section." '/^=== / { n++ } { print > sprintf("%s%03d", at, n) }' "$file"
  for section in "$root"/section.*; do
    (run_section "$section") >>"$root/section.got" || : # the difference shows what is missing
  done
  if [ -n "${UPDATE:-}" ]; then
    cp "$root/section.got" "$file"
  elif ! diff -u "$file" "$root/section.got"; then
    failed=$((failed + 1))
  fi
done
echo "$failed files differ"
[ "$failed" -eq 0 ]
