#!/bin/sh
# install.sh BUILD RUN: what is installed can be found, and './run uninstall' removes all of it and
# nothing else.
set -eu
build=$1 run=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$prefix" >/dev/null
mkdir -p "$prefix/share/fuseplan" "$prefix/bin"
cp "$build/install_manifest.txt" "$prefix/share/fuseplan/installed"
echo mine >"$prefix/bin/another"
for file in bin/fuseplan share/man/man1/fuseplan.1 share/man/man1/fuseplan-search.1 \
  share/bash-completion/completions/fuseplan share/zsh/site-functions/_fuseplan \
  share/fish/vendor_completions.d/fuseplan.fish share/doc/fuseplan/README.md; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done
PREFIX=$prefix "$run" uninstall >/dev/null
[ "$(cd "$prefix" && find . -type f)" = ./bin/another ] || fail "left: $(cd "$prefix" && find .)"
PREFIX=$prefix "$run" uninstall 2>/dev/null && fail "removed what is not there"
echo "all well"
