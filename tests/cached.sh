#!/bin/sh
# cached.sh COMPILER ARGUMENT...: runs a compiler.  What make compiles of an exported library, COMPILER OPTION... -c -o
# OBJECT SOURCE, is copied where a suite has compiled the same text before, by the same compiler with the same options,
# on a CPU with the same instructions and without a warning: most files of two libraries are the same.
set -eu
words=$* kept=${FUSEPLAN_TEST_BINARIES:-} code=0
case "$kept $words " in
/*" -c -o "*" "*".c ") ;;
*) exec "$@" ;;
esac
object=${words##* -c -o } object=${object%% *}
# writes the text to the object, without the directory
"$@" -E -fno-working-directory 2>/dev/null || exec "$@"
cpu=$(grep -m 1 '^flags' /proc/cpuinfo || uname -m)
key=$({ "$1" --version && echo "$words $cpu" && cat "$object"; } | PATH=/usr/bin:/bin sha256sum)
kept=$kept/objects/${key%% *}.o
[ ! -e "$kept" ] || exec cp "$kept" "$object"
said=$("$@" 2>&1) || code=$?
if [ -n "$said" ]; then
  echo "$said" >&2
elif [ $code -eq 0 ]; then
  mkdir -p "${kept%/*}"
  cp "$object" "$kept.$$"
  mv "$kept.$$" "$kept"
fi
exit $code
