#!/bin/sh
# pages.sh FUSEPLAN DIR: writes below DIR what fuseplan makes of its tables: manual pages, and
# completion scripts for bash, zsh and fish.  What else is there stays.
set -eu
fuseplan=$1 share=$2
rm -rf "$share/man" "$share/bash-completion" "$share/zsh" "$share/fish"
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
  "$share/fish/vendor_completions.d"

# page NAME SUMMARY: a manual page (man(7)) of the text of --help, whose headings become sections.
page() {
  printf '.TH "%s" "1" "" "%s" "fuseplan"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n' \
    "$1" "$("$fuseplan" --version)" "$(echo "$1" | sed 's/-/\\-/')" "$2"
  awk '{ gsub(/\\/, "\\\\e"); gsub(/-/, "\\\\-"); gsub(/\047/, "\\\\(aq"); sub(/^[.]/, "\\\\\\&.") }
    sub(/^usage: /, "") { print $0 "\n.SH DESCRIPTION\n.nf"; next }
    /^[a-z ]*:$/ { print ".fi\n.SH " toupper(substr($0, 1, length($0) - 1)) "\n.nf"; next }
    { print }
    END { print ".fi\n.SH SEE ALSO\n.nh" }'
}

man=$share/man/man1
"$fuseplan" help | page fuseplan "finds the fastest fusion plan of an encoder's layer" >"$man/fuseplan.1"
"$fuseplan" help | grep '^  [a-z]' | while read -r command summary; do
  echo ".BR fuseplan\\-$command (1)" >>"$man/fuseplan.1"
  "$fuseplan" "$command" --help all | page "fuseplan-$command" "$summary" >"$man/fuseplan-$command.1"
  echo '.BR fuseplan (1)' >>"$man/fuseplan-$command.1"
done
"$fuseplan" completion bash >"$share/bash-completion/completions/fuseplan"
"$fuseplan" completion zsh >"$share/zsh/site-functions/_fuseplan"
"$fuseplan" completion fish >"$share/fish/vendor_completions.d/fuseplan.fish"
