#!/bin/sh
# install.sh BUILD RUN: what is installed can be found, and './run uninstall' removes all of it and
# nothing else.
set -eu
build=$1 run=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
prefix=$root/fuseplan # a directory of the user's with this name stays

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

mkdir -p "$prefix/bin" "$prefix/share/man"
before=$(cd "$prefix" && find . | sort)
cmake --install "$build" --prefix "$prefix" >/dev/null
mkdir -p "$prefix/share/fuseplan"
cp "$build/install_manifest.txt" "$prefix/share/fuseplan/installed"
for file in bin/fuseplan libexec/fuseplan/fuseplan-worker share/man/man1/fuseplan.1 share/man/man1/fuseplan-search.1 \
  share/bash-completion/completions/fuseplan share/zsh/site-functions/_fuseplan \
  share/fish/vendor_completions.d/fuseplan.fish share/doc/fuseplan/README.md; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done
FUSEPLAN_CACHE=$prefix/cache FUSEPLAN_DB=$prefix/db "$prefix/bin/fuseplan" \
  bench 0 -b 1 -s 8 -m full -H 1 -W 8 -L 1 --baseline none -q >/dev/null || fail "the installed program finds no worker"
rm -rf "$prefix/cache" "$prefix/db"*
PREFIX=$prefix "$run" uninstall >/dev/null
for dir in $(cd "$prefix" && find . -type d); do
  case $dir in */fuseplan) fail "'$dir' is left" ;; esac
done
for entry in $before; do
  [ -d "$prefix/$entry" ] || fail "'$entry' was there before"
done
[ -z "$(find "$prefix" -type f -o -type l)" ] || fail "left: $(find "$prefix" -type f -o -type l)"
PREFIX=$prefix "$run" uninstall 2>/dev/null && fail "removed what is not there"
echo "all well"
