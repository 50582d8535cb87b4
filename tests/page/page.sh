#!/bin/sh
# page.sh FUSEPLAN RESULTS: the page of all 16384 plans of the recorded RESULTS as text: its data, its structure, and
# what it must not hold.  Texts in the database try to leave their places in JSON and HTML.
set -eu
. "$(dirname "$0")/../cmd/suite.sh"
gzip -dc "$2" >results.ndjson
fuseplan db import results.ndjson -q >printed
hostile='A&B "<b>" </script><script>window.hostile = 1</script><!-- \u003c'
change "$FUSEPLAN_DB" "UPDATE target SET device = '$hostile', uuid = '1';
  UPDATE trial SET status = 'failed', reason_code = 'compile', reason = '</script><!--', median_ms = NULL,
    ci_low_ms = NULL, ci_high_ms = NULL WHERE kind = 'plan' AND plan = 32769;
  UPDATE trial SET status = 'censored', reason_code = 'timeout', reason = 'too slow' WHERE kind = 'plan' AND plan = 32770;
  UPDATE trial SET conditions = '{\"peak_flops_per_s\":1e12,\"peak_bytes_per_s\":2e10}' WHERE kind = 'segment'"
fuseplan report -q -o page.html
[ "$(wc -c <page.html)" -le 3000000 ] || fail "the page is larger than 3 MB"
iconv -f UTF-8 -t UTF-8 page.html >copy || fail "the page is no UTF-8"

# As a browser finds the data: it has no '<'.
sed -n 's/.*<script type="application\/json" id="data">\([^<]*\)<\/script>.*/\1/p' page.html | jq '.[0]' >data.json
jq -e --arg device "$hostile" '.device.name == $device and
  .plans.reasons == {"compile: </script><!--": 1} and
  .options == "-b 1 -s 128 -m causal --target cuda" and (.baselines | length) == 2 and (.slots | length) == 121 and
  (.finals | length) > 2 and .best.us_per_layer > 0 and .rates.of_device and .rates.bytes_per_s == 2e10 and
  .mask.shades != null' data.json >jq.txt || fail "the data is other than the database: $(head -c 300 data.json)"
jq -e '.plans.columns | (.value | unique) == [range(32768; 49152)] and all(.[]; length == 16384) and
  ([.us, .status] | transpose | all((.[0] == null) == (.[1] == 2))) and
  (.status | map(select(. != 0)) | sort) == [1, 2]' data.json >jq.txt || fail "not every plan is there"

jq -e '.best.unstable == null and (.database | endswith("suite.db"))' data.json >jq.txt || fail "unstable, or no database"

# Two searches that ran at the same time are two.
change "$FUSEPLAN_DB" "INSERT INTO search SELECT column1, study.id, column2, '{}', created_utc, NULL, NULL
    FROM study, (VALUES ('a', 'guided'), ('b', 'random'));
  UPDATE trial SET search = iif(plan % 2, 'a', 'b') WHERE kind = 'plan'"
fuseplan report -q -o again.html
sed -n 's/.*<script type="application\/json" id="data">\([^<]*\)<\/script>.*/\1/p' again.html >again.json
jq -e '.[0].plans.searches | length == 2' again.json >jq.txt || fail "searches: $(cat jq.txt)"

# What was timed again is the newest; of a pack nothing else is known.
stored="SELECT min(stored_utc), max(stored_utc) FROM trial WHERE kind <> 'segment'"
for kind in none plan; do
  change "$FUSEPLAN_DB" "UPDATE trial SET stored_utc = '2030-01-02T03:04:05.678Z' WHERE kind = 'final';
    DELETE FROM choice WHERE trial IN (SELECT id FROM trial WHERE kind = '$kind'); DELETE FROM trial WHERE kind = '$kind'"
  fuseplan report -q -o again.html
  sed -n 's/.*<script type="application\/json" id="data">\([^<]*\)<\/script>.*/\1/p' again.html |
    jq -r '.[0].plans | "\(.first_utc)|\(.last_utc)"' >measured
  [ "$(cat measured)" = "$(sqlite3 "$FUSEPLAN_DB" "$stored")" ] || fail "measured from and until: $(cat measured)"
done

# One file: nothing that a browser would load.
for load in ' src=' '@import' 'url(' 'fetch(' XMLHttpRequest 'import(' 'href="http' sendBeacon '{{'; do
  grep -qF -e "$load" page.html && fail "the page has '$load'"
done
grep -qF "default-src 'none'" page.html || fail "the page may load other files"
grep -qF 'Copyright (c) 2022 Leon Sorokin' page.html || fail "no copyright of the charts"

# count TEXT: how often the page has it.
count() { grep -oF -e "$1" page.html | wc -l; }
for pair in '<script:</script>' '<section:<h2'; do
  [ "$(count "${pair%:*}")" -eq "$(count "${pair#*:}")" ] || fail "not as many ${pair%:*} as ${pair#*:}"
done
if [ "$(count '<h1')" -ne 1 ] || [ "$(count '<main')" -ne 1 ]; then fail "not one heading and one main part"; fi
grep -qF '<html lang="en">' page.html || fail "the page has no language"
# Each element that the scripts ask for is there, once.
grep -oE '(^|[^A-Za-z0-9])at\("[^"]*"' page.html | sed 's/.*"\(.*\)"/\1/' | sort -u >asked
[ "$(wc -l <asked)" -gt 10 ] || fail "no elements are asked for"
while read -r id; do
  [ "$(count " id=\"$id\"")" -eq 1 ] || fail "the element '$id' is there $(count " id=\"$id\"") times"
done <asked
