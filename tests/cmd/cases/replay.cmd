# A space of four plans, of which one segment was timed: stage 1 takes 2 s, a plan 0.5.
space() {
  cat <<'END'
{"format":"fuseplan results","version":1}
{"study":"1","inputs":{"init":"uniform","seed":0},"protocol":"1","created_utc":"2026-01-01T00:00:00.000Z","target":{"kind":"cpu","device":"d","uuid":"","capability":"","units":1,"driver":"","compiler":"","libraries":""},"workload":{"text":"b=1 s=8 h=2 w=8 f=64 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full","batch":1,"seq_len":8,"mask":"full","heads":2,"head_size":8,"ffn":64,"layers":1,"eps":1e-05,"dtype":"fp32","lengths":"full"}}
{"study":"1","trial":"segment","choices":["0 generated rows=8"],"status":"ok","stored_utc":"2026-01-01T00:00:00.000Z","median_ms":0.0075,"ci_low_ms":0.0074,"ci_high_ms":0.0076,"sample_count":0,"layers_timed":0,"build_s":1,"verify_s":0.75,"time_s":0.25}
END
  while read -r value ms choices; do
    choices=$(echo "$choices" | sed 's/[0-9][0-9-]*/"& generated x=1"/g; s/" "/","/g')
    echo "{\"study\":\"1\",\"trial\":\"plan\",\"value\":$value,\"choices\":[$choices],\"status\":\"ok\",\"stored_utc\":\"2026-01-01T00:00:00.000Z\",\"median_ms\":$ms,\"ci_low_ms\":$ms,\"ci_high_ms\":$ms,\"sample_count\":0,\"layers_timed\":0,\"time_s\":0.5}"
  done <<'END'
40000 0.5 0-1 2-4 5-7 8 9-14
40001 0.255 0-1 2-4 5-7 8 9-13 14
40002 0.25 0-1 2-4 5-7 8 9-12 13 14
40003 0.3 0-1 2-4 5-7 8 9-12 13-14
END
}
space >small.ndjson
fuseplan replay small.ndjson --space 40000..40003 --strategy random,additive --budget 4 --seeds 3
fuseplan replay small.ndjson --space 40000..40003 --strategy random --budget 4 --seeds 3 --format json
fuseplan replay small.ndjson --space 40000..40003 --strategy random --budget 4 --seeds 3 --no-segment-times
# Recorded in part: each row says so.
fuseplan replay - --space 40000..40010 --strategy random --budget 3 --seeds 1 --format csv <small.ndjson
# Without seconds there are no columns of them.
sed 's/,"time_s":0.5//' small.ndjson >no_seconds.ndjson
fuseplan replay no_seconds.ndjson --space 40000..40003 --strategy random --budget 4 --seeds 2
