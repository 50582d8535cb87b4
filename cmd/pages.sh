#!/bin/sh
# pages.sh FUSEPLAN DIR: writes below DIR what fuseplan makes of its tables: manual pages, and
# completion scripts for bash, zsh and fish.
set -eu
fuseplan=$1 share=$2
rm -rf "$share"
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
  "$share/fish/vendor_completions.d"
"$fuseplan" --man >"$share/man/man1/fuseplan.1"
"$fuseplan" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | while read -r command; do
  "$fuseplan" --man "$command" >"$share/man/man1/fuseplan-$command.1"
done
"$fuseplan" completion bash >"$share/bash-completion/completions/fuseplan"
"$fuseplan" completion zsh >"$share/zsh/site-functions/_fuseplan"
"$fuseplan" completion fish >"$share/fish/vendor_completions.d/fuseplan.fish"
