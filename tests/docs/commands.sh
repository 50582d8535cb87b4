#!/bin/sh
# commands.sh FUSEPLAN SOURCE: runs the commands of README.md, of docs/*.md and of the examples of --help
# as a reader does on the machine that `./run demo` leaves behind: with its packages, its database, in the
# directory of the sources.  Each page begins with that state.
#
# A command of a page is a line that begins with "$ " in a block, in README's table a cell with
# `fuseplan ...`, and a block that is a query in SQL.  Where `translate` or `predict` is followed by its output, that must be its output.
# A command that needs more than the demo leaves ends in one of the marks below, and is not run.
#
# Layers are small, searches and replays have 12 plans, and a second, replays have five seeds, and nothing is
# optimised: else this would take an hour.  Where a second does not suffice for one plan, the search
# goes on for longer.  The demo's has no limit: its plans are as many as a model needs, which later commands
# ask.
#
# usage: commands.sh FUSEPLAN SOURCE pages|examples|all [PAGE|COMMAND...]
set -eu
real=$1 source=$(cd "$2" && pwd) part=$3
shift 3
marks='# (on a GPU|needs known workloads|needs nvcc|needs NumPy|needs PyTorch|needs another machine|needs a model|needs a pack|takes hours|in fish)$'
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset FUSEPLAN_DB FUSEPLAN_CACHE FUSEPLAN_CONFIG FUSEPLAN_CC CC XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME

# ---- the machine: Debian's essential commands, and those of the packages that the demo installs

tools=$root/tools
mkdir "$tools"
# link TOOL: Debian's own, not ccache under its name, which would look for it on PATH
link() {
  ln -sf "$(PATH=/usr/bin:/bin && command -v "$1")" "$tools/$1"
}
for tool in bash sh awk basename cat cmp cp cut date diff dirname env expr false find grep gzip head hostname id ln ls mkdir mktemp \
  mv nproc printf pwd readlink rm rmdir sed seq sh sleep sort stat tail tee test touch tr true uname wc xargs \
  gcc cc as ld ar; do # of gcc and its binutils
  link "$tool"
done
# shellcheck disable=SC2016
packages=$(sed -n '/^PACKAGES=/,/^.$/p; /^GUIDE_PACKAGES=/,/^.$/p' "$source/run")
for tool in make jq; do
  if echo "$packages" | grep -q "/usr/bin/$tool\$"; then link "$tool"; fi
done
ln -s "$source/tests/cached.sh" "$root/cached"
export MAKEFLAGS="CC=$root/cached\ cc CFLAGS=-O0\ -march=native\ -fopenmp"
link sqlite3 # docs/database.md says that its queries need it
cat >"$tools/fuseplan" <<END
#!/bin/sh
case " \$* " in
" mask "*) ;;
*" -b "*) set -- "\$@" -H 2 -W 8 -L 1 ;;
esac
case " \$* " in
*" --seeds "*) ;;
" replay "*) set -- "\$@" --seeds 5 --budget 12 ;;
esac
export FUSEPLAN_CC="\${FUSEPLAN_CC-cc -O0 -g0}"
[ "\$1" = search ] || exec "$real" "\$@"
for limit in \${SEARCH_LIMIT:-1 60 600}; do
  code=0
  "$real" "\$@" --space 41108..41119 --time-limit "\$limit" || code=\$?
  [ \$code -eq 3 ] || exit \$code
done
exit 3
END
chmod +x "$tools/fuseplan"
PATH=$tools
export PATH LC_ALL=C TERM=dumb

# state NAME: a home like the one after the demo, and in it a working directory, both new.  The results of one workload
# are there to be replayed, and a table of one.
state() {
  mkdir -p "$root/$1/work" "$root/$1/.cache"
  ln -s "$root/cache" "$root/$1/.cache/fuseplan"
  ln -s "$source/docs" "$source/tests" "$source/README.md" "$root/$1/work/"
  cp "$root/results.ndjson" "$root/$1/work/"
  echo '-b 1 -s 16 -H 1 -W 8 -L 1 --space 41115' >"$root/$1/work/table"
  if [ -e "$root/demo/.local" ]; then cp -r "$root/demo/.local" "$root/$1/"; fi
}

