#!/bin/sh
# progress.sh FUSEPLAN: what a command that takes long shows on a terminal and
# elsewhere, and the events that it writes.
set -eu
. "$(dirname "$0")/suite.sh"
export TERM=xterm
bench='fuseplan bench 32769 --target cpu -b 1 -s 8 -m causal -H 1 -W 4 -L 1 --baseline none'

# Waits until a command succeeds, a minute at most: what a loaded machine shows late is right too.
wait_until() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -le 1200 ] || fail "not within a minute: $*"
    sleep 0.05
  done
}

# A compiler that keeps a segment until the test has seen what it waits for, and then fails.
cat >slow_cc <<'END'
#!/bin/sh
for file; do
  case $file in *.c) grep -q 'Operators ' "$file" || continue ;; *) continue ;; esac
  while [ -e "$HOME/hold" ]; do sleep 0.02; done
  exit 1
done
exec cc "$@"
END
chmod +x slow_cc
export FUSEPLAN_CC="$root/slow_cc"
fuseplan doctor >doctor.txt || true # makes the compiler prove itself

# Whether the terminal shows a line of compiling, and the events tell of it.
compiling_seen() {
  tr '\r' '\n' <seen | grep -q 'bench, compiling .* | [0-9]*:[0-9]' && grep -q '"compiling"' quiet.ndjson
}

echo "terminal"
: >hold
: >seen
: >quiet.ndjson
script -qefc "$bench -q --db q.db --events quiet.ndjson" silent >typed &
script -qefc "stty cols 60; $bench" seen >typed &
wait_until compiling_seen
rm hold
wait
grep -q '^32769 ' silent || fail "no results: $(cat silent)"
grep -q '| [0-9]*:' silent && fail "--quiet shows progress"
tr '\r' '\n' <seen >lines
[ "$(sed 's/^.\[K//' lines | grep '| [0-9]*:' | awk '{ print length }' | sort -n | tail -n 1)" -lt 60 ] ||
  fail "a line wraps"
grep -q '^.\[Kvalue ' lines || fail "the line was not removed before the results"
sed -n '/^.\[Kvalue/,$p' lines | grep -q '| [0-9]*:' && fail "a line of progress among the results"

echo "events"
as_schema events quiet.ndjson
jq -se '(.[0] | .event == "start" and .command == "bench") and (.[-1] | .event == "end" and .exit_status == 3) and
  ([.[].elapsed_s] | . == sort) and any(.[]; .event == "step" and .part.phase == "compiling")' quiet.ndjson >jq.txt ||
  fail "events: $(cat quiet.ndjson)"
awk 'BEGIN { for (i = 0; i < 16; i++) { b = ""; for (k = 0; k < 4; k++) b = b int(i / 2 ^ k) % 2;
  print "100010100010" b, 10 + i } }' >times.txt
train() { fuseplan train --data times.txt -q "$@"; }
train --events - --format csv >both.txt
head -n 1 both.txt | grep -q '"event":"start"' || fail "--events -: no events"
grep -q '^default,16,' both.txt || fail "--events -: no results"
touch real.ndjson && ln -s real.ndjson link.ndjson
train --events link.ndjson >results.txt
if [ ! -L link.ndjson ] || [ ! -s real.ndjson ]; then fail "a symlink was replaced"; fi

echo "events that cannot be written"
expect 1 train --events /dev/full
grep -q '^default ' out || fail "/dev/full: no results"
grep -q "events: cannot write '/dev/full': No space left" said || fail "/dev/full: said $(cat said)"
mkfifo fifo
: <fifo & # a reader that leaves at once
code=0
train --events fifo >results.txt 2>said || code=$?
wait
grep -q '^default ' results.txt || fail "a reader that leaves ends the command: exit $code, $(cat said)"
expect 2 train --events missing/e.ndjson
echo "all well"
