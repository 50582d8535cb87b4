#!/bin/sh
# links.sh SOURCE: whether each link of the pages leads to a file, and to a heading of it, and whether the
# files that they name in backquotes, such as `db/trial.c`, exist.
#
# usage: links.sh SOURCE
set -eu
cd "$1"
pages=$(ls ./*.md docs/*.md kernels/*/*.md)
found=$(mktemp)
trap 'rm -f "$found"' EXIT

# The anchor of a heading, as GitHub makes it: `## A plan's C++` is a-plans-c.
anchors() {
  sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9_ -]//g; s/ /-/g'
}

for page in $pages; do
  folder=$(dirname "$page")
  grep -o ']([^) ]*)' "$page" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:' >"$found" || true
  while read -r link; do
    file=${link%%#*}
    [ -n "$file" ] && file=$folder/$file || file=$page
    [ -e "$file" ] || echo "$page: the link '$link' leads to no file"
    case $link in
    *.md\#* | \#*) anchors "$file" | grep -qx -e "${link#*#}" || echo "$page: the link '$link' leads to no heading" ;;
    esac
  done <"$found"
  # shellcheck disable=SC2016
  grep -oE '(^|[` ])(base|layer|codegen|kernels|db|model|bench|search|cmd|docs|tests)/[a-z0-9_/.-]*\.(c|h|cuh|cu|sh|py|md)\b' "$page" |
    tr -d '` ' >"$found" || true
  while read -r file; do
    [ -e "$file" ] || echo "$page: there is no '$file'"
  done <"$found"
done >"$found.bad"
mv "$found.bad" "$found"
cat "$found"
[ ! -s "$found" ]
