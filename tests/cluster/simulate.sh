#!/bin/sh
# simulate.sh SOURCES: the model of sweeps draws the picture of docs/cluster.md, and agrees with what was measured.
set -eu
cd "$1"
picture=$(mktemp)
trap 'rm -f "$picture"' EXIT
python3 tests/cluster/simulate.py picture "$picture" tests/cluster/times.txt
cmp "$picture" docs/pictures/sweep.svg
python3 tests/cluster/simulate.py compare tests/cluster/times.txt | tee "$picture"
awk 'NR > 1 && ($5 < 0.7 || $5 > 1.4) { print "FAILED: " $0; bad = 1 } END { exit bad || NR < 6 }' "$picture"
