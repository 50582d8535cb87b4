#!/bin/sh
# Disturbs searches and fails if anything is lost or grows, in a directory that stays if it fails.
# `soak HOURS` lets random faults happen, `kills COUNT` kills fuseplan, workers and compilers so often.
# usage: tests/soak/disturb.sh soak|kills NUMBER [SEED], in a tree built with its tests
set -eu
cd "$(dirname "$0")/../.."
program=$1
shift
dir=$(mktemp -d)
echo "in $dir"
"build/release/bin/$program" "$PWD/build/release/bin/fuseplan" "$dir" "$@"
rm -rf "$dir"
