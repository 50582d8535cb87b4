#!/bin/sh
# packs.sh FUSEPLAN FAKE_GPU: a pack made on this machine answers where the database knows nothing:
# query, export and generate at once, search as its first plan; sweep verify runs what it says.
# shellcheck disable=SC2086 # variables that are not quoted are words
set -eu
. "$(dirname "$0")/suite.sh"
fake=$2
export FUSEPLAN_LOCK_DIR="$root"
mkdir wisdom
export FUSEPLAN_WISDOM="$root/wisdom"
workload='-b 1 -s 8 -m causal -H 1 -W 8 -L 1 --target cpu'
searched='--space 41100..41101 --baseline none'
on() { # COMMAND [ARGUMENT...]: of the workload
  command=$1
  shift
  fuseplan "$command" $workload "$@" 2>said
}

echo "a pack is a part of an export"
on search $searched -q >out || fail "exit $?"
fuseplan db export --pack -o wisdom/cpu.ndjson
fuseplan db export -o all.ndjson
LC_ALL=C comm -23 wisdom/cpu.ndjson all.ndjson >out
[ ! -s out ] || fail "lines that 'db export' has not: $(cat out)"
fuseplan db import wisdom/cpu.ndjson --db imported.db -q >out
value=$(on query --format csv | awk -F, 'NR == 2 { print $1, $4 }')
[ "$(on query --db imported.db --format csv | awk -F, 'NR == 2 { print $1, $4 }')" = "$value" ] || fail "imported: another plan"
fuseplan db forget --db imported.db -q -b 1 -s 8 -m causal -H 1 -W 8 -L 1 --target cpu >out
refused 3 'no plan in .* has won' fuseplan db export --pack --db imported.db

echo "an empty database and cache"
export FUSEPLAN_DB="$root/new.db"
on query --format json >query.json || fail "exit $?"
as_schema search query.json
grep -q "the answer is from the pack '$root/wisdom/cpu.ndjson', measured on '" said || fail "query does not say it"
grep -q "\"pack\": \"$root/wisdom/cpu.ndjson\"" query.json || fail "$(cat query.json)"
[ "$(on query --format csv | awk -F, 'NR == 2 { print $1, $4 }')" = "$value" ] || fail "another plan"
on query --top 3 >out || fail "exit $?"
[ ! -e new.db ] || fail "a query made a database"
on export best,default -o library >out || fail "exit $?"
grep -q "it is from the pack '$root/wisdom/cpu.ndjson'" said || fail "export does not say it"
grep -q 'segments run with the fastest schedules known' said || fail "export has other schedules"
on explain best >out || fail "exit $?"
grep -q 'is from the pack' said || fail "explain does not say it"
refused 3 'no database' on bench best

echo "a search begins with it"
on search $searched --events events.ndjson --format json >search.json || fail "exit $?"
grep -q "the search begins with a plan from the pack" said || fail "search does not say it"
grep -q '"pack"' search.json && fail "the answer of a search is measured here"
[ "$(sqlite3 new.db "SELECT count(*) FROM trial WHERE kind = 'plan'")" = 2 ] || fail "not both plans are measured"
on query >out
grep -q 'pack' said && fail "the database knows more than the pack"
on search $searched >out || fail "exit $?"
grep -q 'pack' said && fail "the second search needs no pack"

echo "rows that do not count"
export FUSEPLAN_DB="$root/none.db"
mv wisdom pack
cp -R pack wisdom
sed -i 's/"device":"[^"]*"/"device":"another"/' wisdom/cpu.ndjson
refused 3 "has this workload of 'another', and the device here is" on query -v
on query >out && fail "a pack of another device answers"
grep -q pack said && fail "without -v nothing is said of other devices"
cp pack/cpu.ndjson wisdom/
for other in '-s 9' '-m full' '--gate' '-W 16' '--norm pre' '--lengths 7'; do
  on query -q $other >out && fail "the pack answers $other"
done
sed -i 's/\("trial":"final".*\)generated [^"]*"/\1generated unknown=1"/' wisdom/cpu.ndjson
grep -q 'unknown=1' wisdom/cpu.ndjson || fail "no generated segment in $(cat wisdom/cpu.ndjson)"
refused 3 "the plan of the pack '.*' is left out: .*unknown" on query -v
head -c 700 pack/cpu.ndjson >wisdom/cut.ndjson
refused 3 "a pack is left out: '.*/cut.ndjson', line [23]: .*cut short" on query
refused 2 "cut.ndjson', line [23]: .*cut short" fuseplan sweep verify wisdom/cut.ndjson
refused 2 "cut.ndjson', line [23]: .*cut short" fuseplan db import wisdom/cut.ndjson
echo "no pack" >wisdom/README
cp pack/cpu.ndjson wisdom/right.ndjson
on query >out || fail "beside a damaged pack a whole one does not answer"
FUSEPLAN_WISDOM=$root/nowhere refused 3 "FUSEPLAN_WISDOM is '.*nowhere', and there is no such directory" on query
rm -r wisdom
mkdir wisdom
on query >out && fail "no pack answers"
grep -q pack said && fail "a directory without packs is silent"

