#!/bin/sh
# Holds what CONTRIBUTING says under "Dialect" and clang-format and clang-tidy do not check.
# Prints FILE:LINE: what is wrong and what to write.
# usage: tests/lint/lint.sh BUILD_DIR
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# A CUDA kernel that may have more than 400 lines: it is one algorithm, read from top to bottom.
long_files='kernels/cuda/handwritten.cuh'

files=tests/lint/files.sh

# A function begins with { and ends with } in the first column: clang-format sees to that.
sizes() {
  # shellcheck disable=SC2016
  $files '/.*\.(c|h|cu|cuh|sh)$' |
    xargs -0 awk -v long_files=" $long_files " '
      function file_end() {
        if (lines > 400 && !index(long_files, " " file " "))
          print file ":401: this file has " lines " lines: split it into files of at most 400"
      }
      FNR == 1 { file_end(); file = FILENAME; begin = 0 }
      { lines = FNR }
      /^\{$/ { begin = before ~ /^namespace / ? 0 : FNR }
      /^\}/ {
        if (begin && FNR - begin - 1 > 80 && FILENAME !~ /\.sh$/)
          print FILENAME ":" begin ": this function has " FNR - begin - 1 \
            " lines: split it into functions of at most 80"
        begin = 0
      }
      { before = $0 }
      END { file_end() }'
}

names() {
  $files '/.*\.(c|h|cu|cuh)$' | xargs -0 grep -nw rc |
    sed 's/^\([^:]*:[0-9]*\):.*/\1: this name is rc: call a status that is returned result/'
  $files '/report\.c$' | tr '\0' '\n' | sed -n '2,$s/$/:1: this is a second report.c: name the file after its content/p'
}

# Tables and code may be wider.
prose() {
  # shellcheck disable=SC2016
  $files '\.md$' | xargs -0 awk '
    FNR == 1 { code = 0 }
    /^ *```/ { code = !code }
    !code && !/^ *(\||```)/ && !/^    / { print FILENAME ":" FNR ": " $0 }' |
    LC_ALL=C.UTF-8 grep -E '^[^:]*:[0-9]+: .{121}' |
    sed 's/^\([^:]*:[0-9]*\):.*/\1: this line has more than 120 columns: wrap it/'
}

# Directions of includes and circles of files.
house() {
  $files '^[^t].*\.[ch]$' | python3 tests/lint/house.py "$build"
}

# What a merge or a build leaves behind.
leftovers() {
  $files '\.(orig|rej|o|a|so)$' | tr '\0' '\n' | sed 's/$/:1: this file is left over: delete it/'
  $files . | xargs -0 grep -l -a -m 1 "^$(printf '\177')ELF" | sed 's/$/:1: this is a built program: delete it/' || :
}

{
  sizes
  names
  prose
  house
  leftovers
} >"$out/found"
cat "$out/found"
[ ! -s "$out/found" ]
