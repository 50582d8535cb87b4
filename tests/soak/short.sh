#!/bin/sh
# short.sh PROGRAM FUSEPLAN ARGUMENT...: soak or kills in a directory of its own.
set -eu
program=$1 fuseplan=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$program" "$fuseplan" "$dir" "$@"
