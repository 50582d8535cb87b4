#!/bin/sh
# man.sh SHARE: every manual page renders without a warning, and says what --help says.
set -eu
share=$1
command -v groff >/dev/null || {
  echo "skipped: there is no groff"
  exit 77
}
for page in "$share"/man/man1/*.1; do
  name=$(basename "$page" .1)
  said=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
  [ -z "$said" ] || {
    echo "FAILED: $name: $said" >&2
    exit 1
  }
  text=$(groff -man -Tascii -P-c -P-b -P-u "$page")
  for heading in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' 'SEE ALSO'; do
    [ "$name: $heading" = 'fuseplan: EXIT STATUS' ] || echo "$text" | grep -q "^$heading$" || {
      echo "FAILED: $name has no section $heading" >&2
      exit 1
    }
  done
  if command -v mandoc >/dev/null; then
    mandoc -T lint -W error "$page"
  fi
done
echo "$text" | grep -q 'fuseplan-translate' || {
  echo "FAILED: the last page is not that of translate" >&2
  exit 1
}
