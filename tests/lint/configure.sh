#!/bin/sh
# configure.sh SOURCE: an unpacked archive configures below brackets and beside hidden files, and builds all of the
# project's sources and none of these.
set -eu
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
tree="$root/a [1]"
mkdir "$tree"
cd "$1"
GIT_DIR=/nowhere tests/lint/files.sh . | xargs -0 tar -c | tar -x -C "$tree" # as where there is no git
ln -s someone@here.1 "$tree/cmd/.#main.c" # an editor's lock
for file in base/._buf.c db/wisdom/._pack.ndjson; do echo >"$tree/$file"; done # as macOS writes archives

cd "$tree"
cmake -G Ninja -B "$root/build" -DFUSEPLAN_TESTS=OFF >"$root/said" 2>&1 || { cat "$root/said" && exit 1; }
find base bench cmd codegen db layer model search -name '[!.]*.c' | LC_ALL=C sort >"$root/sources"
sed -n 's/^ *"file": ".*\/a \[1\]\/\([^k].*\.c\)",*$/\1/p' "$root/build/compile_commands.json" |
  LC_ALL=C sort | diff "$root/sources" -
ls -A "$root/build/share/fuseplan/wisdom" >"$root/packs"
(cd db/wisdom && ls -- *.ndjson) | diff - "$root/packs"
echo "all well"
