#!/bin/sh
# Prints which share of the lines and branches of each folder the quick suites run; needs gcovr and jq.
# usage: tests/lint/coverage.sh
set -eu
cd "$(dirname "$0")/../.."
cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
export FUSEPLAN_SANDBOX=off # it would keep workers from writing what they have reached
ctest --preset coverage -j "$(nproc)" -LE slow || echo "suites failed; what they reached counts" >&2
printf '%-8s %8s %8s\n' folder lines branches
for folder in base layer codegen bench db model search cmd; do
  gcovr -r . -f "$folder/" --exclude-unreachable-branches --exclude-throw-branches \
    --json-summary "build/coverage/$folder.json" "build/coverage/$folder"
  jq -r --arg folder "$folder" '[$folder, .line_percent, .branch_percent] | @tsv' "build/coverage/$folder.json" |
    awk '{ printf "%-8s %7s%% %7s%%\n", $1, $2, $3 }'
done