gzip -dc "$source/tests/data/h200-b1-s128-causal-fp16.ndjson.gz" >"$root/results.ndjson"
mkdir "$root/cache"
[ -z "${FUSEPLAN_TEST_BINARIES:-}" ] || ln -s "$FUSEPLAN_TEST_BINARIES" "$root/cache/binaries"
state demo
(cd "$root/demo/work" &&
  HOME=$root/demo SEARCH_LIMIT=1h fuseplan search --target cpu -b 1 -s 128 -m causal --budget 12 -q >report.txt)

# ---- the commands

# page FILE: writes each command and the output that follows it into files.
page() {
  awk -v readme="$(basename "$1")" -v sql=none '
    function end() { if (n) { close(out); open = 0 } }
    /^    \$ / { end(); n++; out = n ".out"; print substr($0, 7) >(n ".cmd"); close(n ".cmd"); open = 1; next }
    sql == "none" && /^    (SELECT|WITH) / { sql = "" }
    /^    / && sql != "none" { sql = sql substr($0, 5) "\n" }
    sql != "none" && /;$/ {
      n++
      print "sqlite3 -readonly ~/.local/share/fuseplan/fuseplan.db <<END\n" sql "END" >(n ".cmd")
      close(n ".cmd")
      sql = "none"
    }
    /^    / && open { print substr($0, 5) >out; next }
    { end() }
    readme == "README.md" && /^\| `fuseplan / {
      split($0, cells, "|")
      count = split(cells[2], spans, "`")
      for (i = 2; i <= count; i += 2) {
        if (spans[i] ~ / [A-Z]\.db/) continue # a database of the reader
        n++
        print spans[i] >(n ".cmd")
        close(n ".cmd")
      }
    }' "$1"
}

# examples COMMAND: those of its --help.
examples() {
  fuseplan "$1" --help | awk '/^examples:/ { in_them = 1; next } /^[^ ]|^$/ { in_them = 0 }
    in_them { n++; print substr($0, 3) >(n ".cmd"); close(n ".cmd") }'
}

cat >"$root/run.bash" <<'END'
# Runs the commands of a directory in one shell; prints those that fail.
set -o pipefail
list=$1 marks=$2 failed=0 ran=0
for number in $(ls "$list" | grep cmd | sort -n | sed 's/.cmd//'); do
  line=$(cat "$list/$number.cmd")
  if [[ $line =~ $marks ]]; then continue; fi
  eval "$line" >"$list/got" 2>"$list/said" </dev/null
  code=$?
  ran=$((ran + 1))
  if [[ $code -eq 4 && $line == *--fail-above* ]]; then code=0; fi # noise
  if [ "$code" -ne 0 ]; then
    echo "FAILED: exit $code: $line"
    cat "$list/said"
    failed=1
  elif [[ -s $list/$number.out && $line =~ ^fuseplan\ (translate|predict)\  ]]; then
    diff -u "$list/$number.out" "$list/got" || { echo "FAILED: not its output: $line"; failed=1; }
  fi
done
echo "$ran commands"
exit "$failed"
END

failed=0 wanted=$*
# at_least COUNT NAME: says that less was found, which is a failure of this script.
at_least() {
  found=$(find "$root/$2/list" -name '*.cmd' | wc -l)
  [ "$found" -ge "$1" ] || {
    echo "FAILED: $found commands were found in $2, which has $1 at least"
    failed=1
  }
}

# check NAME LEAST HOW ARGUMENT: runs the commands that HOW writes, LEAST or more, if NAME is wanted.
check() {
  case " ${wanted:-$1} " in *" $1 "*) ;; *) return 0 ;; esac
  state "$1"
  mkdir "$root/$1/list"
  (cd "$root/$1/list" && "$3" "$4")
  at_least "$2" "$1"
  printf '%s: ' "$1"
  (cd "$root/$1/work" && HOME=$root/$1 bash "$root/run.bash" "$root/$1/list" "$marks") || failed=1
}

if [ "$part" != examples ]; then
  for file in "$source/README.md" "$source"/docs/*.md; do
    check "$(basename "$file")" "$(grep -c '^    \$ ' "$file")" page "$file"
  done
fi
if [ "$part" != pages ]; then
  for command in $(fuseplan help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    check "$command" 1 examples "$command"
  done
  [ -n "${command:-}" ] || failed=1
fi
[ "$failed" -eq 0 ]
