#!/bin/sh
# Prints the files of the project that match a pattern, each ended by NUL: what git tracks, and new files beside
# tracked ones.  A directory that git does not know, such as an exported library, is its user's.  Where there is no
# git, or no repository, the project is its folders and what lies beside them.  Golden files are emitted: not printed.
# usage: tests/lint/files.sh PATTERN    (of grep -E, for a path such as base/buf.c)
set -eu
cd "$(dirname "$0")/../.."

# The repository may be another one, above an unpacked archive.
all() {
  if above=$(git rev-parse --show-cdup 2>/dev/null) && [ -z "$above" ]; then
    git ls-files -z
    git ls-files -z --others --exclude-standard --directory | grep -z '/.*[^/]$' || :
  else
    find run [A-Z]* .[cdes]* .gitignore base bench cmd codegen db docs kernels layer model python search tests \
      -type f -print0
  fi
}

# shellcheck disable=SC2016
all | grep -zE "$1" | grep -zv /golden/ |
  xargs -0 -r sh -c 'for file; do [ ! -f "$file" ] || printf "%s\0" "$file"; done' sh
