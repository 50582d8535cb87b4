#!/bin/sh
# roofline.sh BIN "BATCH SEQ_LEN MASK"...: a table in Markdown.  A row for each kernel of the best plan that FUSEPLAN_DB
# knows of a point, and one for its layer: the time alone with its interval, the least time by the roofline of
# `explain`, and its share.
# ROOFLINE_OPTIONS are options of the target (--target cuda).
set -u
bin=$1
shift
: "${ROOFLINE_OPTIONS=--target cuda}"
failed=0
printf '| point | plan | ops | implementation, schedule | us alone | interval | least | share | bound by |\n'
printf '|---|---|---|---|---|---|---|---|---|\n'
for entry; do
  # shellcheck disable=SC2086
  set -- $entry
  # shellcheck disable=SC2086
  json=$("$bin/fuseplan" explain best $ROOFLINE_OPTIONS -b "$1" -s "$2" -m "$3" --format json -q) || {
    failed=1
    continue
  }
  printf '%s' "$json" | jq -r --arg point "($1,$2) $3" '
    def round2: . * 100 | round / 100;
    def percent: . * 100 | round | "\(.) %";
    (.median_ms / .us_per_layer) as $ms
    | (.kernels[] | "| \($point) | | \(.ops | unique | map(tostring) | join("-")) | \(.implementation) \(.schedule)"
        + " | \(.median_us | round2) | \(.ci_low_us | round2) to \(.ci_high_us | round2)"
        + " | \(.least_us | round2) | \(.least_us / .median_us | percent) | \(.bound) |"),
      "| \($point) | \(.value) | layer | | \(.us_per_layer | round2)"
        + " | \(.ci_low_ms / $ms | round2) to \(.ci_high_ms / $ms | round2)"
        + " | \(.least_us | round2) | \(.least_us / .us_per_layer | percent) | |"' || failed=1
done
exit $failed
