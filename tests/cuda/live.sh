#!/bin/sh
# live.sh BIN WORKLOAD...: searches each workload, "BATCH SEQ_LEN MASK", and prints a row for each search: its
# plan, that plan's microseconds a layer and how many times as fast as 41115 it is, both from the search's finals; seconds
# in all and by phase, how many segments it timed and took from other searches, and the most memory of the host that the
# search and its worker held, in MB.
#   empty    cache and database are empty
#   cached   binaries are cached, nothing is measured
#   mask     another mask in the database of that search
#   limit8   binaries are cached, nothing is measured, 8 s
#   limit20  cache and database are empty, 20 s
#   beside   no search: the plans of cached, limit8 and limit20 in turn in one process, by PyTorch and nvcc (beside.py)
# LIVE_SEARCHES names the searches that run (all; cached and mask go together), LIVE_OPTIONS more options.
set -u
bin=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: "${LIVE_SEARCHES=empty cached mask limit8 limit20 beside}" "${LIVE_OPTIONS=--target cuda}"

# sums DB: seconds of building, verifying (feeding included) and timing of the newest search's trials, and its segments.
sums() {
  sqlite3 -separator ' ' "$1" "SELECT printf('%.1f', total(build_s)), printf('%.1f', total(verify_s)),
    printf('%.1f', total(time_s)), total(kind = 'segment') FROM trial
    WHERE search = (SELECT id FROM search ORDER BY started_utc DESC LIMIT 1)"
}

# during EVENTS WORD: seconds of the steps that name a word.  Steps are written a few times a second.
during() {
  jq -r '[.elapsed_s, .event, .phase // "", .part.phase // ""] | join(" ")' "$1" | awk -v word="$2" '
    named { seconds += $1 - at }
    { at = $1 }
    $2 == "step" { named = index($0, word) > 0 }
    END { printf "%.1f", seconds }'
}

# memory: the most memory that fuseplan and its worker hold until there is a file $dir/ended, in MB.
memory() {
  most=0
  while [ ! -e "$dir/ended" ]; do
    most=$(cat /proc/[0-9]*/status 2>"$dir/ignored" | awk -v most="$most" '
      /^Name:/ { name = $2 }
      /^VmHWM:/ && name ~ /^fuseplan/ && $2 > held[name] { held[name] = $2 }
      END {
        for (name in held) sum += held[name]
        print(sum > most ? sum : most)
      }')
    sleep 0.2
  done
  echo "$((most / 1024))" >"$dir/memory"
}

# finals: the plan of the search that has ended, its time and its speed-up over 41115; - where it held no finals.
finals() {
  jq -r '(.baselines | map(select(.value == 41115).speedup) | first) as $speedup
    | def shown: if . == null then "-" else . * 100 | round / 100 end;
    [.best.value, (.best.us_per_layer | shown), ($speedup | shown)] | join(" ")' "$dir/json"
}

# search NAME CACHE DB BATCH SEQ_LEN MASK [OPTION...]: a row.
search() {
  name=$1 db=$3 workload="$4 $5 $6"
  rm -f "$dir/ended"
  memory &
  # shellcheck disable=SC2086
  FUSEPLAN_CACHE=$2 FUSEPLAN_DB=$db timeout 400 "$bin/fuseplan" search $LIVE_OPTIONS -b "$4" -s "$5" -m "$6" \
    --seed 1 --format json --events "$dir/events" "$(test $# -gt 6 && echo "$7" || echo --time-limit=380)" \
    >"$dir/json" 2>"$dir/said"
  result=$?
  touch "$dir/ended"
  wait
  [ $result -eq 0 ] || {
    echo "$workload, $name: $(tail -n 1 "$dir/said")"
    return 1
  }
  taken=$(sed -n 's/^fuseplan: took \([0-9]*\) segment times.*/\1/p' "$dir/said")
  # shellcheck disable=SC2046
  set -- $(finals) $(sums "$db")
  printf '%-20s %-8s %6s %8s %6s %8.1f %8s %8s %8s %8s %8s %9.0f %6s %7s\n' "$workload" "$name" "$1" "$2" "$3" \
    "$(jq .seconds "$dir/json")" "$4" "$(during "$dir/events" oracle)" "$5" "$6" \
    "$(during "$dir/events" model)" "$(echo "$7 ${taken:-0}" | awk '{ print $1 - $2 }')" "${taken:-0}" "$(cat "$dir/memory")"
}

# beside BATCH SEQ_LEN MASK
beside() {
  workload="$1 $2 $3"
  set --
  for db in cached limit8 limit20; do
    [ ! -e "$dir/db.$db" ] || set -- "$@" "$dir/db.$db"
  done
  # shellcheck disable=SC2086
  python3 "$here/beside.py" "$bin/fuseplan" $workload "$@"
}

wanted() {
  case " $LIVE_SEARCHES " in *" $1 "*) return 0 ;; esac
  return 1
}

printf '%-20s %-8s %6s %8s %6s %8s %8s %8s %8s %8s %8s %9s %6s %7s\n' workload search plan us 41115 seconds build oracle \
  verify time learn segments taken memory
failed=0
for w in "$@"; do
  # shellcheck disable=SC2086
  set -- $w
  other=causal
  [ "$3" != causal ] || other=full
  rm -rf "$dir/cache" "$dir/cold"
  rm -f "$dir"/db.*
  {
    { ! wanted empty || search empty "$dir/cache" "$dir/db.empty" "$1" "$2" "$3"; } &&
      { ! wanted cached || search cached "$dir/cache" "$dir/db.cached" "$1" "$2" "$3"; } &&
      { ! wanted mask || search mask "$dir/cache" "$dir/db.cached" "$1" "$2" "$other"; } &&
      { ! wanted limit8 || search limit8 "$dir/cache" "$dir/db.limit8" "$1" "$2" "$3" --time-limit=8; } &&
      { ! wanted limit20 || search limit20 "$dir/cold" "$dir/db.limit20" "$1" "$2" "$3" --time-limit=20; } &&
      { ! wanted beside || beside "$1" "$2" "$3"; }
  } || failed=1
done
exit $failed
