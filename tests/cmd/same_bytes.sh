#!/bin/sh
# same_bytes.sh BIN: emitted sources depend on nothing but the input: two processes that differ in
# directory, home, date, locale, environment and the content of fresh memory write the same bytes.
set -eu
bin=$(cd "$1" && pwd)
memory=/dev/shm # each of the thousand files is written with fsync()
[ -w $memory ] || memory=/tmp
root=$(mktemp -d -p $memory)
trap 'rm -rf "$root"' EXIT

# emit DIR [VARIABLE=VALUE]...
emit() {
  dir=$1
  shift
  mkdir -p "$dir/cuda" "$dir/cpu" "$dir/home"
  (
    cd "$dir"
    set -- env -i PATH="$PATH" HOME="$PWD/home" "$@"
    "$@" "$bin/emit_cuda" all cuda >options
    "$@" "$bin/emit_segments" cpu 2
    for target in cpu cuda; do
      "$@" "$bin/fuseplan" generate 41115 -b 2 -s 100 -m bigbird --lengths 100,64 \
        --target $target --db none.db -q -o generated-$target
    done
    rm -rf home
  )
}

# A locale with a decimal comma, where the system has what it takes to make one.
localedef -i de_DE -f ISO-8859-1 "$root/de_DE" 2>/dev/null || true

emit "$root/a" TZ=UTC+12 LC_ALL=C
emit "$root/a longer/directory" TZ=UTC-14 LOCPATH="$root" LC_ALL=de_DE \
  USER=somebody MALLOC_PERTURB_=165
diff -rq "$root/a" "$root/a longer/directory"
[ "$(find "$root/a" -type f | wc -l)" -gt 500 ]