echo "verify"
pack_with() { # LOW HIGH: the pack with such an interval of the plan's time
  sed "/\"final\"/s/\"ci_low_ms\":[^,]*,\"ci_high_ms\":[^,]*/\"ci_low_ms\":$1,\"ci_high_ms\":$2/" pack/cpu.ndjson
}
pack_with 1e-9 1e9 >right.ndjson
fuseplan sweep verify right.ndjson --format json >verified.json 2>said || fail "exit $?: $(cat verified.json)"
as_schema sweep-verify verified.json
grep -q '"state": "confirmed"' verified.json || fail "$(cat verified.json)"
jq -c 'if .trial == "final" then .median_ms = 1e8 | .ci_low_ms = 1e8 | .samples_ms |= map(1e8) else . end' \
  right.ndjson >slow.ndjson
expect 3 fuseplan sweep verify right.ndjson slow.ndjson --format ndjson
grep -q 'slow.ndjson.*"state":"differs"' out || fail "$(cat out)"
sed 's/"device":"[^"]*"/"device":"another"/' right.ndjson >another.ndjson
refused 3 'no row was measured on a device' fuseplan sweep verify another.ndjson
grep -q elsewhere out || fail "$(cat out)"
sed 's/\("trial":"final".*\)generated [^"]*"/\1generated unknown=1"/' right.ndjson >unknown.ndjson
expect 3 fuseplan sweep verify unknown.ndjson --format ndjson
grep -q '"state":"failed".*unknown' out || fail "$(cat out)"
refused 2 "takes no option '--batch'" fuseplan sweep verify right.ndjson -b 1
refused 2 "needs PACK" fuseplan sweep verify
refused 2 "unknown target 'gpu'" fuseplan sweep verify right.ndjson --target gpu
refused 2 "'db list' takes no option '--pack'" fuseplan db list --pack

echo "the table of shipped packs"
table=$schemas/../../db/wisdom/table
fuseplan sweep plan "$table" -t fp16 --target cuda --format csv -q >rows 2>said || fail "exit $?"
fuseplan search -b 1 -s 8 --preset none 2>said && fail "a preset 'none'"
sed 's/.*expected //; s/ or /, /' said | tr -s ', ' '\n' >presets
while read -r preset; do
  grep -q -- "^--preset $preset " "$table" || fail "$preset is missing in $table"
done <presets

echo "a GPU"
unset FUSEPLAN_TEST_BINARIES
use_fake_gpu "$fake" right
workload='-t fp32 -b 1 -s 5 -H 2 -W 16 -L 1 --target cuda'
on search $searched -q --db gpu.db >out || fail "exit $?"
fuseplan db export --pack --db gpu.db -o wisdom/gpu.ndjson
value=$(on query --db gpu.db --format csv | awk -F, 'NR == 2 { print $1, $4 }')
[ "$(on query --format csv | awk -F, 'NR == 2 { print $1, $4 }')" = "$value" ] || fail "another plan: $(cat said)"
export FUSEPLAN_CACHE="$root/empty"
on search $searched >out || fail "exit $?"
grep -q "the search begins with a plan from the pack" said || fail "search does not say it"
echo "packs that come with the program"
unset FUSEPLAN_WISDOM
export FUSEPLAN_PASS='FAKE_*'
for pack in "$schemas"/../../db/wisdom/*.ndjson; do
  grep -q '"uuid":"[^"]' "$pack" && fail "$pack tells which machine measured it"
  fuseplan sweep verify "$pack" --format ndjson >rows 2>said || : # of another device
  row=$(sed -n 's/.*"row":"\([^"]*\)".*/\1/p' rows | head -n 1)
  device=$(sed -n 's/.*"device":"\([^"]*\)".*/\1/p' rows | head -n 1)
  FAKE_GPU=hopper FAKE_GPU_NAME=$device refused 0 "from the pack '.*/share/fuseplan/wisdom/${pack##*/}', measured on '$device'" \
    fuseplan query $row --target cuda --db none.db
done
echo "all well"
