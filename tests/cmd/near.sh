#!/bin/sh
# near.sh A B MOST: says how far two files of fp32 numbers differ; fails if by more than MOST of A's norm.
set -eu
paste -d ' ' "$(od -A n -v -t f4 -w4 "$1" >"$1.txt" && echo "$1.txt")" \
  "$(od -A n -v -t f4 -w4 "$2" >"$2.txt" && echo "$2.txt")" |
  awk -v most="$3" '{ d = $1 - $2; sum += d * d; all += $1 * $1; n++ }
    END { printf "%d values, difference %g\n", n, sqrt(sum / all); exit n < 4000 || !(sqrt(sum / all) <= most) }'
